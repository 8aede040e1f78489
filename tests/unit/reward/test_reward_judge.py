"""The judge's client against a chat completion that misbehaves on demand."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from watercolour.api.reasons import Reason
from watercolour.reward import judge as judging
from watercolour.reward import terms
from watercolour.score import completions as calls
from watercolour.score.breaker import Breaker
from watercolour.score.budget import Budget
from watercolour.score.completions import data_url

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


#: Connections of the judges of a test.
OPEN: list[calls.Completions] = []


@pytest.fixture(autouse=True)
async def closed() -> AsyncIterator[None]:
    yield
    while OPEN:
        await OPEN.pop().aclose()


JUDGING = {"model", "criteria", "both_orders", "remember", "verdicts", "fallback"}


def judge(api: Api | str, clock: Clock | None = None, **options: Any) -> judging.Judge:
    """A judge; options belong to it or to its connections, by name."""
    settings: dict[str, Any] = {"model": "m", "timeout_s": 30.0, "sleep": clock or Clock()}
    settings |= options
    own = {name: settings.pop(name) for name in list(settings) if name in JUDGING}
    url = api if isinstance(api, str) else api.url
    OPEN.append(calls.Completions(url, **settings))
    return judging.Judge(OPEN[-1], **own)


async def test_a_judge_that_always_says_a_gives_every_reference_half(api: Api) -> None:
    votes = (await judge(api).compare(b"ours", [LOVE, OKAY])).votes
    assert [vote.value for vote in votes] == [0.5, 0.5]
    assert terms.judge(votes) == 0.5
    assert len(api.bodies) == 4


async def test_the_better_painting_wins_in_both_orders(api: Api) -> None:
    ours = data_url(b"ours")
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
    both = data_url(b"ours"), data_url(b"love")
    assert shown == {both, both[::-1]}
    assert {headers["Authorization"] for headers in api.headers} == {"Bearer secret"}


async def test_one_failed_order_drops_the_reference_and_the_mean_is_over_the_rest(
    api: Api,
) -> None:
    ours, love = data_url(b"ours"), data_url(b"love")

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
    assert clock.naps == [3.0] * 8


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
    away = judge("http://127.0.0.1:9", attempts=2)
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


async def test_a_page_instead_of_json_is_tried_again(api: Api) -> None:
    page = 200, {"Content-Type": "text/html"}, "<html>the gateway is tired</html>"
    api.answer = lambda n, body: page if n < 2 else said("A")
    (vote,) = (await judge(api).compare(b"ours", [LOVE])).votes
    assert vote.value == 0.5
    assert len(api.bodies) == 4


async def test_json_cut_off_in_transit_is_tried_again(api: Api) -> None:
    status, _, whole = said("A")
    api.answer = lambda n, body: (status, {}, whole[: len(whole) // 2]) if n < 2 else said("A")
    (vote,) = (await judge(api).compare(b"ours", [LOVE])).votes
    assert vote.value == 0.5


@pytest.mark.parametrize(("status", "hint"), [(401, "key"), (403, "key"), (404, "name")])
async def test_a_wrong_key_or_address_is_named_and_not_tried_again(
    api: Api, status: int, hint: str
) -> None:
    api.answer = lambda n, body: (status, {}, '{"error": "no"}')
    found = await judge(api, api_key="hunter2").compare(b"ours", [LOVE])
    assert len(api.bodies) == 2
    assert [vote.value for vote in found.votes] == [None]
    assert f"HTTP {status}" in found.failures[0]
    assert hint in found.failures[0]
    assert "hunter2" not in "".join(found.failures)


async def test_silence_ends_at_the_time_limit_and_is_no_loss() -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()  # Until the client gives up and hangs up.
        writer.close()

    async with await asyncio.start_server(silent, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        mute = judge(f"http://127.0.0.1:{port}", timeout_s=0.3, attempts=2)
        found = await mute.compare(b"ours", [LOVE])
        await mute.completions.aclose()
    assert mute.completions.counts.requests == 4
    assert [vote.value for vote in found.votes] == [None]
    assert found.failures == ("no answer in 0.3 s, after 2 attempts",)


async def test_a_reference_that_equals_the_rollout_ties(api: Api) -> None:
    same = Reference("twin", b"ours")
    (vote,) = (await judge(api).compare(b"ours", [same])).votes
    assert (vote.first, vote.second, vote.value) == ("A", "A", 0.5)


async def test_equal_references_of_two_names_are_asked_about_once(api: Api) -> None:
    twins = [LOVE, Reference("love_2", LOVE.painting)]
    found = await judge(api).compare(b"ours", twins)
    assert len(api.bodies) == 2
    assert [vote.reference for vote in found.votes] == ["love_1", "love_2"]
    assert [vote.value for vote in found.votes] == [0.5, 0.5]


async def test_calls_fail_at_once_while_the_breaker_is_open(api: Api) -> None:
    now = 0.0
    breaker = Breaker(2, 30.0, clock=lambda: now)
    api.answer = lambda n, body: (502, {}, "")
    one = judge(api, attempts=1, breaker=breaker)
    await one.compare(b"ours", [LOVE])
    assert len(api.bodies) == 2
    found = await one.compare(b"ours", [LOVE, OKAY])
    assert len(api.bodies) == 2
    assert [vote.value for vote in found.votes] == [None, None]
    assert found.reason is Reason.JUDGE_UNAVAILABLE
    assert "asked again in 30 s" in found.failures[0]
    now = 30.0
    api.answer = lambda n, body: said("A")
    # One call alone tries; the other is turned away, and the next comparison goes through.
    await one.compare(b"ours", [LOVE])
    assert len(api.bodies) == 3
    (vote,) = (await one.compare(b"ours", [LOVE])).votes
    assert vote.value == 0.5


async def test_a_rate_limit_never_opens_the_breaker(api: Api) -> None:
    breaker = Breaker(1, 30.0)
    api.answer = lambda n, body: (429, {"Retry-After": "1"}, "") if n < 20 else said("A")
    (vote,) = (await judge(api, breaker=breaker).compare(b"ours", [LOVE])).votes
    assert vote.value == 0.5
    assert breaker.opened == 0


async def test_a_malformed_verdict_never_opens_the_breaker(api: Api) -> None:
    breaker = Breaker(1, 30.0)
    api.answer = lambda n, body: raw('{"winner": "C", "reason": "?"}')
    await judge(api, breaker=breaker).compare(b"ours", [LOVE, OKAY])
    assert len(api.bodies) == 4
    assert breaker.opened == 0


async def test_a_painting_that_the_budget_cannot_pay_for_is_not_judged_at_all(api: Api) -> None:
    one = judge(api, budget=Budget(calls=6))
    whole = await one.compare(b"first", [LOVE, OKAY])
    assert [vote.value for vote in whole.votes] == [0.5, 0.5]
    short = await one.compare(b"second", [LOVE, OKAY])
    assert len(api.bodies) == 4
    assert [vote.value for vote in short.votes] == [None, None]
    assert short.reason is Reason.JUDGE_BUDGET_SPENT
    assert "4 of 6 calls" in short.failures[0]
    # What is remembered costs nothing, and two calls are left.
    assert (await one.compare(b"first", [LOVE, OKAY])).resolved
    assert (await one.compare(b"third", [LOVE])).resolved


async def test_comparisons_at_the_same_time_do_not_overdraw_the_budget(api: Api) -> None:
    one = judge(api, budget=Budget(calls=10))
    found = await asyncio.gather(
        *(one.compare(f"painting {n}".encode(), [LOVE, OKAY]) for n in range(5))
    )
    assert len(api.bodies) == 8
    assert sum(each.resolved for each in found) == 2
    assert one.completions.budget.reserved == 0


async def test_repeated_tries_come_out_of_the_budget_too(api: Api) -> None:
    api.answer = lambda n, body: (500, {}, "")
    one = judge(api, attempts=3, budget=Budget(calls=3))
    found = await one.compare(b"ours", [LOVE])
    assert len(api.bodies) == 3
    assert found.reason is Reason.JUDGE_BUDGET_SPENT


async def test_tokens_are_counted_as_the_endpoint_counts_them(api: Api) -> None:
    def counted(n: int, body: dict[str, Any]) -> Answer:
        status, headers, text = said("A")
        return status, headers, json.dumps(json.loads(text) | {"usage": {"total_tokens": 700}})

    api.answer = counted
    one = judge(api, budget=Budget(tokens=1_500))
    assert (await one.compare(b"first", [LOVE])).resolved
    assert one.completions.budget.spent_tokens == 1_400
    assert (await one.compare(b"second", [LOVE])).resolved
    assert (await one.compare(b"third", [LOVE])).reason is Reason.JUDGE_BUDGET_SPENT


async def test_the_stand_in_judges_what_the_judge_cannot(api: Api) -> None:
    away = judge("http://127.0.0.1:9", attempts=1, fallback=judge(api, model="embedded"))
    found = await away.compare(b"ours", [LOVE])
    assert [vote.value for vote in found.votes] == [0.5]
    assert found.model == "embedded"
    assert away.stood_in == 1
    # A check of the judge is about the judge.
    assert not (await away.compare(b"ours", [LOVE], fresh=True)).resolved


async def test_a_fresh_comparison_neither_reads_nor_leaves_a_verdict(api: Api) -> None:
    one = judge(api)
    await one.compare(b"ours", [LOVE], fresh=True)
    await one.compare(b"ours", [LOVE])
    await one.compare(b"ours", [LOVE], fresh=True)
    assert len(api.bodies) == 6


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
    assert calls.endpoint(url) == endpoint


@pytest.mark.parametrize(
    ("image", "kind"),
    [(b"\x89PNG\r\n", "png"), (b"\xff\xd8\xff\xe0", "jpeg"), (b"RIFF....WEBPVP8", "webp")],
)
def test_pictures_are_sent_as_what_they_are(image: bytes, kind: str) -> None:
    assert data_url(image).startswith(f"data:image/{kind};base64,")
