"""Image archives (OCI layout) made of static programs, without a builder or a registry."""

from __future__ import annotations

import hashlib
import io
import json
import platform
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

_LAYER = "application/vnd.oci.image.layer.v1.tar"
_CONFIG = "application/vnd.oci.image.config.v1+json"
_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
_INDEX = "application/vnd.oci.image.index.v1+json"
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
Json = dict[str, Any]


def write(
    path: Path, name: str, files: Mapping[str, Path], entrypoint: Sequence[str], user: str
) -> None:
    """An archive with one image `name` that holds executable `files` (place: source)."""
    layer = _tar({place: source.read_bytes() for place, source in files.items()}, mode=0o755)
    blobs: dict[str, bytes] = {}

    def blob(content: bytes, kind: str, **more: Any) -> Json:
        digest = hashlib.sha256(content).hexdigest()
        blobs[f"blobs/sha256/{digest}"] = content
        return {"mediaType": kind, "digest": f"sha256:{digest}", "size": len(content), **more}

    layer_of = blob(layer, _LAYER)
    config = {
        "architecture": _ARCHITECTURES[platform.machine()],
        "os": "linux",
        "config": {"Entrypoint": list(entrypoint), "Env": ["PATH=/"], "User": user},
        "rootfs": {"type": "layers", "diff_ids": [layer_of["digest"]]},
    }
    config_of = blob(json.dumps(config).encode(), _CONFIG)
    manifest = {
        "schemaVersion": 2,
        "mediaType": _MANIFEST,
        "config": config_of,
        "layers": [layer_of],
    }
    annotations = {"io.containerd.image.name": name, "org.opencontainers.image.ref.name": name}
    manifest_of = blob(json.dumps(manifest).encode(), _MANIFEST, annotations=annotations)
    index = {"schemaVersion": 2, "mediaType": _INDEX, "manifests": [manifest_of]}
    layout = {"imageLayoutVersion": "1.0.0"}
    path.write_bytes(
        _tar(
            {
                "oci-layout": json.dumps(layout).encode(),
                "index.json": json.dumps(index).encode(),
                **blobs,
            },
            mode=0o644,
        )
    )


def names(path: Path) -> list[str]:
    """The names under which an archive's images are known, as its maker wrote them."""
    with tarfile.open(path) as archive:
        index = archive.extractfile("index.json")
        assert index is not None
        listed: Json = json.load(index)
    found = [each.get("annotations", {}) for each in listed["manifests"]]
    return [
        str(each.get("io.containerd.image.name") or each["org.opencontainers.image.ref.name"])
        for each in found
        if each
    ]


def _tar(files: Mapping[str, bytes], *, mode: int) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name.lstrip("/"))
            entry.size, entry.mode = len(content), mode
            archive.addfile(entry, io.BytesIO(content))
    return packed.getvalue()
