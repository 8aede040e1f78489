"""Waiting pictures share a batch, each caller gets its own answer, and the queue has an end."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence

import numpy as np
import pytest

from watercolour.score.batching import Batcher, Busy
from watercolour.score.features import Features, NotAPicture


def features_of(painting: bytes) -> Features:
    value = np.full(1, float(int.from_bytes(painting, "big")), np.float32)
    return Features(value, value)


class Recorder:
    """Embeds by reading the bytes as a number; can be held closed."""

    def __init__(self) -> None:
        self.batches: list[list[bytes]] = []
        self.gate = threading.Event()
        self.gate.set()
        self.started = threading.Event()

    def __call__(self, paintings: Sequence[bytes]) -> list[Features | NotAPicture]:
        self.started.set()
        self.gate.wait(10)
        self.batches.append(list(paintings))
        return [NotAPicture("is bad") if p == b"bad" else features_of(p) for p in paintings]


def pictures(n: int) -> list[bytes]:
    return [i.to_bytes(4, "big") for i in range(n)]


async def test_each_of_64_concurrent_callers_gets_its_own_features() -> None:
    embed = Recorder()
    async with Batcher(embed, max_batch=8) as batcher:
        found = await asyncio.gather(*map(batcher.features, pictures(64)))
    assert [float(f.quality[0]) for f in found] == list(range(64))
    assert max(map(len, embed.batches)) == 8
    assert len(embed.batches) == 8


async def test_equal_pictures_are_embedded_once() -> None:
    embed = Recorder()
    async with Batcher(embed) as batcher:
        await asyncio.gather(*(batcher.features(b"x") for _ in range(10)))
        await batcher.features(b"x")
    assert embed.batches == [[b"x"]]
    assert batcher.hits == 1


async def test_the_least_recently_used_picture_is_forgotten_first() -> None:
    embed = Recorder()
    async with Batcher(embed, remembered=2) as batcher:
        for name in (b"a", b"b", b"a", b"c", b"a", b"b"):
            await batcher.features(name)
    assert [batch[0] for batch in embed.batches] == [b"a", b"b", b"c", b"b"]


async def test_a_full_queue_is_busy_and_says_when_to_come_again() -> None:
    embed = Recorder()
    embed.gate.clear()
    async with Batcher(embed, max_batch=1, max_waiting=3, window_s=0) as batcher:
        first, *others = pictures(4)
        waiting = [asyncio.create_task(batcher.features(first))]
        assert await asyncio.to_thread(embed.started.wait, 10)
        waiting += [asyncio.create_task(batcher.features(p)) for p in others]
        await asyncio.sleep(0)  # each of them enqueues
        assert batcher.waiting == 3
        with pytest.raises(Busy) as raised:
            await batcher.features(b"one too many")
        embed.gate.set()
        await asyncio.gather(*waiting)
    assert raised.value.retry_after >= 1


async def test_a_bad_picture_fails_alone() -> None:
    async with Batcher(Recorder()) as batcher:
        good, bad = await asyncio.gather(
            batcher.features(b"x"), batcher.features(b"bad"), return_exceptions=True
        )
    assert isinstance(good, Features)
    assert isinstance(bad, NotAPicture)


async def test_a_failing_batch_reaches_every_caller_and_the_next_one_works() -> None:
    calls = 0

    def embed(paintings: Sequence[bytes]) -> list[Features | NotAPicture]:
        nonlocal calls
        calls += 1
        if calls == 1:
            raise RuntimeError("out of memory")
        return [features_of(p) for p in paintings]

    async with Batcher(embed) as batcher:
        failed = await asyncio.gather(*map(batcher.features, pictures(3)), return_exceptions=True)
        again = await batcher.features(pictures(1)[0])
    assert [str(f) for f in failed] == ["out of memory"] * 3
    assert float(again.quality[0]) == 0


async def test_a_caller_that_goes_away_does_not_take_the_answer_from_another() -> None:
    embed = Recorder()
    embed.gate.clear()
    async with Batcher(embed) as batcher:
        leaver, stayer = (asyncio.create_task(batcher.features(b"x")) for _ in range(2))
        await asyncio.sleep(0)
        leaver.cancel()
        embed.gate.set()
        found = await stayer
    assert leaver.cancelled()
    assert found.quality.shape == (1,)


async def test_closing_wakes_every_waiter() -> None:
    embed = Recorder()
    embed.gate.clear()
    async with Batcher(embed) as batcher:
        waiting = asyncio.create_task(batcher.features(b"x"))
        await asyncio.sleep(0)
    embed.gate.set()
    with pytest.raises(asyncio.CancelledError):
        await waiting
