"""What an image holds, as a CycloneDX document: read from its files, not from what was asked for.

Debian's packages come from dpkg's own list, Python's from their metadata, and p5, p5.brush and the
scorer's backbone from the manifests that the project writes beside them. Pure but for reading.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any
from urllib.parse import quote

Component = dict[str, Any]

#: Where an image has Python packages (images/prepare).
FOLDERS = ("opt/venv/lib/python3*/site-packages", "opt/torch", "opt/watercolour/lib")
VENDORED = "opt/watercolour/lib/watercolour/render/vendor/manifest.json"
BACKBONE = "opt/watercolour/lib/watercolour/score/weights/backbone.json"

#: Licences of what is vendored; the texts lie beside it.
VENDORED_LICENCES = {"p5": "LGPL-2.1-only", "p5.brush": "MIT"}


def document(root: Path, name: str) -> dict[str, Any]:
    """CycloneDX 1.6 of the image whose files are below a folder.

    The same files give the same document: it has no time, and its number is made of its content.
    """
    held = [*debian(root), *python(root), *vendored(root), *backbone(root)]
    held = sorted({each["bom-ref"]: each for each in held}.values(), key=lambda c: c["bom-ref"])
    stem, _, version = name.rpartition(":")
    content = json.dumps([name, held], sort_keys=True)
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, content)}",
        "version": 1,
        "metadata": {
            "component": {"type": "container", "bom-ref": name, "name": stem, "version": version}
        },
        "components": held,
    }


def debian(root: Path) -> Iterator[Component]:
    """Debian's packages that are installed."""
    status = root / "var/lib/dpkg/status"
    paragraphs = status.read_text(encoding="utf-8").split("\n\n") if status.exists() else []
    for paragraph in paragraphs:
        fields = dict(re.findall(r"^([A-Za-z-]+): (.*)$", paragraph, re.MULTILINE))
        if fields.get("Status", "").endswith(" installed"):
            name, version = fields["Package"], fields["Version"]
            purl = f"pkg:deb/debian/{name}@{quote(version, safe='')}?arch={fields['Architecture']}"
            yield _component("library", name, version, purl)


def python(root: Path) -> Iterator[Component]:
    """Python's packages, in every folder that the image's environment looks into."""
    folders = [str(found) for pattern in FOLDERS for found in root.glob(pattern)]
    for package in metadata.distributions(path=folders):
        name = re.sub(r"[-_.]+", "-", package.metadata["Name"]).lower()
        purl = f"pkg:pypi/{name}@{quote(package.version, safe='')}"
        expression = package.metadata["License-Expression"]
        yield _component("library", name, package.version, purl, expression)


def vendored(root: Path) -> Iterator[Component]:
    """p5 and p5.brush, as the renderer's manifest has them."""
    manifest = _json(root / VENDORED)
    for name, licence in VENDORED_LICENCES.items():
        if version := manifest.get(name):
            component = _component("library", name, version, f"pkg:npm/{name}@{version}", licence)
            if name == "p5.brush":
                about = f"shaders replaced by watercolour's patch {manifest['patch']}"
                component["pedigree"] = {"notes": about}
            yield component


def backbone(root: Path) -> Iterator[Component]:
    """The embedded scorer's backbone."""
    manifest = _json(root / BACKBONE)
    if manifest:
        name, version = "backbone.onnx", manifest["version"]
        yield {
            **_component("machine-learning-model", name, version, None),
            "hashes": [{"alg": "SHA-256", "content": manifest["sha256"]}],
            "description": f"{manifest['source']}; {manifest['licence']}",
        }


def _component(
    kind: str, name: str, version: str, purl: str | None, licence: str | None = None
) -> Component:
    found: Component = {
        "type": kind,
        "bom-ref": purl or f"{name}@{version}",
        "name": name,
        "version": version,
    }
    if licence:
        found["licenses"] = [{"expression": licence}]
    if purl:
        found["purl"] = purl
    return found


def _json(path: Path) -> dict[str, str]:
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
