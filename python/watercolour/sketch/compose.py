"""From the choices of a painting to its sketch."""

from __future__ import annotations

import random

from watercolour.sketch import dialect
from watercolour.sketch.plan import Plan, Wash, grid


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
        length, width = grid(plan.size * wash.reach), grid(plan.width * wash.reach)
        lines += _petals(plan, wash, index, x, y, length, width)
    return lines


def _petals(
    plan: Plan, wash: Wash, index: int, x: int | str, y: int | str, length: int, width: int
) -> list[str]:
    if isinstance(x, str) or isinstance(y, str):
        if plan.composition == "field":
            depth = grid(length * 0.2)
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
        return [dialect.lobes(x, y, plan.count, grid(length * 0.8), grid(length * 0.15))]
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


def daub(flaw: str, plan: Plan, rng: random.Random) -> str:
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
