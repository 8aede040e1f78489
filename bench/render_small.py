"""Small sketches, the kind that a tiny policy writes: a realm in a warm page against a new page.

256 by 256 pixels, one to five filled shapes in turn. Ours: a fresh realm of a warm page, our flags
and patch; its time lasts until the next realm is there, so it is what a slot has to give for each
sketch of many. Theirs: p5.brush as published, Chromium's default flags, a new page for every
sketch. They take turns, sketch by sketch, in browsers that run already.

    .venv/bin/python bench/render_small.py [ROUNDS]
"""

from __future__ import annotations

import asyncio
import statistics
import sys
from dataclasses import dataclass

from painting import Clock, chromium, ensure_environment, paint_on_new_page, report, tree_cpu

SIZE = 256
SHAPES = 5


def sketch(number: int, shapes: int = SHAPES) -> str:
    """A flower of so many filled shapes: petals, heart, stem; no two alike."""
    heart = 'brush.fill("#f2c53d", 180); brush.circle(x, y, 12);' if shapes > 1 else ""
    stem = 'brush.fill("#4f7840", 110); brush.rect(x - 2, y, 5, 110);' if shapes > 2 else ""
    return f"""function setup() {{ createCanvas({SIZE}, {SIZE}, WEBGL); noLoop(); }}
function draw() {{
  translate(-width / 2, -height / 2);
  background("#faf5ea");
  brush.noStroke();
  brush.fillBleed(0.2);
  brush.fillTexture(0.4, 0.4);
  const x = {106 + number % 30}, y = {112 + number % 17};
  {stem}
  brush.fill("#f2906e", 130);
  for (let i = 0; i < {max(1, shapes - 2)}; i++) {{
    const c = Math.cos(i * 2.1 + {number}), s = Math.sin(i * 2.1 + {number});
    brush.beginShape(0.5);
    for (const [u, v] of [[0, 0], [0.5, -0.5], [1, -0.3], [1, 0.3], [0.5, 0.5]])
      brush.vertex(x + 60 * (u * c - v * s), y + 60 * (u * s + v * c));
    brush.endShape(true);
  }}
  {heart}
}}"""


@dataclass
class Taken:
    """Wall and CPU seconds of one sketch on both sides; of ours also those until its answer."""

    shapes: int
    ours: tuple[float, float]
    theirs: tuple[float, float]
    answer: float


async def measure(rounds: int) -> list[Taken]:
    """Every number of shapes, so many rounds."""
    from watercolour.render.result import Job

    taken: list[Taken] = []
    async with chromium(stock=False) as fast, chromium((), stock=True) as slow:
        page = await fast.open_page()
        await page.paint(Job(sketch(0), 1))
        await paint_on_new_page(slow, Job(sketch(0), 1))
        for number in range(1, SHAPES * rounds + 1):
            shapes = 1 + number % SHAPES
            job = Job(sketch(number, shapes), 1)
            clock, before = Clock(), tree_cpu(fast.process.pid)
            drawn = await page.paint(job)
            answer = clock.seconds
            # The next realm is part of the price: it is made after the picture was given.
            await page.tab.evaluate("() => prepare().then(() => true)")
            ours = clock.seconds, tree_cpu(fast.process.pid) - before
            if drawn.shapes != shapes or drawn.js_errors:
                raise SystemExit(f"{drawn.shapes} shapes instead of {shapes} {drawn.js_errors}")
            clock = Clock()
            _, spent = await paint_on_new_page(slow, job)
            taken.append(Taken(shapes, ours, (clock.seconds, spent), answer))
    return taken


def main() -> None:
    """Print the table and the line of JSON."""
    ensure_environment()
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 6
    taken = asyncio.run(measure(rounds))
    ratios: dict[int, float] = {}
    for shapes in range(1, SHAPES + 1):
        rows = [one for one in taken if one.shapes == shapes]
        ours, theirs = (
            [statistics.median(column) for column in zip(*side, strict=True)]
            for side in ([one.ours for one in rows], [one.theirs for one in rows])
        )
        ratios[shapes] = theirs[0] / ours[0]
        print(
            f"{shapes} shapes   ours {ours[0]:6.3f} s {ours[1]:6.3f} CPU s   "
            f"theirs {theirs[0]:6.3f} s {theirs[1]:6.3f} CPU s   {ratios[shapes]:5.2f}x wall   "
            f"{theirs[1] / ours[1]:5.2f}x CPU"
        )
    wall = [sum(side[0] for side in sides) for sides in _sides(taken)]
    cpu = [sum(side[1] for side in sides) for sides in _sides(taken)]
    report(
        "render_small",
        60 * len(taken) / wall[0],
        60 * len(taken) / wall[1],
        wall[1] / wall[0],
        unit="renders a minute, one slot",
        n=len(taken),
        conditions={
            "size": SIZE,
            "ratio_by_shapes": {shapes: round(ratio, 2) for shapes, ratio in ratios.items()},
            "cpu_seconds": {
                side: round(total / len(taken), 3)
                for side, total in zip(("ours", "theirs"), cpu, strict=True)
            },
            "cpu_ratio": round(cpu[1] / cpu[0], 2),
            "ratio_until_the_answer": round(wall[1] / sum(one.answer for one in taken), 2),
        },
    )


def _sides(taken: list[Taken]) -> tuple[list[tuple[float, float]], list[tuple[float, float]]]:
    return [one.ours for one in taken], [one.theirs for one in taken]


if __name__ == "__main__":
    main()
