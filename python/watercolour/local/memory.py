"""Memory of a process tree, counted without counting shared pages twice."""

from __future__ import annotations

import os
import re
from pathlib import Path

from watercolour.local.guard import descendants

_PSS = re.compile(r"^Pss:\s+(\d+) kB", re.MULTILINE)


def tree_mib(root: int) -> float:
    """Proportional set size of a process and all its descendants, in MiB.

    Where the kernel hides a process's page table (Chromium's sandboxed children from an ordinary
    user), its resident size is taken instead, which counts shared pages in full.
    """
    return sum(_process_kib(pid) for pid in [root, *descendants(root)]) / 1024


def _process_kib(pid: int) -> float:
    folder = Path("/proc", str(pid))
    try:
        found = _PSS.search((folder / "smaps_rollup").read_text())
        return float(found[1]) if found else 0.0
    except PermissionError:
        pass
    except OSError:
        return 0.0
    try:
        pages = int((folder / "statm").read_text().split()[1])
    except (OSError, IndexError):
        return 0.0
    return pages * os.sysconf("SC_PAGE_SIZE") / 1024
