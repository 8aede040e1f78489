"""A seeded painter: random p5.brush sketches of four flowers, good, plain, ugly and broken.

The corpus is meant for the supervised start of a very small policy. It is wide and mostly
mediocre on purpose: about a third fails the gate, about a fifth is really good, and every choice
that makes the difference (palette, opacity, bleed, number of washes, size, place, ground) is a few
tokens, so that a reward has something to shift.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from watercolour.sketch import dialect, faults
from watercolour.sketch.palettes import (
    DARK_GROUND,
    GARISH_GROUND,
    LEAF,
    PAPER,
    SUBJECTS,
    WRONG,
    Palette,
)

Intent = Literal["good", "plain", "ugly", "broken"]

#: Shares of the corpus.
INTENTS: dict[Intent, float] = {"good": 0.20, "plain": 0.22, "ugly": 0.26, "broken": 0.32}

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
class Sample:
    """One sketch of the corpus.

    ``flaw`` names what is wrong with an ugly or a broken sketch and is empty for the others.
    """

    subject: str
    sketch: str
    intent: Intent
    composition: str
    flaw: str = ""


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


def corpus(n: int, seed: int) -> list[Sample]:
    """``n`` sketches; the same for the same arguments.

    Subjects alternate; intents are drawn by ``INTENTS``. The first k samples of a longer corpus
    are the corpus of length k.
    """
    rng = random.Random(seed)
    subjects = tuple(SUBJECTS)
    return [sample(subjects[i % len(subjects)], rng) for i in range(n)]


def sample(subject: str, rng: random.Random, intent: Intent | None = None) -> Sample:
    """One sketch of ``subject``; ``intent`` is drawn when it is not given."""
    intent = intent or rng.choices(list(INTENTS), list(INTENTS.values()))[0]
    if intent == "broken":
        whole = sample(subject, rng, rng.choice(("good", "plain", "ugly")))
        flaw, text = faults.break_sketch(whole.sketch, rng)
        return Sample(subject, text, "broken", whole.composition, flaw)
    plan = _good(subject, rng) if intent == "good" else _plain(subject, rng)
    flaw = ""
    if intent == "ugly":
        flaw = rng.choice(list(FLAWS))
        plan = FLAWS[flaw](plan, rng)
        if flaw in DAUBS:
            return Sample(subject, _daub(flaw, plan, rng), intent, "daub", flaw)
        if rng.random() < 0.4:
            plan = FLAWS[rng.choice(SECOND_FLAWS)](plan, rng)
    return Sample(subject, write(plan, rng), intent, plan.composition, flaw)


# Choices.


def _composition(subject: str, rng: random.Random) -> str:
    weights = COMPOSITIONS[subject]
    return rng.choices(list(weights), list(weights.values()))[0]


def _good(subject: str, rng: random.Random) -> Plan:
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


def _plain(subject: str, rng: random.Random) -> Plan:
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
    return _grid(size * share)


def _grid(value: float) -> int:
    """The nearest multiple of 4, at least 4."""
    return max(4, 4 * round(value / 4))


# What an ugly sketch does wrong. Each takes a plan and returns the spoiled one.


def _wrong_palette(plan: Plan, rng: random.Random) -> Plan:
    others = [p for s, p in SUBJECTS.items() if s != plan.subject] + list(WRONG) * 2
    palette = rng.choice(others)
    tones = (palette.pale, palette.body, palette.deep)
    washes = tuple(
        replace(w, color=rng.choice(t)) for w, t in zip(plan.washes, tones, strict=False)
    )
    return replace(plan, palette=palette, washes=washes)


def _tiny(plan: Plan, rng: random.Random) -> Plan:
    size = rng.choice((8, 12, 16, 20))
    return replace(
        plan,
        size=size,
        width=_grid(size * 0.4),
        leaves=0,
        air=None,
        stem=rng.random() < 0.3,
        x=rng.choice(range(28, 172, 8)),
        y=rng.choice(range(28, 172, 8)),
    )


def _opaque(plan: Plan, rng: random.Random) -> Plan:
    washes = tuple(
        replace(w, opacity=rng.choice((230, 240, 255)), bleed=0.0, texture=0.0) for w in plan.washes
    )
    petal = rng.choice(("wedge", plan.petal))
    return replace(plan, washes=washes, leaf_opacity=255, petal=petal, loose=False, flat=True)


def _muddy(plan: Plan, rng: random.Random) -> Plan:
    mud = WRONG[0]
    colors = mud.body + mud.deep + plan.palette.deep + LEAF
    washes = tuple(
        Wash(rng.choice(colors), rng.choice((160, 180, 200)), 0.4, 0.6, reach, rng.choice((0, 30)))
        for reach in (1, 0.9, 0.8)
    )
    return replace(plan, washes=washes, count=rng.choice((3, 4)), width=_grid(plan.size * 0.6))


def _off_canvas(plan: Plan, rng: random.Random) -> Plan:
    return replace(
        plan, x=rng.choice((-40, 0, 8, 16, 176, 192)), y=rng.choice((-20, 0, 20, 176, 192))
    )


def _ground(plan: Plan, rng: random.Random) -> Plan:
    return replace(plan, ground=rng.choice(DARK_GROUND + GARISH_GROUND), air=None)


def _sparse(plan: Plan, rng: random.Random) -> Plan:
    faint = tuple(replace(w, opacity=rng.choice((20, 40))) for w in plan.washes[:1])
    return replace(
        plan, washes=faint, count=rng.choice((1, 2)), heart=None, air=None, leaves=0, stem=False
    )


def _keep(plan: Plan, rng: random.Random) -> Plan:
    return plan


FLAWS: dict[str, Callable[[Plan, random.Random], Plan]] = {
    "wrong_palette": _wrong_palette,
    "tiny": _tiny,
    "opaque": _opaque,
    "muddy": _muddy,
    "off_canvas": _off_canvas,
    "ground": _ground,
    "sparse": _sparse,
    "giant": _keep,
    "flood": _keep,
    "stamped": _keep,
    "scribble": _keep,
}
SECOND_FLAWS = ("wrong_palette", "opaque", "ground", "off_canvas")
#: Flaws that leave no composition: a whole picture of one gesture.
DAUBS = ("giant", "flood", "stamped", "scribble")


# Plan to text.


def write(plan: Plan, rng: random.Random) -> str:
    """The sketch of a plan; ``rng`` places what the plan leaves open, such as the leaves."""
    body = [dialect.background(plan.ground)]
    if plan.air:
        color, opacity, bleed = plan.air
        body += [
            dialect.pigment(color, opacity, bleed, 0.2),
            dialect.circle(_near(plan.x, rng), _near(plan.y, rng), rng.choice((64, 76, 88))),
        ]
    body += _greenery(plan, rng)
    if plan.composition in ("spray", "field"):
        flower = (*_washes(plan, "x", "y"), *_heart(plan, "x", "y"))
        body += _spray(plan, rng)
        return dialect.assemble(
            tuple(body), petal=plan.petal, loose=plan.loose, flat=plan.flat, flower=flower
        )
    body += _washes(plan, plan.x, plan.y)
    body += _heart(plan, plan.x, plan.y)
    return dialect.assemble(tuple(body), petal=plan.petal, loose=plan.loose, flat=plan.flat)


def _near(value: int, rng: random.Random) -> int:
    return value + rng.choice(range(-16, 17, 4))


def _greenery(plan: Plan, rng: random.Random) -> list[str]:
    if not (plan.leaves or plan.stem):
        return []
    lines = [dialect.pigment(plan.leaf_color, plan.leaf_opacity, 0.1, 0.4)]
    if plan.stem:
        lines.append(dialect.leaf(plan.x, plan.y, rng.choice((80, 90, 100)), 140, 4))
    lines += [
        dialect.leaf(
            plan.x,
            plan.y + rng.choice((40, 52, 64)),
            angle,
            rng.choice((56, 64, 72, 80)),
            rng.choice((8, 12, 16)),
        )
        for angle in rng.sample((30, 50, 130, 150, 200, -20), plan.leaves)
    ]
    return lines


def _washes(plan: Plan, x: int | str, y: int | str) -> list[str]:
    lines: list[str] = []
    layers = plan.washes[:2] if isinstance(x, str) or plan.count > 6 else plan.washes
    for index, wash in enumerate(layers):
        lines.append(dialect.pigment(wash.color, wash.opacity, wash.bleed, wash.texture))
        length, width = _grid(plan.size * wash.reach), _grid(plan.width * wash.reach)
        lines += _petals(plan, wash, index, x, y, length, width)
    return lines


def _petals(
    plan: Plan, wash: Wash, index: int, x: int | str, y: int | str, length: int, width: int
) -> list[str]:
    if isinstance(x, str) or isinstance(y, str):
        if plan.composition == "field":
            depth = _grid(length * 0.2)
            return [dialect.lobes(x, y, plan.count, f"{length - depth} * k", f"{depth} * k")]
        count = min(plan.count, 5)
        return [dialect.ring(x, y, count, f"{length} * k", f"{width} * k", wash.turn)]
    if plan.composition == "profile":
        count = max(3, min(plan.count, 5))
        return [dialect.fan(x, y + 24, count, length, width, -150 + wash.turn % 20, -30)]
    if plan.composition == "standards":
        up = dialect.fan(x, y, 3, length, width, -125, -55)
        down = dialect.fan(x, y, 3, length, width, 25, 155)
        return [down, up] if index < 2 else [down]
    if plan.composition == "wet" and index < 2:
        return [dialect.lobes(x, y, plan.count, _grid(length * 0.8), _grid(length * 0.15))]
    return [dialect.ring(x, y, plan.count, length, width, wash.turn)]


def _heart(plan: Plan, x: int | str, y: int | str) -> list[str]:
    heart = plan.heart
    if heart is None:
        return []
    place: int | str = y
    if plan.composition == "profile" and isinstance(y, int):
        place = y + 20
    lines = [dialect.pigment(heart.color, heart.opacity, 0.1, 0.2)]
    if isinstance(x, str) or isinstance(place, str):
        return [*lines, dialect.lobes(x, place, 3, f"{heart.radius} * k", 2)]
    if heart.kind == "stamens" and plan.composition == "bloom":
        return [*lines, dialect.ring(x, place, 6, heart.radius * 2, 4, 0)]
    if heart.kind == "pistil":
        return [*lines, dialect.leaf(x, place, -60, heart.radius * 4, 4)]
    return [*lines, dialect.lobes(x, place, 3, heart.radius, 2)]


def _spray(plan: Plan, rng: random.Random) -> list[str]:
    """The plan's flower and smaller ones around it: one in a spray, two or three in a field."""
    field = plan.composition == "field"
    spots = ((-48, -28), (44, -40), (48, 36), (-44, 44), (8, 64))
    others = [
        dialect.flower(plan.x + dx, plan.y + dy, rng.choice((0.3, 0.4, 0.5, 0.6)))
        for dx, dy in rng.sample(spots, rng.choice((2, 3)) if field else 1)
    ]
    return [*others, dialect.flower(plan.x, plan.y, rng.choice((0.7, 0.8)))]


def _daub(flaw: str, plan: Plan, rng: random.Random) -> str:
    """A picture of a single gesture: the shapes that a lazy policy falls for."""
    pick = rng.choice
    palette = plan.palette
    body = [dialect.background(plan.ground)]
    color = pick(palette.body + palette.pale)
    if flaw == "giant":
        body += [
            dialect.pigment(color, pick((120, 180, 240)), pick((0.0, 0.2, 0.4)), 0.2),
            dialect.circle(plan.x, plan.y, pick((60, 76, 88))),
        ]
    elif flaw == "flood":
        body += [
            dialect.pigment(color, pick((60, 120, 180)), 0.4, 0.4),
            dialect.circle(96, 96, pick((140, 160))),
        ]
    elif flaw == "stamped":
        flower = (
            dialect.pigment(color, pick((140, 180, 240)), 0.1, 0.2),
            dialect.ring("x", "y", 4, "20 * k", "8 * k", 0),
        )
        body += [dialect.flower(x, y, 1) for y in (56, 136) for x in (56, 136)[: pick((1, 2))]]
        return dialect.assemble(tuple(body), petal="drop", loose=False, flower=flower)
    else:
        body.append(dialect.pigment(color, pick((80, 160, 240)), pick((0.0, 0.2)), 0.2))
        body += [
            dialect.leaf(
                pick(range(16, 180, 4)), pick(range(16, 180, 4)), pick(range(0, 360, 10)), 60, 4
            )
            for _ in range(pick((4, 6, 8)))
        ]
    return dialect.assemble(tuple(body), petal=plan.petal, loose=plan.loose)
