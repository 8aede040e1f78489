"""Slots, each a warm page; recycled when tainted; a browser that dies is started again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

from watercolour import logs
from watercolour.api.errors import InfrastructureError
from watercolour.api.reasons import Reason
from watercolour.render import browser, chromium, pages, vendor
from watercolour.render.page import Drawn, Page
from watercolour.render.result import Job

log = logs.get(__name__)

#: Renders after which a page is replaced even if nothing went wrong.
RENDERS_PER_PAGE = 200

#: Seconds after which a page that does not come back costs the whole browser.
REPLACE_SECONDS = 60


class Busy(Exception):
    """Every slot paints."""


@dataclass
class Counts:
    """What the metrics show; only ever grows."""

    launches: int = 0
    recycled: int = 0
    retried: int = 0


@dataclass
class Pool:
    """``slots`` pages of one browser, which it starts again when it dies.

    A page is idle, painting, or being replaced; a job waits for the first idle one.

    Attributes:
        launch: how to start Chromium.
        base: where the pages' files are served.
        slots: sketches that may be painted at once.
        busy: sketches that are being painted.
        rasterizer, versions: identity of what paints, known after :meth:`start`.
    """

    launch: chromium.Launch
    base: str
    slots: int
    busy: int = 0
    counts: Counts = field(default_factory=Counts)
    rasterizer: str = ""
    versions: dict[str, str] = field(default_factory=dict[str, str])
    _stack: AsyncExitStack = field(default_factory=AsyncExitStack)
    _browser: browser.Browser | None = None
    _idle: asyncio.Queue[Page] = field(default_factory=asyncio.Queue[Page])
    _starting: asyncio.Lock = field(default_factory=asyncio.Lock)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set[asyncio.Task[None]])
    _closed: bool = False

    @property
    def ready(self) -> bool:
        """Whether a browser runs with its pages open."""
        return self._browser is not None and self._browser.alive

    async def start(self) -> browser.Browser:
        """The running browser, started if there is none.

        Raises:
            InfrastructureError: no browser can be started here.
        """
        async with self._starting:
            if self._browser is not None:
                if self._browser.alive:
                    return self._browser
                log.warning("the browser died; starting it again")
                self._browser = None
            await self._stack.aclose()
            self._stack = AsyncExitStack()
            self._idle = asyncio.Queue()
            found = await self._stack.enter_async_context(browser.opened(self.launch, self.base))
            self.counts.launches += 1
            for number in range(self.slots):
                page = await found.open_page()
                if number == 0:
                    await found.identify(page)
                self._idle.put_nowait(page)
            self.rasterizer = found.rasterizer
            self.versions = {
                **vendor.VERSIONS,
                "harness": pages.harness_version(),
                "browser": found.version,
            }
            self._browser = found
            return found

    async def close(self) -> None:
        """Kill the browser; jobs under way end as BrowserCrashed."""
        self._closed = True
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._stack.aclose()
        self._browser = None

    async def paint(self, job: Job) -> Drawn:
        """Paint one sketch on a free slot; once more if the browser died under it.

        Raises:
            Busy: no slot is free.
            SketchFault: the sketch is at fault.
            InfrastructureError: RenderDeadline, BrowserCrashed, or no browser could be started.
        """
        if self.busy >= self.slots:
            raise Busy
        self.busy += 1
        try:
            try:
                return await self._paint_once(job)
            except InfrastructureError as error:
                if error.reason is not Reason.BROWSER_CRASHED or self._closed:
                    raise
                log.warning("painting once more: %s", error)
                self.counts.retried += 1
                return await self._paint_once(job)
        finally:
            self.busy -= 1

    async def _take(self) -> tuple[browser.Browser, Page]:
        """An idle page; waits while one is being replaced, or while the browser starts."""
        while True:
            found = await self.start()
            taking = asyncio.ensure_future(self._idle.get())
            await asyncio.wait(
                {taking, found.process.exited},
                timeout=REPLACE_SECONDS,
                return_when=asyncio.FIRST_COMPLETED,
            )
            if taking.done() and found.alive:
                return found, taking.result()
            taking.cancel()
            if found.alive:
                log.warning("no page came back in %s s; killing the browser", REPLACE_SECONDS)
                chromium.kill_tree(found.process.pid)
                await found.process.exited

    async def _paint_once(self, job: Job) -> Drawn:
        found, page = await self._take()
        tainted = True
        try:
            drawn = await page.paint(job)
            tainted = bool(drawn.js_errors) or page.painted >= RENDERS_PER_PAGE
            return drawn
        finally:
            if not tainted:
                self._idle.put_nowait(page)
            else:
                page.kill()
                task = asyncio.create_task(self._replace(found, page))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)

    async def _replace(self, found: browser.Browser, page: Page) -> None:
        """Put a clean page in the place of a tainted one, whose process is dead already."""
        self.counts.recycled += 1
        if not found.alive:
            return
        try:
            fresh = await found.open_page()
        except InfrastructureError as error:
            # Without this page the slot is lost, so the whole browser is started again.
            log.warning("a page could not be replaced: %s", error)
            chromium.kill_tree(found.process.pid)
            return
        if found is self._browser:
            self._idle.put_nowait(fresh)
        await page.close()


@asynccontextmanager
async def opened(
    launch: chromium.Launch, slots: int, *, stock: bool = False
) -> AsyncIterator[Pool]:
    """A pool for the length of the block; the browser starts with the first :meth:`Pool.start`.

    Raises:
        InfrastructureError: the libraries are not vendored.
    """
    async with pages.served(stock=stock) as base:
        pool = Pool(launch, base, slots)
        try:
            yield pool
        finally:
            await pool.close()
