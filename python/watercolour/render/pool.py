"""Slots, each a warm page; recycled when tainted; a browser that dies is started again."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

from watercolour import logs
from watercolour.api.errors import InfrastructureError
from watercolour.api.reasons import Reason
from watercolour.render import browser, chromium, pages, vendor
from watercolour.render.browser import Drawn, Page
from watercolour.render.result import Job, SketchFault

log = logs.get(__name__)

#: Renders after which a page is replaced even if nothing went wrong.
RENDERS_PER_PAGE = 200

#: Seconds that a job may wait for the pages to be opened again after the browser died.
RELAUNCH_SECONDS = 60


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

    Attributes:
        launch: how to start Chromium.
        base: where the pages' files are served.
        slots: sketches that may be painted at once.
        busy: sketches that are being painted.
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
    _idle: list[Page] = field(default_factory=list[Page])
    _starting: asyncio.Lock = field(default_factory=asyncio.Lock)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set[asyncio.Task[None]])
    _closed: bool = False

    @property
    def ready(self) -> bool:
        """Whether a browser runs and at least one page is open or painting."""
        return self._browser is not None and self._browser.alive

    async def start(self) -> browser.Browser:
        """The running browser, started if there is none.

        Raises:
            InfrastructureError: no browser can be started here.
        """
        async with self._starting:
            if self._browser is not None and self._browser.alive:
                return self._browser
            if self._browser is not None:
                log.warning("the browser died; starting it again")
                await self._stack.aclose()
                self._stack = AsyncExitStack()
                self._idle.clear()
            found = await self._stack.enter_async_context(browser.opened(self.launch, self.base))
            self._browser = found
            self.counts.launches += 1
            page = await found.open_page()
            await found.identify(page)
            self.rasterizer = found.rasterizer
            self.versions = {
                **vendor.VERSIONS,
                "harness": pages.harness_version(),
                "browser": found.version,
            }
            self._idle.append(page)
            for _ in range(self.slots - 1):
                self._idle.append(await found.open_page())
            return found

    async def close(self) -> None:
        """Kill the browser; jobs under way end as BrowserCrashed."""
        self._closed = True
        for task in list(self._tasks):
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

    async def _paint_once(self, job: Job) -> Drawn:
        found = await asyncio.wait_for(asyncio.shield(self.start()), RELAUNCH_SECONDS)
        page = self._idle.pop() if self._idle else await found.open_page()
        tainted = True
        try:
            drawn = await page.paint(job)
            tainted = bool(drawn.js_errors) or page.painted >= RENDERS_PER_PAGE
            return drawn
        finally:
            if tainted:
                self._later(self._replace(found, page))
            else:
                self._idle.append(page)

    def _later(self, work: asyncio.coroutines.Coroutine[object, object, None]) -> None:  # type: ignore[name-defined]
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _replace(self, found: browser.Browser, page: Page) -> None:
        """Close a tainted page and open a clean one in its place."""
        self.counts.recycled += 1
        page.kill()
        await page.close()
        if not found.alive or self._closed:
            return
        with contextlib.suppress(InfrastructureError):
            fresh = await found.open_page()
            if found is self._browser and len(self._idle) + self.busy < self.slots + 1:
                self._idle.append(fresh)
            else:
                await fresh.close()


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


__all__ = ["Busy", "Counts", "Pool", "SketchFault", "opened"]
