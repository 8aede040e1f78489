"""Whom the operator asks, and what it keeps of the answers."""

from __future__ import annotations

import asyncio
from typing import Any

from watercolour.api.status import Progress
from watercolour_operator import names
from watercolour_operator.cluster.kinds import POD
from watercolour_operator.cluster.store import Store
from watercolour_operator.names import Component
from watercolour_operator.observed import Demand, Load, Pod
from watercolour_operator.polls import Answers, Polls

KEY = ("studio", "peonies")
MADE = "2026-09-01T10:00:00Z"


class Asked:
    """Answers for every pod, and remembers who was asked for its progress."""

    def __init__(self) -> None:
        self.trainers: list[str] = []

    async def progress(self, namespace: str, run: str, pod: Pod) -> Progress | None:
        self.trainers.append(pod.name)
        return Progress(step=1, steps=3)

    async def demand(self, namespace: str, run: str, pod: Pod) -> Demand | None:
        return None

    async def load(self, namespace: str, run: str, pod: Pod) -> Load | None:
        return None

    async def drain(self, namespace: str, run: str, pod: Pod) -> bool:
        return False

    async def undrain(self, namespace: str, run: str, pod: Pod) -> bool:
        return False


def trainer(name: str, version: int, attempt: int = 1, index: int | None = None) -> dict[str, Any]:
    labels = {
        names.RUN: KEY[1],
        names.RUN_UID: "u",
        names.COMPONENT: Component.TRAINER.value,
        names.ATTEMPT: str(attempt),
    }
    if index is not None:
        labels[names.INDEX] = str(index)
    running = {"name": "trainer", "state": {"running": {"startedAt": MADE}}}
    return {
        "metadata": {
            "name": name,
            "namespace": KEY[0],
            "uid": name,
            "resourceVersion": str(version),
            "creationTimestamp": MADE,
            "labels": labels,
        },
        "spec": {"nodeName": "gpu-0", "containers": []},
        "status": {"phase": "Running", "containerStatuses": [running]},
    }


def asked(*pods: dict[str, Any]) -> list[str]:
    """The trainers that are asked of a run with these pods, once."""
    sources = Asked()
    answers(sources, *pods)
    return sources.trainers


def answers(sources: Asked, *pods: dict[str, Any]) -> Answers:
    """What a run with these pods answers to the first round of questions."""
    store = Store()
    store.put_run(
        {
            "metadata": {
                "name": KEY[1],
                "namespace": KEY[0],
                "uid": "u",
                "resourceVersion": "1",
                "creationTimestamp": MADE,
            }
        }
    )
    for raw in pods:
        store.put(POD, raw)

    async def once() -> Answers:
        told = asyncio.Event()
        polls = Polls(store, sources, 60.0, lambda key: told.set())
        polls.wake(KEY)
        task = asyncio.create_task(polls.serve())
        await told.wait()
        task.cancel()
        return polls.answers(KEY, "u")

    return asyncio.run(once())


def test_of_several_trainers_the_first_is_asked() -> None:
    made = [trainer(f"peonies-trainer-1-{n}-x", n + 2, index=n) for n in (1, 0, 10)]
    assert asked(*made) == ["peonies-trainer-1-0-x"]


def test_while_the_first_is_away_nobody_is_asked_in_its_place() -> None:
    assert asked(trainer("peonies-trainer-1-1-x", 2, index=1)) == []


def test_of_two_attempts_the_newest_is_asked() -> None:
    made = [trainer("peonies-trainer-1-x", 2), trainer("peonies-trainer-2-a", 3, attempt=2)]
    assert asked(*made) == ["peonies-trainer-2-a"]


class Deaf(Asked):
    """Pods of which every second question gets lost."""

    def __init__(self) -> None:
        super().__init__()
        self.questions = 0

    async def demand(self, namespace: str, run: str, pod: Pod) -> Demand | None:
        self.questions += 1
        return Demand(1, 0, 0) if self.questions % 2 == 0 else None


def test_a_question_that_got_lost_is_put_again_before_silence_counts() -> None:
    sources, raw = Deaf(), trainer("peonies-env-x", 2)
    raw["metadata"]["labels"][names.COMPONENT] = Component.ENV.value
    raw["status"]["containerStatuses"][0]["name"] = "env"
    assert answers(sources, raw).demand == Demand(1, 0, 0)
    assert sources.questions == 2
