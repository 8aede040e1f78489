"""What waits shares a batch, each caller gets its own answer, and the queue has an end."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Sequence
from typing import Any

import pytest

from watercolour.score.backend import Batching, Observed
from watercolour.score.batching import Batcher, Busy
from watercolour.score.pictures import NotAPicture


def number(item: bytes) -> int:
    return int.from_bytes(item, "big")


def ask(batcher: Batcher[bytes, int], item: bytes) -> Coroutine[Any, Any, int]:
    return batcher.ask(item, lambda: item)


class Recorder:
    """Answers with the bytes as a number; can be held closed."""

    def __init__(self) -> None:
        self.batches: list[list[bytes]] = []
        self.gate = threading.Event()
        self.gate.set()
        self.started = threading.Event()

    def __call__(self, items: Sequence[bytes]) -> list[int | Exception]:
        self.started.set()
        self.gate.wait(10)
        self.batches.append(list(items))
        return [NotAPicture("is bad") if p == b"bad" else number(p) for p in items]


def pictures(n: int) -> list[bytes]:
    return [i.to_bytes(4, "big") for i in range(n)]


async def test_each_of_64_concurrent_callers_gets_its_own_answer() -> None:
    embed = Recorder()
    async with Batcher(embed, Batching(max_batch=8)) as batcher:
        found = await asyncio.gather(*(ask(batcher, p) for p in pictures(64)))
    assert found == list(range(64))
    assert max(map(len, embed.batches)) == 8
    assert len(embed.batches) == 8


async def test_equal_questions_are_worked_on_once_and_the_item_is_made_once() -> None:
    embed, made, hits = Recorder(), list[bytes](), list[bool]()
    observed = Observed(hit=lambda: hits.append(True))

    def make() -> bytes:
        made.append(b"x")
        return b"x"

    async with Batcher(embed, Batching(), observed=observed) as batcher:
        await asyncio.gather(*(batcher.ask(b"key", make) for _ in range(10)))
        await batcher.ask(b"key", make)
    assert embed.batches == [[b"x"]]
    assert made == [b"x"]
    assert (batcher.hits, hits) == (1, [True])


async def test_the_least_recently_used_picture_is_forgotten_first() -> None:
    embed = Recorder()
    async with Batcher(embed, Batching(), remembered=2) as batcher:
        for name in (b"a", b"b", b"a", b"c", b"a", b"b"):
            await ask(batcher, name)
    assert [batch[0] for batch in embed.batches] == [b"a", b"b", b"c", b"b"]


async def test_a_full_queue_is_busy_and_says_when_to_come_again() -> None:
    embed = Recorder()
    embed.gate.clear()
    async with Batcher(embed, Batching(max_batch=1, window_s=0, max_waiting=3)) as batcher:
        first, *others = pictures(4)
        waiting = [asyncio.create_task(ask(batcher, first))]
        assert await asyncio.to_thread(embed.started.wait, 10)
        waiting += [asyncio.create_task(ask(batcher, p)) for p in others]
        await asyncio.sleep(0)  # each of them enqueues
        assert batcher.waiting == 3
        with pytest.raises(Busy) as raised:
            await ask(batcher, b"one too many")
        embed.gate.set()
        await asyncio.gather(*waiting)
    assert raised.value.retry_after >= 1


async def test_a_bad_picture_fails_alone() -> None:
    async with Batcher(Recorder(), Batching()) as batcher:
        good, bad = await asyncio.gather(
            ask(batcher, b"x"), ask(batcher, b"bad"), return_exceptions=True
        )
    assert good == number(b"x")
    assert isinstance(bad, NotAPicture)


async def test_a_failing_batch_reaches_every_caller_and_the_next_one_works() -> None:
    calls = 0

    def embed(items: Sequence[bytes]) -> list[int | Exception]:
        nonlocal calls
        calls += 1
        if calls == 1:
            raise RuntimeError("out of memory")
        return [number(p) for p in items]

    async with Batcher(embed, Batching()) as batcher:
        failed = await asyncio.gather(
            *(ask(batcher, p) for p in pictures(3)), return_exceptions=True
        )
        again = await ask(batcher, pictures(1)[0])
    assert [str(f) for f in failed] == ["out of memory"] * 3
    assert again == 0


async def test_a_caller_that_goes_away_does_not_take_the_answer_from_another() -> None:
    embed = Recorder()
    embed.gate.clear()
    async with Batcher(embed, Batching()) as batcher:
        leaver, stayer = (asyncio.create_task(ask(batcher, b"x")) for _ in range(2))
        await asyncio.sleep(0)
        leaver.cancel()
        embed.gate.set()
        found = await stayer
    assert leaver.cancelled()
    assert found == number(b"x")


async def test_closing_wakes_every_waiter() -> None:
    embed = Recorder()
    embed.gate.clear()
    async with Batcher(embed, Batching()) as batcher:
        waiting = asyncio.create_task(ask(batcher, b"x"))
        await asyncio.sleep(0)
    embed.gate.set()
    with pytest.raises(asyncio.CancelledError):
        await waiting
