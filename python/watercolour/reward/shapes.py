"""How heavy the shapes of a painting are, from the record of what was painted. Pure."""

from __future__ import annotations

import numpy as np
from PIL import Image, ImageDraw

from watercolour.render.replay import Replay

#: Side of the grid on which outlines are measured: a shape is told to 1/25,000 of the sheet.
GRID = 160


def heaviest(replay: Replay) -> float:
    """Of all filled shapes the greatest share of the sheet times opacity, 0 to 1.

    Only what lies on the sheet counts, and paper does not: it is the sheet. A sketch that fills
    nothing has 0.
    """
    return max((_weight(replay, *shape) for shape in _outlines(replay)), default=0.0)


def _outlines(replay: Replay) -> list[tuple[tuple[float, ...], float]]:
    return [
        (path, shape.opacity) for shape in replay.shapes if shape.closed for path in shape.paths
    ]


def _weight(replay: Replay, path: tuple[float, ...], opacity: float) -> float:
    """Share of the sheet that an outline covers, times opacity."""
    across, down = GRID / replay.width, GRID / replay.height
    points = [(x * across, y * down) for x, y in zip(path[::2], path[1::2], strict=True)]
    if len(points) < 3:
        return 0.0
    sheet = Image.new("1", (GRID, GRID))
    ImageDraw.Draw(sheet).polygon(points, fill=1)
    return float(np.asarray(sheet).mean()) * opacity
