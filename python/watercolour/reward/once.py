"""Work that equal requests share: done once at a time, and remembered when it succeeded."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

Value = TypeVar("Value")


@dataclass
class _Flight(Generic[Value]):
    task: asyncio.Task[Value]
    waiting: int = 0


class Once(Generic[Value]):
    """A cache whose equal requests, made at the same time, wait for one piece of work.

    A failure is handed to everyone who waited for it and is never remembered. When the last one
    who waits is cancelled, the work is cancelled too. Belongs to one event loop.
    """

    def __init__(self, capacity: int) -> None:
        """Remember at most ``capacity`` values, the least recently used go first."""
        self._capacity = capacity
        self._done: OrderedDict[Hashable, Value] = OrderedDict()
        self._flights: dict[Hashable, _Flight[Value]] = {}

    def __contains__(self, key: Hashable) -> bool:
        """Whether :meth:`get` would make nothing: the value is known or on its way."""
        return key in self._done or key in self._flights

    async def get(self, key: Hashable, make: Callable[[], Awaitable[Value]]) -> Value:
        """The value of ``key``, made by ``make`` unless it is known or on its way.

        Raises whatever ``make`` raises.
        """
        if key in self._done:
            self._done.move_to_end(key)
            return self._done[key]
        flight = self._flights.get(key)
        if flight is None:
            flight = self._start(key, make)
        flight.waiting += 1
        try:
            # Shielded: one caller's cancellation must not take the work from the others.
            return await asyncio.shield(flight.task)
        finally:
            flight.waiting -= 1
            if flight.waiting == 0 and not flight.task.done():
                self._flights.pop(key, None)
                flight.task.cancel()

    def _start(self, key: Hashable, make: Callable[[], Awaitable[Value]]) -> _Flight[Value]:
        async def work() -> Value:
            return await make()

        flight = _Flight(asyncio.create_task(work()))
        self._flights[key] = flight
        flight.task.add_done_callback(lambda task: self._land(key, flight, task))
        return flight

    def _land(self, key: Hashable, flight: _Flight[Value], task: asyncio.Task[Value]) -> None:
        if self._flights.get(key) is flight:
            del self._flights[key]
        # Asking for the exception also tells asyncio that somebody looked at it.
        if task.cancelled() or task.exception() is not None:
            return
        self._done[key] = task.result()
        while len(self._done) > self._capacity:
            self._done.popitem(last=False)
