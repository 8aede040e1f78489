"""What goes into a render and what comes out: plain values, importable everywhere."""

from __future__ import annotations

from dataclasses import dataclass, field

from watercolour.api.rollout import Violation
from watercolour.render.replay import Replay


class SketchFault(Exception):
    """The sketch is at fault: the gate refuses it with this violation.

    Attributes:
        violation: code, sentence and place.
        js_errors: everything that the sketch's JavaScript reported before it ended.
        timings: seconds by phase, where they are known.
    """

    def __init__(self, violation: Violation, js_errors: tuple[str, ...] = ()) -> None:
        super().__init__(f"{violation.code}: {violation.message}")
        self.violation = violation
        self.js_errors = js_errors
        self.timings: dict[str, float] = {}


@dataclass(frozen=True)
class Job:
    """One sketch to paint.

    Attributes:
        sketch: JavaScript.
        seed: seeds p5, p5.brush and ``Math.random``.
        size: side of the painting in pixels, or None for the sketch's own canvas.
        scale: pixels of the painting for each of the sketch's canvas, along a side; above 1 is a
            print, which shows the same sketch in finer detail.
        deadline_s: wall-clock limit; passing it is the infrastructure's fault.
        cpu_budget_s: CPU seconds of the browser; passing it is the sketch's fault.
        replay: record what is painted, in order; the painting is the same.
    """

    sketch: str
    seed: int
    size: int | None = None
    scale: int = 1
    deadline_s: float = 60.0
    cpu_budget_s: float = 20.0
    replay: bool = False


@dataclass(frozen=True)
class Painted:
    """A painting and how it came about.

    Attributes:
        painting: PNG, RGB, composited on white.
        paint_fraction: share of pixels that differ from the background, 0 to 1.
        shapes: shapes that p5.brush filled or washed.
        js_errors: one line each, in order; a sketch that throws in draw keeps what it painted.
        timings: seconds by phase.
        cpu_seconds: user and system time of the browser that this sketch is charged with.
        rasterizer: identity of what turned shapes into pixels; never mix two in one run.
        versions: of the libraries, the patch, the harness and the browser.
        cached: the renderer had painted the same sketch with the same seed and size before.
        seed: the seed that was asked for; None from a renderer that does not say.
        peak_memory_bytes: highest resident memory of the page's process while it painted; None
            from a renderer that does not say.
        replay: what was painted, in order; None if the job did not ask for it.
    """

    painting: bytes = field(repr=False)
    paint_fraction: float
    shapes: int
    js_errors: tuple[str, ...]
    timings: dict[str, float]
    cpu_seconds: float
    rasterizer: str
    versions: dict[str, str]
    cached: bool = False
    seed: int | None = None
    peak_memory_bytes: int | None = None
    replay: Replay | None = None
