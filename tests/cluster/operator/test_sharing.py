"""Runs of a namespace that share one scorer, on the real API server."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.cluster.ground.api import Api
from tests.cluster.operator.conftest import Start
from tests.cluster.operator.harness import Story

from watercolour_operator import names

Json = dict[str, Any]
SHARED = {"sharing": "Namespace"}
#: A way in which a run, whose trainer's pod is named, has no more use for its scorer.
Leave = Callable[[Story, str], None]


def scorers(api: Api, namespace: str) -> list[Json]:
    return api.list("Deployment", namespace, labels={names.COMPONENT: "scorer"})


def owned_by(*runs: str) -> Any:
    def matches(found: list[Json]) -> bool:
        owners = [
            sorted(owner["name"] for owner in one["metadata"]["ownerReferences"]) for one in found
        ]
        return owners == [sorted(runs)]

    return matches


def test_two_runs_share_one_scorer_that_stays_until_the_last_has_ended(
    api: Api, namespace: str, story: Story, start: Start
) -> None:
    lotus = Story(api, namespace, story.pods, story.answers, name="lotus")
    start()
    story.create(scorer=SHARED)
    first = story.train()
    lotus.create(scorer=SHARED)
    second = lotus.train()
    labels = {names.COMPONENT: "scorer"}
    api.until("Deployment", owned_by("lotus", "peonies"), namespace, labels=labels)
    story.finish(first)
    (shared,) = scorers(api, namespace)
    assert shared["spec"]["replicas"] == 1
    lotus.finish(second)
    api.until("Pod", lambda found: not found, namespace, labels=labels)


def finish(story: Story, trainer: str) -> None:
    story.finish(trainer)


def suspend(story: Story, _trainer: str) -> None:
    spec = {"spec": {"suspend": True}}
    story.api.patch(names.KIND, story.name, spec, story.namespace)
    story.until("Suspended")


def delete(story: Story, _trainer: str) -> None:
    story.api.delete(names.KIND, story.name, story.namespace)
    story.api.until_gone(names.KIND, story.name, story.namespace)


@pytest.mark.parametrize("second", [finish, suspend, delete])
@pytest.mark.parametrize("first", [finish, suspend, delete])
def test_a_shared_scorer_stays_for_one_and_goes_when_none_is_left(
    api: Api, namespace: str, story: Story, start: Start, first: Leave, second: Leave
) -> None:
    lotus = Story(api, namespace, story.pods, story.answers, name="lotus")
    start(lease_seconds="30")
    story.create(scorer=SHARED)
    lotus.create(scorer=SHARED)
    trainer, other = story.train(), lotus.train()
    labels = {names.COMPONENT: "scorer"}
    api.until("Deployment", owned_by("lotus", "peonies"), namespace, labels=labels)
    (before,) = api.until("Pod", lambda found: len(found) == 1, namespace, labels=labels)
    first(story, trainer)
    # What would take it away has been done by the time that the other has made a step more.
    lotus.answers.say("lotus", "trainer", "/progress", {"step": 2, "steps": 3})
    api.until_one(
        names.KIND, "lotus", namespace, lambda run: run["status"]["progress"]["step"] == 2
    )
    (kept,) = api.list("Pod", namespace, labels=labels)
    assert kept["metadata"]["uid"] == before["metadata"]["uid"]
    assert "deletionTimestamp" not in kept["metadata"]
    second(lotus, other)
    api.until("Pod", lambda found: not found, namespace, labels=labels)


def test_a_shared_scorer_comes_back_with_the_first_that_goes_on(
    api: Api, namespace: str, story: Story, start: Start
) -> None:
    lotus = Story(api, namespace, story.pods, story.answers, name="lotus")
    start(lease_seconds="30")
    story.create(scorer=SHARED)
    lotus.create(scorer=SHARED)
    suspend(story, story.train())
    suspend(lotus, lotus.train())
    labels = {names.COMPONENT: "scorer"}
    api.until("Pod", lambda found: not found, namespace, labels=labels)
    api.patch(names.KIND, "lotus", {"spec": {"suspend": False}}, namespace)
    lotus.trainer(attempt=2)
    api.until("Pod", lambda found: len(found) == 1, namespace, labels=labels)
    assert api.get(names.KIND, "peonies", namespace)["status"]["phase"] == "Suspended"


def test_a_shared_scorer_goes_with_the_last_run_that_owns_it(
    api: Api, namespace: str, story: Story, start: Start
) -> None:
    lotus = Story(api, namespace, story.pods, story.answers, name="lotus")
    start()
    story.create(scorer=SHARED)
    lotus.create(scorer=SHARED)
    story.train()
    lotus.train()
    labels = {names.COMPONENT: "scorer"}
    api.until("Deployment", owned_by("lotus", "peonies"), namespace, labels=labels)
    api.delete(names.KIND, "peonies", namespace)
    api.until("Deployment", owned_by("lotus"), namespace, labels=labels)
    api.delete(names.KIND, "lotus", namespace)
    api.until("Deployment", lambda found: not found, namespace, labels=labels)
