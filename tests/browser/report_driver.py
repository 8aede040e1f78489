"""Open a report in headless Chromium, use it, and print what was seen as JSON.

Usage: ``.venv-render/bin/python report_driver.py REPORT``; it runs where the browser driver is.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

from pyppeteer import launch  # pyright: ignore[reportMissingImports]

SHOWN = """() => {
    const images = [...document.querySelectorAll('#all img')];
    return {
        images: images.length,
        decoded: images.filter((image) => image.complete && image.naturalWidth).length,
        overflow: document.documentElement.scrollWidth - innerWidth,
        tip: !document.getElementById('tip').hidden,
    };
}"""
MIDDLE = """() => {
    const box = document.querySelector('.chart .hover').getBoundingClientRect();
    return [box.x + box.width / 2, box.y + box.height / 2];
}"""
PANEL = """() => {
    const panel = document.getElementById('panel');
    return {open: panel.open, text: panel.innerText, marked: panel.querySelectorAll('.bad').length,
            lines: panel.querySelectorAll('pre .l').length};
}"""


async def visit(page: Any, url: str) -> dict[str, Any]:
    seen: dict[str, Any] = {}
    await page.goto(url)
    seen["start"] = await page.evaluate(SHOWN)
    await page.evaluate(
        "document.querySelector('.chart .hover').scrollIntoView({behavior: 'instant'})"
    )
    box = await page.evaluate(MIDDLE)
    await page.mouse.move(*box)
    seen["tip"] = await page.evaluate("document.getElementById('tip').textContent")
    await page.evaluate("document.querySelector('#all a.tile').click()")
    seen["first"] = await page.evaluate(PANEL)
    await page.keyboard.press("ArrowRight")
    seen["second"] = await page.evaluate(PANEL)
    await page.keyboard.press("Escape")
    seen["closed"] = await page.evaluate(PANEL)
    await page.evaluate("document.querySelectorAll('.chips button')[1].click()")
    seen["filtered"] = await page.evaluate(
        "document.querySelectorAll('#all .tile:not([hidden])').length"
    )
    await page.evaluate("document.querySelector('#all .tile:not([hidden]).refused').click()")
    seen["refused"] = await page.evaluate(PANEL)
    await page.setViewport({"width": 390, "height": 844})
    seen["phone"] = await page.evaluate(SHOWN)
    return seen


async def main(url: str) -> None:
    root = ["--no-sandbox"] if os.geteuid() == 0 else []
    browser = await launch(
        executablePath="/usr/bin/chromium", headless=True, args=[*root, "--disable-gpu"]
    )
    errors: list[str] = []
    requests: list[str] = []
    try:
        page = await browser.newPage()
        await page.setViewport({"width": 1280, "height": 900})
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", lambda line: errors.append(line.text))
        page.on("request", lambda request: requests.append(request.url[:60]))
        seen = await visit(page, url)
    finally:
        await browser.close()
    foreign = [url for url in requests if not url.startswith(("file:", "data:"))]
    print(json.dumps({**seen, "errors": errors, "foreign": foreign}))


asyncio.run(main(Path(sys.argv[1]).resolve().as_uri()))
