"""Answers that sockets still wait for, so that a server can end without breaking its word."""

from __future__ import annotations

import asyncio

from starlette.types import ASGIApp, Message, Receive, Scope, Send


class Owed:
    """Sockets whose last message has not been answered; the protocol has one answer a message."""

    def __init__(self) -> None:
        self._sockets: set[object] = set()
        self._none = asyncio.Event()
        self._none.set()

    def took(self, socket: object) -> None:
        """A message came."""
        self._sockets.add(socket)
        self._none.clear()

    def answered(self, socket: object) -> None:
        """Its answer was sent, or nobody waits for it any more."""
        self._sockets.discard(socket)
        if not self._sockets:
            self._none.set()

    async def none(self) -> None:
        """Wait until nothing is owed."""
        await self._none.wait()


class Counted:
    """An ASGI application whose sockets are counted as owed."""

    def __init__(self, app: ASGIApp, owed: Owed) -> None:
        self._app = app
        self._owed = owed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        if scope["type"] != "websocket":
            await self._app(scope, receive, send)
            return
        socket = object()

        async def counted_receive() -> Message:
            message = await receive()
            if message["type"] == "websocket.receive":
                self._owed.took(socket)
            return message

        async def counted_send(message: Message) -> None:
            await send(message)
            if message["type"] == "websocket.send":
                self._owed.answered(socket)

        try:
            await self._app(scope, counted_receive, counted_send)
        finally:
            self._owed.answered(socket)
