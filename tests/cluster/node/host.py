"""What a node takes from the machine beyond its namespaces, and how all of it is given back.

The node's processes live in namespaces of their own (processes, mounts, network), so the kernel
ends and unmounts everything when the first process of them is killed. What is left then are
control groups, three settings that a kubelet changes, and files: `clean` removes them, whether the
node was asked to end or was killed.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from tests.cluster.ground import processes
from tests.cluster.node.place import CGROUP, COVERED, LINK, LOCK, RUNNING, Place

KEPT_SETTINGS = ("vm/overcommit_memory", "kernel/panic", "kernel/panic_on_oops")


def lock() -> IO[bytes] | None:
    """The machine's one lock, held by whoever keeps the file open; None when a node runs."""
    held = LOCK.open("ab")
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        held.close()
        return None
    return held


def running() -> Place | None:
    """The place of the node that runs on this machine."""
    held = lock()
    if held is not None:
        held.close()
        return None
    return Place(Path(json.loads(RUNNING.read_text())["folder"]))


def note(place: Place) -> None:
    """Write down who will run, and the settings that a kubelet will change."""
    RUNNING.write_text(json.dumps({"folder": str(place.root), "settings": settings()}))


def settings() -> dict[str, str]:
    """The machine's settings that a kubelet changes, as they are."""
    return {name: _setting(name).read_text().strip() for name in KEPT_SETTINGS}


def settings_before() -> dict[str, str]:
    """The same as they were before the node that runs."""
    return json.loads(RUNNING.read_text())["settings"]


def end() -> bool:
    """Kill the node if one runs, and give back what it took. Returns whether there was anything."""
    if not RUNNING.exists():
        return False
    told = json.loads(RUNNING.read_text())
    ended = Place(Path(told["folder"]))
    held = lock()
    if held is None:
        # The namespaces' first process dies with its parent, and with it every other one.
        pid = int(ended.pid.read_text())
        with contextlib.suppress(ProcessLookupError):  # dead, and its children are dying
            os.kill(pid, signal.SIGKILL)
        found: list[IO[bytes]] = []

        def freed() -> bool:
            found.extend([taken] if (taken := lock()) else [])
            return bool(found)

        if not processes.wait_until(freed, 30):
            raise RuntimeError(f"the node's processes do not end (process {pid})")
        held = found[0]
    with held:
        clean(ended, told["settings"])
    return True


def clean(place: Place, before: dict[str, str]) -> None:
    """Remove what a dead node has left; its images stay."""
    remove_groups()
    # The kernel takes a dead namespace's end of the wire away when it comes to it.
    if (Path("/sys/class/net") / LINK).exists():
        subprocess.run(["ip", "link", "delete", LINK], capture_output=True, check=False)
    for name, value in before.items():
        _setting(name).write_text(value)
    _remove(place.life)
    for folder in COVERED:
        if folder.exists() and not any(folder.iterdir()):
            folder.rmdir()
    RUNNING.unlink(missing_ok=True)


def hierarchies() -> Iterator[Path]:
    """Where control groups can be made: each v1 hierarchy, or the one of v2."""
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        before, _, after = line.partition(" - ")
        if after.split()[0] in {"cgroup", "cgroup2"}:
            yield Path(before.split()[4])


def make_groups(group: str = CGROUP) -> None:
    """The group below which a kubelet puts every pod, and those above it."""
    for hierarchy in hierarchies():
        above = hierarchy
        for part in Path(group).parts:
            made = above / part
            made.mkdir(exist_ok=True)
            # A new cpuset of v1 has no processor until it is told.
            for name in ("cpuset.cpus", "cpuset.mems"):
                if (made / name).exists() and not (made / name).read_text().strip():
                    (made / name).write_text((above / name).read_text())
            if (hierarchy / "cgroup.subtree_control").exists():
                wanted = (hierarchy / "cgroup.controllers").read_text().split()
                for folder in (above, made):
                    enable = " ".join(f"+{controller}" for controller in wanted)
                    (folder / "cgroup.subtree_control").write_text(enable)
            above = made


def remove_groups(group: str = CGROUP) -> None:
    """Remove a tree of groups from every hierarchy.

    Raises RuntimeError when a process in it does not end.
    """
    for hierarchy in hierarchies():
        _remove_group(hierarchy / group)


def _remove_group(group: Path) -> None:
    """Remove a tree of groups; those of processes that are just dying take a moment."""
    give_up = time.monotonic() + 20
    while group.exists():
        for folder, _, _ in os.walk(group, topdown=False):
            try:
                os.rmdir(folder)
            except OSError as refusal:
                if time.monotonic() > give_up:
                    raise RuntimeError(f"{folder} still holds processes: {refusal}") from refusal
        if group.exists():
            time.sleep(0.05)


def _remove(folder: Path) -> None:
    """Remove files; a mount whose namespace is going is busy for a moment."""
    give_up = time.monotonic() + 10
    while folder.exists():
        shutil.rmtree(folder, ignore_errors=time.monotonic() < give_up)
        if folder.exists():
            time.sleep(0.05)


def _setting(name: str) -> Path:
    return Path("/proc/sys") / name
