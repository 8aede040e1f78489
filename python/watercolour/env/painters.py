"""A client for each renderer, while renderers come and go."""

from __future__ import annotations

import asyncio

from watercolour.render.client import RenderClient


class Painters(dict[str, RenderClient]):
    """A client for each renderer, made when it is first asked for."""

    def __init__(self) -> None:
        super().__init__()
        self._closing: set[asyncio.Task[None]] = set()

    def __missing__(self, url: str) -> RenderClient:
        client = self[url] = RenderClient([url])
        return client

    def left(self, url: str) -> None:
        """A renderer is there no more."""
        if (client := self.pop(url, None)) is not None:
            task = asyncio.create_task(client.aclose())
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)

    async def aclose(self) -> None:
        """Close all connections."""
        for url in list(self):
            self.left(url)
        await asyncio.gather(*self._closing, return_exceptions=True)
