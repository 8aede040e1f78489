"""Line charts of a run as inline SVG, drawn by us so that the page needs no network."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import escape

#: Size of the drawing, in units of its view box; the page scales it.
WIDTH = 960.0
LEFT, RIGHT, TOP, BOTTOM = 46.0, 14.0, 18.0, 30.0


@dataclass(frozen=True)
class Line:
    """One curve: a CSS class and a value for every step; None breaks the curve."""

    name: str
    values: Sequence[float | None]


@dataclass(frozen=True)
class Area:
    """A pale band behind the curves: a CSS class, and its lower and upper edge at every step."""

    name: str
    low: Sequence[float | None]
    high: Sequence[float | None]


@dataclass(frozen=True)
class Span:
    """A stretch of steps and its mean, drawn as a band with a level line."""

    first: int
    last: int
    mean: float
    label: str


@dataclass(frozen=True)
class Axes:
    """From steps and values to places in the view box."""

    steps: Sequence[int]
    low: float
    high: float
    height: float

    def x(self, step: float) -> float:
        """Horizontal place of a step."""
        first, last = self.steps[0], self.steps[-1]
        share = 0.5 if first == last else (step - first) / (last - first)
        return LEFT + share * (WIDTH - LEFT - RIGHT)

    def y(self, value: float) -> float:
        """Vertical place of a value; values outside are held at the edge."""
        share = (min(self.high, max(self.low, value)) - self.low) / (self.high - self.low)
        return self.height - BOTTOM - share * (self.height - TOP - BOTTOM)


def ticks(low: float, high: float, wanted: int = 5) -> list[float]:
    """Round values that cover the range, about ``wanted`` of them."""
    if high <= low:
        high = low + 1.0
    raw = (high - low) / wanted
    power = 10.0 ** math.floor(math.log10(raw))
    size = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= raw - 1e-12)
    first, last = math.floor(low / size + 1e-9), math.ceil(high / size - 1e-9)
    return [round(number * size, 10) for number in range(first, last + 1)]


def path(axes: Axes, values: Sequence[float | None]) -> str:
    """The ``d`` of a curve; a step without a value leaves a gap, and a lone value is a dot."""
    parts: list[str] = []
    drawing = False
    for index, (step, value) in enumerate(zip(axes.steps, values, strict=True)):
        if value is None:
            drawing = False
            continue
        after = values[index + 1] if index + 1 < len(values) else None
        place = f"{axes.x(step):.1f} {axes.y(value):.1f}"
        parts.append(f"{'L' if drawing else 'M'}{place}")
        if not drawing and after is None:
            parts.append("h0.01")
        drawing = True
    return "".join(parts)


def band(axes: Axes, low: Sequence[float | None], high: Sequence[float | None]) -> str:
    """The ``d`` of the area between two curves, in one piece a gapless stretch."""
    pieces: list[str] = []
    run: list[tuple[int, float, float]] = []

    def close() -> None:
        if len(run) > 1:
            there = "L".join(f"{axes.x(step):.1f} {axes.y(top):.1f}" for step, _, top in run)
            back = "L".join(f"{axes.x(step):.1f} {axes.y(base):.1f}" for step, base, _ in run[::-1])
            pieces.append(f"M{there}L{back}Z")
        run.clear()

    for step, base, top in zip(axes.steps, low, high, strict=True):
        if base is None or top is None:
            close()
        else:
            run.append((step, base, top))
    close()
    return "".join(pieces)


def _grid(axes: Axes, marks: Sequence[float], label: Callable[[float], str]) -> Iterable[str]:
    for mark in marks:
        y = axes.y(mark)
        yield f'<path class="grid" d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}"/>'
        yield f'<text class="tick y" x="{LEFT - 8}" y="{y + 4:.1f}">{escape(label(mark))}</text>'
    for step in ticks(axes.steps[0], axes.steps[-1], 8):
        if step == int(step) and axes.steps[0] <= step <= axes.steps[-1]:
            x = axes.x(step)
            yield f'<text class="tick x" x="{x:.1f}" y="{axes.height - 10}">{int(step)}</text>'


def _spans(axes: Axes, spans: Iterable[Span]) -> Iterable[str]:
    for span in spans:
        left, right = axes.x(span.first - 0.4), axes.x(span.last + 0.4)
        left, right = max(LEFT, left), min(WIDTH - RIGHT, right)
        y = axes.y(span.mean)
        yield f'<path class="level" d="M{left:.1f} {y:.1f}H{right:.1f}"/>'
        # At the band's top, where the curves rarely are, and inside the drawing on either side.
        anchor, x = ("start", left + 4) if left < WIDTH / 2 else ("end", right - 4)
        yield (
            f'<text class="level" text-anchor="{anchor}" x="{x:.1f}" y="{TOP + 17:.1f}">'
            f"{escape(span.label)}</text>"
        )


def _hover(axes: Axes, told: Sequence[str]) -> Iterable[str]:
    """One invisible column a step; the page's script shows what it tells."""
    count = len(axes.steps)
    width = (WIDTH - LEFT - RIGHT) / max(1, count - 1)
    for step, text in zip(axes.steps, told, strict=True):
        x = axes.x(step)
        yield (
            f'<rect class="hover" data-step="{step}" data-x="{x:.1f}" x="{x - width / 2:.1f}" '
            f'y="{TOP}" width="{width:.1f}" height="{axes.height - TOP - BOTTOM}">'
            f"<title>{escape(text)}</title></rect>"
        )


def draw(
    steps: Sequence[int],
    lines: Sequence[Line],
    *,
    told: Sequence[str],
    title: str,
    height: float = 300.0,
    areas: Sequence[Area] = (),
    spans: Sequence[Span] = (),
    limits: tuple[float, float] | None = None,
    label: Callable[[float], str] = lambda value: f"{value:g}",
) -> str:
    """A chart as an ``<svg>`` element.

    Args:
        steps: step numbers, rising.
        lines: the curves, each with one value a step.
        told: what hovering over each step tells.
        title: for those who cannot see it.
        height: in view-box units, beside a width of 960.
        areas: pale bands behind the curves.
        spans: stretches with their mean.
        limits: of the values; unset fits the data.
        label: text of a mark on the value axis.
    """
    edges = [edge for area in areas for edge in (*area.low, *area.high)]
    known = [v for line in lines for v in line.values if v is not None]
    known += [value for value in edges if value is not None]
    low, high = limits or (min(known, default=0.0), max(known, default=1.0))
    marks = ticks(low, high, 5 if height > 200 else 2)
    axes = Axes(steps, marks[0], marks[-1], height)
    parts = [
        f'<svg class="chart" viewBox="0 0 {WIDTH:g} {height:g}" role="img" '
        f'aria-label="{escape(title)}">',
        *_spans_area(axes, spans),
        *_grid(axes, marks, label),
    ]
    parts += [
        f'<path class="area {escape(area.name)}" d="{band(axes, area.low, area.high)}"/>'
        for area in areas
    ]
    parts += [
        f'<path class="line {escape(line.name)}" d="{path(axes, line.values)}"/>' for line in lines
    ]
    parts += [*_spans(axes, spans), '<path class="cursor" d=""/>', *_hover(axes, told), "</svg>"]
    return "".join(parts)


def _spans_area(axes: Axes, spans: Sequence[Span]) -> Iterable[str]:
    """The tinted stretches, behind everything else."""
    for span in spans:
        left = max(LEFT, axes.x(span.first - 0.4))
        right = min(WIDTH - RIGHT, axes.x(span.last + 0.4))
        yield (
            f'<rect class="fifth" x="{left:.1f}" y="{TOP}" width="{right - left:.1f}" '
            f'height="{axes.height - TOP - BOTTOM}"/>'
        )
