"""The queue of runs: each once, no run twice at a time, bursts cost one look."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from watercolour_operator.queue import Queue


class Clock:
    """Moved by hand; who waits for a due time is woken by adding."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


async def serving(queue: Queue[str], look: Callable[[str], Awaitable[None]], at_once: int = 4):
    return asyncio.create_task(queue.serve(look, at_once))


async def settle() -> None:
    """Let every task run until it waits."""
    for _ in range(20):
        await asyncio.sleep(0)


@pytest.fixture
async def looked() -> list[str]:
    return []


async def test_the_first_event_after_a_quiet_time_is_acted_on_at_once(looked: list[str]) -> None:
    queue = Queue[str](gap=10, clock=Clock())

    async def look(item: str) -> None:
        looked.append(item)

    task = await serving(queue, look)
    queue.add("a")
    await settle()
    assert looked == ["a"]
    task.cancel()


async def test_a_burst_of_events_costs_one_look(looked: list[str]) -> None:
    clock = Clock()
    queue = Queue[str](gap=10, clock=clock)

    async def look(item: str) -> None:
        looked.append(item)

    task = await serving(queue, look)
    queue.add("a")
    await settle()
    for _ in range(5):
        queue.add("a")
    await settle()
    assert looked == ["a"]
    clock.now += 10
    queue.add("b")
    await settle()
    assert sorted(looked) == ["a", "a", "b"]
    task.cancel()


async def test_what_wakes_during_its_look_is_looked_at_again_and_never_twice_at_a_time(
    looked: list[str],
) -> None:
    queue = Queue[str](gap=0, clock=Clock())
    go_on = asyncio.Event()
    active = most = 0

    async def look(item: str) -> None:
        nonlocal active, most
        active += 1
        most = max(most, active)
        looked.append(item)
        await go_on.wait()
        active -= 1

    task = await serving(queue, look)
    queue.add("a")
    await settle()
    queue.add("a")
    queue.add("a")
    await settle()
    assert looked == ["a"]
    go_on.set()
    await settle()
    assert looked == ["a", "a"]
    assert most == 1
    task.cancel()


async def test_at_most_so_many_are_looked_at_at_once() -> None:
    queue = Queue[str](gap=0, clock=Clock())
    never = asyncio.Event()
    active: set[str] = set()

    async def look(item: str) -> None:
        active.add(item)
        await never.wait()

    task = await serving(queue, look, at_once=2)
    for item in "abcd":
        queue.add(item)
    await settle()
    assert active == {"a", "b"}
    assert len(queue) == 2
    task.cancel()


async def test_an_earlier_due_time_wins(looked: list[str]) -> None:
    clock = Clock()
    queue = Queue[str](gap=0, clock=clock)

    async def look(item: str) -> None:
        looked.append(item)

    task = await serving(queue, look)
    queue.add("a", after=60)
    queue.add("a", after=5)
    queue.add("a", after=30)
    clock.now += 5
    queue.add("b")
    await settle()
    assert sorted(looked) == ["a", "b"]
    clock.now += 100
    queue.add("c")
    await settle()
    assert sorted(looked) == ["a", "b", "c"]
    task.cancel()


async def test_how_long_the_longest_has_waited_is_told() -> None:
    clock = Clock()
    queue = Queue[str](gap=0, clock=clock)
    assert queue.oldest_seconds == 0
    queue.add("a")
    queue.add("b", after=100)
    clock.now += 7
    assert queue.oldest_seconds == 7
