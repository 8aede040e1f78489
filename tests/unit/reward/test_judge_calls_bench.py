"""What bench/judge_calls.py counts, with an endpoint of its own and a clock that does not wait."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from bench.judge_calls import CALLS, REFERENCES, ROLLOUTS, Endpoint, Step, faults

from watercolour.reward import pool
from watercolour.reward.judge import Judge
from watercolour.score.completions import Completions


@pytest.fixture
async def endpoint() -> AsyncIterator[tuple[Endpoint, str]]:
    one = Endpoint(0.05, seed=3, latency_s=0.0)
    async with await asyncio.start_server(one.serve, "127.0.0.1", 0) as server:
        yield one, f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


async def test_a_step_with_refusals_loses_no_call_and_waits_as_told(
    endpoint: tuple[Endpoint, str],
) -> None:
    seen, url = endpoint
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    completions = Completions(url, concurrency=CALLS, sleep=sleep)
    judge = Judge(completions, model="vlm")
    references = pool.load("builtin:flowers").references[:REFERENCES]
    found = await asyncio.gather(
        *(judge.compare(b"painting", references, key=str(n)) for n in range(ROLLOUTS))
    )
    await completions.aclose()
    resolved = sum(vote.value is not None for one in found for vote in one.votes)
    assert seen.refused > 0
    assert completions.counts.refused == seen.refused
    assert not faults(Step(resolved, seen.seen, seen.refused, tuple(waits), 0.0))


@pytest.mark.parametrize(
    ("step", "fault"),
    [
        (Step(31, 67, 3, (), 0.0), "31 of 32 references are resolved"),
        (Step(32, 68, 3, (), 0.0), "68 calls, must be 64 and the 3 refused ones"),
        (Step(32, 67, 3, (1.0, 1.1), 0.0), "a wait of 1.1 s, Retry-After said 1 s"),
    ],
)
def test_whatever_a_step_gets_wrong_is_told(step: Step, fault: str) -> None:
    assert faults(step) == [fault]
