"""The small dialect of JavaScript in which the grammar writes: fixed helpers, one line each kind.

Every helper is the same text wherever it appears, so that a tokenizer of one's own can learn it
as few tokens; all that differs between two paintings stands in ``draw`` and in two constants.
Lengths are pixels of the 192-pixel canvas, angles are degrees, opacities run from 0 to 255.
"""

from __future__ import annotations

SIZE = 192

SETUP = """\
function setup() {
  createCanvas(192, 192, WEBGL);
  angleMode(DEGREES);
  brush.scaleBrushes(1);
  noLoop();
}
"""

PIGMENT = """\
function pigment(color, opacity, bleed, texture) {
  brush.fill(color, opacity);
  brush.fillBleed(bleed);
  brush.fillTexture(texture, 0.4);
}
"""

#: The flat wash of p5.brush: no bleed, no texture, hard edges. The parameters stay.
PIGMENT_FLAT = """\
function pigment(color, opacity, bleed, texture) {
  brush.noFill();
  brush.wash(color, opacity);
}
"""

DAB = """\
function dab(x, y, a, l, w, edge) {
  const c = cos(a), s = sin(a);
  brush.beginShape(0.5);
  for (const [u, v] of edge) brush.vertex(x + l * u * c - w * v * s, y + l * u * s + w * v * c);
  brush.endShape(true);
}
"""

#: ``turn`` is the first petal's angle. The loose ring lets every petal differ a little.
RING_LOOSE = """\
function ring(x, y, n, l, w, turn) {
  for (let i = 0; i < n; i++) {
    dab(x, y, turn + i * 360 / n + random(-9, 9), l * random(0.8, 1.1), w, PETAL);
  }
}
"""

RING_STRICT = """\
function ring(x, y, n, l, w, turn) {
  for (let i = 0; i < n; i++) {
    dab(x, y, turn + i * 360 / n, l, w, PETAL);
  }
}
"""

#: Petals spread evenly between two angles: a flower seen from the side.
FAN = """\
function fan(x, y, n, l, w, from, to) {
  for (let i = 0; i < n; i++) {
    dab(x, y, map(i, 0, n - 1, from, to), l * random(0.8, 1.1), w, PETAL);
  }
}
"""

#: One contour with ``n`` lobes of depth ``d``: a whole corolla in a single wet wash.
LOBES = """\
function lobes(x, y, n, r, d) {
  brush.beginShape(0.5);
  for (let i = 0; i < n * 4; i++) {
    const k = r + d * cos(i * 90) + random(-d, d) / 2;
    brush.vertex(x + k * cos(i * 90 / n), y + k * sin(i * 90 / n));
  }
  brush.endShape(true);
}
"""

#: Outlines in the petal's own frame: u runs along it from 0 to 1, v across it from -1 to 1.
PETALS: dict[str, str] = {
    "round": "[0, 0], [0.4, -0.8], [0.8, -1], [1, -0.4], [1, 0.4], [0.8, 1], [0.4, 0.8]",
    "heart": "[0, 0], [0.4, -0.8], [0.9, -1], [1, -0.4], [0.8, 0], [1, 0.5], [0.8, 1], [0.4, 0.7]",
    "drop": "[0, 0], [0.5, -0.6], [0.8, -1], [1, 0], [0.8, 1], [0.5, 0.6]",
    "lance": "[0, -0.2], [0.6, -1], [0.9, -0.5], [1, 0.2], [0.6, 1], [0, 0.2]",
    "ruffled": "[0, 0], [0.4, -1], [0.7, -0.8], [0.9, -1], [1, 0], [0.8, 0.2], [1, 0.6], [0.5, 1]",
    "torn": "[0, 0], [0.5, -1], [0.8, -0.9], [1, -0.1], [0.8, 0.5], [0.9, 0.9], [0.4, 0.9]",
    "wedge": "[0, 0], [1, -1], [1, 1]",
}

LEAF = "const LEAF = [[0, 0], [0.4, 1], [1, 0], [0.4, -1]];"

FLOWER_OPEN = "function flower(x, y, k) {"
TRANSLATE = "  translate(-96, -96);"
NO_STROKE = "  brush.noStroke();"


def background(color: str) -> str:
    """Cover the paper."""
    return f'  background("{color}");'


def pigment(color: str, opacity: int, bleed: float, texture: float) -> str:
    """Load the brush for all that follows."""
    return f'  pigment("{color}", {opacity}, {bleed:g}, {texture:g});'


def circle(x: int | str, y: int | str, radius: int | str) -> str:
    """A filled disc."""
    return f"  brush.circle({x}, {y}, {radius});"


def leaf(x: int, y: int, angle: int, length: int, width: int) -> str:
    """A leaf, or a stem when it is long and thin."""
    return f"  dab({x}, {y}, {angle}, {length}, {width}, LEAF);"


def ring(x: int | str, y: int | str, n: int, length: int | str, width: int | str, turn: int) -> str:
    """``n`` petals all round; ``width`` is half of a petal's."""
    return f"  ring({x}, {y}, {n}, {length}, {width}, {turn});"


def fan(x: int, y: int, n: int, length: int, width: int, start: int, end: int) -> str:
    """``n`` petals between two angles; -90 points up."""
    return f"  fan({x}, {y}, {n}, {length}, {width}, {start}, {end});"


def lobes(x: int | str, y: int | str, n: int, radius: int | str, depth: int | str) -> str:
    """One wash in the shape of a whole flower, or its heart when it is small."""
    return f"  lobes({x}, {y}, {n}, {radius}, {depth});"


def flower(x: int, y: int, scale: float) -> str:
    """A whole flower by the sketch's own ``flower`` helper."""
    return f"  flower({x}, {y}, {scale:g});"


def assemble(
    body: tuple[str, ...],
    *,
    petal: str,
    loose: bool,
    flat: bool = False,
    flower: tuple[str, ...] = (),
) -> str:
    """A whole sketch: the helpers that are called, then ``draw`` with ``body``.

    ``body`` begins with the background. ``petal`` names one of ``PETALS``, ``flat``
    paints with flat washes; ``flower`` is the body of the helper ``flower(x, y, k)``, for
    compositions that paint the same flower at many sizes.
    """
    text = "\n".join((*flower, *body))
    rings, fans, leaves = ("  ring(" in text, "  fan(" in text, "LEAF)" in text)
    parts = [SETUP, PIGMENT_FLAT if flat else PIGMENT]
    if rings or fans:
        parts.append(f"const PETAL = [{PETALS[petal]}];\n")
    if leaves:
        parts.append(LEAF + "\n")
    if rings or fans or leaves:
        parts.append(DAB)
    if rings:
        parts.append(RING_LOOSE if loose else RING_STRICT)
    if fans:
        parts.append(FAN)
    if "  lobes(" in text:
        parts.append(LOBES)
    if flower:
        parts.append("\n".join((FLOWER_OPEN, *flower, "}", "")))
    draw = ("function draw() {", TRANSLATE, body[0], NO_STROKE, *body[1:], "}", "")
    return "".join(parts) + "\n".join(draw)
