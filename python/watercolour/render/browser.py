"""One browser with its pages, driven through pyppeteer, and one job on one page.

pyppeteer 2.0 has traps that this module owns: a cancelled call breaks the connection's receive
loop, so calls are shielded and abandoned instead; a crashed page without an ``error`` listener
breaks it too; a call on a crashed page never answers, so every call has its own time-out; and
``close()`` leaves processes behind, so processes are killed by id.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import os
import signal
import time
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pyppeteer
from pyppeteer.browser import Browser as Driver
from pyppeteer.errors import NetworkError, PageError, PyppeteerError
from pyppeteer.page import Page as DriverPage

from watercolour import logs
from watercolour.api.errors import InfrastructureError
from watercolour.api.reasons import Reason, ViolationCode
from watercolour.api.rollout import Violation
from watercolour.render import chromium, procfs
from watercolour.render.result import Job, SketchFault

log = logs.get(__name__)

#: Seconds that any single call of the driver gets, painting excepted.
CALL_SECONDS = 20

#: How often a job's CPU time and memory are looked at.
SAMPLE_SECONDS = 0.05

#: Bytes of resident memory of a page's process beyond which the sketch is out of memory.
MEMORY_LIMIT = 900 * 2**20

#: Share of V8's heap bound, on top of a warm page, from which a crash counts as out of memory.
HEAP_SHARE = 0.6

#: Bounds that the harness keeps: canvas side in pixels and filled shapes.
LIMITS = {"minSide": 64, "maxSide": 1024, "shapes": 400}


#: Kinds of process whose time no sketch causes, or one page alone.
_UNSHARED = ("renderer", "interface", "zygote")


@dataclass
class Meter:
    """Charges the browser's shared processes to the pages that are painting.

    A page's own process is charged to it alone. GPU process, network and browser process are
    shared out equally among the pages that paint while their time passes.
    """

    root: int
    shared: dict[int, float] = field(default_factory=dict[int, float])
    charges: dict[int, float] = field(default_factory=dict[int, float])

    def refresh(self) -> None:
        """Look again for shared processes: everything that is no renderer."""
        for pid in [self.root, *procfs.descendants(self.root)]:
            if pid not in self.shared and procfs.kind(pid) not in (*_UNSHARED, ""):
                self.shared[pid] = procfs.cpu_seconds(pid) or 0.0

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

    def open(self, key: int) -> None:
        """Start charging a page."""
        self.tick()
        self.charges[key] = 0.0

    def close(self, key: int) -> float:
        """Stop charging a page and say what it was charged."""
        self.tick()
        return self.charges.pop(key, 0.0)


@dataclass(frozen=True)
class Drawn:
    """What the realm sent back, pixels still as WebGL gave them."""

    data: bytes
    width: int
    height: int
    shapes: int
    js_errors: tuple[str, ...]
    timings: dict[str, float]
    cpu_seconds: float


def _swallow(task: asyncio.Future[Any]) -> None:
    if not task.cancelled():
        task.exception()


async def call(awaitable: Awaitable[Any], what: str, *, seconds: float = CALL_SECONDS) -> Any:
    """Await one call of the driver for a limited time; never cancels it.

    Raises:
        InfrastructureError: no answer in time, or the driver failed (BrowserCrashed).
    """
    task = asyncio.ensure_future(awaitable)
    done, _ = await asyncio.wait({task}, timeout=seconds)
    if not done:
        task.add_done_callback(_swallow)
        raise InfrastructureError(Reason.BROWSER_CRASHED, f"{what}: no answer in {seconds:g} s.")
    try:
        return task.result()
    except (PyppeteerError, NetworkError, PageError, ConnectionError, OSError) as error:
        raise InfrastructureError(Reason.BROWSER_CRASHED, f"{what}: {error}.") from error


class Page:
    """A warm page with a process of its own. Paints one job at a time."""

    def __init__(self, driver: DriverPage, pid: int, meter: Meter) -> None:
        self.driver = driver
        self.pid = pid
        self.painted = 0
        self._meter = meter
        self._crashed = asyncio.Event()
        self._base = procfs.resident_bytes(pid) or 0
        driver.on("error", self._on_error)

    def _on_error(self, *_: object) -> None:
        self._crashed.set()

    def kill(self) -> None:
        """SIGKILL the page's process: nothing else ends a loop for sure."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)

    async def close(self) -> None:
        """Close the page and what belongs to it; a page that is gone is closed already."""
        with contextlib.suppress(InfrastructureError):
            await call(self.driver.close(), "closing a page", seconds=5)

    async def paint(self, job: Job) -> Drawn:
        """Paint one sketch.

        Raises:
            SketchFault: the sketch is at fault; the page is tainted.
            InfrastructureError: RenderDeadline or BrowserCrashed; the page is tainted.
        """
        started = time.monotonic()
        own = procfs.cpu_seconds(self.pid) or 0.0
        self._meter.open(id(self))
        payload = {"sketch": job.sketch, "seed": job.seed, "limits": LIMITS}
        answer = asyncio.ensure_future(self.driver.evaluate("job => paint(job)", payload))
        try:
            await self._watch(answer, job, started, own)
        finally:
            charged = self._meter.close(id(self))
            answer.add_done_callback(_swallow)
        cpu = charged + (procfs.cpu_seconds(self.pid) or own) - own
        self.painted += 1
        try:
            result = answer.result()
        except (PyppeteerError, NetworkError, PageError, ConnectionError, OSError) as error:
            raise InfrastructureError(
                Reason.BROWSER_CRASHED, f"the page went away while it painted: {error}."
            ) from error
        if result is None:
            raise InfrastructureError(
                Reason.BROWSER_CRASHED, "the connection to the browser broke while it painted."
            )
        return _drawn(result, cpu)

    async def _watch(
        self, answer: asyncio.Future[Any], job: Job, started: float, own: float
    ) -> None:
        """Return once the answer is there; enforce CPU budget, memory and deadline meanwhile."""
        peak = self._base
        crashed = asyncio.ensure_future(self._crashed.wait())
        try:
            while True:
                await asyncio.wait(
                    {answer, crashed},
                    timeout=SAMPLE_SECONDS,
                    return_when=asyncio.FIRST_COMPLETED,
                )
                if answer.done() and not self._crashed.is_set():
                    return
                resident = procfs.resident_bytes(self.pid)
                peak = max(peak, resident or 0)
                if peak > MEMORY_LIMIT:
                    self.kill()
                    raise _out_of_memory(peak)
                if self._crashed.is_set() or resident is None:
                    if peak - self._base > HEAP_SHARE * chromium.HEAP_MIB * 2**20:
                        raise _out_of_memory(peak)
                    raise InfrastructureError(
                        Reason.BROWSER_CRASHED, "the page's process died while it painted."
                    )
                self._meter.tick()
                cpu = (procfs.cpu_seconds(self.pid) or own) - own
                cpu += self._meter.charges.get(id(self), 0.0)
                if cpu > job.cpu_budget_s:
                    self.kill()
                    raise _timeout(cpu, job.cpu_budget_s)
                if time.monotonic() - started > job.deadline_s:
                    self.kill()
                    raise InfrastructureError(
                        Reason.RENDER_DEADLINE,
                        f"the deadline of {job.deadline_s:g} s passed after {cpu:.1f} of "
                        f"{job.cpu_budget_s:g} CPU seconds.",
                        remedy="The machine is overloaded: lower the slots or raise the deadline.",
                    )
        finally:
            crashed.cancel()


def _out_of_memory(peak: int) -> SketchFault:
    return SketchFault(
        Violation(
            code=ViolationCode.SKETCH_OOM,
            message=f"The sketch used {peak // 2**20} MiB of memory and was stopped.",
        )
    )


def _timeout(cpu: float, budget: float) -> SketchFault:
    return SketchFault(
        Violation(
            code=ViolationCode.SKETCH_TIMEOUT,
            message=f"The sketch used {cpu:.1f} CPU seconds; its budget is {budget:g}.",
        )
    )


def _error_line(error: dict[str, Any]) -> str:
    where = f" (line {error['line']}, column {error['column']})" if error.get("line") else ""
    return f"{error['stage']}: {error['message']}{where}"


def _drawn(result: dict[str, Any], cpu: float) -> Drawn:
    """Translate the realm's answer.

    Raises:
        SketchFault: it reports a fault of the sketch.
        InfrastructureError: the GPU process lost its context (BrowserCrashed).
    """
    if result.get("navigated"):
        raise SketchFault(
            Violation(
                code=ViolationCode.RENDER_FAILED, message="The sketch tried to leave its page."
            )
        )
    errors = tuple(_error_line(error) for error in result["errors"])
    if fault := result.get("fault"):
        raise SketchFault(
            Violation(
                code=ViolationCode(fault["code"]),
                message=fault["message"],
                line=fault.get("line") or None,
                column=fault.get("column") or None,
            ),
            errors,
        )
    if result.get("lost"):
        raise InfrastructureError(
            Reason.BROWSER_CRASHED, "the GPU process went away while the sketch was painted."
        )
    return Drawn(
        data=base64.b64decode(result["pixels"]),
        width=result["width"],
        height=result["height"],
        shapes=result["shapes"],
        js_errors=errors,
        timings={key: round(value / 1000, 4) for key, value in result["timings"].items()},
        cpu_seconds=round(cpu, 3),
    )


class Browser:
    """A running Chromium with a connection; opens warm pages."""

    def __init__(self, process: chromium.Process, driver: Driver, base: str) -> None:
        self.process = process
        self.driver = driver
        self.base = base
        self.meter = Meter(process.pid)
        self.version = ""
        self.rasterizer = ""
        self._opening = asyncio.Lock()
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
            driver: DriverPage = await call(self.driver.newPage(), "opening a page")
            driver.on("error", lambda *_: None)
            driver.on("dialog", _dismiss)
            await call(driver.goto(f"{self.base}/host"), "loading the page")
            pid = await self._pid_of(driver)
            self._taken.add(pid)
            await call(driver.evaluate("() => prepare().then(() => true)"), "preparing a realm")
            self.meter.refresh()
            return Page(driver, pid, self.meter)

    async def _pid_of(self, driver: DriverPage) -> int:
        """The page's process: the one that burns CPU time when the page is told to.

        Which process a page lands in is Chromium's business (spare processes, user interface of
        its own), and the driver does not say.
        """
        burn = "() => { const end = performance.now() + 80; while (performance.now() < end); }"
        give_up = time.monotonic() + CALL_SECONDS
        spent: dict[int, float] = {}
        while time.monotonic() < give_up:
            before = {
                pid: procfs.cpu_seconds(pid) or 0.0
                for pid in procfs.descendants(self.process.pid)
                if pid not in self._taken and procfs.kind(pid) == "renderer"
            }
            await call(driver.evaluate(burn), "finding the page's process")
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
        self.version = str(await call(self.driver.version(), "asking the version"))
        gl = await call(page.driver.evaluate(_RENDERER), "asking the rasteriser")
        self.rasterizer = f"{gl or 'no WebGL'}; 2D on the CPU"


_RENDERER = """() => {
  const gl = document.createElement("canvas").getContext("webgl2");
  if (!gl) return null;
  const info = gl.getExtension("WEBGL_debug_renderer_info");
  const name = gl.getParameter(info ? info.UNMASKED_RENDERER_WEBGL : gl.RENDERER);
  gl.getExtension("WEBGL_lose_context")?.loseContext();
  return name;
}"""


def _dismiss(dialog: Any) -> None:
    task = asyncio.ensure_future(dialog.dismiss())
    task.add_done_callback(_swallow)


@asynccontextmanager
async def opened(launch: chromium.Launch, base: str) -> AsyncIterator[Browser]:
    """A browser for the length of the block.

    Args:
        launch: flags and sandbox.
        base: where :mod:`watercolour.render.pages` serves.

    Raises:
        InfrastructureError: see :func:`watercolour.render.chromium.running`.
    """
    async with chromium.running(launch) as process:
        driver: Driver = await call(
            pyppeteer.connect(browserWSEndpoint=process.endpoint, defaultViewport=None),
            "connecting to the browser",
        )
        yield Browser(process, driver, base)
