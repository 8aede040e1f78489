"""What a whole node needs of its machine, asked before anything is built for half an hour.

    python3 -m tests.cluster.node.needs

Needs nothing but Python's own library. Prints what is missing with its remedy and ends with 3.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.cluster.ground import binaries

GO = (1, 26)
#: Of the whole machine, in GiB: the node takes 1, the tiny run 5, builds some more.
MEMORY_GIB = 7.5
#: In the cache's file system, in GB: for programs and images that are still to be made, and then.
DISK_GB, DISK_LATER_GB = 30, 5


def missing() -> list[str]:
    """What this machine lacks, each with its remedy."""
    found: list[str] = []
    if os.geteuid() != 0:
        found.append(
            "root is missing, which makes namespaces and control groups: run this as root, or set "
            "KUBECONFIG to an existing cluster"
        )
    found += _go() + _memory() + _disk()
    return found


def _go() -> list[str]:
    try:
        version = binaries.go_version()
    except binaries.BinariesMissing as problem:
        return [str(problem)]
    numbers = tuple(
        int(each) for each in version.removeprefix("go").split(".")[:2] if each.isdigit()
    )
    toolchain = subprocess.run(
        ["go", "env", "GOTOOLCHAIN"], capture_output=True, text=True, check=True
    ).stdout.strip()
    # From 1.21 on Go fetches the version that a module wants, where it is allowed to.
    if numbers >= GO or (numbers >= (1, 21) and not toolchain.startswith("local")):
        return []
    wanted = ".".join(map(str, GO))
    return [
        f"Go {wanted} or newer is missing, {version} is here: install it, or put it first in PATH"
    ]


def _memory() -> list[str]:
    gib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / (1 << 30)
    if gib >= MEMORY_GIB:
        return []
    return [f"8 GiB of memory are needed, and this machine has {gib:.1f}: use a larger one"]


def _disk() -> list[str]:
    cache = binaries.cache().parent
    wanted = DISK_LATER_GB if any((cache / "images").glob("trainer.tar")) else DISK_GB
    there: Path = next(each for each in (cache, *cache.parents) if each.exists())
    free = shutil.disk_usage(there).free / 1e9
    if free >= wanted:
        return []
    return [
        f"{wanted} GB of disk are needed in {there}, and {free:.0f} are free: make room, or name "
        "another folder in WATERCOLOUR_CACHE"
    ]


def main() -> int:
    """Tell what is missing; 3 if something is."""
    found = missing()
    for each in found:
        print(f"cluster: {each}", file=sys.stderr)
    return 3 if found else 0


if __name__ == "__main__":
    sys.exit(main())
