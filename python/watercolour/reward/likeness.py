"""How unlike two paintings are to the eye, in numbers that need no model. Pure.

Two descriptions, each a set of distributions that are compared part by part:

* the **look**: where the light and the colours lie and which way edges run. Two paintings of one
  look are the same picture to a person who glances at them.
* the **handling**: how the paint was put down, whatever it shows: how light, how saturated and how
  soft its passages are. It knows no place and no hue.

Distances are from 0 (equal) to 1 (nothing in common).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image

Pixels = NDArray[np.uint8]
Values = NDArray[np.float32]

#: Side to which a painting is brought before it is described, in pixels.
SIDE = 96
#: Cells of the look's grid, a side, and directions of edges in each.
GRID, DIRECTIONS = 6, 6
#: Bins of lightness, of chroma and of contrast.
BINS = 8
#: Sides of the boxes, in pixels, in which contrast is seen.
SCALES = (1, 2, 4)
#: CIELAB units in which colours are told apart: beyond them two cells have nothing in common.
FAR = 50.0
#: CIELAB units of chroma and of contrast that fill the last bin.
MOST_CHROMA, MOST_CONTRAST = 80.0, 24.0
#: What the grid of colours counts in a look; edges count the rest.
COLOUR_SHARE = 0.6


@dataclass(frozen=True)
class Likeness:
    """A painting, described.

    Attributes:
        colours: (GRID * GRID, 3) mean CIELAB of each cell.
        edges: (GRID * GRID, DIRECTIONS) strength of the edges that run each way.
        handling: (2 + len(SCALES), BINS) distributions of lightness, chroma and contrast.
    """

    colours: Values
    edges: Values
    handling: Values


def describe(rgb: Pixels) -> Likeness:
    """Describe a painting.

    Args:
        rgb: (height, width, 3).
    """
    small = Image.fromarray(rgb).resize((SIDE, SIDE), Image.Resampling.BOX)
    lab = to_lab(np.asarray(small, np.uint8))
    light = lab[..., 0]
    down, right = np.gradient(light)
    strength = np.hypot(down, right)
    way = (np.arctan2(down, right) % np.pi) * (DIRECTIONS / np.pi)
    edges = np.stack(
        [_cells(strength * (way.astype(int) % DIRECTIONS == one)) for one in range(DIRECTIONS)],
        axis=-1,
    )
    chroma = np.hypot(lab[..., 1], lab[..., 2])
    seen = [_spread(light, 100.0), _spread(chroma, MOST_CHROMA)]
    seen += [_spread(_contrast(lab, side), MOST_CONTRAST) for side in SCALES]
    return Likeness(
        colours=np.stack([_cells(lab[..., channel]) for channel in range(3)], axis=-1),
        edges=edges,
        handling=np.stack(seen),
    )


def look_distance(one: Likeness, two: Likeness) -> float:
    """How unlike two paintings look, 0 to 1."""
    apart = np.linalg.norm(one.colours - two.colours, axis=-1) / FAR
    colours = float(np.minimum(apart, 1.0).mean())
    total = float((one.edges + two.edges).sum())
    edges = float(np.abs(one.edges - two.edges).sum()) / total if total > 0 else 0.0
    return COLOUR_SHARE * colours + (1 - COLOUR_SHARE) * edges


def handling_distance(one: Likeness, two: Likeness) -> float:
    """How unlike two paintings are painted, 0 to 1: the mean distance of their distributions."""
    # Of distributions over ordered bins, the area between the cumulative ones.
    between = np.abs(np.cumsum(one.handling - two.handling, axis=-1)).mean(axis=-1)
    return float(between.mean())


def to_lab(rgb: Pixels) -> Values:
    """CIELAB of sRGB pixels, white point D65 (IEC 61966-2-1, CIE 15)."""
    value = rgb.astype(np.float32) / 255
    linear = np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)
    xyz = linear @ _TO_XYZ.T / _WHITE
    root = np.where(xyz > 216 / 24389, np.cbrt(xyz), (24389 / 27 * xyz + 16) / 116)
    x, y, z = np.moveaxis(root, -1, 0)
    return np.stack([116 * y - 16, 500 * (x - y), 200 * (y - z)], axis=-1).astype(np.float32)


_TO_XYZ = np.array(
    [
        [0.4124564, 0.3575761, 0.1804375],
        [0.2126729, 0.7151522, 0.0721750],
        [0.0193339, 0.1191920, 0.9503041],
    ],
    np.float32,
)
_WHITE = np.array([0.95047, 1.0, 1.08883], np.float32)


def _cells(values: Values) -> Values:
    """Means over the cells of the grid, (GRID * GRID,)."""
    side = SIDE // GRID
    return values.reshape(GRID, side, GRID, side).mean(axis=(1, 3)).reshape(-1)


def _contrast(lab: Values, side: int) -> Values:
    """Differences between neighbouring boxes of so many pixels a side."""
    boxes = lab.reshape(SIDE // side, side, SIDE // side, side, 3).mean(axis=(1, 3))
    down = np.linalg.norm(np.diff(boxes, axis=0), axis=-1).reshape(-1)
    right = np.linalg.norm(np.diff(boxes, axis=1), axis=-1).reshape(-1)
    return np.concatenate([down, right])


def _spread(values: Values, most: float) -> Values:
    """How values from 0 to ``most`` are spread over the bins; finer at the low end."""
    place = np.sqrt(np.clip(values / most, 0, 1)) * (BINS - 1e-3)
    counts = np.bincount(place.astype(int).reshape(-1), minlength=BINS)
    return (counts / counts.sum()).astype(np.float32)
