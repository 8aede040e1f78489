"""CPU time and memory of processes, read from /proc. A process that has gone reads as absent."""

from __future__ import annotations

import os

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


def _read(pid: int, name: str) -> bytes | None:
    """One of a process's small files; read many times a second, hence without buffering."""
    try:
        file = os.open(f"/proc/{pid}/{name}", os.O_RDONLY)
    except FileNotFoundError:
        return None
    try:
        return os.read(file, 65_536)
    except ProcessLookupError:
        return None
    finally:
        os.close(file)


def _stat(pid: int) -> list[bytes] | None:
    text = _read(pid, "stat")
    return text.rpartition(b")")[2].split() if text else None


def cpu_seconds(pid: int) -> float | None:
    """User and system time of a process, without its children; None when it has gone."""
    fields = _stat(pid)
    return (int(fields[11]) + int(fields[12])) / _TICKS if fields else None


def resident_bytes(pid: int) -> int | None:
    """Resident memory in bytes; None when the process has gone."""
    text = _read(pid, "statm")
    return int(text.split()[1]) * _PAGE if text else None


def name(pid: int) -> str:
    """What the kernel calls a process, at most 15 letters; empty when it has gone."""
    return (_read(pid, "comm") or b"").decode(errors="replace").strip()


def children(parent: int) -> list[int]:
    """Every child of ``parent``, those among them that have ended and wait to be reaped as well."""
    return [
        int(entry)
        for entry in os.listdir("/proc")
        if entry.isdigit() and (fields := _stat(int(entry))) and int(fields[1]) == parent
    ]


def runs(pid: int) -> bool:
    """Whether any thread of a process runs, or would if it got a CPU."""
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except FileNotFoundError:
        return False
    found = (_read(pid, f"task/{thread}/stat") for thread in threads)
    return any(text.rpartition(b")")[2].split()[0] == b"R" for text in found if text)


def descendants(root: int) -> list[int]:
    """Every live process below ``root``, nearest first, without ``root`` itself."""
    children: dict[int, list[int]] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit() and (fields := _stat(int(entry))) and fields[0] != b"Z":
            children.setdefault(int(fields[1]), []).append(int(entry))
    found: list[int] = []
    queue = [root]
    while queue:
        below = children.get(queue.pop(0), [])
        found += below
        queue += below
    return found


def kind(pid: int) -> str:
    """Chromium's process type: ``renderer``, ``gpu-process`` …; ``browser`` without one.

    ``other`` if it is not Chromium's, and empty if it has ended.
    A renderer of the browser's own user interface, which even a headless one has, is ``interface``.
    """
    command = _read(pid, "cmdline") or b""
    # A forked child writes its arguments as one string, an executed one as many.
    arguments = command.replace(b" ", b"\0").split(b"\0")
    if b"--top-chrome-webui" in arguments:
        return "interface"
    for argument in arguments:
        if argument.startswith(b"--type="):
            return argument[7:].decode()
    if not command:
        return ""
    return "browser" if b"chrom" in os.path.basename(arguments[0]) else "other"
