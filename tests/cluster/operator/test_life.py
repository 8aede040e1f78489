"""A whole life of a run on the real API server, with pods played by a script."""

from __future__ import annotations

from tests.cluster.ground.api import Api
from tests.cluster.ground.podlife import Exited
from tests.cluster.ground.podplayer import PodPlayer
from tests.cluster.operator.conftest import Start
from tests.cluster.operator.harness import Answers, phase, run, volume


def test_a_run_goes_from_pending_to_succeeded(
    api: Api, namespace: str, pods: PodPlayer, answers: Answers, start: Start
) -> None:
    start()
    volume(api, namespace)
    api.create(run(), namespace)
    api.until_one("WatercolourRun", "peonies", namespace, lambda it: phase(it) == "Starting")
    labels = {"watercolour.dev/component": "trainer"}
    (trainer,) = api.until("Pod", lambda found: len(found) == 1, namespace, labels=labels)
    answers.say("peonies", "env", "/v1/demand", {"queued": 0, "inflight": 0, "announced": 8})
    answers.say("peonies", "trainer", "/progress", {"step": 1, "steps": 3})
    api.until_one("WatercolourRun", "peonies", namespace, lambda it: phase(it) == "Running")
    pods.step(namespace, trainer["metadata"]["name"], Exited(0))
    done = api.until_one(
        "WatercolourRun", "peonies", namespace, lambda it: phase(it) == "Succeeded"
    )
    assert done["status"]["attempts"][0]["reason"] == "Succeeded"
    assert api.list("Deployment", namespace) == []
