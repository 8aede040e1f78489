"""The client against a scripted renderer: HTTP in, HTTP out."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest

from watercolour.api.errors import InfrastructureError
from watercolour.api.reasons import Reason, ViolationCode
from watercolour.render.client import NotTaken, RenderClient, SketchFault

PAINTED = {
    "painting": base64.b64encode(b"png").decode(),
    "paint_fraction": 0.2,
    "shapes": 3,
    "js_errors": ["draw: oops"],
    "timings": {},
    "cpu_seconds": 0.4,
    "rasterizer": "test",
    "versions": {},
    "cached": False,
}
FAULT = {"violation": {"code": "render_failed", "message": "no", "line": 3, "column": 1}}


def trouble(reason: str) -> dict[str, Any]:
    return {"reason": reason, "detail": "away"}


@contextmanager
def renderer(*answers: tuple[int, Any]) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Gives the answers in turn, the last one for ever; yields the URL and what was asked."""
    asked: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            status, body = answers[min(len(asked), len(answers)) - 1]
            text = body if isinstance(body, bytes) else json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, format: str, *args: object) -> None:
            del format, args

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", asked
    finally:
        server.shutdown()
        server.server_close()


async def test_a_painting_comes_back_decoded() -> None:
    with renderer((200, PAINTED)) as (url, asked):
        async with RenderClient([url]) as client:
            painted = await client.render("x", seed=7)
    assert painted.painting == b"png"
    assert painted.js_errors == ("draw: oops",)
    assert (asked[0]["sketch"], asked[0]["seed"]) == ("x", 7)


async def test_a_busy_renderer_is_asked_again() -> None:
    with renderer((429, {}), (429, {}), (200, PAINTED)) as (url, asked):
        async with RenderClient([url]) as client:
            assert (await client.render("x", seed=1)).shapes == 3
    assert len(asked) == 3


async def test_a_renderer_that_stays_busy_is_unavailable() -> None:
    with renderer((429, {})) as (url, _):
        async with RenderClient([url], wait_s=0.2) as client:
            with pytest.raises(InfrastructureError) as caught:
                await client.render("x", seed=1)
    assert caught.value.reason is Reason.RENDERER_UNAVAILABLE


async def test_a_faulty_sketch_is_not_tried_again() -> None:
    with renderer((422, FAULT)) as (url, asked):
        async with RenderClient([url]) as client:
            with pytest.raises(SketchFault) as caught:
                await client.render("x", seed=1)
    assert caught.value.violation.code is ViolationCode.RENDER_FAILED
    assert caught.value.violation.line == 3
    assert len(asked) == 1


async def test_an_infrastructure_failure_is_tried_once_more_elsewhere() -> None:
    with (
        renderer((503, trouble("BrowserCrashed"))) as (first, asked_first),
        renderer((200, PAINTED)) as (second, asked_second),
    ):
        async with RenderClient([first, second]) as client:
            assert (await client.render("x", seed=1)).shapes == 3
    assert (len(asked_first), len(asked_second)) == (1, 1)


@pytest.mark.parametrize(
    ("answers", "reason", "tries"),
    [
        ([(503, trouble("RenderDeadline"))], Reason.RENDER_DEADLINE, 2),
        ([(503, trouble("BrowserCrashed"))], Reason.BROWSER_CRASHED, 2),
        ([(503, trouble("SandboxUnavailable"))], Reason.SANDBOX_UNAVAILABLE, 1),
        ([(400, trouble("MalformedRequest"))], Reason.INTERNAL_ERROR, 1),
        ([(502, b"<html>bad gateway</html>")], Reason.RENDERER_UNAVAILABLE, 2),
    ],
)
async def test_a_failure_keeps_its_reason(
    answers: list[tuple[int, Any]], reason: Reason, tries: int
) -> None:
    with renderer(*answers) as (url, asked):
        async with RenderClient([url]) as client:
            with pytest.raises(InfrastructureError) as caught:
                await client.render("x", seed=1)
    assert caught.value.reason is reason
    assert len(asked) == tries


async def test_an_absent_renderer_is_unavailable() -> None:
    with renderer((200, PAINTED)) as (url, _):
        pass
    async with RenderClient([url]) as client:
        with pytest.raises(InfrastructureError) as caught:
            await client.render("x", seed=1)
    assert caught.value.reason is Reason.RENDERER_UNAVAILABLE


async def test_a_job_that_nobody_took_is_told_apart() -> None:
    drains = {**trouble("RendererUnavailable"), "taken": False}
    with renderer((503, drains)) as (url, asked):
        async with RenderClient([url]) as client:
            with pytest.raises(NotTaken):
                await client.render("x", seed=1)
    assert len(asked) == 1
    async with RenderClient([url]) as client:
        with pytest.raises(NotTaken):
            await client.render("x", seed=1)


async def test_a_job_that_one_renderer_does_not_take_goes_to_another() -> None:
    drains = {**trouble("RendererUnavailable"), "taken": False}
    with renderer((503, drains)) as (first, _), renderer((200, PAINTED)) as (second, asked):
        async with RenderClient([first, second]) as client:
            assert (await client.render("x", seed=1)).shapes == 3
    assert len(asked) == 1
