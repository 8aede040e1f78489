"""Slots: warm pages of one browser, recycled when worn or tainted; a dead browser is replaced.

One task, :meth:`Pool.keep`, starts the browser and starts it again. Jobs only wait for it, each
until its own deadline, so a job that gives up never takes a start down with it.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace

from watercolour import logs
from watercolour.api.errors import InfrastructureError
from watercolour.api.reasons import Reason
from watercolour.render import browser, chromium, pages, procfs, vendor, warmup
from watercolour.render.page import Drawn, Page
from watercolour.render.result import Job, SketchFault
from watercolour.render.wear import Wear

log = logs.get(__name__)

#: Seconds after which a page that does not come back costs the whole browser.
REPLACE_SECONDS = 180

#: Seconds between two attempts to start a browser that does not start: the first and the longest.
AGAIN_SECONDS, LONGEST_AGAIN_SECONDS = 1.0, 30.0


class Busy(Exception):
    """Every slot paints."""


@dataclass
class Counts:
    """What the metrics show; only ever grows."""

    launches: int = 0
    retried: int = 0
    recycled: Counter[str] = field(default_factory=Counter[str])


@dataclass
class Slot:
    """A warm page and what it has been through."""

    page: Page
    since: float
    renders: int = 0


@dataclass
class Crew:
    """A running browser and its slots.

    Attributes:
        browser: what the slots are pages of.
        warm: slots that have painted the warm-up sketch and are not being replaced.
        idle: those that do not paint; a None says to all who wait that the browser is no more.
        replacing: tasks that bring a clean slot.
    """

    browser: browser.Browser
    warm: int = 0
    idle: asyncio.Queue[Slot | None] = field(default_factory=asyncio.Queue[Slot | None])
    replacing: set[asyncio.Task[None]] = field(default_factory=set[asyncio.Task[None]])


@dataclass
class Pool:
    """``slots`` warm pages of one browser.

    Attributes:
        launch: how to start Chromium.
        base: where the pages' files are served.
        slots: sketches that may be painted at once.
        wear: when a page is replaced although nothing went wrong.
        busy: sketches that are being painted.
        trouble: why no browser runs; None while one runs, or starts for the first time.
        rasterizer, versions, sandboxed: identity of what paints, of the last browser.
        exact: whether each warm-up has to equal the first one, byte for byte.
    """

    launch: chromium.Launch
    base: str
    slots: int
    wear: Wear = field(default_factory=Wear)
    busy: int = 0
    counts: Counts = field(default_factory=Counts)
    trouble: InfrastructureError | None = None
    rasterizer: str = ""
    versions: dict[str, str] = field(default_factory=dict[str, str])
    sandboxed: bool | None = None
    exact: bool = True
    _known: dict[str, str] = field(default_factory=dict[str, str])
    _up: asyncio.Future[Crew] = field(default_factory=lambda: _future())
    _closed: bool = False

    @property
    def _crew(self) -> Crew | None:
        up = self._up
        return up.result() if up.done() and not up.cancelled() and not up.exception() else None

    @property
    def ready(self) -> bool:
        """Whether a browser runs whose pages have all painted the warm-up sketch."""
        return self._crew is not None and self._crew.browser.alive

    @property
    def warm(self) -> int:
        """Slots that are not being replaced."""
        return self._crew.warm if self._crew is not None else 0

    async def keep(self) -> None:
        """Start the browser, and again whenever it dies, until cancelled."""
        again = AGAIN_SECONDS
        try:
            while True:
                try:
                    await self._run()
                    again = AGAIN_SECONDS
                    continue
                except InfrastructureError as error:
                    failure = error
                except Exception:
                    log.exception("the browser's keeper failed")
                    failure = InfrastructureError(
                        Reason.INTERNAL_ERROR, "the renderer failed; its log has the traceback."
                    )
                log.error("%s; next attempt in %g s", failure, again)
                self._fail(failure)
                await asyncio.sleep(again)
                again = min(2 * again, LONGEST_AGAIN_SECONDS)
                if self._up.done():
                    self._up = _future()
        finally:
            self._closed = True
            self._fail(InfrastructureError(Reason.BROWSER_CRASHED, "the renderer is stopping."))

    def _fail(self, error: InfrastructureError) -> None:
        """Give every job that waits for the browser this error."""
        self.trouble = error
        if self._up.done():
            self._up = _future()
        self._up.set_exception(error)
        self._up.exception()  # Seen: nobody may be waiting.

    async def _run(self) -> None:
        """One browser, from its start to its death.

        Raises:
            InfrastructureError: it did not start, or its pages do not paint what they should.
        """
        async with browser.opened(self.launch, self.base) as found:
            crew = Crew(found)
            self.counts.launches += 1
            try:
                for number in range(self.slots):
                    slot = await self._warmed(found, first=number == 0)
                    crew.idle.put_nowait(slot)
                    crew.warm += 1
                self.trouble = None
                self._up.set_result(crew)
                await asyncio.shield(found.process.exited)
                log.warning("the browser died; starting it again")
            finally:
                if self._up.done():
                    self._up = _future()
                crew.idle.put_nowait(None)
                for task in crew.replacing:
                    task.cancel()
                await asyncio.gather(*crew.replacing, return_exceptions=True)

    async def _warmed(self, found: browser.Browser, *, first: bool = False) -> Slot:
        """A page that has painted the warm-up sketch as it has to be painted.

        Raises:
            InfrastructureError: it has not.
        """
        page = await found.open_page()
        if first:
            await found.identify(page)
            self.rasterizer = found.rasterizer
            self.versions = {
                **vendor.VERSIONS,
                "harness": pages.harness_version(),
                "browser": found.version,
            }
            self.sandboxed = found.process.sandboxed
        try:
            drawn = await page.paint(warmup.JOB)
        except SketchFault as fault:
            raise InfrastructureError(
                Reason.RENDERER_UNAVAILABLE, f"a new page fails at the warm-up sketch: {fault}."
            ) from fault
        digest = warmup.check(drawn)
        if digest != self._known.setdefault(self.rasterizer, digest) and self.exact:
            raise InfrastructureError(
                Reason.RENDERER_UNAVAILABLE, "a new page paints the warm-up sketch differently."
            )
        page.know_graphics()
        return Slot(page, time.monotonic())

    async def paint(self, job: Job) -> Drawn:
        """Paint one sketch on a free slot; once more if the browser died under it.

        The deadline holds for all of it: waiting for a slot, and the second attempt.

        Raises:
            Busy: no slot is free.
            SketchFault: the sketch is at fault.
            InfrastructureError: RenderDeadline, BrowserCrashed, or why there is no browser.
        """
        if self.busy >= self.slots:
            raise Busy
        self.busy += 1
        end = time.monotonic() + job.deadline_s
        try:
            try:
                return await self._paint_once(job, end)
            except InfrastructureError as error:
                if error.reason is not Reason.BROWSER_CRASHED or self._closed:
                    raise
                log.warning("painting once more: %s", error)
                self.counts.retried += 1
                return await self._paint_once(job, end)
        finally:
            self.busy -= 1

    async def _take(self, job: Job, end: float) -> tuple[Crew, Slot]:
        """An idle slot; waits while one is being replaced, or while the browser starts.

        Raises:
            InfrastructureError: RenderDeadline, or why there is no browser.
        """
        try:
            async with asyncio.timeout(end - time.monotonic()):
                while True:
                    crew = await asyncio.shield(self._up)
                    slot = await crew.idle.get()
                    if slot is None:
                        crew.idle.put_nowait(None)  # The next who waits shall know it too.
                    elif crew.browser.alive:
                        return crew, slot
        except TimeoutError as error:
            raise InfrastructureError(
                Reason.RENDER_DEADLINE,
                f"the deadline of {job.deadline_s:g} s passed before a slot was warm.",
                remedy="A browser takes some seconds to start: raise the deadline, or ask a "
                "renderer that is ready.",
            ) from error

    async def _paint_once(self, job: Job, end: float) -> Drawn:
        asked = time.monotonic()
        crew, slot = await self._take(job, end)
        started = time.monotonic()
        why: str | None = "taint"
        try:
            drawn = await slot.page.paint(job, end)
            slot.renders += 1
            age = time.monotonic() - slot.since
            memory = procfs.resident_bytes(slot.page.pid) or 0
            why = "taint" if drawn.js_errors else self.wear.cause(slot.renders, age, memory)
            return replace(drawn, timings={"wait": round(started - asked, 4), **drawn.timings})
        finally:
            self._give_back(crew, slot, why)

    def _give_back(self, crew: Crew, slot: Slot, why: str | None) -> None:
        """Put a slot back, or a clean one in its place if there is a reason to."""
        if why is None:
            crew.idle.put_nowait(slot)
            return
        self.counts.recycled[why] += 1
        crew.warm -= 1
        slot.page.kill()
        if crew is self._crew and crew.browser.alive:
            task = asyncio.create_task(self._replace(crew, slot))
            crew.replacing.add(task)
            task.add_done_callback(crew.replacing.discard)

    async def _replace(self, crew: Crew, old: Slot) -> None:
        """Put a warm page in the place of one whose process is dead already."""
        if await old.page.lingers():
            log.warning("a sketch left work behind for minutes; starting the browser again")
            chromium.kill_tree(crew.browser.process.pid)
            return
        try:
            async with asyncio.timeout(REPLACE_SECONDS):
                slot = await self._warmed(crew.browser)
        except (InfrastructureError, TimeoutError) as error:
            # Without this page the slot is lost, so the whole browser is started again.
            log.warning("a page could not be replaced: %s", error or "it took too long")
            chromium.kill_tree(crew.browser.process.pid)
            return
        crew.warm += 1
        crew.idle.put_nowait(slot)
        await old.page.close()


def _future() -> asyncio.Future[Crew]:
    return asyncio.get_running_loop().create_future()


@asynccontextmanager
async def opened(
    launch: chromium.Launch, slots: int, wear: Wear | None = None, *, stock: bool = False
) -> AsyncIterator[Pool]:
    """A pool for the length of the block; its browser starts at once.

    Raises:
        InfrastructureError: the libraries are not vendored.
    """
    async with pages.served(stock=stock) as base:
        pool = Pool(launch, base, slots, wear or Wear(), exact=not stock)
        keeper = asyncio.create_task(pool.keep())
        try:
            yield pool
        finally:
            keeper.cancel()
            with suppress(asyncio.CancelledError):
                await keeper
