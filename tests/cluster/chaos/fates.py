"""What is in store for the runs of a storm: the lives of their trainers, drawn by chance."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

from tests.cluster.ground import podlife
from tests.cluster.ground.podlife import Creating, Evicted, Life, Running
from tests.cluster.ground.podplayer import PodPlayer

Json = dict[str, Any]
DEADLINE = 20  # seconds that a run of a storm may take to start


@dataclass(frozen=True)
class Fate:
    """The lives of a run's trainers, the first of them first; the last one stays."""

    name: str
    lives: tuple[Life, ...]
    memory: str = "1Gi"
    restarts: int = 1


def draw(chance: Random) -> Fate:
    """A fate by chance."""
    makers: tuple[tuple[int, Callable[[Random], Fate]], ...] = (
        (6, lambda c: Fate("succeeds", (_well(c),))),
        (2, lambda c: Fate("fails once", (_badly(c), _well(c)))),
        (2, lambda c: Fate("fails always", (_badly(c),))),
        (1, lambda c: Fate("out of memory", (_hungry(c),), restarts=0)),
        (2, lambda c: Fate("evicted once", (_evicted(c), _well(c)), restarts=0)),
        (1, lambda c: Fate("no image", (podlife.cannot_pull(),))),
        (1, lambda c: Fate("fits nowhere", (_well(c),), memory="900Ti")),
    )
    weights = [weight for weight, _ in makers]
    return chance.choices([make for _, make in makers], weights)[0](chance)


def script(pods: PodPlayer, namespace: str, run: str, fate: Fate) -> None:
    """Tell the kubelets what the run's trainers do."""
    labels = {"watercolour.dev/run": run, "watercolour.dev/component": "trainer"}
    *first, last = fate.lives
    pods.script(namespace, last, labels=labels)
    for life in reversed(first):
        pods.script(namespace, life, labels=labels, times=1)


def manifest(name: str, fate: Fate) -> Json:
    """The run."""
    return {
        "apiVersion": "watercolour.dev/v1alpha1",
        "kind": "WatercolourRun",
        "metadata": {"name": name},
        "spec": {
            "trainer": {
                "steps": 3,
                "resources": {"limits": {"nvidia.com/gpu": "1", "memory": fate.memory}},
            },
            "artifacts": {"claim": "artifacts"},
            "startupDeadlineSeconds": DEADLINE,
            "restartPolicy": {"maxRestarts": fate.restarts},
        },
    }


def _soon(chance: Random) -> float:
    return chance.uniform(0.3, 4.0)


def _well(chance: Random) -> Life:
    return podlife.finishes(0, after=_soon(chance))


def _badly(chance: Random) -> Life:
    return podlife.finishes(1, after=_soon(chance), message="lost its way")


def _hungry(chance: Random) -> Life:
    return podlife.out_of_memory(after=_soon(chance))


def _evicted(chance: Random) -> Life:
    return Life((Creating(), Running(), Evicted(after=_soon(chance))))
