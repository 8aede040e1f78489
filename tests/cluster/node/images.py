"""Images on a node: the sandbox's, CoreDNS, and those of the archives that `make images` writes."""

from __future__ import annotations

import hashlib
import os
import tarfile
import tempfile
from collections.abc import Callable
from pathlib import Path

import yaml
from tests.cluster.node import archive, daemons
from tests.cluster.node.daemons import COREDNS, SANDBOX
from tests.cluster.node.place import Place

ROOT = Path(__file__).resolve().parents[3]
# The chart's name of an image, and the archive's.
ARCHIVES = {
    "operator": "operator",
    "trainer": "trainer",
    "renderers": "renderer",
    "env": "env",
    "scorerEmbedded": "scorer-embedded",
}
USER = "65532:65532"
_MARKS = "localhost/watercolour-node/imported"


class ImageMissing(Exception):
    """An archive is not there; the message names the remedy."""


def folder() -> Path:
    """Where archives lie: $WATERCOLOUR_CACHE/images, ~/.cache/watercolour/images."""
    root = os.environ.get("WATERCOLOUR_CACHE")
    return (Path(root) if root else Path.home() / ".cache" / "watercolour") / "images"


def wanted() -> dict[str, str]:
    """The names under which the chart's values know the images, by archive."""
    values = yaml.safe_load((ROOT / "charts" / "watercolour" / "values.yaml").read_text())
    return {name: values["image"][key] for key, name in ARCHIVES.items()}


def digest(name: str) -> str | None:
    """Of an archive's image, shortened; None when there is no archive."""
    path = folder() / f"{name}.tar"
    return _digest(path) if path.exists() else None


def bring(place: Place, say: Callable[[str], None], names: tuple[str, ...] = ()) -> None:
    """Import the images that the node does not have yet, all or the named ones.

    Raises ImageMissing for one that neither has an archive nor is on the node by other means.
    """
    there = set(daemons.ctr(place, "images", "ls", "--quiet").split())
    for name, reference in wanted().items():
        if names and name not in names:
            continue
        path = folder() / f"{name}.tar"
        if not path.exists() and f"docker.io/{reference}" in there:
            continue
        if not path.exists():
            raise ImageMissing(f"{path} is not there: build it with  make images")
        mark = f"{_MARKS}/{name}:{_digest(path)}"
        if mark in there:
            continue
        say(f"importing {name} ({path.stat().st_size >> 20} MiB)")
        daemons.ctr(place, "images", "import", str(path))
        made, known = archive.names(path)[0], f"docker.io/{reference}"
        for tag in (known, mark):
            daemons.ctr(place, "images", "tag", "--force", made, tag)
        # The kubelet looks for the whole name alone.
        old = {each for each in there if each.startswith(f"{_MARKS}/{name}:")}
        if made != known:
            old.add(made)
        for each in old:
            daemons.ctr(place, "images", "rm", each)


def own(place: Place, programs: dict[str, Path]) -> None:
    """Import the sandbox's image and CoreDNS, made of the static programs alone."""
    there = set(daemons.ctr(place, "images", "ls", "--quiet").split())
    made = {SANDBOX: programs["probe"] / "probe", COREDNS: programs["coredns"] / "coredns"}
    with tempfile.TemporaryDirectory(dir=place.own) as scratch:
        for name, program in made.items():
            # The folder of a program is named by what it was made from.
            marked = f"{name}-{program.parent.name.rpartition('-')[2]}"
            if marked in there:
                continue
            path = Path(scratch) / "image.tar"
            user = "0" if name == COREDNS else USER  # port 53
            archive.write(path, name, {program.name: program}, [f"/{program.name}"], user)
            daemons.ctr(place, "images", "import", str(path))
            daemons.ctr(place, "images", "tag", "--force", name, marked)
            for old in there:
                if old.startswith(f"{name}-"):
                    daemons.ctr(place, "images", "rm", old)


def probe(program: Path) -> Path:
    """An archive of the image of the tests' pods, for a cluster that is not ours."""
    path = folder() / "probe.tar"
    path.parent.mkdir(parents=True, exist_ok=True)
    archive.write(path, SANDBOX, {program.name: program}, [f"/{program.name}"], USER)
    return path


def _digest(path: Path) -> str:
    """An archive's index names its images by their digests, so it stands for all of it."""
    with tarfile.open(path) as packed:
        index = packed.extractfile("index.json")
        assert index is not None
        return hashlib.sha256(index.read()).hexdigest()[:16]
