"""Small pools of plain pictures, for tests that need a folder and no painter."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

from PIL import Image, ImageDraw

from watercolour.reward import pool as pools
from watercolour.reward import pool_build
from watercolour.reward.pool import Card, Record
from watercolour.reward.ratings import Tier

SIDE = 64

SKETCH = """\
function setup() {{
  createCanvas(64, 64, WEBGL);
  brush.fill("#a33344", 200);
  brush.circle(0, 0, {});
}}
"""


def picture(number: int, side: int = SIDE) -> bytes:
    """PNG; pictures of different numbers differ clearly."""
    image = Image.new("RGB", (side, side), "white")
    at = 3 * (number % 16)
    colour = (40 + 12 * (number % 16), 60, 30 + 90 * (number // 16 % 3))
    ImageDraw.Draw(image).ellipse((at, at, at + side // 4, at + side // 4), fill=colour)
    out = io.BytesIO()
    image.save(out, "PNG")
    return out.getvalue()


def make(
    folder: Path, tiers: Sequence[Tier | None], *, name: str = "mine", licence: str = "CC0-1.0"
) -> Path:
    """A whole pool with paintings p_001, p_002 ... of these tiers."""
    folder.mkdir(parents=True, exist_ok=True)
    records: list[Record] = []
    for number, tier in enumerate(tiers, 1):
        painting, sketch = picture(number), SKETCH.format(number)
        each = f"p_{number:03d}"
        pool_build.write(pools.painting_path(folder, each), painting)
        pool_build.write(pools.sketch_path(folder, each), sketch.encode())
        records.append(
            Record(
                name=each,
                subject="a red dot",
                tier=tier,
                painting_sha256=pools.digest(painting),
                sketch_sha256=pools.digest(sketch.encode()),
            )
        )
    pool_build.write_records(folder, records)
    card = Card(name=name, what="Dots.", made="By a test.", licence=licence, canvas=SIDE)
    pool_build.write_card(folder, card)
    return folder
