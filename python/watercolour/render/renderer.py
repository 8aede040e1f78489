"""What stands between the endpoints and the slots: memory of paintings, shared jobs, draining."""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from collections import OrderedDict
from dataclasses import dataclass, field, replace

from watercolour.api.errors import InfrastructureError
from watercolour.api.reasons import Reason
from watercolour.render import canary, paint, pool
from watercolour.render.isolation import Isolation
from watercolour.render.metrics import Metrics
from watercolour.render.result import Job, Painted
from watercolour.render.schemas import Load, Readiness

#: Paintings that are remembered, and their bytes, so that equal requests are answered at once.
CACHE_ENTRIES, CACHE_BYTES = 256, 64 * 2**20

#: Phases of a painting, in order, and the instants of the realm's clock between which each lies.
PHASES = (("load", "start"), ("setup", "load"), ("draw", "setup"))


@dataclass
class Remembered:
    """Paintings by key; the longest unused go first."""

    entries: int = CACHE_ENTRIES
    bytes: int = CACHE_BYTES
    _held: OrderedDict[str, Painted] = field(default_factory=OrderedDict[str, Painted])
    _size: int = 0

    def get(self, key: str) -> Painted | None:
        """The painting, if it is remembered."""
        if key in self._held:
            self._held.move_to_end(key)
        return self._held.get(key)

    def put(self, key: str, painted: Painted) -> None:
        """Remember a painting."""
        self._size += len(painted.painting) - len(self._pop(key))
        self._held[key] = painted
        while self._held and (len(self._held) > self.entries or self._size > self.bytes):
            self._size -= len(self._held.popitem(last=False)[1].painting)

    def _pop(self, key: str) -> bytes:
        old = self._held.pop(key, None)
        return old.painting if old is not None else b""


@dataclass
class Flight:
    """A job that is under way, and how many wait for it."""

    task: asyncio.Task[Painted]
    askers: int = 0


@dataclass
class Renderer:
    """The pool, what is remembered in front of it, and what the endpoints show.

    Attributes:
        pool: the slots.
        canary: whether the network is shut.
        isolation: what keeps browsers apart from the machine, as far as it was known at the start.
        draining: it finishes what it paints and takes no more.
        requests: calls of ``/v1/render`` that have not been answered.
    """

    pool: pool.Pool
    canary: canary.Canary = field(default_factory=canary.Canary)
    isolation: Isolation = field(default_factory=Isolation)
    metrics: Metrics = field(default_factory=Metrics)
    draining: bool = False
    requests: int = 0
    _remembered: Remembered = field(default_factory=Remembered)
    _flights: dict[str, Flight] = field(default_factory=dict[str, Flight])
    _quiet: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def refuses(self) -> Reason | None:
        """The reason for which it takes no work and will take none; None if there is none."""
        trouble = self.pool.trouble
        return trouble.reason if trouble is not None else self.canary.refuses

    @property
    def isolated(self) -> Isolation:
        """What keeps the browser apart from the machine."""
        return self.isolation.with_sandbox(self.pool.sandboxed)

    def load(self) -> Load:
        """The body of ``/v1/load``."""
        return Load(
            slots=self.pool.slots,
            busy=self.pool.busy,
            draining=self.draining,
            refuses=self.refuses,
        )

    def readiness(self) -> Readiness:
        """The details of ``/readyz``."""
        return Readiness(
            status="ready" if self.unready() is None else "unready",
            slots=self.pool.slots,
            warm=self.pool.warm,
            busy=self.pool.busy,
            draining=self.draining,
            rasterizer=self.pool.rasterizer or None,
            versions=self.pool.versions,
            sandbox=self.pool.sandboxed,
            isolation=self.isolated.details(),
        )

    def unready(self) -> InfrastructureError | None:
        """Why it takes no work now; None when it does.

        A renderer that drains stays ready: of its pods, a ReplicaSet kills the unready first, and
        this one may still be painting.
        """
        if self.pool.trouble is not None:
            return self.pool.trouble
        if self.canary.refuses is not None:
            return InfrastructureError(
                self.canary.refuses, "what the network policy forbids can be reached."
            )
        if self.canary.forbids:
            return InfrastructureError(
                Reason.RENDERER_UNAVAILABLE, "the canary has not been refused yet."
            )
        if not self.pool.ready:
            return InfrastructureError(Reason.RENDERER_UNAVAILABLE, "the browser is starting.")
        return None

    @property
    def takes_work(self) -> bool:
        """Whether a job is accepted; it may have to wait for the browser."""
        return not self.draining and not self.canary.forbids

    def entered(self) -> None:
        """A call of ``/v1/render`` has come."""
        self.requests += 1
        self._quiet.clear()

    def left(self) -> None:
        """One has been answered, or its asker has gone."""
        self.requests -= 1
        if self.requests == 0:
            self._quiet.set()

    async def drain(self) -> None:
        """Take no more work; return when every call of ``/v1/render`` has ended."""
        self.draining = True
        if self.requests:
            await self._quiet.wait()

    async def render(self, job: Job, *, fresh: bool = False) -> Painted:
        """Paint, or answer from memory; equal jobs that overlap are painted once.

        Whoever is cancelled leaves the job to the others who wait for it; the last one to leave
        ends it, and its slot is free.

        Raises:
            Busy: every slot paints.
            SketchFault, InfrastructureError: see :meth:`watercolour.render.pool.Pool.paint`.
        """
        key = _key(job)
        found = None if fresh else self._remembered.get(key)
        if found is not None and found.cpu_seconds <= job.cpu_budget_s:
            return replace(found, cached=True)
        # Only equal limits may share a job, or one asker's limits would judge another's sketch.
        limits = f"{key} {job.deadline_s} {job.cpu_budget_s}"
        flight = None if fresh else self._flights.get(limits)
        shared = flight is not None
        if flight is None:
            flight = Flight(asyncio.create_task(self._paint(job)))
            if not fresh:
                self._flights[limits] = flight
        flight.askers += 1
        try:
            painted = await asyncio.shield(flight.task)
        finally:
            flight.askers -= 1
            if flight.askers == 0:
                flight.task.cancel()
            if flight.askers == 0 and self._flights.get(limits) is flight:
                del self._flights[limits]
        if not fresh and painted.replay is None:  # A record may be larger than its painting.
            self._remembered.put(key, painted)
        return replace(painted, cached=shared)

    async def _paint(self, job: Job) -> Painted:
        started = time.monotonic()
        drawn = await self.pool.paint(job)
        png, share, encoding = await asyncio.to_thread(_finish, drawn, job.size)
        timings = phases(drawn.timings) | {
            "encode": round(encoding, 4),
            "wall": round(time.monotonic() - started, 4),
        }
        painted = Painted(
            painting=png,
            paint_fraction=share,
            shapes=drawn.shapes,
            js_errors=drawn.js_errors,
            timings=timings,
            cpu_seconds=drawn.cpu_seconds,
            rasterizer=self.pool.rasterizer,
            versions=self.pool.versions,
            seed=job.seed,
            peak_memory_bytes=drawn.peak_memory_bytes,
            replay=drawn.replay,
        )
        self._observe(painted, drawn.peak_memory_bytes)
        return painted

    def _observe(self, painted: Painted, memory: int) -> None:
        self.metrics.seconds.observe(painted.timings["wall"])
        self.metrics.memory.observe(memory)
        self.metrics.cpu.inc(painted.cpu_seconds)
        for phase, seconds in painted.timings.items():
            if phase != "wall":
                self.metrics.phases.labels(phase).inc(seconds)
        if painted.shapes:
            self.metrics.per_shape.set(painted.cpu_seconds / painted.shapes)

    def show(self) -> None:
        """Bring the gauges up to date."""
        show, now = self.metrics, self.pool
        show.warm.set(now.warm)
        show.busy.set(now.busy)
        show.ready.set(self.unready() is None)
        show.sandboxed.set(bool(now.sandboxed))
        for layer, holds in self.isolated.layers().items():
            show.isolation.labels(layer).set(holds)
        show.launches.set(now.counts.launches)
        show.retried.set(now.counts.retried)
        for cause in ("taint", "count", "age", "memory"):
            show.recycled.labels(cause).set(now.counts.recycled[cause])


def phases(instants: dict[str, float]) -> dict[str, float]:
    """Seconds by phase, from the realm's instants; a phase that was not reached is left out."""
    found = {name: instants[name] for name in ("wait",) if name in instants}
    for end, begin in PHASES:
        if end in instants and begin in instants:
            found[end] = round(instants[end] - instants[begin], 4)
    return found | {name: instants[name] for name in ("read",) if name in instants}


def _finish(drawn: pool.Drawn, size: int | None) -> tuple[bytes, float, float]:
    started = time.monotonic()
    rgb = paint.from_framebuffer(drawn.data, drawn.width, drawn.height)
    png = paint.encode(paint.resize(rgb, size))
    return png, round(paint.fraction(rgb), 6), time.monotonic() - started


def _key(job: Job) -> str:
    text = json.dumps([job.sketch, job.seed, job.size, job.scale, job.replay])
    return hashlib.sha256(text.encode()).hexdigest()
