"""``make package``: the chart as an archive, and which images go where.

    python3 -m scripts.package [REGISTRY]

Writes dist/watercolour-VERSION.tgz by helm and prints what a cluster without our images needs done:
the archives to push, their digests, and the values that point the chart at a registry.
"""

from __future__ import annotations

import argparse
import json
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from scripts import images
from tests.cluster.ground import binaries

DIST = images.ROOT / "dist"
REGISTRY = "registry.example.com/mirror"


def pushes(registry: str) -> list[str]:
    """For every image, its archive, its digest and the command that pushes it."""
    lines: list[str] = []
    for image in images.IMAGES:
        name, archive = images.reference(image), images.cache() / f"{image.name}.tar"
        record = archive.with_suffix(".json")
        if not archive.exists() or not record.exists():
            lines.append(f"# {name} is not built:  make images IMAGES={image.name}")
            continue
        known = json.loads(record.read_text(encoding="utf-8"))
        lines.append(f"# {known['digest']}, {known['bytes'] / 1e6:.0f} MB")
        where = f"docker://{registry}/{name}"
        lines.append(shlex.join(["skopeo", "copy", f"oci-archive:{archive}", where]))
    return lines


def main(argv: Sequence[str] | None = None) -> int:
    """Package the chart; 3 if helm failed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("registry", nargs="?", default=REGISTRY, help=f"default: {REGISTRY}")
    registry = parser.parse_args(argv).registry.removeprefix("https://").rstrip("/")
    try:
        helm = binaries.provide("kubectl", images.say) / "helm"
    except binaries.BinariesMissing as missing:
        images.say(str(missing))
        return 3
    DIST.mkdir(exist_ok=True)
    command = [str(helm), "package", str(images.CHART), "--destination", str(DIST)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        images.say(f"helm package failed: {done.stderr.strip()}")
        return 3
    archive = Path(done.stdout.strip().rpartition(" ")[2]).relative_to(images.ROOT)
    sys.stdout.write(
        "\n".join(
            [
                f"# The chart: {archive}",
                "# Push the images to a registry that the cluster's nodes reach, by skopeo or by",
                "# any other tool that takes OCI archives:",
                *pushes(registry),
                "# Install it; a registry that wants a password also takes a pull Secret in each",
                "# namespace (--set image.pullSecrets={NAME}):",
                f"helm install watercolour {archive} --namespace watercolour-system "
                f"--create-namespace --set image.registry={registry}",
                "",
            ]
        )
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
