"""What an ugly sketch does wrong: each flaw takes a plan and returns the spoiled one."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

from watercolour.sketch.palettes import DARK_GROUND, GARISH_GROUND, LEAF, SUBJECTS, WRONG
from watercolour.sketch.plan import Plan, Wash, grid


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
        width=grid(size * 0.4),
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
    return replace(plan, washes=washes, count=rng.choice((3, 4)), width=grid(plan.size * 0.6))


def _off_canvas(plan: Plan, rng: random.Random) -> Plan:
    return replace(
        plan, x=rng.choice((-40, 0, 8, 16, 176, 192)), y=rng.choice((-20, 0, 20, 176, 192))
    )


def _ground(plan: Plan, rng: random.Random) -> Plan:
    return replace(plan, ground=rng.choice(DARK_GROUND + GARISH_GROUND), air=None)


def _sparse(plan: Plan, rng: random.Random) -> Plan:
    faint = tuple(replace(w, opacity=rng.choice((60, 80))) for w in plan.washes[:1])
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
