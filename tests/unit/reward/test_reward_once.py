"""Equal requests share one piece of work."""

from __future__ import annotations

import asyncio

import pytest

from watercolour.reward.once import Once


class Work:
    """Counts how often it ran, and waits until it may end."""

    def __init__(self) -> None:
        self.runs = 0
        self.cancelled = 0
        self.go = asyncio.Event()
        self.fault: Exception | None = None

    async def __call__(self) -> int:
        self.runs += 1
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        if self.fault:
            raise self.fault
        return self.runs


async def test_equal_requests_at_the_same_time_run_once() -> None:
    once, work = Once[int](8), Work()
    waiting = [asyncio.create_task(once.get("key", work)) for _ in range(5)]
    work.go.set()
    assert await asyncio.gather(*waiting) == [1] * 5
    assert await once.get("key", work) == 1
    assert work.runs == 1


async def test_a_failure_reaches_everyone_and_is_not_remembered() -> None:
    once, work = Once[int](8), Work()
    work.fault = RuntimeError("away")
    work.go.set()
    found = await asyncio.gather(
        once.get("key", work), once.get("key", work), return_exceptions=True
    )
    assert found == [work.fault, work.fault]
    work.fault = None
    assert await once.get("key", work) == 2


async def test_one_cancelled_caller_leaves_the_work_to_the_others() -> None:
    once, work = Once[int](8), Work()
    first = asyncio.create_task(once.get("key", work))
    second = asyncio.create_task(once.get("key", work))
    await asyncio.sleep(0)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    work.go.set()
    assert await second == 1


async def test_the_last_cancelled_caller_ends_the_work_and_the_next_starts_anew() -> None:
    once, work = Once[int](8), Work()
    only = asyncio.create_task(once.get("key", work))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    only.cancel()
    with pytest.raises(asyncio.CancelledError):
        await only
    work.go.set()
    assert await once.get("key", work) == 2
    assert work.cancelled == 1


async def test_the_least_recently_used_value_goes_first() -> None:
    once, made = Once[str](2), []

    def make(key: str):
        async def work() -> str:
            made.append(key)
            return key

        return work

    for key in ("a", "b", "a", "c", "a", "b"):
        await once.get(key, make(key))
    assert made == ["a", "b", "c", "b"]
