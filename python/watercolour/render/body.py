"""Reading a request's body: bounded in bytes and in time, and checked against its model."""

from __future__ import annotations

import asyncio

from pydantic import ValidationError
from starlette.requests import ClientDisconnect, Request

from watercolour.render.mistakes import echo, mistake, mistakes
from watercolour.render.schemas import Mistake, RenderRequest

#: Longest body that is kept, in bytes: a sketch with every character escaped, and the rest.
MAX_BODY = 2 * 2**20

#: Longest body that is read, and thrown away, so that its sender gets to see the refusal.
MAX_SWALLOWED = 32 * 2**20

#: Seconds in which a body has to arrive.
ARRIVE_SECONDS = 30.0


class Malformed(Exception):
    """The request breaks the contract.

    Attributes:
        mistakes: what is wrong with it.
    """

    def __init__(self, *mistakes: Mistake) -> None:
        super().__init__("; ".join(f"{one.field}: {one.problem}" for one in mistakes))
        self.mistakes = mistakes


async def read(request: Request) -> RenderRequest:
    """The body of ``POST /v1/render``.

    Raises:
        Malformed: it is too long, too slow, no JSON in UTF-8, or not what the contract says.
        ClientDisconnect: the client has gone.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise Malformed(
            Mistake(
                field="Content-Type",
                value=echo(kind) or None,
                problem="the body is not declared as JSON",
                remedy="Send the header Content-Type: application/json.",
            )
        )
    try:
        async with asyncio.timeout(ARRIVE_SECONDS):
            raw = await _bytes(request)
    except TimeoutError as error:
        raise Malformed(
            mistake("body", f"it did not arrive within {ARRIVE_SECONDS:g} s")
        ) from error
    try:
        return RenderRequest.model_validate_json(raw)
    except ValidationError as error:
        raise Malformed(*mistakes(error)) from error


async def _bytes(request: Request) -> bytes:
    """The body, never more than :data:`MAX_BODY` of it in memory.

    Raises:
        Malformed: it is longer.
    """
    kept, size = bytearray(), 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > MAX_SWALLOWED:
            break
        if size <= MAX_BODY:
            kept += chunk
    if size > MAX_BODY:
        raise Malformed(
            Mistake(
                field="body",
                value=None,
                problem=f"it is longer than {MAX_BODY} bytes",
                remedy="Send one sketch of at most 200000 characters.",
            )
        )
    return bytes(kept)


async def gone(request: Request) -> None:
    """Return once the client has hung up. Only after its body has been read."""
    try:
        while (await request.receive())["type"] != "http.disconnect":
            pass
    except ClientDisconnect:
        pass
