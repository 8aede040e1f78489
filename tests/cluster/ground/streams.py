"""Reading a watch."""

from __future__ import annotations

from collections.abc import AsyncIterator

import aiohttp


async def lines(answer: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    """The lines of a watch, of any length: aiohttp's own line reader refuses long ones."""
    rest = b""
    async for chunk in answer.content.iter_any():
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            yield line
