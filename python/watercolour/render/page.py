"""One warm page: paints one job at a time, under a deadline, a CPU budget and a memory limit."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import os
import signal
import time
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from watercolour.api.errors import InfrastructureError
from watercolour.api.reasons import Reason, ViolationCode
from watercolour.api.rollout import Violation
from watercolour.render import cgroup, driver, procfs, verdict
from watercolour.render.meter import Meter
from watercolour.render.replay import MAX_POINTS, MAX_SHAPES, Replay
from watercolour.render.result import Job, SketchFault
from watercolour.render.schemas import PRINT_SIDE

#: What ``host.js`` says instead of a result.
ENDS = {
    "navigated": "The sketch tried to leave its page.",
    "stuck": "The sketch waits for something that never comes.",
    "spoilt": "The sketch took apart what its painting is read with.",
}

#: How often a job's CPU time and memory are looked at.
SAMPLE_SECONDS = 0.1

#: CPU seconds within which the graphics process has done with a page that is dead.
LINGER_CPU_SECONDS = 0.5

#: How often, and after how many seconds each, the browser is looked at for how a page has ended.
DEATH_LOOKS, DEATH_LOOK_SECONDS = 100, 0.02

#: Bounds that the harness keeps inside the page, before the browser suffers (harness/bounds.js).
LIMITS = {
    "scale": 1,  # pixels for each of the canvas, along a side
    "printSide": PRINT_SIDE,  # of all pixels, when it is above 1
    "minSide": 64,  # of the canvas, in its own pixels
    "maxSide": 1024,
    "canvases": 8,  # calls of createCanvas
    "bufferPixels": 32 * 2**20,  # of all graphics, framebuffers and images together
    "contexts": 12,  # canvases with a WebGL context; Chromium loses the oldest of 16
    "shapes": 400,  # filled and washed ones
    "vertices": 5_000,  # of one shape
    "steps": 200_000,  # along one path, of 1 to 4 pixels each
    "hatchLines": 10_000,  # of one hatch
    "strokeStamps": 2_000_000,  # of a brush's tip in one stroke
    "stamps": 30_000_000,  # in all strokes together
    "pushes": 1_000,  # nested
    "timers": 2_000,  # callbacks of timers, intervals and animation frames
}


def limits(scale: int) -> dict[str, int]:
    """:data:`LIMITS` of a sketch that is drawn at a scale, 1 to :data:`MAX_SCALE`."""
    return LIMITS | {
        "scale": scale,
        "maxSide": min(LIMITS["maxSide"], PRINT_SIDE // scale),
        # Three of p5.brush's own, and one of a sketch's with four samples a pixel.
        "bufferPixels": max(LIMITS["bufferPixels"], 8 * PRINT_SIDE**2 * (scale > 1)),
    }


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
    peak_memory_bytes: int
    replay: Replay | None = None


class Page:
    """A warm page with a process of its own. Paints one job at a time."""

    def __init__(
        self,
        tab: driver.Tab,
        pid: int,
        meter: Meter,
        deaths: dict[str, str],
        group: cgroup.Group | None = None,
    ) -> None:
        """Take over a tab.

        Args:
            tab: it has a realm prepared.
            pid: its process.
            meter: of the browser.
            deaths: how pages' processes have ended; see :func:`watercolour.render.driver.deaths`.
            group: the browser's, if it has one.
        """
        self.tab = tab
        self.pid = pid
        self.painted = 0
        self._meter = meter
        self._deaths = deaths
        self._group = group
        self._graphics = meter.painters()
        self._graphic = False  # whether the sketch has used its time up in the graphics process
        self._crashed = asyncio.Event()
        self._base = procfs.resident_bytes(pid) or 0
        self._peak = self._base
        tab.on("error", self._on_error)

    def _on_error(self, *_: object) -> None:
        self._crashed.set()

    def kill(self) -> None:
        """SIGKILL the page's process: nothing else ends a loop for sure."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)

    def know_graphics(self) -> None:
        """Take down anew which process holds the graphics, once the page has painted.

        It may just have been started again, and so be unknown, when the page was opened.
        """
        self._meter.refresh()
        self._graphics = self._meter.painters()

    async def lingers(self) -> bool:
        """Whether the graphics process goes on with what this page, now dead, has asked of it.

        That may take minutes and would be charged to the next sketch. Whose work it is cannot be
        told while others paint; then the sketch's own way of using its time decides.
        """
        began = self._meter.graphics_seconds()
        while any(map(procfs.runs, self._meter.painters())):
            if self._meter.charges and not self._graphic:
                return False
            if self._meter.graphics_seconds() - began > LINGER_CPU_SECONDS:
                return True
            await asyncio.sleep(SAMPLE_SECONDS)
        return False

    async def close(self) -> None:
        """Close the page and what belongs to it; a page that is gone is closed already."""
        with contextlib.suppress(InfrastructureError):
            await driver.call(self.tab.close(), "closing a page", seconds=5)

    async def paint(self, job: Job, end: float | None = None) -> Drawn:
        """Paint one sketch.

        Args:
            job: what to paint.
            end: when its deadline passes, by ``time.monotonic``; None to count from now.

        Raises:
            SketchFault: the sketch is at fault; the page is tainted.
            InfrastructureError: RenderDeadline or BrowserCrashed; the page is tainted.
        """
        self._require_graphics()
        if self._group is not None:
            self._group.forget()
        memory, ended = self._memory(), self._meter.ended
        try:
            return await self._paint(job, ended, end or time.monotonic() + job.deadline_s)
        except InfrastructureError as error:
            if error.reason is not Reason.BROWSER_CRASHED:
                raise
            company = self._meter.company(ended)
            allowed = verdict.limit(job.scale)
            told = verdict.of_kernel(memory, self._memory(), allowed=allowed, company=company)
            if told is None:
                raise
            raise told from error

    def _memory(self) -> cgroup.Memory | None:
        """What the memory of the browser's group has been through, if it has one."""
        return self._group.memory() if self._group is not None else None

    async def _paint(self, job: Job, ended: int, end: float) -> Drawn:
        """Paint until an instant, when so many paintings of the browser have ended."""
        own = procfs.cpu_seconds(self.pid) or 0.0
        self._meter.open(id(self), verdict.limit(job.scale))
        payload = {
            "sketch": job.sketch,
            "seed": job.seed,
            "limits": limits(job.scale),
            "replay": job.replay and {"points": MAX_POINTS, "shapes": MAX_SHAPES},
        }
        answer = asyncio.ensure_future(self.tab.evaluate("job => paint(job)", payload))
        answer.add_done_callback(driver.swallow)
        try:
            await self._watch(answer, job, end, own, ended)
        finally:
            charged = self._meter.close(id(self))
        cpu = charged + (procfs.cpu_seconds(self.pid) or own) - own
        peak = max(self._peak, procfs.resident_bytes(self.pid) or 0)
        self.painted += 1
        result = driver.outcome(answer, "the page went away while it painted")
        if result is None:
            raise InfrastructureError(
                Reason.BROWSER_CRASHED, "the connection to the browser broke while it painted."
            )
        self._require_graphics()
        if result.get("graphics") is False:
            raise verdict.without_graphics()
        return _drawn(result, job, cpu, peak, intact=bool(self._graphics))

    def _require_graphics(self) -> None:
        """Ensure that the graphics process with which the page was opened still runs.

        When it has ended, whatever the realm says, of itself or of the sketch, may come from that:
        a browser may also refuse its pages the graphics of the next one.

        Raises:
            InfrastructureError: it has ended (BrowserCrashed).
        """
        if self._graphics - self._meter.painters():
            raise verdict.without_graphics()

    async def _death(
        self, answer: asyncio.Future[Any], peak: int
    ) -> SketchFault | InfrastructureError:
        """What to raise about the death of the page's process."""
        key = driver.identity(self.tab)
        for _ in range(DEATH_LOOKS):
            # The answer fails only with the connection: then the browser tells no more.
            if key in self._deaths or answer.done():
                break
            await asyncio.sleep(DEATH_LOOK_SECONDS)
        return verdict.of_death(self._deaths.pop(key, "unknown"), peak - self._base, peak)

    async def _watch(
        self, answer: asyncio.Future[Any], job: Job, end: float, own: float, ended: int
    ) -> None:
        """Return once the answer is there; enforce CPU budget, memory and deadline meanwhile."""
        peak = self._peak = procfs.resident_bytes(self.pid) or self._base
        left = max(0, peak - self._base)  # by earlier sketches
        shared = self._meter.resident()
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
                peak = self._peak = max(peak, resident or 0)
                if excess := verdict.of_memory(
                    max(0, (resident or 0) - left),
                    max(0, self._meter.resident() - shared),
                    allowed=verdict.limit(job.scale),
                    together=sum(self._meter.allowed.values()),
                    company=self._meter.company(ended),
                ):
                    self.kill()
                    raise excess
                if self._crashed.is_set() or resident is None:
                    raise await self._death(answer, peak)
                self._meter.tick()
                cpu = (procfs.cpu_seconds(self.pid) or own) - own
                cpu += self._meter.charges.get(id(self), 0.0)
                if cpu > job.cpu_budget_s:
                    self._graphic = self._meter.charges.get(id(self), 0.0) > cpu / 2
                    self.kill()
                    raise verdict.timeout(cpu, job.cpu_budget_s)
                if time.monotonic() > end:
                    self.kill()
                    raise verdict.past_deadline(job.deadline_s, cpu, job.cpu_budget_s)
        finally:
            crashed.cancel()


def _code(code: str) -> ViolationCode:
    return ViolationCode(code) if code in set(ViolationCode) else ViolationCode.RENDER_FAILED


def _error_line(error: dict[str, Any]) -> str:
    where = f" (line {error['line']}, column {error['column']})" if error.get("line") else ""
    return _written(f"{error['stage']}: {error['message']}{where}")


def _error_lines(result: dict[str, Any]) -> tuple[str, ...]:
    lines = [_error_line(error) for error in result["errors"]]
    if unlisted := result["unlisted"]:
        lines.append(f"and {unlisted} more")
    return tuple(lines)


def _written(text: str) -> str:
    """The same text, half characters replaced: others have to store it."""
    return text.encode("utf-8", "replace").decode()


def _drawn(result: dict[str, Any], job: Job, cpu: float, peak: int, *, intact: bool) -> Drawn:
    """Translate the realm's answer.

    Args:
        result: what ``host.js`` has let through.
        job: what was asked for.
        cpu: seconds that the sketch is charged with.
        peak: bytes of memory.
        intact: whether the processes that hold the graphics are known, and none has ended.

    Raises:
        SketchFault: it reports a fault of the sketch.
        InfrastructureError: the GPU process lost its context (BrowserCrashed).
    """
    for key, message in ENDS.items():
        if result.get(key):
            raise verdict.render_failed(message)
    errors = _error_lines(result)
    if fault := result.get("fault"):
        raise SketchFault(
            Violation(
                code=_code(fault["code"]),
                message=_written(fault["message"]),
                line=fault.get("line") or None,
                column=fault.get("column") or None,
            ),
            errors,
        )
    if result.get("lost"):
        if intact:
            raise verdict.render_failed("The sketch lost the context of its canvas.")
        raise verdict.without_graphics()
    return Drawn(
        data=base64.b64decode(result["pixels"]),
        width=result["width"],
        height=result["height"],
        shapes=result["shapes"],
        js_errors=errors,
        timings={key: round(value / 1000, 4) for key, value in result["timings"].items()},
        cpu_seconds=round(cpu, 3),
        peak_memory_bytes=peak,
        replay=_replay(result, job),
    )


def _replay(result: dict[str, Any], job: Job) -> Replay | None:
    recorded = result["replay"]
    if recorded is None:
        return None
    sides = {side: result[side] // job.scale for side in ("width", "height")}
    try:
        return Replay.model_validate({**recorded, **sides, "seed": job.seed})
    except ValidationError as error:
        # The recorder gives nothing else, unless the sketch has put its own in the way.
        raise SketchFault(
            Violation(
                code=ViolationCode.RENDER_FAILED,
                message="The sketch took apart what its shapes are recorded with.",
            )
        ) from error
