"""A replay as SVG, for prints and pen plotters. Pure: a replay in, the file's text out.

The shapes come as flat areas and plain lines, without bleed, texture or mixing of pigments: those
only a painting has, and the file's title and description say so. Layers are Inkscape's, which
plotters' drivers read as well; their labels start with a number, by which a driver picks pens.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from xml.sax.saxutils import escape, quoteattr

from watercolour.render.replay import Replay, Shape

Point = tuple[float, float]

#: Lines of a plotter's drawing, in pixels of the canvas or in millimetres of the paper.
PEN_PX, PEN_MM = 1.0, 0.3

#: Characters that XML has no place for.
_INVALID = dict.fromkeys(
    [*range(9), 11, 12, *range(14, 32), *range(0xD800, 0xE000), 0xFFFE, 0xFFFF], "\ufffd"
)


def _text(text: str) -> str:
    """Fit for XML: what it cannot hold is replaced, what it would read as markup is escaped."""
    return escape(text.translate(_INVALID))


def _attribute(text: str) -> str:
    return quoteattr(text.translate(_INVALID))


def _number(value: float) -> str:
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def _points(path: Sequence[float]) -> list[Point]:
    return list(zip(path[::2], path[1::2], strict=True))


def _d(points: Iterable[Point], *, closed: bool) -> str:
    joined = "L".join(f"{_number(x)} {_number(y)}" for x, y in points)
    return f"M{joined}{'Z' if closed else ''}"


def coverage(shape: Shape) -> float:
    """About how much of the paper an area hides, 0 to 1.

    Of a fill as measured on circles of three pigments, six opacities and four textures: its many
    thin layers do not add up to their number, and the stronger the texture, the more of them is
    erased again. A wash is one flat layer.
    """
    if shape.kind != "fill":
        return shape.opacity
    texture = shape.texture or 0.0
    return 0.45 * shape.opacity**1.4 * (1 - 0.85 * texture**3)


def _within(a: Point, b: Point, width: float, height: float) -> tuple[Point, Point] | None:
    """The part of a line that lies on the paper (Liang and Barsky); None if there is none."""
    (x, y), (dx, dy) = a, (b[0] - a[0], b[1] - a[1])
    enter, leave = 0.0, 1.0
    for slope, room in ((-dx, x), (dx, width - x), (-dy, y), (dy, height - y)):
        if slope == 0:
            if room < 0:
                return None
        elif slope < 0:
            enter = max(enter, room / slope)
        else:
            leave = min(leave, room / slope)
    if enter > leave:
        return None
    start = a if enter == 0 else (x + enter * dx, y + enter * dy)
    end = b if leave == 1 else (x + leave * dx, y + leave * dy)
    return start, end


def clipped(
    points: Sequence[Point], width: float, height: float, *, closed: bool
) -> Iterator[tuple[list[Point], bool]]:
    """The pieces of a path that lie on the paper, and whether each still closes.

    A pen has to stay on the sheet; what a browser cuts off, a plotter would draw on the table.
    """
    if all(0 <= x <= width and 0 <= y <= height for x, y in points):
        yield list(points), closed
        return
    piece: list[Point] = []
    ends = [*points[1:], points[0]] if closed else points[1:]
    for a, b in zip(points, ends, strict=False):
        part = _within(a, b, width, height)
        if part is None or (piece and piece[-1] != part[0]):
            if len(piece) > 1:
                yield piece, False
            piece = []
        if part is not None and part[0] != part[1]:
            piece = [*(piece or [part[0]]), part[1]]
    if len(piece) > 1:
        yield piece, False


def _area(shape: Shape) -> Iterator[str]:
    fill = f'fill="{shape.colour}" fill-opacity="{_number(coverage(shape))}"'
    for path in shape.paths:
        yield f'<path d="{_d(_points(path), closed=True)}" {fill}/>'


def _line(shape: Shape) -> Iterator[str]:
    look = (
        f'fill="none" stroke="{shape.colour}" stroke-opacity="{_number(shape.opacity)}" '
        f'stroke-width="{_number(max(shape.width or 0.0, 0.1))}"'
    )
    ways = "".join(_d(_points(path), closed=False) for path in shape.paths)
    yield f'<path d="{ways}" {look}/>'


def _pen(shape: Shape, replay: Replay) -> Iterator[str]:
    for path in shape.paths:
        pieces = clipped(_points(path), replay.width, replay.height, closed=shape.closed)
        for points, closed in pieces:
            yield f'<path d="{_d(points, closed=closed)}"/>'


def _layer(number: int, label: str, look: str, body: Sequence[str]) -> str:
    name = _attribute(f"{number} {label}")
    head = f'<g id="layer{number}" inkscape:groupmode="layer" inkscape:label={name}{look}>'
    return "\n".join([head, *body, "</g>"])


def _pigment(shape: Shape) -> str:
    if shape.brush is not None:
        return f"{shape.colour} {shape.brush}"
    return f"{shape.colour} {shape.kind}"


def _painted(replay: Replay) -> Iterator[str]:
    """A layer for every pigment, anew where another has come between: the order is kept."""
    for number, (label, shapes) in enumerate(groupby(replay.shapes, _pigment), 1):
        body: list[str] = []
        for shape in shapes:
            if shape.kind == "paper":
                body.append(
                    f'<rect width="{replay.width}" height="{replay.height}" '
                    f'fill="{shape.colour}" fill-opacity="{_number(shape.opacity)}"/>'
                )
            else:
                body += _area(shape) if shape.closed else _line(shape)
        yield _layer(number, label, "", body)


def _plotted(replay: Replay, pen: float) -> Iterator[str]:
    """A layer for every colour, hence for every pen, in the order of their first use."""
    pens: dict[str, list[str]] = {}
    for shape in replay.shapes:
        if shape.kind != "paper":
            pens.setdefault(shape.colour, []).extend(_pen(shape, replay))
    for number, (colour, body) in enumerate(pens.items(), 1):
        look = f' fill="none" stroke="{colour}" stroke-width="{_number(pen)}"'
        yield _layer(number, colour, look, body)


def _about(replay: Replay, *, outlines: bool) -> str:
    what = "Outlines" if outlines else "Outlines and flat fills"
    count = sum(shape.kind != "paper" for shape in replay.shapes)
    missing = " The painting has more shapes than were recorded." if replay.truncated else ""
    return (
        f"{what} of {count} shapes in the order of painting, without bleed, texture or mixing of "
        f"pigments. Seed {replay.seed}.{missing}"
    )


def export(
    replay: Replay, *, title: str, width_mm: float | None = None, outlines: bool = False
) -> str:
    """The replay as the text of an SVG file.

    Args:
        replay: what was painted.
        title: goes into the file's title.
        width_mm: width of the sheet in millimetres; None gives pixels.
        outlines: lines alone, one layer a colour, nothing beyond the sheet: for a pen plotter.
    """
    if width_mm is None:
        sides, pen = f'width="{replay.width}" height="{replay.height}"', PEN_PX
    else:
        height_mm = width_mm * replay.height / replay.width
        sides = f'width="{_number(width_mm)}mm" height="{_number(height_mm)}mm"'
        pen = PEN_MM * replay.width / width_mm
    layers = _plotted(replay, pen) if outlines else _painted(replay)
    return "\n".join(
        [
            '<?xml version="1.0" encoding="UTF-8"?>',
            '<svg xmlns="http://www.w3.org/2000/svg" '
            'xmlns:inkscape="http://www.inkscape.org/namespaces/inkscape" '
            f'{sides} viewBox="0 0 {replay.width} {replay.height}" '
            'stroke-linecap="round" stroke-linejoin="round">',
            f"<title>{_text(title)} (without bleed)</title>",
            f"<desc>{_text(_about(replay, outlines=outlines))}</desc>",
            *layers,
            "</svg>",
            "",
        ]
    )


def steps(replay: Replay, *, title: str) -> Iterator[str]:
    """The painting's growth: one SVG for each shape, of it and all that came before."""
    for count in range(1, len(replay.shapes) + 1):
        yield export(replay.upto(count), title=title)
