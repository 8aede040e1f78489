"""Small sketches, the kind that a tiny policy writes: a realm in a warm page against a new page.

256 by 256 pixels, five filled shapes. Ours: a fresh realm of a warm page, our flags and patch.
Theirs: p5.brush as published, Chromium's default flags, a new page for every sketch. They take
turns, sketch by sketch, in browsers that run already.

    .venv/bin/python bench/render_small.py [N]
"""

from __future__ import annotations

import asyncio
import statistics
import sys

from painting import Clock, chromium, ensure_environment, paint_on_new_page, report, tree_cpu

SIZE = 256
SHAPES = 5


def sketch(number: int) -> str:
    """A flower of five filled shapes; no two alike."""
    return f"""function setup() {{ createCanvas({SIZE}, {SIZE}, WEBGL); noLoop(); }}
function draw() {{
  translate(-width / 2, -height / 2);
  background("#faf5ea");
  brush.noStroke();
  brush.fillBleed(0.2);
  brush.fillTexture(0.4, 0.4);
  const x = {106 + number % 30}, y = {112 + number % 17};
  brush.fill("#4f7840", 110);
  brush.rect(x - 2, y, 5, 110);
  brush.fill("#f2906e", 130);
  for (let i = 0; i < 3; i++) {{
    const c = Math.cos(i * 2.1 + {number}), s = Math.sin(i * 2.1 + {number});
    brush.beginShape(0.5);
    for (const [u, v] of [[0, 0], [0.5, -0.5], [1, -0.3], [1, 0.3], [0.5, 0.5]])
      brush.vertex(x + 60 * (u * c - v * s), y + 60 * (u * s + v * c));
    brush.endShape(true);
  }}
  brush.fill("#f2c53d", 180);
  brush.circle(x, y, 12);
}}"""


async def measure(count: int) -> dict[str, list[tuple[float, float]]]:
    """Wall and CPU seconds of every painting, by side."""
    from watercolour.render.result import Job

    taken: dict[str, list[tuple[float, float]]] = {"ours": [], "theirs": []}
    async with chromium(stock=False) as fast, chromium((), stock=True) as slow:
        page = await fast.open_page()
        await page.paint(Job(sketch(0), 1))
        await paint_on_new_page(slow, Job(sketch(0), 1))
        for number in range(1, count + 1):
            job = Job(sketch(number), 1)
            clock, before = Clock(), tree_cpu(fast.process.pid)
            drawn = await page.paint(job)
            wall = clock.seconds
            # The next realm is part of the price: it is made after the picture was given.
            await page.tab.evaluate("() => prepare().then(() => true)")
            taken["ours"].append((wall, tree_cpu(fast.process.pid) - before))
            if drawn.shapes != SHAPES:
                raise SystemExit(f"{drawn.shapes} shapes instead of {SHAPES}")
            clock = Clock()
            _, spent = await paint_on_new_page(slow, job)
            taken["theirs"].append((clock.seconds, spent))
    return taken


def main() -> None:
    """Print the table and the line of JSON."""
    ensure_environment()
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 12
    taken = asyncio.run(measure(count))
    wall = {side: statistics.median(w for w, _ in rows) for side, rows in taken.items()}
    cpu = {side: statistics.median(c for _, c in rows) for side, rows in taken.items()}
    for side in taken:
        print(
            f"{side:7} {wall[side]:6.3f} s   {60 / wall[side]:6.1f} renders/min   "
            f"{cpu[side]:6.3f} CPU s a render"
        )
    report(
        "render_small",
        60 / wall["ours"],
        60 / wall["theirs"],
        wall["theirs"] / wall["ours"],
        unit="renders a minute, one slot (median)",
        n=count,
        conditions={
            "size": SIZE,
            "shapes": SHAPES,
            "cpu_seconds": {side: round(value, 3) for side, value in cpu.items()},
            "cpu_ratio": round(cpu["theirs"] / cpu["ours"], 2),
        },
    )


if __name__ == "__main__":
    main()
