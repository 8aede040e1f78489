"""Runs that wait to be looked at: each once, no run twice at a time, a few at once.

A run that wakes while it is being looked at is looked at once more. A run that wakes again and
again is looked at every ``gap`` seconds, so that a burst of events costs one look; the first event
after a quiet time is acted on at once.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import time
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass, field
from typing import Generic, NoReturn, TypeVar

Item = TypeVar("Item", bound=Hashable)


@dataclass
class Queue(Generic[Item]):
    """A queue of items with due times."""

    #: Least seconds between two looks at one item.
    gap: float = 0.2
    clock: Callable[[], float] = time.monotonic
    _due: dict[Item, float] = field(default_factory=dict[Item, float], init=False)
    _heap: list[tuple[float, int, Item]] = field(
        default_factory=list[tuple[float, int, Item]], init=False
    )
    _busy: set[Item] = field(default_factory=set[Item], init=False)
    _last: dict[Item, float] = field(default_factory=dict[Item, float], init=False)
    _woken: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    _numbers: itertools.count[int] = field(default_factory=itertools.count, init=False)

    def __len__(self) -> int:
        """Items that are due now and wait for their turn."""
        now = self.clock()
        return sum(due <= now for due in self._due.values())

    @property
    def oldest_seconds(self) -> float:
        """For how long the item that is due longest has been waiting."""
        waiting = [due for item, due in self._due.items() if item not in self._busy]
        return max(0.0, self.clock() - min(waiting)) if waiting else 0.0

    def add(self, item: Item, after: float = 0.0) -> None:
        """Look at the item after so many seconds, or earlier if it is due earlier already."""
        due = max(self.clock() + after, self._last.get(item, float("-inf")) + self.gap)
        if due >= self._due.get(item, float("inf")):
            return
        self._due[item] = due
        if item not in self._busy:
            self._push(item, due)

    def forget(self, item: Item) -> None:
        """Drop what is kept of an item that is gone."""
        self._last.pop(item, None)

    def _push(self, item: Item, due: float) -> None:
        heapq.heappush(self._heap, (due, next(self._numbers), item))
        self._woken.set()

    async def serve(self, look: Callable[[Item], Awaitable[None]], at_once: int) -> NoReturn:
        """Look at items as they fall due, at most ``at_once`` at a time, for ever."""
        slots = asyncio.Semaphore(at_once)
        async with asyncio.TaskGroup() as tasks:
            while True:
                await slots.acquire()
                item = await self._next()
                task = tasks.create_task(self._look(item, look))
                task.add_done_callback(lambda _: slots.release())

    async def _look(self, item: Item, look: Callable[[Item], Awaitable[None]]) -> None:
        try:
            await look(item)
        finally:
            self._busy.discard(item)
            self._last[item] = self.clock()
            if item in self._due:
                self._due[item] = max(self._due[item], self._last[item] + self.gap)
                self._push(item, self._due[item])

    async def _next(self) -> Item:
        while True:
            wait = self._wait()
            if wait == 0:
                _, _, item = heapq.heappop(self._heap)
                del self._due[item]
                self._busy.add(item)
                return item
            self._woken.clear()
            try:
                async with asyncio.timeout(wait):
                    await self._woken.wait()
            except TimeoutError:
                continue

    def _wait(self) -> float | None:
        """Seconds until an item is due; None while none waits."""
        while self._heap:
            due, _, item = self._heap[0]
            if self._due.get(item) == due and item not in self._busy:
                return max(0.0, due - self.clock())
            heapq.heappop(self._heap)
        return None
