"""Rate a pool in headless Chromium as a table of opinions says, and take pictures of the pages.

Usage: ``.venv-render/bin/python scripts/rate_camera.py URL OPINIONS.json FOLDER``, as the browser
driver is there. The table has a number a painting, by its name: the more, the better.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

from pyppeteer import launch  # pyright: ignore[reportMissingImports]

READY = "document.getElementById('page').dataset.ready === 'true'"
NAME = "(id) => document.getElementById(id).getAttribute('src').split('/').pop().split('.')[0]"
OVER = "!document.getElementById('done').hidden"

#: Page in pixels; ratings before the first picture, comparisons before that of the pairs.
WIDTH, HEIGHT = 1180, 820
RATED, COMPARED = 10, 14


async def key(page: Any, name: str) -> None:
    """Press a key and wait until the page shows what comes next."""
    await page.keyboard.press(name)
    await page.waitForFunction(READY, timeout=60_000)


async def picture(page: Any, path: Path) -> None:
    """A picture of the page at rest, without the word on the last act."""
    await asyncio.sleep(0.6)
    await page.evaluate("document.getElementById('saved').textContent = ''")
    await page.screenshot(path=str(path))


async def visit(page: Any, url: str, opinions: dict[str, float], folder: Path) -> None:
    """One by one, the agreement, then in pairs."""
    order = sorted(opinions, key=lambda name: opinions[name])
    await page.setViewport({"width": WIDTH, "height": HEIGHT})
    await page.goto(url)
    await page.waitForFunction(READY, timeout=60_000)
    for number in range(len(order)):
        if number == RATED:
            await picture(page, folder / "rate.png")
        if await page.evaluate(OVER):
            break
        name = await page.evaluate(NAME, "painting")
        await key(page, str(1 + 3 * order.index(name) // len(order)))
    await page.click("#agreement button")
    await picture(page, folder / "agreement.png")
    await page.click("#differ form button")
    await page.click('[data-mode="pairs"]')
    await page.waitForFunction(READY, timeout=60_000)
    for _ in range(COMPARED):
        left, right = [await page.evaluate(NAME, side) for side in ("left", "right")]
        await key(page, "ArrowLeft" if opinions[left] > opinions[right] else "ArrowRight")
    await picture(page, folder / "pairs.png")


async def main(url: str, opinions: dict[str, float], folder: Path) -> None:
    """Open the browser, take the pictures, close it."""
    root = ["--no-sandbox"] if os.geteuid() == 0 else []
    browser = await launch(
        executablePath="/usr/bin/chromium", headless=True, args=[*root, "--disable-gpu"]
    )
    try:
        await visit(await browser.newPage(), url, opinions, folder)
    finally:
        await browser.close()


table: dict[str, float] = json.loads(Path(sys.argv[2]).read_text(encoding="utf-8"))
asyncio.run(main(sys.argv[1], table, Path(sys.argv[3])))
