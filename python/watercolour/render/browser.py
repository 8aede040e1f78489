"""One running Chromium with a connection to it; opens warm pages and knows what it is."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

from watercolour.api.errors import InfrastructureError
from watercolour.api.reasons import Reason
from watercolour.render import chromium, driver, pages, procfs
from watercolour.render.meter import Meter
from watercolour.render.page import Page


class Browser:
    """A running Chromium with a connection; opens warm pages."""

    def __init__(self, process: chromium.Process, connection: driver.Connection, base: str) -> None:
        self.process = process
        self.connection = connection
        self.base = base
        self.meter = Meter(process.pid)
        self.version = ""
        self.rasterizer = ""
        self._opening = asyncio.Lock()
        self._deaths = driver.deaths(connection)
        self._taken: set[int] = set()

    @property
    def alive(self) -> bool:
        """Whether the browser process runs."""
        return not self.process.exited.done()

    async def open_page(self) -> Page:
        """A warm page with a process of its own and its first realm prepared.

        Raises:
            InfrastructureError: the browser is gone or silent (BrowserCrashed).
        """
        async with self._opening:
            first = pages.nested_script()
            tab = await driver.open_tab(self.connection, f"{self.base}/host", first)
            pid = await self._pid_of(tab)
            self._taken.add(pid)
            await driver.call(tab.evaluate("() => prepare().then(() => true)"), "preparing a realm")
            self.meter.refresh()
            return Page(tab, pid, self.meter, self._deaths, self.process.group)

    async def _pid_of(self, tab: driver.Tab) -> int:
        """The page's process: the one that burns CPU time when the page is told to.

        Which process a page lands in is Chromium's business (spare processes, user interface of
        its own), and the driver does not say.
        """
        burn = "() => { const end = performance.now() + 80; while (performance.now() < end); }"
        give_up = time.monotonic() + driver.CALL_SECONDS
        spent: dict[int, float] = {}
        while time.monotonic() < give_up:
            before = {
                pid: procfs.cpu_seconds(pid) or 0.0
                for pid in procfs.descendants(self.process.pid)
                if pid not in self._taken and procfs.kind(pid) == "renderer"
            }
            await driver.call(tab.evaluate(burn), "finding the page's process")
            for pid, start in before.items():
                spent[pid] = spent.get(pid, 0.0) + (procfs.cpu_seconds(pid) or 0.0) - start
            ranked = sorted(spent.items(), key=lambda item: -item[1])
            if (
                ranked
                and ranked[0][1] >= 0.04
                and (len(ranked) == 1 or ranked[0][1] >= 3 * ranked[1][1])
            ):
                return ranked[0][0]
        raise InfrastructureError(Reason.BROWSER_CRASHED, "the new page has no process.")

    async def identify(self, page: Page) -> None:
        """Learn browser version and rasteriser; both go into every painting's record."""
        self.version = str(await driver.call(self.connection.version(), "asking the version"))
        gl = await driver.call(page.tab.evaluate(_RENDERER), "asking the rasteriser")
        self.rasterizer = f"{gl or 'no WebGL'}; 2D on the CPU"


_RENDERER = """() => {
  const gl = document.createElement("canvas").getContext("webgl2");
  if (!gl) return null;
  const info = gl.getExtension("WEBGL_debug_renderer_info");
  const name = gl.getParameter(info ? info.UNMASKED_RENDERER_WEBGL : gl.RENDERER);
  gl.getExtension("WEBGL_lose_context")?.loseContext();
  return name;
}"""


@asynccontextmanager
async def opened(launch: chromium.Launch, base: str) -> AsyncIterator[Browser]:
    """A browser for the length of the block.

    Args:
        launch: flags and sandbox.
        base: where :mod:`watercolour.render.pages` serves.

    Raises:
        InfrastructureError: see :func:`watercolour.render.chromium.running`.
    """
    confined = replace(launch, flags=(*launch.flags, *pages.only_way(base)))
    async with chromium.running(confined) as process:
        yield Browser(process, await driver.connect(process.endpoint), base)
