"""Renderers on real sockets whose every answer the test gives by hand."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

#: Status, body and headers of an answer; None breaks the connection.
Answer = tuple[int, Any, dict[str, str]] | None

PAINTED = {
    "painting": base64.b64encode(b"png").decode(),
    "paint_fraction": 0.2,
    "shapes": 3,
    "js_errors": ["draw: oops"],
    "timings": {"draw": 0.1},
    "cpu_seconds": 0.4,
    "rasterizer": "test",
    "versions": {},
    "cached": False,
}
VIOLATION = {"code": "render_failed", "message": "no", "line": 3, "column": 1}


def painted() -> Answer:
    return 200, PAINTED, {}


def fault() -> Answer:
    return 422, {"violation": VIOLATION, "js_errors": ["boom"]}, {}


def trouble(reason: str = "BrowserCrashed") -> Answer:
    return 503, {"reason": reason, "detail": "away"}, {}


def drains() -> Answer:
    return 503, {"reason": "RendererUnavailable", "detail": "no work", "taken": False}, {}


def busy() -> Answer:
    return 429, {"reason": "Busy", "detail": "all paint"}, {"Retry-After": "1"}


def malformed() -> Answer:
    return 400, {"reason": "MalformedRequest", "detail": "seed"}, {}


@dataclass(eq=False)
class Asked:
    """A job that a renderer has and has not answered."""

    body: dict[str, Any]
    sketch: str
    answer: asyncio.Future[Answer]


@dataclass(eq=False)
class Stage:
    """One renderer.

    Attributes:
        slots, draining: what it says of itself.
        unready: the reason for which it takes no work; None while it does.
        painting: jobs that it has.
        asked: the sketches of all jobs that it was ever sent, in order.
        looks: how often it was asked whether it is ready.
        most: the most jobs that it had at once, without those that were forgotten.
        forgotten: sketches that nobody waits for any more.
        play: gives an answer as soon as the job comes; None leaves it to the test.
    """

    slots: int = 1
    draining: bool = False
    unready: str | None = None
    play: Callable[[Asked], Answer] | None = None
    url: str = ""
    painting: list[Asked] = field(default_factory=list[Asked])
    asked: list[str] = field(default_factory=list[str])
    looks: int = 0
    most: int = 0
    forgotten: set[str] = field(default_factory=set[str])
    _tasks: set[asyncio.Task[None]] = field(default_factory=set[asyncio.Task[None]])
    _server: asyncio.Server | None = None

    async def open(self, port: int = 0) -> None:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", port)
        host, port = self._server.sockets[0].getsockname()[:2]
        self.url = f"http://{host}:{port}"

    async def close(self) -> None:
        """Die: nobody listens, and every connection is gone."""
        if self._server is None:
            return
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self.painting.clear()
        self._server = None

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._server is None or not self._server.is_serving():
            # It came in the moment of the death, before anybody could know of it.
            writer.transport.abort()
            return
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            while await self._exchange(reader, writer):
                pass
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            self._tasks.discard(task)
            writer.transport.abort()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """One request and its answer; whether another may follow."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        verb, path, _ = head.split(" ", 2)
        lengths = [line for line in head.lower().split("\r\n") if line.startswith("content-length")]
        body = await reader.readexactly(int(lengths[0].split(":")[1])) if lengths else b""
        if verb == "POST":
            answer = await self._paint(json.loads(body), reader)
        else:
            answer = self._told(path)
        if answer is None:
            return False
        status, said, headers = answer
        text = said if isinstance(said, bytes) else json.dumps(said).encode()
        lines = [f"HTTP/1.1 {status} x", f"Content-Length: {len(text)}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        writer.write("\r\n".join([*lines, "", ""]).encode() + text)
        await writer.drain()
        return True

    def _told(self, path: str) -> Answer:
        assert path == "/readyz"
        self.looks += 1
        if self.unready is not None:
            return 503, {"reason": self.unready, "detail": f"unready: {self.unready}"}, {}
        return 200, {"slots": self.slots, "draining": self.draining}, {}

    async def _paint(self, body: dict[str, Any], reader: asyncio.StreamReader) -> Answer:
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        asked = Asked(body, body["sketch"], answer)
        self.asked.append(asked.sketch)
        if self.play is not None:
            return self.play(asked)
        self.painting.append(asked)
        wanted = [one for one in self.painting if one.sketch not in self.forgotten]
        self.most = max(self.most, len(wanted))
        hung_up = asyncio.ensure_future(reader.read(1))
        try:
            await asyncio.wait({answer, hung_up}, return_when=asyncio.FIRST_COMPLETED)
            return answer.result() if answer.done() else None
        finally:
            hung_up.cancel()
            await asyncio.gather(hung_up, return_exceptions=True)
            with suppress(ValueError):
                self.painting.remove(asked)


def reply(stage: Stage, answer: Answer, sketch: str | None = None) -> None:
    """Answer a job that the renderer has, the oldest or the one with that sketch."""
    asked = next(one for one in stage.painting if sketch is None or one.sketch == sketch)
    stage.painting.remove(asked)
    asked.answer.set_result(answer)


@asynccontextmanager
async def staged(*stages: Stage) -> AsyncGenerator[None]:
    """All of them, listening."""
    try:
        for stage in stages:
            await stage.open()
        yield
    finally:
        for stage in stages:
            await stage.close()


async def until(true: Callable[[], object]) -> None:
    """Let others run until something is true."""
    async with asyncio.timeout(20):
        while not true():  # noqa: ASYNC110 - what changes does so in other tasks and tells nobody
            await asyncio.sleep(0.001)
