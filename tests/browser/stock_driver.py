"""Runs in the renderer's environment: paints sketches patched and stock, prints how they differ.

Standard input: a JSON list of sketches. Standard output: one JSON object a sketch, with the
largest difference of a channel, the PSNR in decibels (null when equal), and whether a new page
painted the same bytes as a page that had painted before.
"""

from __future__ import annotations

import asyncio
import json
import sys

import numpy as np

from watercolour.render import browser, chromium, pages, paint
from watercolour.render.page import Page
from watercolour.render.result import Job


async def pixels(page: Page, sketch: str) -> paint.Pixels:
    """RGB of one painting."""
    drawn = await page.paint(Job(sketch, 7, deadline_s=120))
    return paint.from_framebuffer(drawn.data, drawn.width, drawn.height)


async def main() -> None:
    """Paint everything three times: patched and warm, patched on a new page, stock."""
    sketches: list[str] = json.load(sys.stdin)
    launch = chromium.Launch()
    async with pages.served() as base, browser.opened(launch, base) as running:
        page = await running.open_page()
        warm = [await pixels(page, sketch) for sketch in sketches]
        fresh = [await pixels(await running.open_page(), sketch) for sketch in sketches]
    async with pages.served(stock=True) as base, browser.opened(launch, base) as running:
        page = await running.open_page()
        stock = [await pixels(page, sketch) for sketch in sketches]
    for ours, again, theirs in zip(warm, fresh, stock, strict=True):
        difference = np.abs(ours.astype(int) - theirs.astype(int))
        error = float((difference**2).mean())
        print(
            json.dumps(
                {
                    "largest": int(difference.max()),
                    "psnr": 10 * float(np.log10(255**2 / error)) if error else None,
                    "fresh_page_equal": bool((ours == again).all()),
                }
            )
        )


if __name__ == "__main__":
    asyncio.run(main())
