"""One call of a renderer: HTTP in, HTTP out."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.render import stage
from tests.unit.render.stage import Answer, Stage, staged

from watercolour.api.errors import InfrastructureError
from watercolour.api.reasons import Reason, ViolationCode
from watercolour.render import client
from watercolour.render.client import Busy, NotTaken, NotUnderstood
from watercolour.render.result import Job, Painted, SketchFault


async def ask(answer: Answer) -> Painted:
    renderer = Stage(play=lambda asked: answer)
    async with staged(renderer), client.http_client() as http:
        return await client.ask(http, renderer.url, Job("x", 1))


async def test_a_painting_comes_back_decoded() -> None:
    painted = await ask(stage.painted())
    assert painted.painting == b"png"
    assert painted.js_errors == ("draw: oops",)


async def test_a_renderer_is_told_what_is_wanted_and_nothing_else() -> None:
    bodies: list[dict[str, Any]] = []

    def play(asked: stage.Asked) -> Answer:
        bodies.append(asked.body)
        return stage.painted()

    renderer = Stage(play=play)
    async with staged(renderer), client.http_client() as http:
        await client.ask(http, renderer.url, Job("x", 0))
        await client.ask(http, renderer.url, Job("x", 7, size=64), fresh=True)
    plain = {"sketch": "x", "seed": 0, "deadline_s": 60.0, "cpu_budget_s": 20.0}
    assert bodies == [plain, plain | {"seed": 7, "size": 64, "fresh": True}]


async def test_what_a_later_renderer_adds_is_left_alone() -> None:
    painted = await ask((200, {**stage.PAINTED, "mood": "calm"}, {}))
    assert painted.shapes == 3


async def test_a_faulty_sketch_comes_back_with_its_place() -> None:
    with pytest.raises(SketchFault) as caught:
        await ask(stage.fault())
    assert caught.value.violation.code is ViolationCode.RENDER_FAILED
    assert (caught.value.violation.line, caught.value.js_errors) == (3, ("boom",))


@pytest.mark.parametrize(("told", "seconds"), [("2", 2.0), ("-1", 0.0), ("soon", 1.0)])
async def test_a_busy_renderer_says_when_to_come_again(told: str, seconds: float) -> None:
    with pytest.raises(Busy) as caught:
        await ask((429, b"whatever", {"Retry-After": told}))
    assert caught.value.retry_after_s == seconds


@pytest.mark.parametrize(
    ("answer", "kind", "reason"),
    [
        (stage.trouble("RenderDeadline"), InfrastructureError, Reason.RENDER_DEADLINE),
        (stage.trouble("BrowserCrashed"), InfrastructureError, Reason.BROWSER_CRASHED),
        (stage.trouble("Unheard"), InfrastructureError, Reason.INTERNAL_ERROR),
        (stage.drains(), NotTaken, Reason.RENDERER_UNAVAILABLE),
        (stage.malformed(), NotUnderstood, Reason.INTERNAL_ERROR),
        ((404, {"detail": "Not Found"}, {}), InfrastructureError, Reason.RENDERER_UNAVAILABLE),
        ((502, b"<html>bad gateway", {}), InfrastructureError, Reason.RENDERER_UNAVAILABLE),
        ((200, {"painting": "!"}, {}), InfrastructureError, Reason.RENDERER_UNAVAILABLE),
        ((422, {"detail": []}, {}), InfrastructureError, Reason.RENDERER_UNAVAILABLE),
        (None, InfrastructureError, Reason.RENDERER_UNAVAILABLE),
    ],
)
async def test_every_failure_has_its_kind_and_reason(
    answer: Answer, kind: type[InfrastructureError], reason: Reason
) -> None:
    with pytest.raises(InfrastructureError) as caught:
        await ask(answer)
    assert (type(caught.value), caught.value.reason) == (kind, reason)


async def test_an_absent_renderer_has_not_taken_the_job() -> None:
    renderer = Stage()
    async with staged(renderer):
        pass
    async with client.http_client() as http:
        with pytest.raises(NotTaken):
            await client.ask(http, renderer.url, Job("x", 1))
