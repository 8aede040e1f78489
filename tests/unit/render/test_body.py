"""Reading a body: never more of it in memory than the contract allows, never for ever."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
from starlette.requests import ClientDisconnect, Request

from watercolour.render import body

GOOD = json.dumps({"sketch": "function setup() {}", "seed": 3}).encode()

Receive = Callable[[], Awaitable[dict[str, Any]]]


def request(receive: Receive, kind: str = "application/json; charset=utf-8") -> Request:
    headers = [(b"content-type", kind.encode())]
    scope = {"type": "http", "method": "POST", "path": "/v1/render", "headers": headers}
    return Request(scope, receive)


def arriving(*chunks: bytes) -> Receive:
    """A body in these pieces; after it the client stays."""
    messages: Iterator[dict[str, Any]] = iter(
        {"type": "http.request", "body": chunk, "more_body": number < len(chunks)}
        for number, chunk in enumerate(chunks, start=1)
    )

    async def receive() -> dict[str, Any]:
        found = next(messages, None)
        if found is None:
            await asyncio.Event().wait()
        assert found is not None
        return found

    return receive


async def refused(receive: Receive, kind: str = "application/json") -> body.Mistake:
    with pytest.raises(body.Malformed) as caught:
        await body.read(request(receive, kind))
    assert str(caught.value)
    return caught.value.mistakes[0]


async def test_a_body_may_come_in_pieces() -> None:
    found = await body.read(request(arriving(GOOD[:5], GOOD[5:])))
    assert (found.sketch, found.seed) == ("function setup() {}", 3)


async def test_a_body_of_the_greatest_length_is_read() -> None:
    padding = b" " * (body.MAX_BODY - len(GOOD))
    assert (await body.read(request(arriving(GOOD, padding)))).seed == 3


async def test_a_longer_body_is_refused_after_it_was_thrown_away() -> None:
    pieces = [GOOD, *[b" " * 2**20] * 5]
    read: list[int] = []
    source = arriving(*pieces)

    async def receive() -> dict[str, Any]:
        message = await source()
        read.append(len(message["body"]))
        return message

    mistake = await refused(receive)
    assert (mistake.field, mistake.problem) == ("body", f"it is longer than {body.MAX_BODY} bytes")
    assert len(read) == len(pieces)


async def test_a_body_without_end_is_not_read_to_its_end() -> None:
    read = 0

    async def receive() -> dict[str, Any]:
        nonlocal read
        read += 2**20
        return {"type": "http.request", "body": b" " * 2**20, "more_body": True}

    assert (await refused(receive)).field == "body"
    assert read <= body.MAX_SWALLOWED + 2**20


async def test_a_body_that_does_not_arrive_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(body, "ARRIVE_SECONDS", 0.01)

    async def receive() -> dict[str, Any]:
        await asyncio.Event().wait()
        raise AssertionError

    assert "did not arrive" in (await refused(receive)).problem


async def test_a_body_of_another_kind_is_refused_unread() -> None:
    async def receive() -> dict[str, Any]:
        raise AssertionError

    mistake = await refused(receive, "text/plain")
    assert (mistake.field, mistake.value) == ("Content-Type", "text/plain")


async def test_who_goes_while_sending_has_gone() -> None:
    async def receive() -> dict[str, Any]:
        return {"type": "http.disconnect"}

    with pytest.raises(ClientDisconnect):
        await body.read(request(receive))


async def test_going_is_noticed_after_the_body() -> None:
    messages = iter([{"type": "http.request", "body": GOOD}, {"type": "http.disconnect"}])

    async def receive() -> dict[str, Any]:
        return next(messages)

    asked = request(receive)
    await body.read(asked)
    await body.gone(asked)
