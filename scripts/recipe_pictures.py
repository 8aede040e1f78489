"""Write docs/img/recipes-*.jpg: what the terms of the reward make of paintings that ship.

``python scripts/recipe_pictures.py`` writes them anew; each value is the term's own.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

from watercolour.api.rollout import Rollout
from watercolour.reward import catalogue, pool
from watercolour.reward.facts import Facts
from watercolour.score import embedded, examples

OUT = Path("docs/img")
SIDE, GAP, LINE = 132, 8, 15
DATA = Path(examples.__file__).parent / "data" / "counterexamples" / "paintings"
POOL = {one.name: one for one in pool.load("builtin:flowers").references}
DRAW = [one for one in POOL.values() if one.tier == "love"][::7]

#: Name, subject of each painting shown for scorer, judge, pigment and handling.
SHOWN = (
    ("love_iris_09", "a blue iris"),
    ("love_poppy_02", "a red poppy"),
    ("okay_daisy_06", "a yellow daisy"),
    ("okay_iris_15", "a blue iris"),
    ("meh_poppy_05", "a red poppy"),
    ("iris-wet_wash", "a blue iris"),
    ("poppy-neon", "a red poppy"),
    ("hibiscus-speck", "a peach hibiscus"),
)

#: A group that looks alike and one that does not.
ALIKE = ("love_hibiscus_01", "love_hibiscus_02", "love_hibiscus_03", "love_hibiscus_04")
UNLIKE = ("love_hibiscus_01", "love_iris_09", "love_poppy_02", "love_daisy_03")


def main() -> None:
    """Write the pictures."""
    scorer = embedded.load()
    names = [name for name, _ in SHOWN]
    seen = scorer.embed([painting(name) for name in names])
    mus = [scorer.score(one).mu for one in seen if not isinstance(one, Exception)]
    lines: list[list[str]] = []
    for (name, subject), mu in zip(SHOWN, mus, strict=True):
        rollout = Rollout(gate_passed=True, subject=subject, painting=painting(name), mu=mu)
        facts = Facts(rollout, references=tuple(one.painting for one in DRAW))
        values = {term: value(term, facts) for term in ("quality", "pigment", "perceptual")}
        lines.append([name, *(f"{term} {one}" for term, one in values.items())])
    sheet(names, lines, "recipes-terms.jpg")
    rows: list[list[str]] = []
    for group in (ALIKE, UNLIKE):
        members = [Rollout(gate_passed=True, painting=painting(name)) for name in group]
        for member in members:
            others = tuple(one for one in members if one is not member)
            rows.append([f"diversity {value('diversity', Facts(member, others))}"])
    sheet([*ALIKE, *UNLIKE], rows, "recipes-diversity.jpg")


def value(term: str, facts: Facts) -> str:
    """A term's value as it is shown; a dash for none."""
    found = catalogue.evaluate(catalogue.find(term), facts)
    return "-" if found is None else f"{found:.2f}"


def painting(name: str) -> bytes:
    """A painting of the pool, or a counterexample."""
    return POOL[name].painting if name in POOL else (DATA / f"{name}.png").read_bytes()


def sheet(names: Sequence[str], lines: Sequence[Sequence[str]], file: str) -> None:
    """Paintings in rows of four, each with its lines below it."""
    height = SIDE + GAP + LINE * max(map(len, lines))
    size = (4 * (SIDE + GAP) + GAP, -(-len(names) // 4) * (height + GAP) + GAP)
    whole = Image.new("RGB", size, "white")
    pen, font = ImageDraw.Draw(whole), ImageFont.load_default(11)
    for number, (name, words) in enumerate(zip(names, lines, strict=True)):
        x = GAP + number % 4 * (SIDE + GAP)
        y = GAP + number // 4 * (height + GAP)
        with Image.open(io.BytesIO(painting(name))) as picture:
            whole.paste(
                picture.convert("RGB").resize((SIDE, SIDE), Image.Resampling.LANCZOS), (x, y)
            )
        for place, word in enumerate(words):
            pen.text((x, y + SIDE + 3 + place * LINE), word, "#333333", font)
    whole.save(OUT / file, quality=86)


if __name__ == "__main__":
    main()
