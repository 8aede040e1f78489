"""A whole life of a run on the real API server, with pods played by a script."""

from __future__ import annotations

from tests.cluster.ground.api import Api
from tests.cluster.operator.conftest import Start
from tests.cluster.operator.harness import Story


def test_a_run_goes_from_pending_to_succeeded(
    api: Api, namespace: str, story: Story, start: Start
) -> None:
    start()
    story.create()
    story.until("Starting")
    pod = story.train()
    api.until_one(
        "Deployment", "peonies-scorer", namespace, lambda found: found["spec"]["replicas"] == 1
    )
    done = story.finish(pod)
    assert done["status"]["attempts"][0]["reason"] == "Succeeded"
    assert api.list("Deployment", namespace) == []
    assert story.jobs() == ["peonies-trainer-1"]


def test_sigterm_ends_the_operator_and_gives_the_lease_back(
    api: Api, namespace: str, story: Story, start: Start
) -> None:
    first = start()
    api.until_one("Lease", "operator", namespace, lambda it: it["spec"]["holderIdentity"])
    story.create()
    assert first.stop(within=10) == 0
    assert api.get("Lease", "operator", namespace)["spec"]["holderIdentity"] == ""
    start()
    story.until("Starting")


def test_nothing_of_kopf_is_left_in_a_run(story: Story, start: Start) -> None:
    start()
    story.create()
    metadata = story.until("Starting")["metadata"]
    assert "finalizers" not in metadata
    assert "annotations" not in metadata
