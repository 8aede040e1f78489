"""Renderers that are killed piece by piece while they paint, and restarted as a kubelet would.

Again and again one process is killed by SIGKILL: a browser, a page's process, a GPU process or a
whole renderer, in turn. What the jobs' clients see of it is the storm's outcome.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Generator, Iterable, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from watercolour.api.errors import InfrastructureError
from watercolour.api.rollout import Violation
from watercolour.local.guard import descendants
from watercolour.local.processes import Service, Supervisor
from watercolour.render import procfs
from watercolour.render.dispatcher import Counts, Dispatcher
from watercolour.render.result import SketchFault

#: What is killed, in turn; the last is the renderer itself.
VICTIMS = ("browser", "renderer", "gpu-process", "worker")

#: Seconds between two looks at whether a renderer has died.
LOOK_SECONDS = 0.1

#: Seconds in which every renderer has to be ready at first, on a machine that is busy.
READY_SECONDS = 600.0

#: Restarts in one storm; more than there are kills.
RESTARTS = 100_000


def find(supervisor: int, module: bytes) -> tuple[int, list[bytes]] | None:
    """Process id and words of the process of this module below another; None while it is away."""
    for pid in descendants(supervisor):
        with suppress(OSError):
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            if module in words and not any(word.endswith(b"guard.py") for word in words):
                return pid, words
    return None


@dataclass
class Renderers:
    """Renderers under a supervisor that starts again whichever has ended."""

    supervisor: Supervisor
    names: tuple[str, ...]

    @property
    def urls(self) -> list[str]:
        """Their addresses, which they keep."""
        return [self.supervisor.processes[name].url for name in self.names]

    def victims(self, kind: str) -> list[int]:
        """Processes of that kind that live now."""
        guards = [self.supervisor.processes[name].guard.pid for name in self.names]
        if kind == "worker":
            found = [find(guard, b"watercolour.render.service") for guard in guards]
            return [one[0] for one in found if one is not None]
        below = [pid for guard in guards for pid in procfs.descendants(guard)]
        return [pid for pid in below if procfs.kind(pid) == kind]


@contextmanager
def renderers(
    folder: Path, python: Path, number: int, slots: int, options: Sequence[str] = ()
) -> Generator[Renderers]:
    """So many renderers for the length of the block, ready at its start and kept alive in it."""
    command = (str(python), "-m", "watercolour.render.service", "--slots", str(slots), *options)
    names = tuple(f"renderer-{n}" for n in range(number))
    over = threading.Event()

    def keep(supervisor: Supervisor) -> None:
        while not over.is_set():
            supervisor.wait(LOOK_SECONDS)
            supervisor.restart_dead(names)

    with Supervisor(folder) as supervisor:
        for name in names:
            supervisor.start(Service(name, command, restarts=RESTARTS))
        supervisor.wait_ready(names, READY_SECONDS)
        keeper = threading.Thread(target=keep, args=(supervisor,))
        keeper.start()
        try:
            yield Renderers(supervisor, names)
        finally:
            over.set()
            keeper.join()


@dataclass
class Outcome:
    """What became of a storm's jobs.

    Attributes:
        painted: jobs that ended as a painting.
        infrastructure: jobs that ended without one, by reason.
        faults: violations that a job ended with, though no sketch was at fault.
        kills: processes killed, by kind.
        seconds: from the first job to the last end.
        counts: the dispatcher's own account.
    """

    painted: int = 0
    infrastructure: Counter[str] = field(default_factory=Counter[str])
    faults: list[Violation] = field(default_factory=list[Violation])
    kills: Counter[str] = field(default_factory=Counter[str])
    seconds: float = 0.0
    counts: Counts = field(default_factory=Counts)

    @property
    def jobs(self) -> int:
        """Jobs that have ended."""
        return self.painted + self.infrastructure.total() + len(self.faults)


async def paint(urls: Sequence[str], sketches: Iterable[str], storm: Outcome) -> None:
    """Have every sketch painted once, by eight clients' turns; the outcome is filled in."""
    async with Dispatcher(urls, wait_s=None, absence_s=None) as dispatcher:
        storm.counts = dispatcher.counts

        async def one(number: int, sketch: str) -> None:
            try:
                await dispatcher.render(
                    sketch, seed=number, fresh=True, client=f"client-{number % 8}"
                )
                storm.painted += 1
            except SketchFault as fault:
                storm.faults.append(fault.violation)
            except InfrastructureError as error:
                storm.infrastructure[error.reason] += 1

        began = time.monotonic()
        await asyncio.gather(*(one(number, sketch) for number, sketch in enumerate(sketches)))
        storm.seconds = time.monotonic() - began


#: Waits until it is time for the next kill.
Pause = Callable[[Outcome], Awaitable[None]]


def seconds(number: float) -> Pause:
    """A kill every so many seconds."""
    return lambda outcome: asyncio.sleep(number)


def ends(number: int) -> Pause:
    """A kill whenever so many jobs have ended, however fast the machine is."""

    async def pause(outcome: Outcome) -> None:
        last = outcome.jobs
        while outcome.jobs < last + number:  # noqa: ASYNC110 - the jobs tell nobody of their end
            await asyncio.sleep(LOOK_SECONDS / 4)

    return pause


async def kill(among: Renderers, pause: Pause, rng: random.Random, outcome: Outcome) -> None:
    """Kill one process after the other, for ever."""
    turn = 0
    while True:
        await pause(outcome)
        # A kind that no process is of just now gives its turn to the next.
        for kind in (VICTIMS[(turn + n) % len(VICTIMS)] for n in range(len(VICTIMS))):
            victims = await asyncio.to_thread(among.victims, kind)
            if victims:
                with suppress(ProcessLookupError):
                    os.kill(rng.choice(victims), signal.SIGKILL)
                    outcome.kills[kind] += 1
                break
        turn += 1


async def storm(among: Renderers, sketches: Sequence[str], pause: Pause, seed: int) -> Outcome:
    """Paint every sketch once while processes are killed."""
    outcome = Outcome()
    killer = asyncio.create_task(kill(among, pause, random.Random(seed), outcome))
    try:
        await paint(among.urls, sketches, outcome)
    finally:
        killer.cancel()
        await asyncio.gather(killer, return_exceptions=True)
    return outcome


async def calm(among: Renderers, sketches: Sequence[str]) -> Outcome:
    """Paint every sketch once and kill nobody."""
    outcome = Outcome()
    await paint(among.urls, sketches, outcome)
    return outcome
