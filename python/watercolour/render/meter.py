"""Charges CPU time to sketches fairly when several are painted in one browser."""

from __future__ import annotations

from dataclasses import dataclass, field

from watercolour.render import procfs

#: Kinds of process whose time no sketch causes, or one page alone.
_UNSHARED = ("renderer", "interface", "zygote")


@dataclass
class Meter:
    """Charges the browser's shared processes to the pages that are painting.

    A page's own process is charged to it alone. GPU process, network and browser process are
    shared out equally among the pages that paint while their time passes.

    Attributes:
        root: the browser process.
        shared: CPU seconds of the shared processes, by their ids, at the last tick.
        charges: CPU seconds that the pages that paint have been charged with, by their keys.
        allowed: bytes of memory that each of them may use, by the same keys.
        begun, ended: paintings, ever.
    """

    root: int
    shared: dict[int, float] = field(default_factory=dict[int, float])
    charges: dict[int, float] = field(default_factory=dict[int, float])
    allowed: dict[int, int] = field(default_factory=dict[int, int])
    begun: int = 0
    ended: int = 0

    def refresh(self) -> None:
        """Look again for shared processes: everything that is no renderer."""
        for pid in [self.root, *procfs.descendants(self.root)]:
            if pid not in self.shared and procfs.kind(pid) not in (*_UNSHARED, ""):
                self.shared[pid] = procfs.cpu_seconds(pid) or 0.0

    def resident(self) -> int:
        """Bytes of resident memory of all shared processes."""
        return sum(procfs.resident_bytes(pid) or 0 for pid in self.shared)

    def painters(self) -> frozenset[int]:
        """The processes that hold the graphics of every page; one, unless it is being replaced."""
        return frozenset(pid for pid in self.shared if procfs.kind(pid) == "gpu-process")

    def graphics_seconds(self) -> float:
        """CPU seconds of :meth:`painters`."""
        return sum(procfs.cpu_seconds(pid) or 0.0 for pid in self.painters())

    def tick(self) -> None:
        """Share out what has passed since the last tick."""
        passed = 0.0
        for pid, before in list(self.shared.items()):
            now = procfs.cpu_seconds(pid)
            if now is None:
                del self.shared[pid]
                continue
            passed += now - before
            self.shared[pid] = now
        for key in self.charges:
            self.charges[key] += passed / len(self.charges)

    def open(self, key: int, memory: int) -> None:
        """Start charging a page, which may use so many bytes."""
        self.tick()
        self.allowed[key] = memory
        self.charges[key] = 0.0
        self.begun += 1

    def company(self, ended: int) -> int:
        """How many others have painted at any time since a painting began.

        Args:
            ended: :attr:`ended` as it was then.
        """
        return self.begun - ended - 1

    def close(self, key: int) -> float:
        """Stop charging a page and say what it was charged."""
        self.tick()
        self.ended += 1
        self.allowed.pop(key, None)
        return self.charges.pop(key, 0.0)
