"""A small model of renderers in a cluster: queue, pods, and the ReplicaSet with its real order.

It is what scaling rules are compared and tested on. Time goes by in steps of a second; whatever
the model leaves to chance comes from its own generator.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from watercolour_operator.names import Component
from watercolour_operator.observed import Demand, Load, Pod
from watercolour_operator.scaling import victims

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(slots=True)
class Render:
    """One sketch on its way to a painting; seconds since the trace's beginning."""

    arrives: float
    #: Seconds that it takes to paint.
    seconds: float
    #: When the trainer announces it; None when it does not.
    announced: float | None = None
    #: When the trainer says that it will arrive; None when it is right.
    due: float | None = None
    started: float | None = None
    ended: float | None = None


@dataclass(slots=True)
class Worker:
    """A renderer pod."""

    name: str
    created: float
    #: When the kubelet starts its container, and when it becomes ready.
    starts: float
    readies: float
    draining: bool = False
    cost: int = 0
    jobs: list[Render] = field(default_factory=list[Render])


@dataclass
class World:
    """Queue, pods and ReplicaSet.

    Attributes:
        renders: all that will arrive.
        slots: sketches that a pod paints at once.
        cold_start: seconds from a pod's creation to its readiness.
        lag: most seconds that the ReplicaSet controller takes to act on a new number.
    """

    renders: Sequence[Render]
    slots: int = 1
    cold_start: float = 20.0
    lag: float = 0.0
    rng: random.Random = field(default_factory=lambda: random.Random(0))
    now: float = 0.0
    wanted: int = 0
    workers: list[Worker] = field(default_factory=list[Worker])
    queue: deque[Render] = field(default_factory=deque[Render])
    #: Renders that the ReplicaSet has torn from a pod.
    kills: int = 0
    pod_seconds: float = 0.0
    idle_seconds: float = 0.0
    _serial: int = 0
    _arrived: int = 0
    #: Numbers of replicas on their way to the ReplicaSet: when it learns of it, how many.
    _orders: deque[tuple[float, int]] = field(default_factory=deque[tuple[float, int]])
    _acts_on: int = 0

    def __post_init__(self) -> None:
        self.renders = sorted(self.renders, key=lambda render: render.arrives)
        self._acts_on = self.wanted

    def scale(self, replicas: int) -> None:
        """Write the Deployment's spec.replicas."""
        if replicas != self.wanted:
            self.wanted = replicas
            learns = self.now + self.rng.uniform(0, self.lag)
            earliest = self._orders[-1][0] if self._orders else 0.0
            self._orders.append((max(learns, earliest), replicas))

    def step(self) -> None:
        """Let a second go by."""
        self.now += 1.0
        self._finish()
        while self._arrived < len(self.renders):
            render = self.renders[self._arrived]
            if render.arrives > self.now:
                break
            self.queue.append(render)
            self._arrived += 1
        self._replicate()
        self._dispatch()
        for worker in self.workers:
            self.pod_seconds += 1.0
            self.idle_seconds += 0.0 if worker.jobs else 1.0

    @property
    def over(self) -> bool:
        """Whether everything has arrived and been painted."""
        return self._arrived == len(self.renders) and self.demand().inflight == 0 == len(self.queue)

    def demand(self) -> Demand:
        """What the environment's ``GET /v1/demand`` says."""
        announced = [
            render.arrives if render.due is None else render.due
            for render in self.renders[self._arrived :]
            if render.announced is not None and render.announced <= self.now
        ]
        inflight = sum(len(worker.jobs) for worker in self.workers)
        due = max(min(announced, default=0.0) - self.now, 0.0)
        return Demand(len(self.queue), inflight, len(announced), due_seconds=due)

    def loads(self) -> dict[str, Load]:
        """What the ``GET /v1/load`` of the running pods say."""
        return {
            worker.name: Load(self.slots, len(worker.jobs), worker.draining)
            for worker in self.workers
            if worker.starts <= self.now
        }

    def pods(self) -> tuple[Pod, ...]:
        """The pods as the API server shows them."""
        return tuple(self._pod(worker) for worker in self.workers)

    def clock(self) -> datetime:
        """The time of day."""
        return EPOCH + timedelta(seconds=self.now)

    def worker(self, name: str) -> Worker | None:
        """The pod of a name, while it is there."""
        return next((worker for worker in self.workers if worker.name == name), None)

    def _pod(self, worker: Worker) -> Pod:
        started, readied = worker.starts <= self.now, worker.readies <= self.now
        return Pod(
            name=worker.name,
            uid=worker.name,
            component=Component.RENDERERS,
            phase="Running" if started else "Pending",
            created=EPOCH + timedelta(seconds=worker.created),
            owner_uid="replicaset",
            node="node",
            ready=readied,
            readied=EPOCH + timedelta(seconds=worker.readies) if readied else None,
            started=EPOCH + timedelta(seconds=worker.starts) if started else None,
            deletion_cost=worker.cost,
        )

    def _finish(self) -> None:
        for worker in self.workers:
            for render in [one for one in worker.jobs if self._end(one) <= self.now]:
                render.ended = self.now
                worker.jobs.remove(render)

    def _end(self, render: Render) -> float:
        return (self.now if render.started is None else render.started) + render.seconds

    def _replicate(self) -> None:
        while self._orders and self._orders[0][0] <= self.now:
            self._acts_on = self._orders.popleft()[1]
        surplus = len(self.workers) - self._acts_on
        for _ in range(-surplus):
            self._create()
        if surplus > 0:
            # What the ReplicaSet prefers beyond rank (nodes, age) may fall out either way.
            doomed = sorted(
                self.workers, key=lambda one: (*victims.rank(self._pod(one)), self.rng.random())
            )
            for worker in doomed[:surplus]:
                self.kills += len(worker.jobs)
                self.queue.extendleft(reversed(worker.jobs))
                self.workers.remove(worker)

    def _create(self) -> None:
        self._serial += 1
        self.workers.append(
            Worker(
                name=f"pod-{self._serial}",
                created=self.now,
                starts=self.now + self.cold_start / 2,
                readies=self.now + self.cold_start,
            )
        )

    def _dispatch(self) -> None:
        while self.queue:
            free = [
                worker
                for worker in self.workers
                if worker.readies <= self.now
                and not worker.draining
                and len(worker.jobs) < self.slots
            ]
            if not free:
                return
            worker = min(free, key=lambda one: len(one.jobs))
            render = self.queue.popleft()
            render.started = self.now
            worker.jobs.append(render)
