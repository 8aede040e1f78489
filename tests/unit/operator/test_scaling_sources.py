"""What pods are asked, on real sockets; and what counts as no answer."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from watercolour.api.reasons import Reason
from watercolour_operator.names import Component
from watercolour_operator.observed import Demand, Load, Pod
from watercolour_operator.scaling import answers, sources

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def pod(component: Component = Component.RENDERERS, ip: str | None = "10.0.0.9") -> Pod:
    return Pod("one", "uid", component, "Running", datetime(2026, 1, 1, tzinfo=UTC), ip=ip)


@asynccontextmanager
async def asking(answer: Handler, seconds: float = 30) -> AsyncGenerator[sources.Http]:
    """A source whose every pod is one server, that answers as told."""
    app = web.Application()
    app.router.add_route("*", "/{tail:.*}", answer)
    runner = web.AppRunner(app, shutdown_timeout=0.01)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    limits = aiohttp.ClientTimeout(total=seconds)
    try:
        async with aiohttp.ClientSession(timeout=limits) as session:
            template = f"http://127.0.0.1:{port}/{{namespace}}/{{run}}/{{component}}/{{pod}}"
            yield sources.Http(sources.directly(session, template))
    finally:
        await runner.cleanup()


def saying(body: Any) -> Handler:
    async def answer(request: web.Request) -> web.StreamResponse:
        return web.json_response(body)

    return answer


async def test_each_part_is_asked_at_its_own_path() -> None:
    asked: list[str] = []

    async def answer(request: web.Request) -> web.StreamResponse:
        asked.append(f"{request.method} {request.path}")
        draining = request.method == "POST"
        return web.json_response(
            {"slots": 2, "busy": 1, "draining": draining, "queued": 3, "inflight": 1}
            | {"announced": 4, "step": 7, "steps": 9, "more": "x", "lastCheckpointStep": 5}
        )

    async with asking(answer) as source:
        assert await source.load("ns", "run", pod()) == Load(2, 1, False)
        assert await source.drain("ns", "run", pod())
        assert await source.undrain("ns", "run", pod())
        assert await source.demand("ns", "run", pod(Component.ENV)) == Demand(3, 1, 4)
        progress = await source.progress("ns", "run", pod(Component.TRAINER))
    assert progress is not None
    assert (progress.step, progress.steps) == (7, 9)
    assert progress.model_extra == {"lastCheckpointStep": 5}
    assert asked == [
        "GET /ns/run/renderers/one/v1/load",
        "POST /ns/run/renderers/one/v1/drain",
        "DELETE /ns/run/renderers/one/v1/drain",
        "GET /ns/run/env/one/v1/demand",
        "GET /ns/run/trainer/one/progress",
    ]


@pytest.mark.parametrize("status", [204, 301, 404, 429, 500, 503])
async def test_another_status_than_200_is_no_answer(status: int) -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        good = json.dumps({"queued": 1, "inflight": 0, "announced": 0})
        return web.Response(text=good if status != 204 else None, status=status)

    async with asking(answer) as source:
        assert await source.demand("ns", "run", pod(Component.ENV)) is None


async def test_no_redirect_is_followed() -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        if "elsewhere" in request.path:
            return web.json_response({"slots": 1, "busy": 0, "draining": False})
        return web.Response(status=302, headers={"Location": "/elsewhere"})

    async with asking(answer) as source:
        assert await source.load("ns", "run", pod()) is None


async def test_a_silent_pod_is_left_in_time() -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        await asyncio.Event().wait()
        raise AssertionError

    async with asking(answer, seconds=0.2) as source:
        assert await source.load("ns", "run", pod()) is None


async def test_an_endless_answer_is_cut_off() -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        try:
            while True:
                await response.write(b" " * 4096)
        except ConnectionResetError:
            return response

    async with asking(answer) as source:
        assert await source.load("ns", "run", pod()) is None


async def test_an_answer_in_many_pieces_is_read_whole() -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for letter in json.dumps({"slots": 1, "busy": 0, "draining": False}):
            await response.write(letter.encode())
            await asyncio.sleep(0)
        return response

    async with asking(answer) as source:
        assert await source.load("ns", "run", pod()) == Load(1, 0, False)


async def test_a_pod_without_an_address_is_not_asked() -> None:
    async with aiohttp.ClientSession() as session:
        source = sources.Http(sources.directly(session))
        assert await source.load("ns", "run", pod(ip=None)) is None


async def test_a_drain_that_is_not_confirmed_has_not_happened() -> None:
    async with asking(saying({"slots": 1, "busy": 0, "draining": False})) as source:
        assert not await source.drain("ns", "run", pod())
        assert await source.undrain("ns", "run", pod())


@pytest.mark.parametrize(
    "said",
    [
        {},
        {"queued": 1, "inflight": 1},
        {"queued": -1, "inflight": 0, "announced": 0},
        {"queued": True, "inflight": 0, "announced": 0},
        {"queued": 1.5, "inflight": 0, "announced": 0},
        {"queued": "1", "inflight": 0, "announced": 0},
        {"queued": None, "inflight": 0, "announced": 0},
    ],
)
def test_a_queue_of_another_shape_is_no_answer(said: dict[str, Any]) -> None:
    assert answers.demand(said) is None


@pytest.mark.parametrize(
    ("said", "due"),
    [(17.5, 17.5), (3, 3.0), (-1, 0.0), (True, 0.0), ("9", 0.0), (None, 0.0), (10**400, 0.0)],
)
def test_renders_of_which_it_is_not_told_when_they_come_may_come_at_once(
    said: Any, due: float
) -> None:
    found = answers.demand({"queued": 0, "inflight": 0, "announced": 4, "due_seconds": said})
    assert found == Demand(0, 0, 4, due_seconds=due)


def test_waiting_paintings_are_demand_for_the_scorer() -> None:
    said = {"queued": 0, "inflight": 0, "announced": 0, "scorer": {"waiting": 3}}
    assert answers.demand(said) == Demand(0, 0, 0, scoring=3)
    assert answers.demand(said | {"scorer": "away"}) == Demand(0, 0, 0)


def test_a_number_beyond_belief_is_cut() -> None:
    said = {"queued": 10**30, "inflight": 0, "announced": 0}
    assert answers.demand(said) == Demand(answers.MOST_RENDERS, 0, 0)


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"3", b"\xff", b'{"a": ' + b"[" * 20000])
def test_what_is_no_object_is_no_answer(body: bytes) -> None:
    assert answers.read(body) is None


def test_not_a_number_is_unknown() -> None:
    read = answers.read(b'{"steps": 3, "reward": {"mean": NaN, "best": Infinity}}')
    progress = answers.progress(read)
    assert progress is not None
    assert (progress.reward.mean, progress.reward.best) == (None, None)


def test_progress_with_a_wrong_field_is_no_answer() -> None:
    assert answers.progress({"step": -1}) is None


def test_a_renderer_says_why_it_refuses() -> None:
    said = {"slots": 1, "busy": 0, "draining": False, "refuses": "NetworkPolicyNotEnforced"}
    assert answers.load(said) == Load(1, 0, False, Reason.NETWORK_POLICY_NOT_ENFORCED)
    assert answers.load(said | {"refuses": "Whatever"}) == Load(1, 0, False)
