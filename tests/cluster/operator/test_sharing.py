"""Runs of a namespace that share one scorer, on the real API server."""

from __future__ import annotations

from typing import Any

from tests.cluster.ground.api import Api
from tests.cluster.operator.conftest import Start
from tests.cluster.operator.harness import Story

from watercolour_operator import names

Json = dict[str, Any]
SHARED = {"sharing": "Namespace"}


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
