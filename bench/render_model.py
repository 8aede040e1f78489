"""How long a painting takes: CPU seconds = a + b * shapes + c * pixels, fitted and judged.

A designed set of sketches, every size with every number of shapes, is painted in one warm page in
an order of its own for each pass; of each sketch the median pass counts. Shapes are petals of a
tenth of the canvas, whose bleed and texture are those of usual sketches. Printed: the fit, R² and
the largest relative error; the same for a model in which a shape's price grows with the canvas
(a + b * shapes + c * shapes * pixels); and what each says of the heaviest sketch let through.

    .venv/bin/python bench/render_model.py [PASSES]
"""

from __future__ import annotations

import asyncio
import json
import random
import statistics
import sys

import numpy as np
from numpy.typing import NDArray
from painting import WARM_UP, chromium, ensure_environment, tree_cpu

SIDES = (128, 256, 512, 768)
SHAPES = (1, 4, 12, 24)

Floats = NDArray[np.float64]


def sketch(side: int, shapes: int) -> str:
    """``shapes`` petals on a canvas of ``side`` by ``side``."""
    return f"""function setup() {{ createCanvas({side}, {side}, WEBGL); noLoop(); }}
function draw() {{
  background("#faf5ea");
  translate(-width / 2, -height / 2);
  brush.noStroke();
  brush.fillBleed(0.2);
  brush.fillTexture(0.5, 0.4);
  const r = {side} / 10;
  for (let i = 0; i < {shapes}; i++) {{
    const x = {side} * (0.2 + 0.6 * ((i * 0.381966) % 1));
    const y = {side} * (0.2 + 0.6 * ((i * 0.618034) % 1));
    brush.fill(["#c8322e", "#3f7d3a", "#f2c53d", "#5b86b0"][i % 4], 130);
    const c = Math.cos(i * 2.4), s = Math.sin(i * 2.4);
    brush.beginShape(0.5);
    for (const [u, v] of [[-1, 0], [-0.4, -0.6], [0.5, -0.5], [1, 0], [0.5, 0.5], [-0.4, 0.6]])
      brush.vertex(x + r * (u * c - v * s), y + r * (u * s + v * c));
    brush.endShape(true);
  }}
}}"""


async def measure(passes: int) -> list[tuple[int, int, float]]:
    """Side, shapes and CPU seconds of every sketch of the set."""
    from watercolour.render.result import Job

    cells = [(side, shapes) for side in SIDES for shapes in SHAPES]
    taken: dict[tuple[int, int], list[float]] = {cell: [] for cell in cells}
    async with chromium(stock=False) as running:
        page = await running.open_page()
        await page.paint(Job(WARM_UP, 1))
        for number in range(passes):
            for side, shapes in random.Random(number).sample(cells, len(cells)):
                before = tree_cpu(running.process.pid)
                drawn = await page.paint(Job(sketch(side, shapes), number + 1))
                await page.tab.evaluate("() => prepare().then(() => true)")
                if drawn.shapes != shapes:
                    raise SystemExit(f"{drawn.shapes} shapes instead of {shapes}")
                taken[side, shapes].append(tree_cpu(running.process.pid) - before)
    return [(*cell, statistics.median(taken[cell])) for cell in cells]


def fit(columns: list[Floats], seconds: Floats) -> tuple[Floats, float, float]:
    """Least squares of relative errors: coefficients, R², largest relative error."""
    design = np.stack([np.ones_like(seconds), *columns], axis=1)
    weights = 1 / seconds
    solved = np.linalg.lstsq(design * weights[:, None], seconds * weights, rcond=None)
    found = np.asarray(solved[0], np.float64)
    guess = design @ found
    spread = float(((seconds - seconds.mean()) ** 2).sum())
    share = 1 - float(((seconds - guess) ** 2).sum()) / spread
    return found, share, float(np.abs(guess / seconds - 1).max())


def main() -> None:
    """Print both fits and the line of JSON."""
    ensure_environment()
    from watercolour.render.page import LIMITS
    from watercolour.render.result import Job

    passes = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    rows = asyncio.run(measure(passes))
    for side, shapes, spent in rows:
        print(f"{side:4}² {shapes:3} shapes {spent:6.2f} CPU s")
    seconds = np.array([row[2] for row in rows])
    shapes = np.array([float(row[1]) for row in rows])
    pixels = np.array([float(row[0]) ** 2 for row in rows])
    most, largest = float(LIMITS["shapes"]), float(LIMITS["maxSide"]) ** 2
    result: dict[str, object] = {"bench": "render_model", "n": len(rows), "passes": passes}
    for name, last, bound in (
        ("c*pixels", pixels, largest),
        ("c*shapes*pixels", shapes * pixels, most * largest),
    ):
        (a, b, c), share, worst = fit([shapes, last], seconds)
        heaviest = a + b * most + c * bound
        print(
            f"seconds = {a:.3f} + {b:.4f} * shapes + {c:.3e} * {name[2:]}:  R² {share:.3f}, "
            f"largest relative error {100 * worst:.0f} %, heaviest sketch allowed {heaviest:.0f} s"
        )
        result[name] = {
            "a": round(float(a), 4),
            "b": round(float(b), 5),
            "c": float(f"{c:.3e}"),
            "r2": round(share, 4),
            "largest_relative_error": round(worst, 3),
            "heaviest_allowed_s": round(float(heaviest), 1),
        }
    default = Job("", 0)
    result["defaults"] = {"cpu_budget_s": default.cpu_budget_s, "deadline_s": default.deadline_s}
    print(json.dumps(result))


if __name__ == "__main__":
    main()
