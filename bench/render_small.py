"""Small sketches, the kind that a tiny policy writes: a realm in a warm page against a new page.

192 by 192 pixels, 12 filled shapes. Ours paints each sketch in a fresh realm of a warm page;
theirs opens a new page for it. Same browser, flags and patch; they take turns.

    .venv/bin/python bench/render_small.py [N]
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import platform
import statistics
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
RENDER_PYTHON = str(ROOT / ".venv-render" / "bin" / "python")


def sketch(number: int) -> str:
    """A flower of twelve filled shapes; no two alike."""
    return f"""function setup() {{ createCanvas(192, 192, WEBGL); angleMode(DEGREES); noLoop(); }}
function draw() {{
  translate(-96, -96);
  background("#faf5ea");
  brush.noStroke();
  brush.fillBleed(0.2);
  brush.fillTexture(0.4, 0.4);
  const x = {80 + number % 30}, y = {84 + number % 17};
  brush.fill("#4f7840", 110);
  brush.rect(x - 2, y, 5, 80);
  for (const [colour, n, r] of [["#f2906e", 5, 46], ["#c9374b", 5, 28]]) {{
    brush.fill(colour, 130);
    for (let i = 0; i < n; i++) {{
      const c = cos(i * 72 + {number * 7}), s = sin(i * 72 + {number * 7});
      brush.beginShape(0.5);
      for (const [u, v] of [[0, 0], [0.5, -0.5], [1, -0.3], [1, 0.3], [0.5, 0.5]])
        brush.vertex(x + r * (u * c - v * s), y + r * (u * s + v * c));
      brush.endShape(true);
    }}
  }}
  brush.fill("#f2c53d", 180);
  brush.circle(x, y, 8);
}}"""


async def measure(count: int) -> dict[str, list[tuple[float, float]]]:
    """Wall and CPU seconds of every painting, by side."""
    from watercolour.render import browser, chromium, pages, procfs
    from watercolour.render.result import Job

    taken: dict[str, list[tuple[float, float]]] = {"ours": [], "theirs": []}
    pixels: dict[int, bytes] = {}
    async with pages.served() as base, browser.opened(chromium.Launch(), base) as running:

        def cpu() -> float:
            tree = [running.process.pid, *procfs.descendants(running.process.pid)]
            return sum(procfs.cpu_seconds(pid) or 0.0 for pid in tree)

        warm = await running.open_page()
        await warm.paint(Job(sketch(0), 1))

        for number in range(1, count + 1):
            for name in taken:
                wall, spent = time.monotonic(), cpu()
                page = warm if name == "ours" else await running.open_page()
                data = (await page.paint(Job(sketch(number), 1))).data
                taken[name].append((time.monotonic() - wall, cpu() - spent))
                if page is not warm:
                    await page.close()
                if pixels.setdefault(number, data) != data:
                    raise SystemExit(f"sketch {number} differs between the two sides")
    return taken


def main() -> None:
    """Print the table and the line of JSON."""
    if importlib.util.find_spec("pyppeteer") is None:
        os.execv(RENDER_PYTHON, [RENDER_PYTHON, *sys.argv])
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 12
    load = os.getloadavg()[0]
    taken = asyncio.run(measure(count))
    wall = {name: statistics.median(w for w, _ in rows) for name, rows in taken.items()}
    cpu = {name: statistics.median(c for _, c in rows) for name, rows in taken.items()}
    for name in taken:
        print(
            f"{name:7} {wall[name]:6.3f} s   {60 / wall[name]:6.1f} renders/min   "
            f"{cpu[name]:6.3f} CPU s a render"
        )
    result = {
        "bench": "render_small",
        "ours": round(60 / wall["ours"], 1),
        "theirs": round(60 / wall["theirs"], 1),
        "ratio": round(wall["theirs"] / wall["ours"], 2),
        "unit": "renders a minute, one slot (median)",
        "n": count,
        "conditions": {
            "size": 192,
            "shapes": 12,
            "cpu_seconds": {name: round(value, 3) for name, value in cpu.items()},
            "pictures": "byte-identical between the two sides",
            "cpus": os.cpu_count(),
            "load_before": round(load, 1),
            "machine": platform.machine(),
        },
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
