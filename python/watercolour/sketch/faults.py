"""How sketches break: the mistakes that code models make in p5.brush, put in one at a time."""

from __future__ import annotations

import random
from collections.abc import Callable

#: Calls of p5 itself that paint around the brush.
PRIMITIVES = (
    "  ellipse(96, 96, 80, 80);",
    "  circle(96, 96, 60);",
    "  rect(0, 0, 192, 192);",
    "  line(96, 96, 96, 192);",
    "  triangle(96, 40, 60, 120, 132, 120);",
)
#: Methods that p5.brush does not have.
INVENTED = (
    "  brush.bleed(0.3);",
    "  brush.petal(96, 96, 40);",
    "  brush.ellipse(96, 96, 40, 30);",
    "  brush.opacity(120);",
    "  brush.watercolor(0.4);",
)


def break_sketch(sketch: str, rng: random.Random) -> tuple[str, str]:
    """The fault's name and the broken sketch."""
    name = rng.choices(list(FAULTS), [weight for weight, _ in FAULTS.values()])[0]
    return name, FAULTS[name][1](sketch, rng)


def _insert(sketch: str, line: str, rng: random.Random) -> str:
    """Put a line among draw's statements, after the background."""
    lines = sketch.rstrip("\n").split("\n")
    first = lines.index("  brush.noStroke();") + 1
    lines.insert(rng.randint(first, len(lines) - 1), line)
    return "\n".join(lines) + "\n"


def _primitive(sketch: str, rng: random.Random) -> str:
    return _insert(sketch, rng.choice(PRIMITIVES), rng)


def _invented(sketch: str, rng: random.Random) -> str:
    return _insert(sketch, rng.choice(INVENTED), rng)


def _text(sketch: str, rng: random.Random) -> str:
    return _insert(
        sketch, rng.choice(('  text("flower", 96, 96);', '  text("iris", 20, 30);')), rng
    )


def _network(sketch: str, rng: random.Random) -> str:
    line = rng.choice(('  loadImage("flower.png");', '  fetch("https://example.org/flower");'))
    return _insert(sketch, line, rng)


def _open_brace(sketch: str, rng: random.Random) -> str:
    lines = sketch.rstrip("\n").split("\n")
    closing = [i for i, line in enumerate(lines) if line == "}"]
    del lines[rng.choice(closing)]
    return "\n".join(lines) + "\n"


def _cut(sketch: str, rng: random.Random) -> str:
    """End in the middle of draw, as a completion that ran out of tokens does."""
    lines = sketch.rstrip("\n").split("\n")
    first = lines.index("  brush.noStroke();")
    return "\n".join(lines[: rng.randint(first, len(lines) - 1)]) + "\n"


def _no_end(sketch: str, rng: random.Random) -> str:
    """Shapes that are begun and never ended, and nothing else: the paper stays blank."""
    lines = sketch.split("\n")
    kept = [line for line in lines if "endShape" not in line and "brush.circle" not in line]
    return "\n".join(kept)


def _flat_canvas(sketch: str, rng: random.Random) -> str:
    return sketch.replace("createCanvas(192, 192, WEBGL)", "createCanvas(192, 192)")


def _blank(sketch: str, rng: random.Random) -> str:
    lines = sketch.rstrip("\n").split("\n")
    return "\n".join([*lines[: lines.index("  brush.noStroke();") + 1], "}", ""])


def _misnamed(sketch: str, rng: random.Random) -> str:
    """Helpers are called by a name that was never defined, so draw throws at once."""
    return _early(sketch, rng.choice(("  petal(96, 96, 40);", "  wash(96, 96);", "  bloom(96);")))


def _early(sketch: str, line: str) -> str:
    return sketch.replace("  brush.noStroke();\n", f"  brush.noStroke();\n{line}\n")


FAULTS: dict[str, tuple[int, Callable[[str, random.Random], str]]] = {
    "primitive": (5, _primitive),
    "invented": (5, _invented),
    "open_brace": (4, _open_brace),
    "cut": (3, _cut),
    "no_end": (3, _no_end),
    "text": (2, _text),
    "network": (2, _network),
    "flat_canvas": (2, _flat_canvas),
    "blank": (2, _blank),
    "misnamed": (2, _misnamed),
}
