"""The choices of one painting before it becomes text, and two painters who make them.

``good`` paints large, luminous and layered; ``plain`` is competent at best.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from watercolour.sketch import dialect
from watercolour.sketch.palettes import LEAF, PAPER, SUBJECTS, WRONG, Palette

#: Compositions and their weight for each subject; every subject can get every one.
COMPOSITIONS: dict[str, dict[str, int]] = {
    "a peach hibiscus": {"bloom": 7, "wet": 3, "spray": 2, "field": 1, "profile": 1},
    "a blue iris": {"bloom": 2, "wet": 2, "spray": 1, "profile": 3, "standards": 6},
    "a red poppy": {"bloom": 4, "wet": 3, "spray": 2, "field": 3, "profile": 3},
    "a yellow daisy": {"bloom": 7, "wet": 2, "spray": 3, "field": 2, "profile": 1},
}

PETALS: dict[str, tuple[str, ...]] = {
    "a peach hibiscus": ("round", "heart", "ruffled", "torn"),
    "a blue iris": ("drop", "ruffled", "torn", "lance"),
    "a red poppy": ("round", "ruffled", "heart", "torn"),
    "a yellow daisy": ("lance", "drop", "round"),
}

#: Petals of a ring by subject.
COUNTS: dict[str, tuple[int, ...]] = {
    "a peach hibiscus": (5, 5, 6),
    "a blue iris": (3, 5, 6),
    "a red poppy": (4, 4, 5),
    "a yellow daisy": (7, 8, 9),
}


@dataclass(frozen=True)
class Wash:
    """One layer of a flower: pigment, and petals as a share of the flower's size."""

    color: str
    opacity: int
    bleed: float
    texture: float
    reach: float
    turn: int


@dataclass(frozen=True)
class Heart:
    """The flower's middle: a disc, a ring of stamens, or a pistil."""

    kind: str
    color: str
    opacity: int
    radius: int


@dataclass(frozen=True)
class Plan:
    """Every choice of one painting, before it becomes text."""

    subject: str
    composition: str
    palette: Palette
    ground: str
    x: int
    y: int
    size: int
    width: int
    count: int
    petal: str
    loose: bool
    washes: tuple[Wash, ...]
    heart: Heart | None
    air: tuple[str, int, float] | None
    leaves: int
    leaf_color: str
    leaf_opacity: int
    stem: bool
    flat: bool = False


def _composition(subject: str, rng: random.Random) -> str:
    weights = COMPOSITIONS[subject]
    return rng.choices(list(weights), list(weights.values()))[0]


def good(subject: str, rng: random.Random) -> Plan:
    """Large, luminous and layered: two or three washes, each smaller and denser."""
    palette = SUBJECTS[subject]
    size = rng.choice((56, 60, 64, 68, 72, 76))
    pick = rng.choice
    layers = pick((2, 2, 3))
    turn = pick((0, 10, 20, 30, -90, -70))
    washes = [
        Wash(
            pick(palette.pale),
            pick((100, 120, 140, 160, 180)),
            pick((0.2, 0.3)),
            pick((0.2, 0.4)),
            1,
            turn,
        ),
        Wash(
            pick(palette.body),
            pick((120, 140, 160, 180, 200)),
            pick((0.1, 0.2, 0.3)),
            pick((0.2, 0.4, 0.6)),
            pick((0.7, 0.8)),
            turn + pick((0, 10)),
        ),
        Wash(
            pick(palette.deep),
            pick((160, 180, 200, 220)),
            pick((0.1, 0.2)),
            pick((0.4, 0.6)),
            pick((0.35, 0.45)),
            turn + pick((0, 10)),
        ),
    ]
    return Plan(
        subject=subject,
        composition=_composition(subject, rng),
        palette=palette,
        ground=pick(PAPER),
        x=pick((84, 88, 92, 96, 100, 104)),
        y=pick((76, 80, 84, 88, 92)),
        size=size,
        width=_petal_width(subject, size, rng),
        count=pick(COUNTS[subject]),
        petal=pick(PETALS[subject]),
        loose=True,
        washes=tuple(washes[:layers]),
        heart=Heart(
            pick(("disc", "disc", "stamens", "pistil")),
            pick(palette.heart),
            pick((160, 180, 200)),
            pick((6, 8, 10)),
        ),
        air=(pick(palette.air), pick((40, 60)), pick((0.3, 0.4))) if rng.random() < 0.6 else None,
        leaves=pick((0, 1, 2, 2)),
        leaf_color=pick(LEAF),
        leaf_opacity=pick((80, 100, 120)),
        stem=rng.random() < 0.7,
    )


def plain(subject: str, rng: random.Random) -> Plan:
    """Competent at best: smaller, flatter, more opaque, often of the wrong colour."""
    pick = rng.choice
    foreign = rng.random() < 0.35
    palette = pick([*SUBJECTS.values(), WRONG[0]]) if foreign else SUBJECTS[subject]
    size = pick((28, 36, 44, 52, 60))
    turn = pick((0, 10, 20, 30, -90))
    bleed = pick((0.0, 0.1, 0.2, 0.3))
    texture = pick((0.0, 0.2, 0.4))
    washes = (
        Wash(pick(palette.pale + palette.body), pick((60, 100, 140, 180)), bleed, texture, 1, turn),
        Wash(
            pick(palette.body + palette.deep),
            pick((80, 120, 160, 200)),
            pick((0.0, 0.1, 0.2)),
            texture,
            pick((0.5, 0.7, 0.8)),
            turn + pick((0, 10, 30)),
        ),
    )
    return Plan(
        subject=subject,
        composition=_composition(subject, rng),
        palette=palette,
        ground=pick((*PAPER, *PAPER, "#e8e0d0", "#dde6ea")),
        x=pick(range(64, 132, 4)),
        y=pick(range(64, 124, 4)),
        size=size,
        width=_petal_width(subject, size, rng),
        count=pick((3, 4, 5, 6, 8)),
        petal=pick(tuple(dialect.PETALS)),
        loose=rng.random() < 0.5,
        washes=washes[: pick((1, 1, 2))],
        heart=Heart(
            pick(("disc", "disc", "pistil")),
            pick(palette.heart),
            pick((120, 180, 240)),
            pick((4, 6, 8, 12)),
        ),
        air=(pick(palette.air), pick((20, 60, 100)), pick((0.1, 0.3)))
        if rng.random() < 0.3
        else None,
        leaves=pick((0, 0, 1, 2)),
        leaf_color=pick(LEAF),
        leaf_opacity=pick((80, 140, 200)),
        stem=rng.random() < 0.6,
    )


def _petal_width(subject: str, size: int, rng: random.Random) -> int:
    share = rng.choice((0.18, 0.22, 0.26) if subject == "a yellow daisy" else (0.4, 0.48, 0.56))
    return grid(size * share)


def grid(value: float) -> int:
    """The nearest multiple of 4, at least 4."""
    return max(4, 4 * round(value / 4))
