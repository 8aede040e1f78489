"""Jobs on one side, renderers on the other: each job ends exactly once, whoever dies meanwhile.

A job waits here, never in a renderer: clients take turns, and the least busy renderer that is well
gets the next job, never more than it has slots. A failure of the infrastructure is tried once more,
on another renderer while there is one; what the sketch is to blame for is never tried again.
Renderers come and go while jobs wait; one that drains or is no longer named gets no job and may
finish those that it has.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Self

from watercolour import logs
from watercolour.api.errors import InfrastructureError
from watercolour.api.reasons import Reason
from watercolour.render import client
from watercolour.render.client import Busy, NotTaken, NotUnderstood
from watercolour.render.discover import Find
from watercolour.render.fleet import Fleet, Renderer
from watercolour.render.queue import Claim, Closing, Queue, Wish, closing
from watercolour.render.result import Job, Painted, SketchFault

log = logs.get(__name__)

#: Seconds that a job waits for a slot, and those that it waits without any renderer, if nobody
#: says otherwise.
WAIT_SECONDS, ABSENCE_SECONDS = 300.0, 10.0

#: Failures that no second attempt would mend.
_FINAL = (Reason.SANDBOX_UNAVAILABLE,)


class Outcome(StrEnum):
    """How a job, or one attempt at it, ended."""

    PAINTED = "painted"
    SKETCH_FAULT = "sketch_fault"
    INFRASTRUCTURE = "infrastructure"
    CANCELLED = "cancelled"
    #: Of attempts alone: the renderer was full, or did not take the job. It costs nothing.
    BUSY = "busy"
    NOT_TAKEN = "not_taken"


#: The outcomes of a job; every job ends in one of them.
ENDS = (Outcome.PAINTED, Outcome.SKETCH_FAULT, Outcome.INFRASTRUCTURE, Outcome.CANCELLED)


@dataclass
class Counts:
    """What has happened so far; only ever grows.

    Attributes:
        jobs: that were asked for.
        ended: jobs by how they ended.
        attempts: jobs as sent to a renderer, by how that ended.
        hedges_won: second copies of a slow job that answered first.
        hedges_lost: those that did not.
    """

    jobs: int = 0
    ended: dict[Outcome, int] = field(default_factory=lambda: dict.fromkeys(ENDS, 0))
    attempts: dict[Outcome, int] = field(default_factory=lambda: dict.fromkeys(Outcome, 0))
    hedges_won: int = 0
    hedges_lost: int = 0


@dataclass(eq=False)
class _Attempt:
    """One way of a job to a renderer.

    Attributes:
        copy: it is the second copy of a slow job.
        renderer: who has the job, or had it last.
        out: whether a renderer has it now.
        sent: set once one has had it.
    """

    copy: bool
    renderer: Renderer | None = None
    out: bool = False
    sent: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[Painted] = field(init=False)


@dataclass(eq=False)
class _Open:
    """A job that has not ended."""

    job: Job
    fresh: bool
    asked: float
    claim: Claim
    attempts: list[_Attempt] = field(default_factory=list[_Attempt])


class Dispatcher:
    """Sends jobs to renderers. Use as an async context manager.

    Attributes:
        counts: what has happened so far.
    """

    def __init__(
        self,
        urls: Sequence[str] = (),
        *,
        find: Find | None = None,
        wait_s: float | None = WAIT_SECONDS,
        absence_s: float | None = ABSENCE_SECONDS,
        hedge_s: float | None = None,
    ) -> None:
        """Look at nobody before the context is entered.

        Args:
            urls: base URLs of renderers that are always there.
            find: tells, again and again, the URLs of all the others.
            wait_s: how long a job may wait for a slot; None for as long as its caller does.
            absence_s: how long it may wait while no renderer serves; None as long as its caller.
            hedge_s: seconds of a paint after which another renderer with nothing else to do gets
                the same job, the first answer counting; None never sends a job twice.

        Raises:
            ValueError: there is neither a URL nor a way to find one.
        """
        if not urls and find is None:
            raise ValueError("a dispatcher needs a renderer's URL, or a way to find one")
        self.counts = Counts()
        self._hedge_s = hedge_s
        self._http = client.http_client()
        self._fleet = Fleet(self._http, urls, find)
        self._queue = Queue(self._fleet, wait_s, absence_s)
        self._open: set[_Open] = set()
        self._idle = asyncio.Event()
        self._idle.set()

    async def __aenter__(self) -> Self:
        self._fleet.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self, deadline_s: float = 0.0) -> None:
        """Drain, then close every connection; see :meth:`drain`."""
        await self.drain(deadline_s)
        await self._fleet.close()
        await self._http.aclose()

    async def drain(self, deadline_s: float) -> bool:
        """Refuse what waits and what comes, and let end what is being painted.

        Args:
            deadline_s: how long; what is being painted then is given up.

        Returns:
            Whether everything that was being painted came to its end.
        """
        self._queue.close()
        try:
            async with asyncio.timeout(deadline_s):
                await self._idle.wait()
            return True
        except TimeoutError:
            for attempt in [one for work in self._open for one in work.attempts]:
                attempt.task.cancel()
            await self._idle.wait()
            return False

    @property
    def queued(self) -> int:
        """Jobs that hold no slot."""
        return sum(not work.claim.held for work in self._open)

    @property
    def inflight(self) -> int:
        """Slots that jobs hold."""
        return sum(work.claim.held for work in self._open)

    @property
    def slots(self) -> int:
        """Slots of the renderers that serve."""
        return sum(one.slots for one in self._fleet.renderers if one.serves)

    @property
    def ready(self) -> bool:
        """Whether any renderer serves."""
        return any(one.serves for one in self._fleet.renderers)

    @property
    def finds(self) -> bool:
        """Whether renderers may come and go, so that there being none is no fault."""
        return self._fleet.comes_and_goes

    @property
    def urls(self) -> tuple[str, ...]:
        """The base URLs of the renderers that are known now."""
        return tuple(one.url for one in self._fleet.renderers)

    async def render(
        self,
        sketch: str,
        *,
        seed: int,
        size: int | None = None,
        scale: int = 1,
        deadline_s: float = 60.0,
        cpu_budget_s: float = 20.0,
        fresh: bool = False,
        replay: bool = False,
        client: str = "",
    ) -> Painted:
        """Paint one sketch. Its ``timings`` tell the wait (``queue``) and the answer (``render``).

        Cancelling the call gives its slot to the next job at once.

        Args:
            sketch: JavaScript that has passed the static gate.
            seed: seeds every source of chance in the sketch.
            size: side of the painting in pixels; None keeps the sketch's own canvas.
            scale: pixels for each of the sketch's canvas, along a side.
            deadline_s: wall-clock limit of the render, waiting for a slot excluded.
            cpu_budget_s: CPU seconds of the browser that the sketch may use.
            fresh: paint again even if the renderer remembers the painting.
            replay: record what is painted, in order.
            client: whose turn this uses up; a client's own jobs keep their order.

        Raises:
            SketchFault: the sketch is at fault.
            Closing: no more jobs are taken.
            InfrastructureError: RendererUnavailable, RenderDeadline, BrowserCrashed or
                SandboxUnavailable after a second attempt; InternalError for a request that no
                renderer understands.
        """
        job = Job(sketch, seed, size, scale, float(deadline_s), float(cpu_budget_s), replay)
        work = _Open(job, fresh, asyncio.get_running_loop().time(), Claim(client))
        outcome = Outcome.INFRASTRUCTURE
        self.counts.jobs += 1
        self._open.add(work)
        self._idle.clear()
        try:
            painted = await self._settled(work)
            outcome = Outcome.PAINTED
            return painted
        except SketchFault:
            outcome = Outcome.SKETCH_FAULT
            raise
        except asyncio.CancelledError:
            outcome = Outcome.CANCELLED
            raise
        finally:
            self.counts.ended[outcome] += 1
            self._open.discard(work)
            if not self._open:
                self._idle.set()

    async def _settled(self, work: _Open) -> Painted:
        """The job's one end, out of at most two attempts that count."""
        first = self._begin(work)
        copy = None if self._hedge_s is None else self._begin(work, after=first)
        answered: _Attempt | None = None
        failures = 0
        try:
            while True:
                ended = await _next(work)
                error = ended.task.exception()
                if not isinstance(error, InfrastructureError):
                    answered = ended
                    return ended.task.result()
                failures += 1
                if any(other.out or other.task.done() for other in work.attempts):
                    continue  # The other copy may do better, or has.
                if failures > 1 or ended.renderer is None or not _mendable(error):
                    raise error
                log.info("once more: %s", error)
                await _drop(work)
                self._begin(work, avoid=ended.renderer)
        finally:
            if copy is not None and copy.sent.is_set():
                self.counts.hedges_won += copy is answered
                self.counts.hedges_lost += copy is not answered
            await _drop(work)

    def _begin(
        self, work: _Open, *, avoid: Renderer | None = None, after: _Attempt | None = None
    ) -> _Attempt:
        """Start an attempt; ``after`` is the one whose copy it is."""
        attempt = _Attempt(copy=after is not None)
        if after is None:
            way = self._attempt(work, attempt, avoid)
        else:
            way = self._second_copy(work, attempt, after)
        attempt.task = asyncio.create_task(way)
        work.attempts.append(attempt)
        return attempt

    async def _second_copy(self, work: _Open, attempt: _Attempt, first: _Attempt) -> Painted:
        await first.sent.wait()
        assert self._hedge_s is not None
        await asyncio.sleep(self._hedge_s)
        return await self._attempt(work, attempt, first.renderer)

    async def _attempt(self, work: _Open, attempt: _Attempt, avoid: Renderer | None) -> Painted:
        """An answer about the sketch; renderers that do not take the job cost nothing.

        Raises:
            SketchFault, InfrastructureError: see :meth:`render`.
        """
        wish = Wish(avoid, spare=attempt.copy)
        # Who has waited before does not wait at the end of the line again.
        head = avoid is not None
        while True:
            renderer = await self._queue.take(work.claim, wish, head=head)
            attempt.renderer, attempt.out = renderer, True
            attempt.sent.set()
            try:
                return await self._asked(work, renderer)
            except (Busy, NotTaken) as refusal:
                log.info("the job goes elsewhere: %s", refusal)
                head = True
            finally:
                attempt.out = False
                self._queue.give_back(work.claim, renderer)

    async def _asked(self, work: _Open, renderer: Renderer) -> Painted:
        """The renderer's answer, which also tells how the renderer does."""
        clock = asyncio.get_running_loop().time
        outcome, fleet, sent = Outcome.INFRASTRUCTURE, self._fleet, clock()
        waited = sent - work.asked
        try:
            painted = await client.ask(self._http, renderer.url, work.job, fresh=work.fresh)
            outcome = Outcome.PAINTED
            fleet.did_well(renderer)
            timings = {**painted.timings, "queue": waited, "render": clock() - sent}
            return replace(painted, timings=timings)
        except SketchFault as fault:
            outcome = Outcome.SKETCH_FAULT
            fleet.did_well(renderer)
            fault.timings = {"queue": waited, "render": clock() - sent}
            raise
        except Busy as full:
            outcome = Outcome.BUSY
            fleet.was_full(renderer, full.retry_after_s)
            raise
        except NotTaken as away:
            outcome = Outcome.NOT_TAKEN
            fleet.failed(renderer, away.message, away=True)
            raise
        except NotUnderstood:
            raise
        except InfrastructureError as error:
            # A late painting is nothing to rest for.
            if error.reason is not Reason.RENDER_DEADLINE:
                away = error.reason is Reason.RENDERER_UNAVAILABLE
                fleet.failed(renderer, error.message, away=away)
            raise
        except asyncio.CancelledError:
            outcome = Outcome.CANCELLED
            raise
        finally:
            self.counts.attempts[outcome] += 1


async def _next(work: _Open) -> _Attempt:
    """The attempt that ends next, taken from the job's.

    Raises:
        Closing: it was given up.
    """
    await asyncio.wait([one.task for one in work.attempts], return_when=asyncio.FIRST_COMPLETED)
    ended = next(one for one in work.attempts if one.task.done())
    work.attempts.remove(ended)
    if ended.task.cancelled():
        raise closing()
    return ended


async def _drop(work: _Open) -> None:
    """Cancel the attempts that are left, and see them end."""
    left = [one.task for one in work.attempts]
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)
    work.attempts.clear()


def _mendable(error: InfrastructureError) -> bool:
    """Whether a second attempt may do better."""
    return not isinstance(error, (Closing, NotUnderstood)) and error.reason not in _FINAL
