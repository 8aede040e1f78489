"""A model's mark: strict JSON, and what breaks it is a failed call and no number."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from watercolour.api.errors import InfrastructureError
from watercolour.api.terms import MARKS
from watercolour.score import vlm_mark
from watercolour.score.backend import logistic
from watercolour.score.completions import CallFailed, Completions
from watercolour.score.posting import Reply
from watercolour.score.vlm_mark import VlmMark

Png = Callable[..., bytes]


def answering(content: Callable[[list[str]], str]) -> VlmMark:
    """A model that is told which names are wanted."""

    class Model:
        async def post(self, data: bytes) -> Reply:
            asked: dict[str, Any] = json.loads(data)
            names = asked["response_format"]["json_schema"]["schema"]["required"]
            choice = {"message": {"role": "assistant", "content": content(names)}}
            return Reply(200, {}, json.dumps({"choices": [choice]}).encode())

        async def aclose(self) -> None:
            """Nothing is open."""

    return VlmMark(Completions("http://vlm", attempts=1, poster=Model()), model="eye")


async def test_a_mark_becomes_its_published_score_and_the_mu_of_that_score(png: Png) -> None:
    found = await answering(lambda _: '{"mark": 7}').score(png(), "a flower")
    assert found.score == pytest.approx(6 / 9)
    assert logistic(found.mu) == pytest.approx(6 / 9)
    assert (found.backend, found.marks) == ("vlm-mark", {})


@pytest.mark.parametrize(("mark", "score"), [(1, 0.0), (10, 1.0)])
async def test_the_ends_of_the_scale_have_a_finite_mu(mark: int, score: float, png: Png) -> None:
    found = await answering(lambda _: json.dumps({"mark": mark})).score(png(), "a flower")
    assert found.score == score
    assert logistic(found.mu) == pytest.approx(score, abs=1e-4)


async def test_marks_that_are_asked_for_come_each_by_its_name(png: Png) -> None:
    def content(names: list[str]) -> str:
        return json.dumps({name: 1 + n for n, name in enumerate(names)})

    found = await answering(content).score(png(), "a flower", MARKS)
    assert dict(found.marks) == pytest.approx({name: n / 9 for n, name in enumerate(MARKS)})


@pytest.mark.parametrize(
    "content",
    [
        "7",
        "",
        "<html>",
        '{"mark": 7',
        "{}",
        '{"mark": "7"}',
        '{"mark": 7.5}',
        '{"mark": true}',
        '{"mark": null}',
        '{"mark": 0}',
        '{"mark": 11}',
        '{"mark": 7, "reason": "soft"}',
    ],
)
async def test_what_breaks_the_schema_is_a_failed_call(content: str, png: Png) -> None:
    with pytest.raises(CallFailed):
        vlm_mark.parse(content, ("mark",))
    with pytest.raises(InfrastructureError, match="no mark from"):
        await answering(lambda _: content).score(png(), "a flower")


async def test_a_picture_that_is_none_is_not_sent() -> None:
    model = answering(lambda _: pytest.fail("it was sent"))
    with pytest.raises(InfrastructureError, match="is empty"):
        await model.score(b"", "a flower")
