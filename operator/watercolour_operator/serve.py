"""The operator at work: watches, Lease, queue, polls and sweep, begun and ended together."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from watercolour.api.reasons import Reason
from watercolour.logs import bind, get
from watercolour_operator import reap
from watercolour_operator.cluster import errors, watch
from watercolour_operator.cluster.api import Api
from watercolour_operator.cluster.errors import ApiError, WriteRefused
from watercolour_operator.cluster.kinds import RUN, WATCHED, Kind
from watercolour_operator.cluster.store import Key, Store
from watercolour_operator.cluster.write import Writer
from watercolour_operator.lease import Lease, LeaseLost
from watercolour_operator.metrics import Metrics
from watercolour_operator.observe import Observer, wake_sharers
from watercolour_operator.observed import Trouble
from watercolour_operator.polls import Polls, Sources
from watercolour_operator.queue import Queue
from watercolour_operator.reconcile import Outcome, World, reconcile, tell
from watercolour_operator.settings import Settings

log = get(__name__)

#: Seconds before a failed look is repeated: at first after a hiccup of the API server, at first
#: after anything else, and at most.
HICCUP_PAUSE, FIRST_PAUSE, LONGEST_PAUSE = 1.0, 5.0, 60.0
#: Seconds between two comparisons of all runs with what the caches hold.
SWEEP_SECONDS = 300.0
#: Seconds between two tries to reach an API server that does not serve runs.
WAIT_SECONDS = 2.0


@dataclass
class Operator:
    """One operator process."""

    settings: Settings
    api: Api
    lease: Lease
    sources: Sources
    metrics: Metrics = field(default_factory=Metrics)
    #: Monotonic time at which the last look at a run ended.
    last_look: float = field(default_factory=time.monotonic, init=False)
    #: What is in the way of the first look, in words; empty when nothing is.
    waits_for: str = field(default="the API server", init=False)
    _failures: dict[Key, int] = field(default_factory=dict[Key, int], init=False)

    def __post_init__(self) -> None:
        self.queue: Queue[Key] = Queue()
        self.store = Store(changed=self._changed)
        self.polls = Polls(self.store, self.sources, self.settings.poll_seconds, self._wake)
        self.world = World(
            settings=self.settings,
            store=self.store,
            observer=Observer(self.api, self.store, self.polls),
            writer=Writer(self.api, self.store),
            sources=self.sources,
            metrics=self.metrics,
        )
        self.api.may_write = self.lease.remaining
        self.api.ended = self.metrics.api_call
        self.metrics.queue_depth.set_function(lambda: len(self.queue))
        self.metrics.lease_held.set_function(lambda: self.lease.held)

    def _changed(self, key: Key) -> None:
        if not key[1]:
            for sharer in wake_sharers(self.store, key):
                self._wake(sharer)
            return
        if key in self.store.runs or key in self.world.memories:
            self._wake(key)
            self.polls.wake(key)

    def _wake(self, key: Key) -> None:
        self.queue.add(key)

    @property
    def scopes(self) -> tuple[str | None, ...]:
        """The namespaces to watch; a single None stands for all."""
        return self.settings.namespaces or (None,)

    async def work(self, watch_runs: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Work until `watch_runs` returns, then give the Lease back.

        Raises:
            LeaseLost: another process may be the writer now; this one must end.
        """
        await self._until_served()
        watching = asyncio.create_task(watch_runs())
        tasks = [watching, asyncio.create_task(self._lead())]
        for scope in self.scopes:
            tasks += [asyncio.create_task(self._follow(kind, scope)) for kind in WATCHED]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        # Nothing of ours writes any more.
        await self.lease.release()
        for task in done:
            task.result()

    async def _until_served(self) -> None:
        """Wait until the API server serves runs and lets us list them."""
        told = ""
        while True:
            try:
                for scope in self.scopes:
                    await self.api.page(RUN, scope, {"limit": "1"}, metadata=True)
            except ApiError as error:
                trouble = errors.trouble(error)
                self.waits_for = trouble.message
                if told != trouble.message:
                    log.warning("waiting: %s", trouble.message)
                    told = trouble.message
                await asyncio.sleep(error.retry_after or WAIT_SECONDS)
                continue
            self.waits_for = ""
            return

    async def _follow(self, kind: Kind, scope: str | None) -> None:
        await watch.follow(
            self.api,
            self.store,
            kind,
            scope,
            silence=self.settings.watch_silence_seconds,
            restarted=self._restarted,
        )

    def _restarted(self, kind: str, why: str) -> None:
        self.metrics.watch_restarts.labels(kind, why).inc()

    async def _lead(self) -> None:
        await self.lease.acquire()
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self.lease.hold())
                tasks.create_task(self.queue.serve(self._look, self.settings.workers))
                tasks.create_task(self.polls.serve())
                tasks.create_task(self._sweep())
        except ExceptionGroup as group:
            lost = group.subgroup(LeaseLost)
            raise lost.exceptions[0] if lost else group from None

    async def _look(self, key: Key) -> None:
        run = self.store.runs.get(key)
        began = time.monotonic()
        with bind(namespace=key[0], run=key[1], uid=run.uid if run else None):
            try:
                outcome = await reconcile(self.world, key)
            except WriteRefused:
                # The Lease is renewed or lost within seconds; either way nothing is to be told.
                outcome = Outcome(again=1.0)
            except ApiError as error:
                log.warning("%s", error)
                trouble = errors.trouble(error)
                outcome = Outcome(trouble=trouble, retry_after=error.retry_after)
                # A hiccup is over before anybody has read of it.
                hiccup = trouble.reason is Reason.API_UNAVAILABLE or errors.is_ending(error)
                if run is not None and not hiccup:
                    await tell(self.world, run, trouble)
            except Exception as error:
                # One broken run must not stand in the way of the others.
                log.exception("a fault of the operator")
                trouble = errors.trouble(error)
                outcome = Outcome(trouble=trouble)
                if run is not None:
                    await tell(self.world, run, trouble)
        self.last_look = time.monotonic()
        self.metrics.reconcile_seconds.observe(self.last_look - began)
        self._again(key, outcome)

    def _again(self, key: Key, outcome: Outcome) -> None:
        if key not in self.store.runs:
            self._failures.pop(key, None)
            self.queue.forget(key)
            return
        again = outcome.again
        if again is None or again >= self.settings.resync_seconds:
            # Not before what adds up is to be written again, so that one look does both.
            again = self.settings.resync_seconds * random.uniform(1.0, 1.2)
        if outcome.trouble is None:
            self._failures.pop(key, None)
        else:
            self.metrics.reconcile_errors.labels(outcome.trouble.reason.value).inc()
            again = min(again, self._pause(key, outcome.trouble, outcome.retry_after))
        self.queue.add(key, again)

    def _pause(self, key: Key, trouble: Trouble, retry_after: float | None) -> float:
        """Seconds until a look that met trouble is repeated: ever longer, and not all at once."""
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        first = HICCUP_PAUSE if trouble.reason is Reason.API_UNAVAILABLE else FIRST_PAUSE
        pause = min(LONGEST_PAUSE, first * 2 ** min(failures - 1, 10))
        return max(retry_after or 0.0, pause * random.uniform(0.8, 1.2))

    async def _sweep(self) -> None:
        """Compare with the API server now and then: runs that went unseen, objects left behind."""
        while True:
            try:
                listed, version = await reap.living(self.api, self.scopes)
            except ApiError as error:
                log.warning("sweep: %s", error.words)
            else:
                for key, run in list(self.store.runs.items()):
                    if run.uid not in listed and run.version <= version:
                        self.store.drop_run(key, run.uid, run.version)
                left = reap.orphans(self.store.entries(), listed, datetime.now(UTC))
                self.metrics.leaked.set(len(left))
            await asyncio.sleep(SWEEP_SECONDS)
