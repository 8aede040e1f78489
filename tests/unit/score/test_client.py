"""The client returns a score or raises ScorerUnavailable; never a number of its own."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable

import httpx
import pytest

from watercolour.api.errors import InfrastructureError
from watercolour.api.reasons import Reason
from watercolour.score.client import Score, ScoreClient

GOOD = {"mu": 2.5, "sigma": 0.5, "score": 0.65, "backend": "embedded", "version": "1"}
Answer = Callable[[httpx.Request], httpx.Response]


class Scripted:
    """A scorer that gives its answers in turn, the last one for ever."""

    def __init__(self, *answers: httpx.Response | type[httpx.HTTPError]) -> None:
        self.answers = list(answers)
        self.asked: list[httpx.Request] = []
        self.slept: list[float] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(request)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, type):
            raise answer("broken")
        return httpx.Response(answer.status_code, headers=answer.headers, content=answer.content)

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)

    def client(self, attempts: int = 3) -> ScoreClient:
        return ScoreClient(
            "http://scorer",
            attempts=attempts,
            sleep=self.sleep,
            transport=httpx.MockTransport(self),
        )


async def test_a_score_comes_back_whole() -> None:
    scorer = Scripted(httpx.Response(200, json=GOOD))
    async with scorer.client() as client:
        found = await client.score(b"png", "a flower")
    assert found == Score(2.5, 0.5, 0.65, "embedded", "1")
    sent = json.loads(scorer.asked[0].content)
    assert base64.b64decode(sent["painting"]) == b"png"
    assert sent["prompt"] == "a flower"


async def test_retry_after_is_honoured() -> None:
    loading = httpx.Response(503, headers={"Retry-After": "7"})
    scorer = Scripted(loading, httpx.Response(200, json=GOOD))
    async with scorer.client() as client:
        await client.score(b"png", "x")
    assert len(scorer.slept) == 1
    assert 7 <= scorer.slept[0] <= 9


@pytest.mark.parametrize(
    "answer",
    [
        httpx.Response(500),
        httpx.Response(503),
        httpx.Response(429),
        httpx.ConnectError,
        httpx.ReadTimeout,
        httpx.Response(200, text="<html>"),
        httpx.Response(200, json=[]),
        httpx.Response(200, json={**GOOD, "mu": None}),
        httpx.Response(200, content=json.dumps({**GOOD, "mu": float("nan")})),
    ],
)
async def test_every_attempt_is_used_and_then_it_raises(
    answer: httpx.Response | type[httpx.HTTPError],
) -> None:
    scorer = Scripted(answer)
    async with scorer.client(attempts=3) as client:
        with pytest.raises(InfrastructureError) as raised:
            await client.score(b"png", "x")
    assert raised.value.reason is Reason.SCORER_UNAVAILABLE
    assert len(scorer.asked) == 3
    assert len(scorer.slept) == 2
    assert scorer.slept[0] < scorer.slept[1]


async def test_a_refused_request_is_not_repeated() -> None:
    scorer = Scripted(httpx.Response(400, json={"detail": "painting is not base64"}))
    async with scorer.client() as client:
        with pytest.raises(InfrastructureError, match="painting is not base64"):
            await client.score(b"png", "x")
    assert len(scorer.asked) == 1
