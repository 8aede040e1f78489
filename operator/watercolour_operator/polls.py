"""What the pods of runs answer when they are asked, kept for the next look at their run.

The trainer is asked for its progress, the environment for its queue, the renderers for their load.
Who does not answer is not known: ``None``, and never the last answer. But a question may get lost
on its way, and the next may be a minute off, so it is put twice before silence counts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from watercolour.api.status import Progress
from watercolour_operator.cluster.store import Key, Store
from watercolour_operator.names import Component
from watercolour_operator.observed import Demand, Load, Pod
from watercolour_operator.queue import Queue

T = TypeVar("T")

#: Runs that are asked at the same time.
AT_ONCE = 32
#: Questions a second in all; with more runs each is asked less often.
MOST_PER_SECOND = 40.0


class Sources(Protocol):
    """How the pods of a run are asked. A question never raises: no usable answer is None."""

    async def progress(self, namespace: str, run: str, pod: Pod) -> Progress | None:
        """The trainer's ``GET /progress``."""
        ...

    async def demand(self, namespace: str, run: str, pod: Pod) -> Demand | None:
        """The environment's ``GET /v1/demand``."""
        ...

    async def load(self, namespace: str, run: str, pod: Pod) -> Load | None:
        """A renderer's ``GET /v1/load``."""
        ...

    async def drain(self, namespace: str, run: str, pod: Pod) -> bool:
        """A renderer's ``POST /v1/drain``; whether it agreed."""
        ...

    async def undrain(self, namespace: str, run: str, pod: Pod) -> bool:
        """A renderer's ``DELETE /v1/drain``; whether it agreed."""
        ...


@dataclass(frozen=True, slots=True)
class Answers:
    """The answers of one run's pods to the newest questions."""

    progress: Progress | None = None
    demand: Demand | None = None
    loads: Mapping[str, Load] = field(default_factory=dict[str, Load])


SILENCE = Answers()


@dataclass
class Polls:
    """Asks the pods of every run that has some, again and again."""

    store: Store
    sources: Sources
    #: Seconds between two questions to the same pod.
    seconds: float
    #: Told the key of a run whose answers have changed.
    changed: Callable[[Key], None]
    _answers: dict[Key, tuple[str, Answers]] = field(
        default_factory=dict[Key, tuple[str, Answers]], init=False
    )
    _queue: Queue[Key] = field(default_factory=lambda: Queue[Key](gap=0.5), init=False)

    def answers(self, key: Key, uid: str) -> Answers:
        """What the run's pods said when they were last asked."""
        known = self._answers.get(key)
        return known[1] if known and known[0] == uid else SILENCE

    def wake(self, key: Key) -> None:
        """Something of the run has changed: ask soon if there is anybody to be asked."""
        if self._listening(key):
            self._queue.add(key, 0.0 if key not in self._answers else self.seconds)
        else:
            self._answers.pop(key, None)

    async def serve(self) -> None:
        """Ask for ever."""
        await self._queue.serve(self._ask, AT_ONCE)

    async def _ask(self, key: Key) -> None:
        run, pods = self.store.runs.get(key), self._listening(key)
        if run is None or not pods:
            self._answers.pop(key, None)
            self._queue.forget(key)
            return
        new = await self._answers_of(key, pods)
        old = self.answers(key, run.uid)
        first = key not in self._answers
        self._answers[key] = (run.uid, new)
        if first or new != old:
            self.changed(key)
        asked_a_second = len(self._answers) * 3 / MOST_PER_SECOND
        self._queue.add(key, max(self.seconds, asked_a_second))

    async def _answers_of(self, key: Key, pods: list[Pod]) -> Answers:
        namespace, name = key
        ask = self.sources
        trainer, env = _newest(pods, Component.TRAINER), _newest(pods, Component.ENV)
        renderers = [pod for pod in pods if pod.component is Component.RENDERERS]
        async with asyncio.TaskGroup() as tasks:
            progress = demand = None
            if trainer:
                progress = tasks.create_task(_twice(ask.progress, namespace, name, trainer))
            if env:
                demand = tasks.create_task(_twice(ask.demand, namespace, name, env))
            loads = {
                pod.name: tasks.create_task(_twice(ask.load, namespace, name, pod))
                for pod in renderers
            }
        answered = {pod: load for pod, asked in loads.items() if (load := asked.result())}
        return Answers(
            progress.result() if progress else None, demand.result() if demand else None, answered
        )

    def _listening(self, key: Key) -> list[Pod]:
        """The run's pods that may answer: running, and ready unless they are the trainer."""
        run = self.store.runs.get(key)
        if run is None:
            return []
        asked = (Component.TRAINER, Component.ENV, Component.RENDERERS)
        pods = (found.record for found in self.store.of(key, run.uid))
        return [
            pod
            for pod in pods
            if isinstance(pod, Pod)
            and pod.component in asked
            and pod.phase == "Running"
            and pod.started is not None
            and pod.ended is None
        ]


async def _twice(
    ask: Callable[[str, str, Pod], Awaitable[T | None]], namespace: str, run: str, pod: Pod
) -> T | None:
    answer = await ask(namespace, run, pod)
    return answer if answer is not None else await ask(namespace, run, pod)


def _newest(pods: list[Pod], component: Component) -> Pod | None:
    """Of several the youngest attempt's first, which leads its training; no other can answer."""
    every = [pod for pod in pods if pod.component is component and not pod.index]
    latest = max((pod.attempt or 0 for pod in every), default=0)
    return min(
        (pod for pod in every if (pod.attempt or 0) == latest),
        key=lambda pod: (pod.deleting is not None, pod.name),
        default=None,
    )
