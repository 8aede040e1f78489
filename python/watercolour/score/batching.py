"""Pictures that wait are embedded together; equal ones once.

One worker thread runs the backbone. What arrives within a short window, or while the worker is
busy, forms the next batch. The queue has an end: beyond it a caller is told when to come again.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from watercolour.score.features import Features, NotAPicture

#: Features of one picture, or why it has none.
Embed = Callable[[Sequence[bytes]], Sequence[Features | NotAPicture]]


class Busy(Exception):
    """The queue is full.

    Attributes:
        retry_after: seconds until a place is likely free, at least 1.
    """

    def __init__(self, retry_after: int) -> None:
        super().__init__(f"the scorer's queue is full; come again in {retry_after} s")
        self.retry_after = retry_after


class Batcher:
    """Features by picture: remembered, shared among equal requests, or embedded in a batch."""

    def __init__(
        self,
        embed: Embed,
        *,
        max_batch: int = 8,
        window_s: float = 0.004,
        max_waiting: int = 256,
        remembered: int = 4096,
        observe: Callable[[int, float], None] = lambda _size, _seconds: None,
    ) -> None:
        """Start nothing yet; use as an asynchronous context manager.

        Args:
            embed: called in the worker thread, one batch at a time.
            max_batch: most pictures of one call.
            window_s: how long the first of a batch waits for others.
            max_waiting: pictures that may wait; above it :class:`Busy` is raised.
            remembered: pictures whose features are kept, least recently used dropped first
                (9 kB each).
            observe: told the size and the seconds of each batch.
        """
        self._embed = embed
        self._max_batch = max_batch
        self._window_s = window_s
        self._max_waiting = max_waiting
        self._remembered = remembered
        self._observe = observe
        self._cache: OrderedDict[bytes, Features] = OrderedDict()
        self._pending: dict[bytes, asyncio.Future[Features]] = {}
        self._queue: asyncio.Queue[tuple[bytes, bytes]] = asyncio.Queue()
        self._thread = ThreadPoolExecutor(1, "backbone")
        self._worker: asyncio.Task[None] | None = None
        self._seconds_a_picture = 0.05
        self.hits = 0

    async def __aenter__(self) -> Batcher:
        self._worker = asyncio.create_task(self._work())
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._worker is not None:
            self._worker.cancel()
            await asyncio.gather(self._worker, return_exceptions=True)
        for waiting in self._pending.values():
            waiting.cancel()
        self._thread.shutdown(wait=False, cancel_futures=True)

    @property
    def waiting(self) -> int:
        """Pictures that wait for a batch."""
        return self._queue.qsize()

    async def features(self, painting: bytes) -> Features:
        """Features of one picture.

        Raises:
            NotAPicture: the bytes cannot be decoded.
            Busy: too many pictures wait already.
        """
        key = hashlib.sha256(painting).digest()
        found = self._cache.get(key)
        if found is not None:
            self._cache.move_to_end(key)
            self.hits += 1
            return found
        future = self._pending.get(key)
        if future is None:
            if self.waiting >= self._max_waiting:
                raise Busy(max(1, round(self.waiting * self._seconds_a_picture)))
            future = asyncio.get_running_loop().create_future()
            self._pending[key] = future
            self._queue.put_nowait((key, painting))
        # A caller that goes away must not take the answer from the others.
        return await asyncio.shield(future)

    async def _work(self) -> None:
        while True:
            batch = [await self._queue.get()]
            if self._queue.qsize() < self._max_batch - 1:
                await asyncio.sleep(self._window_s)
            while len(batch) < self._max_batch and not self._queue.empty():
                batch.append(self._queue.get_nowait())
            await self._answer(batch)

    async def _answer(self, batch: list[tuple[bytes, bytes]]) -> None:
        start = time.perf_counter()
        paintings = [painting for _, painting in batch]
        try:
            results = await asyncio.get_running_loop().run_in_executor(
                self._thread, self._embed, paintings
            )
        # The boundary of the worker: whatever failed, every waiting caller learns of it.
        except Exception as error:
            results = [error] * len(batch)
        seconds = time.perf_counter() - start
        self._seconds_a_picture = seconds / len(batch)
        self._observe(len(batch), seconds)
        for (key, _), result in zip(batch, results, strict=True):
            future = self._pending.pop(key)
            if isinstance(result, Exception):
                future.set_exception(result)
                future.exception()  # seen, even if every caller has gone away
            else:
                self._cache[key] = result
                future.set_result(result)
        while len(self._cache) > self._remembered:
            self._cache.popitem(last=False)
