"""Whose colours a painting has: the part of its pigment that belongs to the asked subject. Pure.

A colour is read as a watercolour is seen: through the pigment onto the ground. What the pigment
lets through is the pixel divided by the ground, so a thin wash has the hue of the full one, and
neither cream paper nor a tinted sheet counts as pigment of its own.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from watercolour.api.rollout import Rollout
from watercolour.sketch.subjects import subjects

Pixels = NDArray[np.uint8]
Values = NDArray[np.float32]

#: Saturation of the transmitted light below which a pixel has no hue to speak of: paper, grey,
#: and washes so thin that a person would not name their colour.
LEAST_SATURATION = 0.12

#: Degrees of stems and leaves, which every shipped flower may have.
FOLIAGE = (65.0, 170.0)

#: Darkest channel that a ground is taken to have; nothing shines through a darker one.
LEAST_GROUND = 64.0


@dataclass(frozen=True)
class Colours:
    """What counts as a subject's own.

    Attributes:
        hues: arcs of the HSV circle in degrees, each from the first value upwards to the second,
            through 0 if that is smaller; at least one.
        leaves: whether green is nobody's fault, as far as it covers no more than the subject.
    """

    hues: tuple[tuple[float, float], ...]
    leaves: bool


@dataclass(frozen=True)
class Pigment:
    """The pigment of one painting, seen from one subject.

    Attributes:
        share: of the coloured pigment that has the subject's hue, 0 to 1; foliage is left out as
            far as it covers no more than the petals. 0 where nothing is coloured.
        coverage: share of the sheet that has the subject's hue, 0 to 1.
    """

    share: float
    coverage: float


def colours(rollout: Rollout) -> Colours | None:
    """The colours of a rollout's subject; None where nobody says, or where it is white.

    A pool's description of its subject comes before the shipped subject of that name, and names
    its leaves' colours itself, if it has leaves.
    """
    if rollout.hues:
        return Colours(rollout.hues, leaves=False)
    return shipped(rollout.subject)


def shipped(subject: str) -> Colours | None:
    """The colours of a shipped subject, by name; None if there is none, or a white one."""
    known = subjects().get(subject)
    return None if known is None or known.hue is None else Colours((known.hue,), leaves=True)


def read(rgb: Pixels, own_colours: Colours) -> Pigment:
    """The pigment of a painting.

    Args:
        rgb: (height, width, 3).
        own_colours: what counts as the subject's own.
    """
    hue, saturation = transmitted(rgb)
    coloured = saturation >= LEAST_SATURATION
    if not coloured.any():
        return Pigment(0.0, 0.0)
    hue, weight = hue[coloured], saturation[coloured]
    own = np.any([within(hue, arc) for arc in own_colours.hues], axis=0)
    green = within(hue, FOLIAGE) & ~own & own_colours.leaves
    # Sums of their own: a difference of sums may round to less than nothing.
    petals, leaves, other = (float(weight[part].sum()) for part in (own, green, ~(own | green)))
    excess = max(0.0, leaves - petals)
    return Pigment(petals / (petals + other + excess), float(own.sum()) / coloured.size)


def transmitted(rgb: Pixels) -> tuple[Values, Values]:
    """Hue (degrees) and saturation (0 to 1) of what each pixel's pigment lets through.

    Args:
        rgb: (height, width, 3).

    Returns:
        Two arrays of (height * width,).
    """
    flat = rgb.reshape(-1, 3).astype(np.float32)
    light = np.minimum(flat / np.maximum(ground(rgb), LEAST_GROUND), 1.0)
    most, least = light.max(axis=1), light.min(axis=1)
    span = most - least
    some = np.maximum(span, 1e-6)
    red, green, blue = light.T
    sextant = np.select(
        [most == red, most == green],
        [(green - blue) / some % 6, (blue - red) / some + 2],
        (red - green) / some + 4,
    )
    return sextant * 60, span / np.maximum(most, 1e-6)


def ground(rgb: Pixels) -> Values:
    """The sheet's own colour: the mean of the commonest cell at 4 bits a channel."""
    flat = rgb.reshape(-1, 3)
    cells = (flat >> 4).astype(np.uint16)
    keys = (cells[:, 0] << 8) | (cells[:, 1] << 4) | cells[:, 2]
    mode = np.bincount(keys, minlength=4096).argmax()
    return flat[keys == mode].mean(axis=0, dtype=np.float32)


def within(hue: Values, ends: tuple[float, float]) -> NDArray[np.bool_]:
    """Which hues lie from the first end upwards to the second, through 0 if that is smaller."""
    start, end = ends
    return (hue - start) % 360 <= (end - start) % 360
