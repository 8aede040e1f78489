"""A control group for each browser: the kernel bounds its memory and processes, and ends them all.

Version 2 and the older version 1 are known, because a cluster's nodes may have either. A process
needs a folder of the hierarchy that it may write to: root has one on a machine, and in a container
where the hierarchy is mounted writable; elsewhere there are no groups, and callers do without.

In version 2 a group that hands controllers on may hold no process itself, so :func:`prepare` moves
this process one level down if nobody else lives in its group, and looks further up if somebody
does.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from watercolour.render import owners

PREFIX = "watercolour-browser-"

#: Where this process lives in version 2 once its own group hands controllers on.
WORKER = "watercolour-renderer"

CONTROLLERS = ("memory", "pids")

#: Seconds in which killed processes have left their group.
LEAVE_SECONDS = 5.0

#: File by what it bounds and by version; the second memory file keeps the excess out of the swap.
_MEMORY = {
    1: ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes"),
    2: ("memory.max", "memory.swap.max"),
}
_USED = {1: "memory.usage_in_bytes", 2: "memory.current"}

#: File with how often the kernel has killed a process of the group for memory, wherever it lacked.
_KILLS = {1: "memory.oom_control", 2: "memory.events"}

#: Version 1's files with the most that was used, by itself and with what was swapped out. (Its
#: counts of refusals stay 0 on Linux 6.18.)
_PEAKS = ("memory.max_usage_in_bytes", "memory.memsw.max_usage_in_bytes")


@dataclass(frozen=True)
class Parent:
    """Where browsers' groups are made.

    Attributes:
        version: 1 or 2.
        folders: one in version 2; one for memory and one for processes in version 1.
    """

    version: Literal[1, 2]
    folders: tuple[Path, ...]

    def memory_limit(self) -> int | None:
        """Bytes of memory that this process's own group may use, None if unlimited."""
        name = _MEMORY[self.version][0]
        found: list[int] = []
        for folder in (self.folders[0], *self.folders[0].parents):
            with contextlib.suppress(OSError, ValueError):
                found.append(int((folder / name).read_text()))
        # Version 1 writes "unlimited" as the largest page-aligned number.
        real = [each for each in found if each < 2**60]
        return min(real, default=None)


@dataclass(frozen=True)
class Memory:
    """What a group's memory has been through.

    Attributes:
        limit, used: bytes.
        kills: processes of it that the kernel has killed for want of memory, wherever it lacked;
            ever.
        full: how often its own limit was reached; ever in version 2, and in version 1 only
            whether it was since :meth:`Group.forget`.
    """

    limit: int
    used: int
    kills: int
    full: int


@dataclass(frozen=True)
class Group:
    """One browser's group; its folders may have gone already."""

    version: Literal[1, 2]
    folders: tuple[Path, ...]

    def join(self) -> None:
        """Move this process in; its children follow.

        Raises:
            OSError: the kernel refuses.
        """
        for folder in self.folders:
            (folder / "cgroup.procs").write_text("0")

    def members(self) -> list[int]:
        """Processes of the group, as this process's ``/proc`` numbers them."""
        with contextlib.suppress(OSError):
            return [int(pid) for pid in (self.folders[0] / "cgroup.procs").read_text().split()]
        return []

    def memory(self) -> Memory | None:
        """What its memory has been through; None if it has gone."""
        folder = self.folders[0]
        try:
            lines = (folder / _KILLS[self.version]).read_text().splitlines()
            events = {name: int(count) for name, count in map(str.split, lines)}
            return Memory(
                limit=int((folder / _MEMORY[self.version][0]).read_text()),
                used=int((folder / _USED[self.version]).read_text()),
                kills=events["oom_kill"],
                full=events["oom"] if self.version == 2 else self._was_full(),
            )
        except (OSError, ValueError, KeyError):
            return None

    def forget(self) -> None:
        """Forget, in version 1, whether it was full."""
        if self.version == 1:
            for name in _PEAKS:
                with contextlib.suppress(OSError):
                    (self.folders[0] / name).write_text("0")

    def _was_full(self) -> int:
        """In version 1: whether it was since :meth:`forget`.

        Raises:
            OSError: it has gone.
        """
        limit = int((self.folders[0] / _MEMORY[1][0]).read_text())
        peaks = [self.folders[0] / name for name in _PEAKS]
        # The second is missing where the kernel does not account for swap.
        return int(any(int(each.read_text()) >= limit for each in peaks if each.exists()))

    def kill(self) -> None:
        """SIGKILL every process of it."""
        if self.version == 2:
            # Since Linux 5.14, and unlike the loop it leaves out nobody who is just being born.
            with contextlib.suppress(OSError):
                (self.folders[0] / "cgroup.kill").write_text("1")
        for pid in self.members():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def remove(self) -> bool:
        """Kill whoever is left and remove the group; whether it has gone."""
        give_up = time.monotonic() + LEAVE_SECONDS
        while not self._removed():
            if time.monotonic() > give_up:
                return False
            self.kill()
            time.sleep(0.01)
        return True

    def _removed(self) -> bool:
        for folder in self.folders:
            with contextlib.suppress(FileNotFoundError):
                try:
                    folder.rmdir()
                except FileNotFoundError:
                    raise
                except OSError:
                    return False
        return True


def prepare() -> Parent | str:
    """Where this process may make groups with limits, or why nowhere.

    In version 2 it may move this process within the hierarchy.
    """
    try:
        mounts = Path("/proc/self/mountinfo").read_text()
        own = Path("/proc/self/cgroup").read_text()
    except OSError as error:
        return f"{error.filename}: {error.strerror}"
    places = folders(mounts, own)
    try:
        if all(name in places for name in CONTROLLERS):
            return _usable(Parent(1, tuple(places[name] for name in CONTROLLERS)))
        if "" in places:
            found = _delegated(places[""])
            return "its group has other members" if found is None else _usable(found)
    except OSError as error:
        return f"{error.filename or 'cgroup'}: {error.strerror}"
    return "no hierarchy with memory and pids is mounted"


def folders(mounts: str, own: str) -> dict[str, Path]:
    """Folder of this process's group by controller; version 2's is named by the empty string.

    Args:
        mounts: the text of ``/proc/self/mountinfo``.
        own: the text of ``/proc/self/cgroup``.
    """
    groups: dict[str, str] = {}
    for line in own.splitlines():
        _, controllers, path = line.split(":", 2)
        groups |= dict.fromkeys(controllers.split(","), path)
    found: dict[str, Path] = {}
    for line in mounts.splitlines():
        before, _, after = line.partition(" - ")
        root, point = before.split()[3:5]
        kind, _, options = after.split(maxsplit=2)
        if kind not in ("cgroup", "cgroup2"):
            continue
        for name in options.split(",") if kind == "cgroup" else [""]:
            path = groups.get(name)
            if path is not None and (path + "/").startswith(root.rstrip("/") + "/"):
                found.setdefault(name, Path(point, path[len(root.rstrip("/")) :].lstrip("/")))
    return found


def _delegated(own: Path) -> Parent | None:
    """A folder of version 2 whose children get both controllers.

    Raises:
        OSError: the hierarchy is not ours to write to.
    """
    if _hands_on(own):
        return Parent(2, (own,))
    if _offers(own) and (own / "cgroup.procs").read_text().split() == [str(os.getpid())]:
        (own / WORKER).mkdir(exist_ok=True)
        (own / WORKER / "cgroup.procs").write_text("0")
        (own / "cgroup.subtree_control").write_text("+memory +pids")
        return Parent(2, (own,))
    return next((Parent(2, (above,)) for above in own.parents if _hands_on(above)), None)


def _offers(folder: Path) -> bool:
    return set(CONTROLLERS) <= set((folder / "cgroup.controllers").read_text().split())


def _hands_on(folder: Path) -> bool:
    try:
        handed = (folder / "cgroup.subtree_control").read_text().split()
    except OSError:
        return False
    return set(CONTROLLERS) <= set(handed)


def _usable(parent: Parent) -> Parent:
    """The same parent, once a group was made there and removed.

    Raises:
        OSError: the hierarchy is not ours to write to.
    """
    with made(parent, f"{PREFIX}try-{os.getpid()}", memory_bytes=2**30, processes=64):
        return parent


@contextlib.contextmanager
def made(parent: Parent, name: str, *, memory_bytes: int, processes: int) -> Iterator[Group]:
    """A group for the length of the block; who is in it at the end is killed.

    Args:
        parent: where.
        name: of its folder; starts with :data:`PREFIX`.
        memory_bytes: what all its processes together may use.
        processes: how many there may be, threads counted.

    Raises:
        OSError: the kernel refuses.
    """
    group = Group(parent.version, tuple(folder / name for folder in parent.folders))
    owner = -1
    try:
        with _locked(parent.folders[0]):
            for folder in group.folders:
                folder.mkdir()
            # The kernel unlocks it when its owner ends, in whatever way; see :func:`sweep`.
            owner = _opened(group.folders[0])
            fcntl.flock(owner, fcntl.LOCK_EX)
        memory, swap = _MEMORY[parent.version]
        (group.folders[0] / memory).write_text(str(memory_bytes))
        with contextlib.suppress(OSError):
            # Missing where the kernel does not account for swap.
            (group.folders[0] / swap).write_text("0" if parent.version == 2 else str(memory_bytes))
        (group.folders[-1] / "pids.max").write_text(str(processes))
        yield group
    finally:
        group.remove()
        if owner >= 0:
            os.close(owner)


def sweep(parent: Parent) -> list[str]:
    """Remove the groups of owners that are no more, and whoever lives in them; their names."""
    removed: list[str] = []
    with _locked(parent.folders[0]):
        for folder in sorted(parent.folders[0].glob(f"{PREFIX}*")):
            if not _abandoned(folder):
                continue
            group = Group(parent.version, tuple(each / folder.name for each in parent.folders))
            if group.remove():
                removed.append(folder.name)
    return removed


def _opened(folder: Path) -> int:
    return os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Nobody else makes or sweeps groups below the folder: none is seen before it has its owner."""
    file = _opened(folder)
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
    finally:
        os.close(file)


def _abandoned(folder: Path) -> bool:
    try:
        return owners.gone(_opened(folder))
    except FileNotFoundError:
        return False
