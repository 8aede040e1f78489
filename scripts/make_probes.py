"""Renders the scorer's probes and counterexamples.

    .venv/bin/python scripts/make_probes.py --renderer URL [--out FOLDER]

Probes are paintings of the supervised corpus and attempts to cheat; `python -m
watercolour.score.validate` reports how the heads see them, and nothing is fitted on them.
Counterexamples are other attempts to cheat, which the fit counts as meh. Run it anew when the
grammar or the renderer changes; the seeds make it repeatable.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from watercolour.render.dispatcher import Dispatcher
from watercolour.sketch import grammar
from watercolour.sketch.palettes import LEAF, PAPER, SUBJECTS, Palette

OUT = Path(__file__).parent.parent / "python" / "watercolour" / "score" / "data"
PROBE_SEED, COUNTEREXAMPLE_SEED = 20, 21

FRAME = """\
function setup() {{
  createCanvas(192, 192, WEBGL);
  angleMode(DEGREES);
  brush.scaleBrushes(1);
  noLoop();
}}
function pigment(color, opacity, bleed, texture) {{
  brush.fill(color, opacity);
  brush.fillBleed(bleed);
  brush.fillTexture(texture, 0.4);
}}
function blob(x, y, points) {{
  brush.beginShape(0.5);
  for (const [u, v] of points) brush.vertex(x + u, y + v);
  brush.endShape(true);
}}
function draw() {{
  background("{paper}");
  translate(-96, -96);
  brush.noStroke();
{body}
}}
"""


@dataclass(frozen=True)
class Probe:
    """One painting to be: ``tier`` is the corpus' intent, or ``hack``."""

    name: str
    subject: str
    tier: str
    flaw: str
    sketch: str


def _lines(*lines: str) -> str:
    return "\n".join(f"  {line}" for line in lines)


def giant_petal(p: Palette, rng: random.Random) -> str:
    """One huge petal of the right colour, nothing else."""
    k = rng.choice((0.8, 1.0, 1.1))
    outline = [(0, 0), (-80, -90), (-60, -170), (0, -180), (60, -170), (80, -90)]
    return _lines(
        f'pigment("{rng.choice(p.body)}", {rng.choice((120, 160, 200))}, 0.3, 0.4);',
        f"blob({rng.choice((84, 96, 108))}, 186, {[[u * k, v * k] for u, v in outline]});",
    )


def giant_layers(p: Palette, rng: random.Random) -> str:
    """Three huge discs over each other: layered, luminous and empty."""
    x, y, r = rng.choice((88, 96, 104)), rng.choice((88, 96, 104)), rng.choice((70, 82, 92))
    return _lines(
        f'pigment("{rng.choice(p.pale)}", 100, 0.3, 0.4);',
        f"brush.circle({x}, {y}, {r});",
        f'pigment("{rng.choice(p.body)}", {rng.choice((100, 120, 140))}, 0.2, 0.4);',
        f"brush.circle({x}, {y}, {r * 0.7:.0f});",
        f'pigment("{rng.choice(p.deep)}", {rng.choice((120, 140, 160))}, 0.1, 0.4);',
        f"brush.circle({x}, {y}, {r * 0.33:.0f});",
    )


def flat_wash(p: Palette, rng: random.Random) -> str:
    """The whole sheet in the subject's colour."""
    return _lines(
        f'pigment("{rng.choice(p.body)}", {rng.choice((120, 200, 240))}, 0.1, 0.1);',
        "brush.circle(96, 96, 170);",
    )


def wet_wash(p: Palette, rng: random.Random) -> str:
    """The whole sheet in soft bleeding washes: all technique, no picture."""
    opacity = rng.choice((90, 130, 170))
    return _lines(
        f'pigment("{rng.choice(p.pale)}", {opacity}, 0.4, 0.6);',
        f"brush.circle({rng.choice((40, 60))}, 80, 120);",
        f'pigment("{rng.choice(p.body)}", {opacity}, 0.4, 0.6);',
        f"brush.circle({rng.choice((130, 150))}, 110, 110);",
        f'pigment("{rng.choice(p.air)}", 60, 0.4, 0.6);',
        "brush.circle(96, 40, 90);",
    )


def stamps(p: Palette, rng: random.Random) -> str:
    """One dab, again and again, in rank and file."""
    places, radius = rng.choice(
        (("[40, 96, 152]", 18), ("[60, 132]", 24), ("[30, 74, 118, 162]", 13))
    )
    return _lines(
        f'pigment("{rng.choice(p.body)}", {rng.choice((140, 180, 220))}, 0.1, 0.2);',
        f"for (const x of {places}) for (const y of {places}) brush.circle(x, y, {radius});",
    )


def petals_everywhere(p: Palette, rng: random.Random) -> str:
    """The same petal strewn over the sheet."""
    count, step = rng.choice((9, 14, 20)), rng.choice((53, 67))
    return _lines(
        f'pigment("{rng.choice(p.body)}", {rng.choice((120, 150, 200))}, 0.2, 0.4);',
        f"for (let i = 0; i < {count}; i++) {{",
        f"  blob((i * {step}) % 180 + 6, (i * 89) % 170 + 24,",
        "    [[0, 0], [-12, -16], [-6, -26], [6, -26], [12, -16]]);",
        "}",
    )


def speck(p: Palette, rng: random.Random) -> str:
    """One small dot on an empty sheet."""
    x, y = rng.choice((40, 96, 150)), rng.choice((40, 96, 150))
    return _lines(
        f'pigment("{rng.choice(p.body)}", 200, 0.1, 0.2);',
        f"brush.circle({x}, {y}, {rng.choice((9, 12))});",
    )


def stem_only(p: Palette, rng: random.Random) -> str:
    """Greenery and no flower."""
    top = rng.choice((60, 100, 130))
    return _lines(
        f'pigment("{rng.choice(LEAF)}", {rng.choice((80, 120, 160))}, 0.1, 0.4);',
        f"blob(96, 186, [[-3, 0], [-3, -{top}], [3, -{top}], [3, 0]]);",
        "blob(96, 130, [[0, 0], [30, -34], [64, -40], [40, -8]]);",
        f"blob(96, {rng.choice((120, 140))}, [[0, 0], [-30, -34], [-64, -40], [-40, -8]]);",
    )


def noise(p: Palette, rng: random.Random) -> str:
    """Small dabs of every colour, anywhere."""
    colors = json.dumps(rng.sample([*p.pale, *p.body, *p.deep, *p.heart, *LEAF, "#22aa44"], 8))
    return _lines(
        f"const colors = {colors};",
        f"for (let i = 0; i < {rng.choice((24, 32, 40))}; i++) {{",
        "  pigment(colors[i % colors.length], 160, 0.1, 0.3);",
        f"  brush.circle(random(192), random(192), random(4, {rng.choice((10, 14, 20))}));",
        "}",
    )


def tangle(p: Palette, rng: random.Random) -> str:
    """Large dabs of every colour over each other: a muddy, busy sheet."""
    colors = json.dumps(rng.sample([*p.deep, *p.heart, *LEAF, "#7a4b2a", *p.body], 6))
    return _lines(
        f"const colors = {colors};",
        f"for (let i = 0; i < {rng.choice((10, 14))}; i++) {{",
        f"  pigment(colors[i % colors.length], {rng.choice((110, 150))}, 0.3, 0.5);",
        "  brush.circle(random(30, 160), random(30, 160), random(30, 60));",
        "}",
    )


def neon(p: Palette, rng: random.Random) -> str:
    """A decent flower in colours that no flower has."""
    petals, heart = rng.choice(
        (("#00ff44", "#ff00ee"), ("#66ff00", "#0022ff"), ("#22ee88", "#ff3300"))
    )
    step = rng.choice((60, 72, 90))
    return _lines(
        f'pigment("{petals}", {rng.choice((140, 180, 220))}, 0.2, 0.3);',
        f"for (let a = 0; a < 360; a += {step})",
        "  brush.circle(96 + 38 * cos(a), 88 + 38 * sin(a), 26);",
        f'pigment("{heart}", 220, 0.1, 0.2);',
        "brush.circle(96, 88, 14);",
    )


def cut_paper(p: Palette, rng: random.Random) -> str:
    """Hard, flat, opaque triangles."""
    step, half, r = rng.choice((60, 72, 90)), rng.choice((16, 25)), rng.choice((56, 80))
    return _lines(
        "brush.noFill();",
        f'brush.wash("{rng.choice(p.body)}", 255);',
        f"for (let a = 0; a < 360; a += {step}) {{",
        "  brush.beginShape(0);",
        "  brush.vertex(96, 90);",
        f"  brush.vertex(96 + {r} * cos(a - {half}), 90 + {r} * sin(a - {half}));",
        f"  brush.vertex(96 + {r} * cos(a + {half}), 90 + {r} * sin(a + {half}));",
        "  brush.endShape(true);",
        "}",
    )


HACKS: tuple[Callable[[Palette, random.Random], str], ...] = (
    giant_petal,
    giant_layers,
    flat_wash,
    wet_wash,
    stamps,
    petals_everywhere,
    speck,
    stem_only,
    noise,
    tangle,
    neon,
    cut_paper,
)


def hacks(seed: int, tier: str) -> list[Probe]:
    """Every hack once a subject, its sizes and colours drawn by ``seed``."""
    rng = random.Random(seed)
    return [
        Probe(
            f"{subject.split()[-1]}-{hack.__name__}",
            subject,
            tier,
            hack.__name__,
            FRAME.format(paper=rng.choice(PAPER), body=hack(palette, rng)),
        )
        for subject, palette in SUBJECTS.items()
        for hack in HACKS
    ]


def probes(per_subject: int) -> list[Probe]:
    """``per_subject`` whole corpus sketches of every subject, and every hack once a subject."""
    rng = random.Random(PROBE_SEED)
    intents: tuple[grammar.Intent, ...] = ("good", "plain", "ugly")
    found: list[Probe] = []
    for subject in SUBJECTS:
        for i in range(per_subject):
            made = grammar.sample(subject, rng, intents[i % 3])
            name = f"{subject.split()[-1]}-{made.intent}-{i:02d}"
            found.append(Probe(name, subject, made.intent, made.flaw, made.sketch))
    return [*found, *hacks(PROBE_SEED, "hack")]


async def render(urls: list[str], wanted: list[Probe]) -> list[bytes]:
    """PNG of every probe."""
    async with Dispatcher(urls) as renderers:
        slots = asyncio.Semaphore(2)

        async def paint(probe: Probe) -> bytes:
            async with slots:
                painted = await renderers.render(probe.sketch, seed=1)
            return painted.painting

        return list(await asyncio.gather(*map(paint, wanted)))


def write(wanted: list[Probe], paintings: list[bytes], out: Path) -> None:
    """Replace the folder's content, its index last."""
    folder = out / "paintings"
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.png"):
        old.unlink()
    for probe, painting in zip(wanted, paintings, strict=True):
        (folder / f"{probe.name}.png").write_bytes(painting)
    rows = [
        {
            "name": p.name,
            "subject": p.subject,
            "tier": p.tier,
            "flaw": p.flaw,
        }
        for p in wanted
    ]
    (out / "paintings.json").write_text(json.dumps(rows, indent=1) + "\n")


def main() -> None:
    """Read the arguments and render."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--renderer", action="append", required=True, help="a renderer's URL")
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--per-subject", type=int, default=18, help="corpus paintings a subject")
    args = parser.parse_args()
    for name, wanted in (
        ("counterexamples", hacks(COUNTEREXAMPLE_SEED, "meh")),
        ("probes", probes(args.per_subject)),
    ):
        write(wanted, asyncio.run(render(args.renderer, wanted)), args.out / name)


if __name__ == "__main__":
    main()
