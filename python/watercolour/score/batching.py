"""What waits is worked on together; equal questions once.

One worker thread runs the model. What arrives within a short window, or while the worker is busy,
forms the next batch. The queue has an end: beyond it a caller is told when to come again.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, TypeVar

from watercolour.score.backend import Batching, Observed

Item = TypeVar("Item")
Found = TypeVar("Found")


class Busy(Exception):
    """The queue is full.

    Attributes:
        retry_after: seconds until a place is likely free, at least 1.
    """

    def __init__(self, retry_after: int) -> None:
        super().__init__(f"the scorer's queue is full; come again in {retry_after} s")
        self.retry_after = retry_after


class Batcher(Generic[Item, Found]):
    """Answers by key: remembered, shared among equal questions, or worked out in a batch."""

    def __init__(
        self,
        work: Callable[[Sequence[Item]], Sequence[Found | Exception]],
        batching: Batching,
        *,
        remembered: int = 4096,
        observed: Observed | None = None,
    ) -> None:
        """Start nothing yet; use as an asynchronous context manager.

        Args:
            work: called in the worker thread, one batch at a time: an answer for each item, or
                why it has none, so that one bad item harms no other.
            batching: the largest batch, the window and the queue's end.
            remembered: answers kept, least recently used dropped first.
            observed: told of batches and of remembered answers.
        """
        self._work = work
        self._batching = batching
        self._remembered = remembered
        self._observed = observed or Observed()
        self._cache: OrderedDict[bytes, Found] = OrderedDict()
        self._pending: dict[bytes, asyncio.Future[Found]] = {}
        self._queue: asyncio.Queue[tuple[bytes, Item]] = asyncio.Queue()
        self._thread = ThreadPoolExecutor(1, "model")
        self._worker: asyncio.Task[None] | None = None
        self._seconds_an_item = 0.05
        self.hits = 0

    async def __aenter__(self) -> Batcher[Item, Found]:
        self._worker = asyncio.create_task(self._serve())
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
        """Questions that wait for a batch."""
        return self._queue.qsize()

    async def ask(self, key: bytes, make: Callable[[], Item]) -> Found:
        """The answer to one question.

        Args:
            key: what equal questions share.
            make: the item; called only when the answer has to be worked out.

        Raises:
            Busy: too many wait already.
            Exception: what the work has instead of an answer.
        """
        found = self._cache.get(key)
        if found is not None:
            self._cache.move_to_end(key)
            self.hits += 1
            self._observed.hit()
            return found
        future = self._pending.get(key)
        if future is None:
            if self.waiting >= self._batching.max_waiting:
                raise Busy(max(1, round(self.waiting * self._seconds_an_item)))
            future = asyncio.get_running_loop().create_future()
            self._pending[key] = future
            self._queue.put_nowait((key, make()))
        # A caller that goes away must not take the answer from the others.
        return await asyncio.shield(future)

    async def _serve(self) -> None:
        most = self._batching.max_batch
        while True:
            batch = [await self._queue.get()]
            if self._queue.qsize() < most - 1:
                await asyncio.sleep(self._batching.window_s)
            while len(batch) < most and not self._queue.empty():
                batch.append(self._queue.get_nowait())
            await self._answer(batch)

    async def _answer(self, batch: list[tuple[bytes, Item]]) -> None:
        start = time.perf_counter()
        items = [item for _, item in batch]
        results: Sequence[Found | Exception]
        try:
            results = await asyncio.get_running_loop().run_in_executor(
                self._thread, self._work, items
            )
        # The boundary of the worker: whatever failed, every waiting caller learns of it.
        except Exception as error:
            results = [error] * len(batch)
        seconds = time.perf_counter() - start
        self._seconds_an_item = seconds / len(batch)
        self._observed.batch(len(batch), seconds)
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
