"""What the benches on a whole Kubernetes node share: a run's renderers, and ways to reach it."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx
from tests.cluster.node.cluster import Cluster

START_WITHIN = 900.0  # seconds for a run's environment and an autoscaler's first look
LOOK_EVERY = 1.0  # seconds between two looks at the pods
Json = dict[str, Any]


@dataclass
class Life:
    """A pod, as its own status tells; seconds since 1970."""

    start: float | None = None
    end: float | None = None
    code: int | None = None


@dataclass
class Pods:
    """The renderer pods that a run has had."""

    lives: dict[str, Life] = field(default_factory=dict[str, Life])
    most: int = 0
    alive: int = 0
    ready: int = 0

    def see(self, listed: Sequence[Json], now: float) -> None:
        """Take in a list of pods; one that is missing has ended."""
        for pod in listed:
            life = self.lives.setdefault(pod["metadata"]["uid"], Life())
            life.start = life.start or _seconds(pod["status"].get("startTime"))
            for container in pod["status"].get("containerStatuses", ()):
                if ended := container["state"].get("terminated"):
                    life.end, life.code = _seconds(ended["finishedAt"]), ended["exitCode"]
        there = {pod["metadata"]["uid"] for pod in listed}
        for uid, life in self.lives.items():
            if uid not in there and life.end is None:
                life.end = now
        self.alive = sum(life.end is None for life in self.lives.values())
        self.most = max(self.most, self.alive)
        self.ready = sum(
            {"type": "Ready", "status": "True"}.items() <= condition.items()
            for pod in listed
            if "deletionTimestamp" not in pod["metadata"]
            for condition in pod["status"].get("conditions", ())
        )

    @property
    def forced(self) -> int:
        """Pods that did not end by themselves."""
        return sum(bool(life.code) for life in self.lives.values())

    def seconds(self, begin: float, end: float) -> float:
        """Pod-seconds between two moments; a pod that has not started has none."""
        return sum(
            max(0.0, min(life.end or end, end) - max(life.start, begin))
            for life in self.lives.values()
            if life.start is not None
        )


def forward(namespace: str, name: str) -> tuple[str, ...]:
    """What kubectl is told, to serve a run's environment on this machine."""
    return ("-n", namespace, "port-forward", f"deployment/{name}-env", ":8000")


async def look(http: httpx.AsyncClient, server: str, namespace: str, name: str, pods: Pods) -> None:
    """Look at a run's renderers for ever."""
    selector = f"watercolour.dev/run={name},watercolour.dev/component=renderers"
    url = f"{server}/api/v1/namespaces/{namespace}/pods"
    while True:
        answer = await http.get(url, params={"labelSelector": selector})
        pods.see(answer.raise_for_status().json()["items"], time.time())
        await asyncio.sleep(LOOK_EVERY)


def _seconds(stamp: str | None) -> float | None:
    return None if stamp is None else datetime.fromisoformat(stamp).timestamp()


def say(text: str) -> None:
    """A line of progress, under the bench's name."""
    print(f"{Path(sys.argv[0]).stem}: {text}", file=sys.stderr, flush=True)


def begun(kubectl: Any, name: str) -> bool:
    """Whether a run's environment is ready. Raises RuntimeError with why it never will be."""
    status = json.loads(kubectl("get", "wcr", name, "-o", "json")).get("status", {})
    conditions = {each["type"]: each for each in status.get("conditions", ())}
    if conditions.get("Progressing", {}).get("reason") == "InvalidSpec":
        # Mostly images that are older than the chart.
        raise RuntimeError(conditions["Progressing"]["message"])
    return conditions.get("EnvReady", {}).get("status") == "True"


def until(what: str, holds: Any) -> None:
    """Wait until something holds. Raises RuntimeError when it takes a quarter of an hour."""
    give_up = time.monotonic() + START_WITHIN
    while not holds():
        if time.monotonic() > give_up:
            raise RuntimeError(f"{what} is not ready after {START_WITHIN:.0f} s")
        time.sleep(2)


@contextmanager
def served(found: Cluster, *words: str) -> Iterator[str]:
    """The base URL at which a kubectl that goes on running serves."""
    environment = os.environ | {"KUBECONFIG": str(found.kubeconfig)}
    command = [str(found.kubectl), *words]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as serving:
        try:
            assert serving.stdout is not None
            line = serving.stdout.readline()
            place = re.search(r"127\.0\.0\.1:\d+", line)
            if place is None:
                raise RuntimeError(f"kubectl {' '.join(words)} does not serve: {line}")
            yield f"http://{place[0]}"
        finally:
            serving.terminate()
