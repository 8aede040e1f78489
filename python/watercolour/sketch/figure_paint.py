"""A seeded painter of figures: good, plain and ugly sketches of what a data file describes.

The counterpart of :mod:`watercolour.sketch.grammar`, which knows four flowers by heart. What is
random is drawn before any text is written, so a figure and a seed give one sketch.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from watercolour.sketch import dialect
from watercolour.sketch.figure import Figure, Part, Wash
from watercolour.sketch.palettes import DARK_GROUND, GARISH_GROUND, WRONG

Intent = Literal["good", "plain", "ugly"]

#: Side of the canvas, in pixels, for which the brushes of p5.brush need no scaling.
UNSCALED = 192


@dataclass(frozen=True)
class Dab:
    """One outline on the sheet, in pixels and degrees."""

    x: float
    y: float
    angle: float
    length: float
    width: float


@dataclass(frozen=True)
class Layer:
    """Pigment, and the dabs that are painted with it."""

    colour: str
    opacity: int
    bleed: float
    texture: float
    outline: str
    dabs: tuple[Dab, ...]


@dataclass(frozen=True)
class Scene:
    """Every choice of one sketch before it becomes text."""

    figure: Figure
    canvas: int
    ground: str
    size: float
    layers: tuple[Layer, ...]
    flat: bool = False


@dataclass(frozen=True)
class Sketch:
    """A sketch and what it was meant to be; ``flaw`` is empty unless it is ugly."""

    text: str
    intent: Intent
    flaw: str = ""


def sketch(figure: Figure, rng: random.Random, intent: Intent, canvas: int) -> Sketch:
    """One sketch of a figure.

    Args:
        figure: what to paint.
        rng: decides everything that the figure leaves open.
        intent: good: as the figure says; plain: smaller and thinner; ugly: with a flaw.
        canvas: its side in pixels, 64 to 1024.
    """
    if intent == "good":
        return Sketch(write(_good(figure, rng, canvas)), intent)
    if intent == "plain":
        return Sketch(write(_plain(figure, rng, canvas)), intent)
    flaw = rng.choice(list(FLAWS))
    return Sketch(write(FLAWS[flaw](_plain(figure, rng, canvas), rng)), intent, flaw)


def _between(pair: tuple[float, float], rng: random.Random) -> float:
    return rng.uniform(*pair)


def _scene(
    figure: Figure,
    rng: random.Random,
    canvas: int,
    place: tuple[float, float, float],
    wash: Callable[[Part], list[Wash]],
) -> Scene:
    """A scene around the middle (x, y) and with the size that ``place`` gives as shares."""
    x, y, size = (value * canvas for value in place)
    layers: list[Layer] = []
    for part in figure.parts:
        if rng.random() >= part.chance:
            continue
        dabs = _dabs(part, rng, x, y, size)
        layers += [
            Layer(
                rng.choice(figure.colours[each.colour]),
                round(_between(each.opacity, rng)),
                round(_between(each.bleed, rng), 2),
                round(_between(each.texture, rng), 2),
                part.outline,
                tuple(_shaken(dab, each.reach, rng) for dab in dabs),
            )
            for each in wash(part)
        ]
    return Scene(figure, canvas, rng.choice(figure.paper), size, tuple(layers))


def _dabs(part: Part, rng: random.Random, x: float, y: float, size: float) -> list[Dab]:
    count = rng.randint(*part.count)
    left, top = x + part.at[0] * size, y + part.at[1] * size
    start = rng.uniform(0, 360) if part.arrange == "ring" else 0.0
    dabs: list[Dab] = []
    for index in range(count):
        along = index / (count - 1) - 0.5 if count > 1 else 0.0
        angle, shift = part.angle, 0.0
        if part.arrange == "ring":
            angle = start + 360 * index / count
        elif part.arrange == "fan":
            angle = part.angle + along * part.spread
        elif part.arrange == "row":
            shift = along * part.spread * size
        turned = math.radians(part.angle + 90)
        mirrored = -1 if part.mirror and rng.random() < 0.5 else 1
        dabs.append(
            Dab(
                left + shift * math.cos(turned),
                top + shift * math.sin(turned),
                angle + rng.uniform(-part.jitter, part.jitter),
                _between(part.length, rng) * size,
                mirrored * _between(part.width, rng) * size,
            )
        )
    return dabs


def _shaken(dab: Dab, reach: float, rng: random.Random) -> Dab:
    """The dab for one wash: no hand covers the same outline twice."""
    return replace(
        dab,
        angle=dab.angle + rng.uniform(-2, 2),
        length=dab.length * reach * rng.uniform(0.95, 1.05),
        width=dab.width * reach * rng.uniform(0.92, 1.08),
    )


def _good(figure: Figure, rng: random.Random, canvas: int) -> Scene:
    place = (_between(figure.x, rng), _between(figure.y, rng), _between(figure.size, rng))
    return _scene(figure, rng, canvas, place, lambda part: part.washes)


def _plain(figure: Figure, rng: random.Random, canvas: int) -> Scene:
    """Competent at best: one wash less, smaller, flatter, wherever it happened to fall."""
    size = _between(figure.size, rng) * rng.uniform(0.55, 0.9)
    place = (rng.uniform(0.32, 0.68), rng.uniform(0.32, 0.62), size)

    def washes(part: Part) -> list[Wash]:
        kept = part.washes[: max(1, len(part.washes) - rng.choice((0, 1, 1)))]
        return [
            wash.model_copy(
                update={
                    "opacity": (60, 220),
                    "bleed": (0.0, wash.bleed[1] * rng.uniform(0.3, 1)),
                    "texture": (0.0, wash.texture[1]),
                }
            )
            for wash in kept
        ]

    return _scene(figure, rng, canvas, place, washes)


def _recoloured(scene: Scene, colours: tuple[str, ...], rng: random.Random) -> Scene:
    layers = tuple(replace(layer, colour=rng.choice(colours)) for layer in scene.layers)
    return replace(scene, layers=layers)


def _moved(scene: Scene, dx: float, dy: float, scale: float) -> Scene:
    """Everything shifted, and scaled about the middle of the sheet."""
    half = scene.canvas / 2

    def moved(dab: Dab) -> Dab:
        return Dab(
            half + (dab.x - half) * scale + dx,
            half + (dab.y - half) * scale + dy,
            dab.angle,
            dab.length * scale,
            dab.width * scale,
        )

    layers = tuple(
        replace(layer, dabs=tuple(moved(dab) for dab in layer.dabs)) for layer in scene.layers
    )
    return replace(scene, layers=layers)


def _muddy(scene: Scene, rng: random.Random) -> Scene:
    mud = _recoloured(scene, WRONG[0].body + WRONG[0].deep, rng)
    layers = tuple(replace(layer, opacity=190, bleed=0.4, texture=0.6) for layer in mud.layers)
    return replace(mud, layers=layers)


def _garish(scene: Scene, rng: random.Random) -> Scene:
    return _recoloured(scene, WRONG[1].pale + WRONG[1].body + WRONG[1].deep, rng)


def _opaque(scene: Scene, rng: random.Random) -> Scene:
    layers = tuple(
        replace(layer, opacity=rng.choice((230, 245, 255)), bleed=0.0, texture=0.0)
        for layer in scene.layers
    )
    return replace(scene, layers=layers, flat=True)


def _tiny(scene: Scene, rng: random.Random) -> Scene:
    far = scene.canvas * 0.28
    return _moved(scene, rng.uniform(-far, far), rng.uniform(-far, far), rng.uniform(0.2, 0.35))


def _off_canvas(scene: Scene, rng: random.Random) -> Scene:
    far = scene.canvas * rng.uniform(0.36, 0.46)
    return _moved(scene, rng.choice((-far, far)), rng.choice((-far, 0, far)), 1)


def _ground(scene: Scene, rng: random.Random) -> Scene:
    return replace(scene, ground=rng.choice(DARK_GROUND + GARISH_GROUND))


def _sparse(scene: Scene, rng: random.Random) -> Scene:
    layers = tuple(replace(layer, opacity=rng.choice((60, 80))) for layer in scene.layers[:1])
    return replace(scene, layers=layers)


def _giant(scene: Scene, rng: random.Random) -> Scene:
    half = scene.canvas / 2
    blob = Dab(half, half + scene.canvas * 0.42, -90, scene.canvas * 0.84, scene.canvas * 0.42)
    first = replace(scene.layers[0], outline="round", dabs=(blob,), opacity=rng.choice((140, 220)))
    return replace(scene, layers=(first,))


def _stamped(scene: Scene, rng: random.Random) -> Scene:
    """The same small figure four times."""
    quarter = scene.canvas / 4
    once = replace(scene, layers=scene.layers[:2])
    layers = tuple(
        layer
        for dx in (-quarter, quarter)
        for dy in (-quarter, quarter)
        for layer in _moved(once, dx, dy, 0.4).layers
    )
    return replace(scene, layers=layers)


def _scribble(scene: Scene, rng: random.Random) -> Scene:
    side = scene.canvas
    dabs = tuple(
        Dab(
            rng.uniform(0.1, 0.9) * side,
            rng.uniform(0.1, 0.9) * side,
            rng.uniform(0, 360),
            0.35 * side,
            0.015 * side,
        )
        for _ in range(rng.choice((6, 9)))
    )
    first = replace(scene.layers[0], outline="lance", dabs=dabs, bleed=rng.choice((0.0, 0.2)))
    return replace(scene, layers=(first,))


FLAWS: dict[str, Callable[[Scene, random.Random], Scene]] = {
    "muddy": _muddy,
    "garish": _garish,
    "opaque": _opaque,
    "tiny": _tiny,
    "off_canvas": _off_canvas,
    "ground": _ground,
    "sparse": _sparse,
    "giant": _giant,
    "stamped": _stamped,
    "scribble": _scribble,
}


def write(scene: Scene) -> str:
    """The sketch of a scene, in the grammar's own dialect."""
    used = list(dict.fromkeys(layer.outline for layer in scene.layers))
    names = {outline: f"EDGE_{number}" for number, outline in enumerate(used, 1)}
    edges = [f"const {names[outline]} = [{_edge(scene, outline)}];\n" for outline in used]
    body = [
        line
        for layer in scene.layers
        for line in (
            dialect.pigment(layer.colour, layer.opacity, layer.bleed, layer.texture),
            *(_dab(dab, names[layer.outline]) for dab in layer.dabs),
        )
    ]
    half = scene.canvas / 2
    draw = (
        "function draw() {",
        f"  translate({-half:g}, {-half:g});",
        dialect.background(scene.ground),
        dialect.NO_STROKE,
        *body,
        "}",
        "",
    )
    pigment = dialect.PIGMENT_FLAT if scene.flat else dialect.PIGMENT
    return "".join((_setup(scene.canvas), pigment, *edges, dialect.DAB)) + "\n".join(draw)


def _setup(canvas: int) -> str:
    return dialect.SETUP.replace("192, 192", f"{canvas}, {canvas}").replace(
        "scaleBrushes(1)", f"scaleBrushes({canvas / UNSCALED:.3g})"
    )


def _edge(scene: Scene, outline: str) -> str:
    points = scene.figure.outlines.get(outline)
    if points is None:
        return dialect.PETALS[outline]
    return ", ".join(f"[{u:g}, {v:g}]" for u, v in points)


def _dab(dab: Dab, edge: str) -> str:
    numbers = ", ".join(f"{value:.1f}" for value in (dab.x, dab.y, dab.angle))
    return f"  dab({numbers}, {dab.length:.1f}, {dab.width:.1f}, {edge});"
