"""What the benches of the renderer share: sketches, both sides' browsers, accounts of a process."""

from __future__ import annotations

import importlib.util
import json
import os
import platform
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from watercolour.render.browser import Browser
    from watercolour.render.page import Drawn
    from watercolour.render.result import Job

ROOT = Path(__file__).parents[1]
RENDER_PYTHON = str(ROOT / ".venv-render" / "bin" / "python")

#: A sketch that needs every part once, so that shaders are compiled before anything is timed.
WARM_UP = """function setup() { createCanvas(96, 96, WEBGL); brush.noStroke();
  brush.fill("red", 90); brush.fillTexture(0, 0); brush.rect(0, 0, 9, 9); }"""

#: Seconds that no honest side of a bench comes near.
PATIENCE = 900.0


def ensure_environment() -> None:
    """Go on in the renderer's own environment, where the browser's driver is."""
    if importlib.util.find_spec("pyppeteer") is None:
        os.execv(RENDER_PYTHON, [RENDER_PYTHON, *sys.argv])


def sketches(names: list[str]) -> list[Path]:
    """The files named, else those of the examples."""
    return [Path(name) for name in names] or sorted((ROOT / "examples" / "sketches").glob("*.js"))


def tree_cpu(root: int) -> float:
    """CPU seconds of a process, everything below it, and all that these have seen end."""
    from watercolour.render import procfs

    ticks = 0
    for pid in [root, *procfs.descendants(root)]:
        try:
            text = Path(f"/proc/{pid}/stat").read_text()
        except (FileNotFoundError, ProcessLookupError):
            continue
        ticks += sum(map(int, text.rpartition(")")[2].split()[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def tree_pss(root: int) -> int:
    """Bytes of memory of a process and everything below it; shared pages count in parts."""
    from watercolour.render import procfs

    total = 0
    for pid in [root, *procfs.descendants(root)]:
        try:
            text = Path(f"/proc/{pid}/smaps_rollup").read_text()
        except (FileNotFoundError, ProcessLookupError):
            continue
        total += next(int(line.split()[1]) for line in text.splitlines() if line[:4] == "Pss:")
    return total * 1024


@asynccontextmanager
async def chromium(flags: tuple[str, ...] | None = None, *, stock: bool) -> AsyncIterator[Browser]:
    """A browser; by default with our flags.

    Args:
        flags: the rasteriser's flags.
        stock: p5.brush as published.
    """
    from watercolour.render import browser, chromium, pages

    launch = chromium.Launch() if flags is None else chromium.Launch(flags=flags)
    async with (
        pages.served(stock=stock) as base,
        browser.opened(launch, base) as running,
    ):
        yield running


async def paint_on_new_page(running: Browser, job: Job) -> tuple[Drawn, float]:
    """A painting on a page of its own, and CPU seconds of the browser.

    The page is opened as anybody would open one: without our search for its process.
    """
    from watercolour.render import driver, pages
    from watercolour.render.page import Page

    before = tree_cpu(running.process.pid)
    tab = await driver.open_tab(running.connection, f"{running.base}/host", pages.nested_script())
    page = Page(tab, running.process.pid, running.meter, {})
    drawn = await page.paint(job)
    spent = tree_cpu(running.process.pid) - before
    await page.close()
    return drawn, spent


def report(bench: str, ours: float, theirs: float, ratio: float, **more: Any) -> None:
    """Print the line of JSON."""
    conditions = more.pop("conditions", {})
    result = {
        "bench": bench,
        "ours": round(ours, 3),
        "theirs": round(theirs, 3),
        "ratio": round(ratio, 2),
        **more,
        "conditions": {
            **conditions,
            "cpus": os.cpu_count(),
            "load": round(os.getloadavg()[0], 1),
            "machine": platform.machine(),
        },
    }
    print(json.dumps(result))


class Clock:
    """Wall seconds since it was made."""

    def __init__(self) -> None:
        self._start = time.monotonic()

    @property
    def seconds(self) -> float:
        """So far."""
        return time.monotonic() - self._start
