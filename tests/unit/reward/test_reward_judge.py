"""The judge's client against a chat completion that misbehaves on demand."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from watercolour.reward import judge as judging
from watercolour.reward import terms, verdict

Answer = tuple[int, dict[str, str], str]


@dataclass(frozen=True)
class Reference:
    name: str
    painting: bytes


LOVE, OKAY = Reference("love_1", b"love"), Reference("okay_1", b"okay")


def said(winner: str) -> Answer:
    content = json.dumps({"winner": winner, "reason": "softer edges"})
    return 200, {}, json.dumps({"choices": [{"message": {"content": content}}]})


def raw(content: object) -> Answer:
    return 200, {}, json.dumps({"choices": [{"message": {"content": content}}]})


@dataclass
class Api:
    """An OpenAI-compatible server whose answers a test decides."""

    url: str
    answer: Callable[[int, dict[str, Any]], Answer] = lambda n, body: said("A")
    bodies: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)

    def pictures(self, n: int) -> list[str]:
        """The two pictures of the n-th request, as data URLs."""
        return pictures(self.bodies[n])


def pictures(body: dict[str, Any]) -> list[str]:
    parts = body["messages"][1]["content"]
    return [part["image_url"]["url"] for part in parts if part["type"] == "image_url"]


@pytest.fixture
def api() -> Iterator[Api]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with lock:
                number = len(state.bodies)
                state.bodies.append(body)
                state.headers.append(dict(self.headers))
            status, headers, text = state.answer(number, body)
            if self.path != "/v1/chat/completions":
                status, text = 404, "no such path"
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(text.encode())))
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, format: str, *args: object) -> None:
            pass

    lock = threading.Lock()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    state = Api(f"http://127.0.0.1:{server.server_address[1]}")
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield state
    server.shutdown()
    thread.join()
    server.server_close()


class Clock:
    """Sleeps at once and remembers for how long it should have."""

    def __init__(self) -> None:
        self.naps: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.naps.append(seconds)


def judge(api: Api, clock: Clock | None = None, **options: Any) -> judging.Judge:
    settings: dict[str, Any] = {"model": "m", "timeout_s": 30.0, "sleep": clock or Clock()}
    return judging.Judge(api.url, **settings | options)


async def test_a_judge_that_always_says_a_gives_every_reference_half(api: Api) -> None:
    votes = (await judge(api).compare(b"ours", [LOVE, OKAY])).votes
    assert [vote.value for vote in votes] == [0.5, 0.5]
    assert terms.judge(votes) == 0.5
    assert len(api.bodies) == 4


async def test_the_better_painting_wins_in_both_orders(api: Api) -> None:
    ours = verdict.data_url(b"ours")
    api.answer = lambda n, body: said("A" if pictures(body)[0] == ours else "B")
    (vote,) = (await judge(api).compare(b"ours", [LOVE])).votes
    assert (vote.reference, vote.first, vote.second, vote.value) == ("love_1", "A", "B", 1.0)


async def test_the_request_is_deterministic_strict_and_carries_both_pictures(api: Api) -> None:
    await judge(api, criteria="soft wins", api_key="secret").compare(b"ours", [LOVE])
    body = api.bodies[0]
    assert body["temperature"] == 0
    assert body["max_tokens"] == 220
    assert body["response_format"]["json_schema"]["strict"] is True
    assert body["messages"][0] == {"role": "system", "content": "soft wins"}
    shown = {tuple(api.pictures(n)) for n in range(2)}
    both = verdict.data_url(b"ours"), verdict.data_url(b"love")
    assert shown == {both, both[::-1]}
    assert {headers["Authorization"] for headers in api.headers} == {"Bearer secret"}


async def test_one_failed_order_drops_the_reference_and_the_mean_is_over_the_rest(
    api: Api,
) -> None:
    ours, love = verdict.data_url(b"ours"), verdict.data_url(b"love")

    def answer(n: int, body: dict[str, Any]) -> Answer:
        if pictures(body) == [love, ours]:
            return 400, {}, "no"
        return said("A" if pictures(body)[0] == ours else "B")

    api.answer = answer
    found = await judge(api).compare(b"ours", [LOVE, OKAY])
    assert [vote.value for vote in found.votes] == [None, 1.0]
    assert found.votes[0].first == "A"
    assert found.votes[0].second is None
    assert terms.judge(found.votes) == 1.0
    assert found.failures == ("HTTP 400: no",)


@pytest.mark.parametrize(
    "answer",
    [
        raw(""),
        raw(None),
        raw("A"),
        raw('{"winner": "C", "reason": "?"}'),
        raw('{"winner": "A"}'),
        raw('{"winner": "A", "reason": "x", "score": 3}'),
        raw('```json\n{"winner": "A", "reason": "x"}\n```'),
        raw('{"winner": "A", "reas'),
        (200, {}, "<html>a gateway's page</html>"),
        (200, {}, "[]"),
        (200, {}, '{"choices": []}'),
    ],
)
async def test_a_malformed_verdict_is_a_failed_call_and_no_loss(api: Api, answer: Answer) -> None:
    api.answer = lambda n, body: answer
    found = await judge(api).compare(b"ours", [LOVE])
    assert [vote.value for vote in found.votes] == [None]
    assert terms.judge(found.votes) is None
    assert found.failures


async def test_a_rate_limit_is_waited_out_as_asked_and_costs_no_attempt(api: Api) -> None:
    clock = Clock()
    api.answer = lambda n, body: (429, {"Retry-After": "3"}, "") if n < 8 else said("A")
    found = await judge(api, clock, attempts=1, concurrency=2).compare(b"ours", [LOVE])
    assert [vote.value for vote in found.votes] == [0.5]
    assert len(clock.naps) == 8
    assert all(3.0 <= nap <= 3.6 for nap in clock.naps)


async def test_a_rate_limit_that_never_ends_is_a_failed_call(api: Api) -> None:
    api.answer = lambda n, body: (429, {"Retry-After": "20"}, "")
    found = await judge(api, timeout_s=30.0).compare(b"ours", [LOVE])
    assert [vote.value for vote in found.votes] == [None]
    assert "rate limit" in found.failures[0]
    assert len(api.bodies) == 4


async def test_retry_after_may_be_a_date_by_the_servers_clock(api: Api) -> None:
    clock = Clock()
    dates = {
        "Date": "Wed, 21 Oct 2026 07:28:00 GMT",
        "Retry-After": "Wed, 21 Oct 2026 07:28:07 GMT",
    }
    api.answer = lambda n, body: (503, dates, "") if n < 2 else said("B")
    # BaseHTTPRequestHandler sends a Date of its own first; both count as one header's values.
    await judge(api, clock).compare(b"ours", [LOVE])
    assert len(clock.naps) == 2


async def test_server_errors_are_tried_again_and_then_fail(api: Api) -> None:
    tries: dict[str, int] = {}

    def third_time_lucky(_: int, body: dict[str, Any]) -> Answer:
        call = json.dumps(body)
        tries[call] = tries.get(call, 0) + 1
        return (500, {}, "boom") if tries[call] < 3 else said("A")

    api.answer = third_time_lucky
    found = await judge(api, attempts=3).compare(b"ours", [LOVE])
    assert [vote.value for vote in found.votes] == [0.5]
    assert len(api.bodies) == 6
    api.answer = lambda n, body: (502, {}, "")
    found = await judge(api, attempts=3).compare(b"ours", [OKAY])
    assert [vote.value for vote in found.votes] == [None]
    assert found.failures == ("HTTP 502, after 3 attempts",)


async def test_a_judge_that_is_away_leaves_every_vote_open() -> None:
    away = judging.Judge("http://127.0.0.1:9", model="m", attempts=2, sleep=Clock())
    found = await away.compare(b"ours", [LOVE, OKAY])
    assert [vote.value for vote in found.votes] == [None, None]


async def test_equal_comparisons_are_asked_once_and_failures_again(api: Api) -> None:
    one = judge(api)
    await asyncio.gather(*(one.compare(b"ours", [LOVE], key="sketch") for _ in range(6)))
    await one.compare(b"other bytes, same sketch", [LOVE], key="sketch")
    assert len(api.bodies) == 2
    await one.compare(b"ours", [LOVE], key="another sketch")
    assert len(api.bodies) == 4
    api.answer = lambda n, body: (400, {}, "")
    await one.compare(b"ours", [OKAY], key="sketch")
    api.answer = lambda n, body: said("A")
    (vote,) = (await one.compare(b"ours", [OKAY], key="sketch")).votes
    assert vote.value == 0.5


async def test_one_order_alone_asks_half_as_often(api: Api) -> None:
    (vote,) = (await judge(api, both_orders=False).compare(b"ours", [LOVE])).votes
    assert (vote.first, vote.second, vote.value) == ("A", None, 1.0)
    assert len(api.bodies) == 1


async def test_no_more_calls_than_allowed_are_under_way(api: Api) -> None:
    lock, under_way, most = threading.Lock(), 0, 0
    pair = threading.Barrier(2)

    def answer(n: int, body: dict[str, Any]) -> Answer:
        nonlocal under_way, most
        with lock:
            under_way += 1
            most = max(most, under_way)
        pair.wait(timeout=10)  # Two are under way at once, or this breaks.
        with lock:
            under_way -= 1
        return said("A")

    api.answer = answer
    await judge(api, concurrency=2).compare(b"ours", [LOVE, OKAY])
    assert most == 2


@pytest.mark.parametrize(
    ("url", "endpoint"),
    [
        ("http://h:1", "http://h:1/v1/chat/completions"),
        ("http://h:1/", "http://h:1/v1/chat/completions"),
        ("https://api.example.org/v1", "https://api.example.org/v1/chat/completions"),
        ("https://h/v1/chat/completions", "https://h/v1/chat/completions"),
    ],
)
def test_the_base_url_may_come_with_or_without_its_path(url: str, endpoint: str) -> None:
    assert judging.endpoint(url) == endpoint


@pytest.mark.parametrize(
    ("image", "kind"),
    [(b"\x89PNG\r\n", "png"), (b"\xff\xd8\xff\xe0", "jpeg"), (b"RIFF....WEBPVP8", "webp")],
)
def test_pictures_are_sent_as_what_they_are(image: bytes, kind: str) -> None:
    assert verdict.data_url(image).startswith(f"data:image/{kind};base64,")
