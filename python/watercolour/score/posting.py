"""POST to one address over connections that stay open.

A step asks its judge 64 times at once, and the last call goes out when the client has sent all the
others. So its own CPU time counts: aiohttp, which parses in C, takes a fifth of httpx's.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import aiohttp

#: Seconds that a connection without a call stays open: longer than from one step to the next.
KEPT_OPEN_SECONDS = 120.0


class PostFailed(Exception):
    """There is no answer: no connection, a broken one, or one that is no HTTP."""


@dataclass(frozen=True)
class Reply:
    """An answer, whatever it says.

    Attributes:
        status: of HTTP.
        headers: found by their names in any case, when they come from the network.
        body: the whole of it.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def text(self) -> str:
        """The body as text, with a mark in place of what is no UTF-8."""
        return self.body.decode("utf-8", errors="replace")


class Poster(Protocol):
    """Who sends a body and brings the reply."""

    async def post(self, data: bytes) -> Reply:
        """The reply to a body.

        Raises:
            PostFailed: there is none.
        """
        ...

    async def aclose(self) -> None:
        """Close the connections."""
        ...


class Connections:
    """Connections to one address, as many as there are calls at once; of one event loop."""

    def __init__(self, url: str, headers: Mapping[str, str]) -> None:
        """Connect to nothing yet.

        Args:
            url: the address.
            headers: sent with every body.
        """
        self._url = url
        self._headers = headers
        self._session: aiohttp.ClientSession | None = None

    async def aclose(self) -> None:
        """Close the connections; another call would open new ones."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def post(self, data: bytes) -> Reply:
        """The whole reply to a body. No redirect is followed, and no time is too long.

        Raises:
            PostFailed: there is none.
        """
        session = self._session or self._opened()
        try:
            async with session.post(self._url, data=data, allow_redirects=False) as reply:
                return Reply(reply.status, reply.headers, await reply.read())
        # A ValueError is a header or an address that HTTP has no place for.
        except (aiohttp.ClientError, ValueError) as error:
            raise PostFailed(f"{type(error).__name__} {error}".strip()) from error

    def _opened(self) -> aiohttp.ClientSession:
        """The session, which must be made where the event loop runs."""
        self._session = aiohttp.ClientSession(
            headers=self._headers,
            timeout=aiohttp.ClientTimeout(total=None),
            cookie_jar=aiohttp.DummyCookieJar(),
            connector=aiohttp.TCPConnector(
                limit=0, keepalive_timeout=KEPT_OPEN_SECONDS, ssl=ssl.create_default_context()
            ),
        )
        return self._session
