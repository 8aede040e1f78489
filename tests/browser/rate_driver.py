"""Rate a pool in headless Chromium with real key presses; print what was seen as JSON.

Usage: ``.venv-render/bin/python rate_driver.py URL FOLDER [several]``; pictures of the pages go to
FOLDER. With ``several`` others have rated the pool before. It runs where the browser driver is.
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
SHOWN = """() => ({
    painting: document.getElementById('one').hidden ? null
        : document.getElementById('painting').getAttribute('src'),
    side: document.getElementById('painting').getBoundingClientRect().width,
    pair: document.getElementById('two').hidden ? null
        : ['left', 'right'].map((id) => document.getElementById(id).getAttribute('src')),
    count: document.getElementById('count').textContent,
    saved: document.getElementById('saved').textContent,
    recent: document.querySelectorAll('#recent img').length,
    ladder: document.getElementById('ladder').hidden ? 0
        : document.querySelectorAll('#ladder img').length,
    pressed: document.querySelector('.choice[aria-pressed="true"]')?.dataset.said ?? null,
    done: document.getElementById('done').hidden ? null : document.getElementById('done').innerText,
    agreement: document.getElementById('agreement').hidden ? null
        : document.getElementById('agreement').innerText,
    trouble: document.getElementById('trouble').hidden ? null
        : document.getElementById('trouble').innerText,
    theme: document.documentElement.dataset.theme,
    paper: getComputedStyle(document.body).backgroundColor,
    wide: document.documentElement.scrollWidth - innerWidth,
    tall: document.documentElement.scrollHeight - innerHeight,
})"""
DIFFER = """() => ({
    open: document.getElementById('differ').open,
    words: document.getElementById('differ-said').innerText,
    alpha: document.querySelector('#scale b').textContent,
    tiles: Object.fromEntries([...document.querySelectorAll('#disputed button')].map((tile) => [
        tile.querySelector('img').getAttribute('src'), tile.getAttribute('aria-label')])),
    wide: document.getElementById('differ').scrollWidth - innerWidth,
})"""
UNNAMED = """() => [...document.querySelectorAll('button, img, input')].filter((element) =>
    element.offsetParent && !(element.innerText?.trim() || element.getAttribute('aria-label')
        || element.getAttribute('alt') || element.querySelector('img[alt]:not([alt=""])')
        || element.closest('label'))).length"""


class Visit:
    """A page, and how it is used."""

    def __init__(self, page: Any, folder: Path) -> None:
        self.page = page
        self.folder = folder

    async def ready(self) -> dict[str, Any]:
        await self.page.waitForFunction(READY, timeout=60_000)
        return await self.page.evaluate(SHOWN)

    async def press(self, key: str) -> dict[str, Any]:
        await self.page.keyboard.press(key)
        return await self.ready()

    async def click(self, selector: str) -> dict[str, Any]:
        await self.page.click(selector)
        return await self.ready()

    async def picture(self, name: str) -> None:
        await self.page.screenshot(path=str(self.folder / f"{name}.png"))

    async def size(self, width: int, height: int) -> dict[str, Any]:
        await self.page.setViewport({"width": width, "height": height})
        return await self.ready()


async def visit(page: Any, url: str, folder: Path) -> dict[str, Any]:
    seen: dict[str, Any] = {}
    at = Visit(page, folder)
    await page.setViewport({"width": 1280, "height": 860})
    await page.goto(url)
    seen["address"] = page.url
    seen["start"] = await at.ready()
    seen["keys"] = [await at.press(key) for key in ("3", "1", "2")]
    await at.picture("one")
    seen["undone"] = await at.press("z")
    seen["undone twice"] = await at.press("z")
    seen["again"] = [await at.press(key) for key in ("3", "2")]
    seen["later"] = await at.press("s")
    await page.reload()
    seen["reloaded"] = await at.ready()
    # A held key repeats; one painting must not take the rating of the one before it.
    await page.keyboard.down("1")
    await at.ready()
    await page.keyboard.down("1")
    await page.keyboard.up("1")
    seen["held"] = await at.ready()
    seen["aside"] = await at.press("x")
    seen["unnamed"] = await page.evaluate(UNNAMED)
    await page.click("#theme")
    seen["dark"] = await at.ready()
    await at.picture("dark")
    await page.click("#theme")
    await page.keyboard.press("?")
    seen["help"] = await page.evaluate("document.getElementById('keys').open")
    await at.press("3")
    await page.keyboard.press("Escape")
    seen["after help"] = await at.ready()
    seen["phone"] = await at.size(390, 844)
    await at.picture("phone")
    await at.size(1280, 860)
    for _ in range(40):
        if (await at.press("2"))["done"]:
            break
    seen["all"] = await at.ready()
    await at.picture("done")
    seen["pairs"] = await at.click('[data-mode="pairs"]')
    seen["compared"] = [await at.press(key) for key in ("ArrowLeft", "ArrowRight", "ArrowDown")]
    await at.picture("pairs")
    seen["pair undone"] = await at.press("z")
    seen["phone pairs"] = await at.size(390, 844)
    await at.picture("phone-pairs")
    await at.size(1280, 860)
    await page.evaluate("() => { window.fetch = () => Promise.reject(new Error('gone')); }")
    await page.keyboard.press("ArrowLeft")
    await page.waitForFunction("!document.getElementById('trouble').hidden", timeout=60_000)
    seen["gone"] = await page.evaluate(SHOWN)
    return seen


async def several(page: Any, url: str, folder: Path) -> dict[str, Any]:
    """Five ratings beside those of others, the dialog on who differs, and one rating again."""
    seen: dict[str, Any] = {}
    at = Visit(page, folder)
    await page.setViewport({"width": 1280, "height": 860})
    await page.goto(url)
    seen["start"] = await at.ready()
    seen["rated"] = [seen["start"], *[await at.press("1") for _ in range(5)]]
    seen["phone"] = await at.size(390, 844)
    await page.click("#agreement button")
    seen["phone differ"] = await page.evaluate(DIFFER)
    await at.picture("phone-agreement")
    await page.keyboard.press("Escape")
    await at.size(1280, 860)
    await page.click("#agreement button")
    seen["differ"] = await page.evaluate(DIFFER)
    await at.picture("agreement")
    await page.keyboard.press("3")
    seen["key under it"] = await page.evaluate(DIFFER)
    await page.click("#disputed button")
    seen["again"] = await at.ready()
    seen["closed"] = await page.evaluate(DIFFER)
    seen["settled"] = await at.press("3")
    await at.click('[data-mode="pairs"]')
    seen["pairs"] = await at.press("ArrowLeft")
    return seen


async def main(url: str, folder: Path, visit: Any) -> None:
    root = ["--no-sandbox"] if os.geteuid() == 0 else []
    browser = await launch(
        executablePath="/usr/bin/chromium", headless=True, args=[*root, "--disable-gpu"]
    )
    errors: list[str] = []
    requests: list[str] = []
    try:
        page = await browser.newPage()
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", lambda line: errors.append(line.text))
        page.on("request", lambda request: requests.append(request.url))
        seen = await visit(page, url, folder)
    finally:
        await browser.close()
    print(json.dumps({**seen, "errors": errors, "requests": sorted(set(requests))}))


asyncio.run(main(sys.argv[1], Path(sys.argv[2]), several if len(sys.argv) > 3 else visit))
