"""Wall seconds of a painting: our flags, patch and warm page against the published set-up.

Theirs: SwiftShader by the published flags, p5.brush as published, a new page for every sketch.
Ours: what the renderer's service does. Both run in this process in turn, sketch by sketch, each
in a browser that is already running and has painted once; ours is the median of three, since a
painting of a second is easily disturbed. Expect some minutes: theirs is slow.

    .venv/bin/python bench/render_flags.py [SKETCH.js ...]
"""

from __future__ import annotations

import asyncio
import statistics
import sys
from pathlib import Path

from painting import (
    PATIENCE,
    WARM_UP,
    Clock,
    chromium,
    ensure_environment,
    paint_on_new_page,
    report,
    sketches,
    tree_cpu,
)

#: Paintings of ours for one of theirs.
REPEATS = 3


async def measure(paths: list[Path]) -> list[tuple[str, float, float, float, float]]:
    """Name, and wall and CPU seconds of ours and theirs, for each sketch."""
    from watercolour.render.chromium import PUBLISHED_FLAGS
    from watercolour.render.result import Job

    rows: list[tuple[str, float, float, float, float]] = []
    async with chromium(stock=False) as fast, chromium(PUBLISHED_FLAGS, stock=True) as slow:
        page = await fast.open_page()
        warm = Job(WARM_UP, 1, deadline_s=PATIENCE, cpu_budget_s=PATIENCE)
        await page.paint(warm)
        await paint_on_new_page(slow, warm)
        for path in paths:
            job = Job(path.read_text(), 1, deadline_s=PATIENCE, cpu_budget_s=PATIENCE)
            ours: list[tuple[float, float]] = []
            shapes = 0
            for _ in range(REPEATS):
                before, clock = tree_cpu(fast.process.pid), Clock()
                shapes = (await page.paint(job)).shapes
                wall = clock.seconds
                await page.tab.evaluate("() => prepare().then(() => true)")
                ours.append((wall, tree_cpu(fast.process.pid) - before))
            clock = Clock()
            _, slow_cpu = await paint_on_new_page(slow, job)
            slow_wall = clock.seconds
            fast_wall, fast_cpu = (statistics.median(side) for side in zip(*ours, strict=True))
            rows.append((path.stem, fast_wall, slow_wall, fast_cpu, slow_cpu))
            print(
                f"{path.stem:16} {shapes:4} shapes   ours {fast_wall:6.2f} s "
                f"{fast_cpu:6.2f} CPU s   theirs {slow_wall:7.2f} s {slow_cpu:7.2f} CPU s   "
                f"{slow_wall / fast_wall:5.1f}x wall   {slow_cpu / fast_cpu:5.1f}x CPU",
                flush=True,
            )
    return rows


def main() -> None:
    """Print the table and the line of JSON."""
    ensure_environment()
    rows = asyncio.run(measure(sketches(sys.argv[1:])))
    ours = statistics.geometric_mean(row[1] for row in rows)
    theirs = statistics.geometric_mean(row[2] for row in rows)
    report(
        "render_flags",
        ours,
        theirs,
        theirs / ours,
        unit="wall seconds a painting (geometric mean)",
        n=len(rows),
        conditions={
            "sketches": {row[0]: round(row[2] / row[1], 1) for row in rows},
            "cpu_ratios": {row[0]: round(row[4] / row[3], 1) for row in rows},
        },
    )


if __name__ == "__main__":
    main()
