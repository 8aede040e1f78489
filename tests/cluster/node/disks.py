"""Volumes of the node: each claim gets a file system of the size that it asked for.

A file with a file system, mounted by a loop device, is a disk that can really be full. The class
binds when the first pod that wants the claim is scheduled, as the disks of a cloud do.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

from tests.cluster.ground.api import Api
from tests.cluster.node.place import DISK_CLASS, Place

Json = dict[str, Any]
SELECTED = "volume.kubernetes.io/selected-node"
_UNITS = {unit: 1000**power for power, unit in enumerate(("", "k", "M", "G", "T"))} | {
    f"{unit}i": 1024**power for power, unit in enumerate("KMGT", start=1)
}


def look(api: Api, place: Place) -> list[str]:
    """Make the volumes that are waited for, remove those that are released; tell what was done."""
    done: list[str] = []
    known = {each["metadata"]["name"]: each for each in api.list("PersistentVolume")}
    for claim in api.list("PersistentVolumeClaim"):
        node = claim["metadata"].get("annotations", {}).get(SELECTED)
        name = f"disk-{claim['metadata']['uid']}"
        wanted = claim["spec"].get("storageClassName") == DISK_CLASS and node
        if wanted and not claim["spec"].get("volumeName") and name not in known:
            mounted = _make(place, name, size(claim["spec"]["resources"]["requests"]["storage"]))
            api.create(_volume(name, mounted, claim, node))
            done.append(
                f"made {name} for {claim['metadata']['namespace']}/{claim['metadata']['name']}"
            )
    for name, volume in known.items():
        ours = volume["spec"].get("storageClassName") == DISK_CLASS
        if ours and volume.get("status", {}).get("phase") == "Released":
            api.delete("PersistentVolume", name)
            _discard(place, name)
            done.append(f"removed {name}")
    return done


def size(quantity: str) -> int:
    """Bytes of a storage quantity. Raises ValueError for what is none."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([kMGT]|[KMGT]i)?", quantity)
    if match is None:
        raise ValueError(f"storage: {quantity!r} is no quantity such as 1Gi")
    return int(float(match[1]) * _UNITS[match[2] or ""])


def _make(place: Place, name: str, size: int) -> Path:
    folder = place.life / "disks"
    mounted = folder / name
    mounted.mkdir(parents=True, exist_ok=True)
    disk = folder / f"{name}.img"
    with disk.open("wb") as file:
        file.truncate(size)
    _run("mkfs.ext4", "-q", "-m", "0", "-O", "^has_journal", str(disk))
    _run("mount", "-o", "loop", str(disk), str(mounted))
    return mounted


def _discard(place: Place, name: str) -> None:
    folder = place.life / "disks"
    _run("umount", "--lazy", str(folder / name))
    (folder / f"{name}.img").unlink()
    shutil.rmtree(folder / name, ignore_errors=True)


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")


def _volume(name: str, mounted: Path, claim: Json, node: str) -> Json:
    """A `local` volume: unlike a hostPath it takes the pod's group for its files."""
    spec = claim["spec"]
    hostname = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}
    meta = claim["metadata"]
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "accessModes": spec["accessModes"],
            "capacity": {"storage": spec["resources"]["requests"]["storage"]},
            "claimRef": {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "namespace": meta["namespace"],
                "name": meta["name"],
                "uid": meta["uid"],
            },
            "persistentVolumeReclaimPolicy": "Retain",  # `look` removes the disk
            "storageClassName": DISK_CLASS,
            "local": {"path": str(mounted)},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [hostname]}]}},
        },
    }
