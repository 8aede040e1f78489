"""Wall seconds of a painting: our flags, patch and warm page against the published set-up.

Theirs: SwiftShader by the published flags, p5.brush as published, a new page for every sketch.
Ours: what the renderer's service does. Both run in this process in turn, sketch by sketch, each
in a browser that is already running and has painted once. Expect some minutes: theirs is slow.

    .venv/bin/python bench/render_flags.py [SKETCH.js ...]
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
from contextlib import AsyncExitStack
from pathlib import Path

ROOT = Path(__file__).parents[1]
RENDER_PYTHON = str(ROOT / ".venv-render" / "bin" / "python")

#: A sketch that needs every part once, so that shaders are compiled before anything is timed.
WARM_UP = """function setup() { createCanvas(96, 96, WEBGL); brush.noStroke();
  brush.fill("red", 90); brush.fillTexture(0, 0); brush.rect(0, 0, 9, 9); }"""


def sketches(names: list[str]) -> list[Path]:
    """The files named, else the shared ones s1, s2 and s4, else our own equivalents."""
    if names:
        return [Path(name) for name in names]
    shared = sorted((ROOT.parent / "shared" / "sketches").glob("s[124]_*.js"))
    return shared or sorted((ROOT / "examples" / "sketches").glob("*.js"))


async def measure(paths: list[Path]) -> list[tuple[str, int, float, float, float, float]]:
    """Name, shapes, and wall and CPU seconds of ours and theirs, for each sketch."""
    from watercolour.render import browser, chromium, pages
    from watercolour.render.result import Job

    rows: list[tuple[str, int, float, float, float, float]] = []
    async with AsyncExitStack() as stack:
        base = await stack.enter_async_context(pages.served())
        ours = await stack.enter_async_context(browser.opened(chromium.Launch(), base))
        stock = await stack.enter_async_context(pages.served(stock=True))
        launch = chromium.Launch(flags=chromium.PUBLISHED_FLAGS)
        theirs = await stack.enter_async_context(browser.opened(launch, stock))

        page = await ours.open_page()
        await page.paint(Job(WARM_UP, 1))
        await (await theirs.open_page()).paint(Job(WARM_UP, 1, deadline_s=600, cpu_budget_s=600))
        for path in paths:
            job = Job(path.read_text(), 1, deadline_s=900, cpu_budget_s=900)
            start = time.monotonic()
            fast = await page.paint(job)
            fast_wall = time.monotonic() - start
            start = time.monotonic()
            fresh = await theirs.open_page()
            slow = await fresh.paint(job)
            slow_wall = time.monotonic() - start
            await fresh.close()
            rows.append(
                (path.stem, fast.shapes, fast_wall, slow_wall, fast.cpu_seconds, slow.cpu_seconds)
            )
            print(
                f"{path.stem:16} {fast.shapes:4} shapes   ours {fast_wall:6.2f} s   "
                f"theirs {slow_wall:7.2f} s   {slow_wall / fast_wall:5.1f}x wall   "
                f"{slow.cpu_seconds / fast.cpu_seconds:5.1f}x CPU",
                flush=True,
            )
    return rows


def main() -> None:
    """Print the table and the line of JSON."""
    if importlib.util.find_spec("pyppeteer") is None:
        os.execv(RENDER_PYTHON, [RENDER_PYTHON, *sys.argv])
    load = os.getloadavg()[0]
    rows = asyncio.run(measure(sketches(sys.argv[1:])))
    ours = statistics.geometric_mean(row[2] for row in rows)
    theirs = statistics.geometric_mean(row[3] for row in rows)
    cpu = statistics.geometric_mean(row[5] / row[4] for row in rows)
    result = {
        "bench": "render_flags",
        "ours": round(ours, 3),
        "theirs": round(theirs, 3),
        "ratio": round(theirs / ours, 1),
        "unit": "wall seconds a painting (geometric mean)",
        "n": len(rows),
        "conditions": {
            "sketches": [row[0] for row in rows],
            "cpu_ratio": round(cpu, 1),
            "cpus": os.cpu_count(),
            "load_before": round(load, 1),
            "machine": platform.machine(),
        },
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
