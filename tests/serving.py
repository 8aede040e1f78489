"""A server of ours for as long as a block runs, and HTTP by the bytes for servers that are not."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import httpx
import uvicorn
from fastapi import FastAPI

from watercolour import service


@contextmanager
def listening(app: FastAPI, *, grace_seconds: int | None = None) -> Generator[str]:
    """The application in a thread; its URL, once it answers.

    Args:
        app: has ``/livez``.
        grace_seconds: given to connections that are open at the end; None waits for them.
    """
    bound = service.listen("127.0.0.1", 0)
    bound.listen()  # Whoever connects now waits until the server accepts.
    config = uvicorn.Config(
        app, ws="websockets-sansio", log_config=None, timeout_graceful_shutdown=grace_seconds
    )
    server = uvicorn.Server(config)
    with ThreadPoolExecutor(1) as thread:
        serving = thread.submit(server.run, [bound])
        try:
            url = f"http://127.0.0.1:{bound.getsockname()[1]}"
            httpx.get(f"{url}/livez", timeout=60).raise_for_status()
            yield url
        finally:
            server.should_exit = True
            serving.result()
            bound.close()


async def request(reader: asyncio.StreamReader) -> bytes:
    """The next request of a connection, head and body.

    Raises:
        IncompleteReadError, ConnectionError: there is none, or no whole one.
    """
    head = await reader.readuntil(b"\r\n\r\n")
    length = next(
        int(line.split(b":")[1])
        for line in head.lower().split(b"\r\n")
        if line.startswith(b"content-length")
    )
    return head + await reader.readexactly(length)


def response(status: bytes, body: bytes, more: bytes = b"") -> bytes:
    """An HTTP response; ``more`` are whole header lines."""
    return b"HTTP/1.1 %b\r\nContent-Length: %d\r\n%b\r\n%b" % (status, len(body), more, body)
