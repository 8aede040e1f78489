"""The scorer's HTTP contract, on the real backbone and the shipped heads."""

from __future__ import annotations

import asyncio
import base64
import json
import math
import threading
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest

from watercolour.api.errors import InfrastructureError
from watercolour.api.reasons import Reason
from watercolour.score import app as application
from watercolour.score.backend import Batching, Load, Report
from watercolour.score.embedded import Embedded
from watercolour.score.examples import Paintings

PROMPT = "a loose watercolour flower"
Png = Callable[..., bytes]


@asynccontextmanager
async def client(load: Load, batching: Batching | None = None) -> AsyncGenerator[httpx.AsyncClient]:
    """A client of a running app."""
    app = application.create_app(load, batching)
    transport = httpx.ASGITransport(app)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=transport, base_url="http://scorer", timeout=60) as http,
    ):
        yield http


async def readyz(http: httpx.AsyncClient, says: str) -> None:
    """Wait, up to half a minute, until the answer of /readyz contains a text."""
    for _ in range(3000):
        if says in (await http.get("/readyz")).text:
            return
        await asyncio.sleep(0.01)
    pytest.fail(f"/readyz never said {says!r}")


@asynccontextmanager
async def ready(
    backend: Embedded, batching: Batching | None = None
) -> AsyncGenerator[httpx.AsyncClient]:
    async with client(lambda _: backend, batching) as http:
        await readyz(http, '"ready":true')
        yield http


def b64(painting: bytes) -> str:
    return base64.b64encode(painting).decode()


def ask(painting: bytes) -> dict[str, str]:
    return {"painting": b64(painting), "prompt": PROMPT}


def compare(a: bytes, b: bytes) -> dict[str, Any]:
    parts = [
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{b64(x)}"}}
        for x in (a, b)
    ]
    return {
        "model": "embedded",
        "messages": [{"role": "user", "content": parts}],
        "response_format": {"type": "json_schema", "json_schema": {"name": "verdict"}},
    }


def verdict(answer: httpx.Response) -> str:
    content = json.loads(answer.json()["choices"][0]["message"]["content"])
    assert set(content) == {"winner", "reason"}
    assert len(content["reason"]) <= 160
    return content["winner"]


async def test_a_score_has_every_field_and_is_the_logistic_of_mu(
    embedded: Embedded, pool: Paintings
) -> None:
    async with ready(embedded) as http:
        answer = (await http.post("/v1/score", json=ask(pool.pictures[0]))).json()
    assert set(answer) == {"mu", "sigma", "score", "backend", "version"}
    assert answer["score"] == pytest.approx(1 / (1 + math.exp(-answer["mu"] / 4)), abs=1e-4)
    assert answer["sigma"] > 0
    assert answer["backend"] == "embedded"


async def test_64_pictures_at_once_each_get_their_own_score(
    embedded: Embedded, pool: Paintings
) -> None:
    chosen = pool.pictures[:64]
    async with ready(embedded) as http:
        together = await asyncio.gather(*(http.post("/v1/score", json=ask(p)) for p in chosen))
        metrics = (await http.get("/metrics")).text
    assert all(answer.status_code == 200 for answer in together)
    assert "watercolour_scorer_batch_pictures_count" in metrics
    # Alone in a batch, without any cache, each picture has the same score to the last digit.
    for picture, answer in list(zip(chosen, together, strict=True))[::8]:
        (found,) = embedded.embed([picture])
        assert not isinstance(found, ValueError)
        assert answer.json()["mu"] == embedded.score(found).mu
    assert len({answer.json()["mu"] for answer in together}) > 32


async def test_the_judge_follows_the_painting_and_not_its_place(
    embedded: Embedded, pool: Paintings
) -> None:
    love = pool.pictures[pool.tiers.index("love")]
    meh = pool.pictures[pool.tiers.index("meh")]
    async with ready(embedded) as http:
        first = verdict(await http.post("/v1/chat/completions", json=compare(love, meh)))
        second = verdict(await http.post("/v1/chat/completions", json=compare(meh, love)))
    assert (first, second) == ("A", "B")


async def test_a_judge_without_preference_says_a_both_times(
    embedded: Embedded, pool: Paintings
) -> None:
    same = pool.pictures[0]
    async with ready(embedded) as http:
        answer = await http.post("/v1/chat/completions", json=compare(same, same))
    assert verdict(answer) == "A"


async def test_ties_are_a_minority_among_good_paintings(
    embedded: Embedded, pool: Paintings
) -> None:
    good = [p for p, tier in zip(pool.pictures, pool.tiers, strict=True) if tier != "meh"][::6]
    found = [f for f in embedded.embed(good) if not isinstance(f, ValueError)]
    contradicted = [
        embedded.compare(a, b)[0] == embedded.compare(b, a)[0]
        for i, a in enumerate(found)
        for b in found[:i]
    ]
    assert 0 < sum(contradicted) < len(contradicted) / 2


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (b"", "body"),
        (b"[]", "body"),
        (b"\xff", "body"),
        (b"{}", "painting"),
        (b'{"painting": 3, "prompt": "x"}', "painting"),
        (b'{"painting": "&&", "prompt": "x"}', "painting"),
        (b'{"painting": "aGVsbG8=", "prompt": "x"}', "painting"),
        (b'{"painting": "aGVsbG8="}', "prompt"),
    ],
)
async def test_a_malformed_score_request_is_400_and_names_the_field(
    body: bytes, field: str, embedded: Embedded
) -> None:
    async with ready(embedded) as http:
        answer = await http.post("/v1/score", content=body)
    assert answer.status_code == 400
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["field"] == field


async def test_a_malformed_judge_request_is_400_and_names_the_field(
    embedded: Embedded, png: Png
) -> None:
    asked = compare(png(1), png(2)[:70])
    async with ready(embedded) as http:
        answer = await http.post("/v1/chat/completions", json=asked)
    assert answer.status_code == 400
    assert "painting B" in answer.json()["detail"]


async def test_a_body_above_the_limit_is_refused(
    embedded: Embedded, monkeypatch: pytest.MonkeyPatch, png: Png
) -> None:
    monkeypatch.setattr(application, "MAX_BODY", 100)
    async with ready(embedded) as http:
        answer = await http.post("/v1/score", json=ask(png()))
    assert answer.status_code == 400
    assert answer.json()["field"] == "body"


async def test_while_loading_every_answer_is_503_with_retry_after(
    embedded: Embedded, png: Png
) -> None:
    loaded, reported = threading.Event(), threading.Event()

    def load(report: Report) -> Embedded:
        report("reading weights", 0.25)
        reported.set()
        assert loaded.wait(30)
        return embedded

    async with client(load) as http:
        assert await asyncio.to_thread(reported.wait, 30)
        answers = [
            await http.post("/v1/score", json=ask(png())),
            await http.post("/v1/chat/completions", json=compare(png(1), png(2))),
            await http.get("/readyz"),
        ]
        alive = await http.get("/livez")
        loaded.set()
        await readyz(http, '"ready":true')
        after = await http.post("/v1/score", json=ask(png()))
    assert [a.status_code for a in answers] == [503] * 3
    assert all(int(a.headers["retry-after"]) >= 1 for a in answers)
    assert "mu" not in answers[0].json()
    progress = answers[2].json()
    assert (progress["stage"], progress["progress"]) == ("reading weights", 0.25)
    assert "reading weights, 25%" in progress["detail"]
    assert (alive.status_code, after.status_code) == (200, 200)


async def test_a_failed_load_stays_503_and_says_why(png: Png) -> None:
    def load(report: Report) -> Embedded:
        raise InfrastructureError(Reason.SCORER_UNAVAILABLE, "the heads are of another version.")

    async with client(load) as http:
        await readyz(http, "another version")
        answer = await http.post("/v1/score", json=ask(png()))
    assert answer.status_code == 503
    assert "another version" in answer.json()["detail"]


async def test_a_full_queue_is_429_with_retry_after(embedded: Embedded, png: Png) -> None:
    async with ready(embedded, Batching(max_batch=1, max_waiting=1)) as http:
        answers = await asyncio.gather(
            *(http.post("/v1/score", json=ask(png(i))) for i in range(12))
        )
    codes = {a.status_code for a in answers}
    assert codes == {200, 429}
    assert all("retry-after" in a.headers for a in answers if a.status_code == 429)
