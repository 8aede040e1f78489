"""All objects of a run together: which, in what order, and always the same."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st
from tests.strategies import specs
from tests.unit.operator.desired.made import (
    NOW,
    PUBLISHED,
    UID,
    build,
    child,
    find,
    keys,
    observed,
    plan,
    templates,
)

from watercolour.api import load
from watercolour.api.errors import InputError
from watercolour_operator import desired, names
from watercolour_operator.desired import Manifest
from watercolour_operator.plan import Removal
from watercolour_operator.settings import Settings

#: Many a draw is refused, and pydantic takes its time.
PATIENT = (HealthCheck.too_slow, HealthCheck.filter_too_much)
#: Longest name of an object and longest value of a label.
LONGEST = 63


def text(manifests: list[Manifest]) -> str:
    return json.dumps(manifests)


def test_a_run_is_fenced_in_first_and_the_trainer_comes_last() -> None:
    assert keys(build(PUBLISHED)) == [
        ("NetworkPolicy", "peonies-deny"),
        ("NetworkPolicy", "peonies-trainer"),
        ("NetworkPolicy", "peonies-env"),
        ("NetworkPolicy", "peonies-renderers"),
        ("NetworkPolicy", "peonies-scorer"),
        ("NetworkPolicy", "peonies-judge"),
        ("ServiceAccount", "peonies-trainer"),
        ("ServiceAccount", "peonies-renderers"),
        ("ServiceAccount", "peonies-env"),
        ("ServiceAccount", "peonies-scorer"),
        ("ServiceAccount", "peonies-judge"),
        ("PersistentVolumeClaim", "peonies-artifacts"),
        ("ConfigMap", "peonies-spec"),
        ("Service", "peonies-trainer"),
        ("Service", "peonies-renderers"),
        ("Service", "peonies-env"),
        ("Service", "peonies-scorer"),
        ("Service", "peonies-judge"),
        ("Deployment", "peonies-env"),
        ("Deployment", "peonies-renderers"),
        ("Deployment", "peonies-scorer"),
        ("Deployment", "peonies-judge"),
        ("Job", "peonies-trainer-1"),
    ]


def test_scorer_and_judge_are_made_asleep() -> None:
    manifests = build(PUBLISHED)
    for name in ("peonies-scorer", "peonies-judge"):
        assert find(manifests, "Deployment", name)["spec"]["replicas"] == 0


def test_the_plan_s_numbers_are_the_replicas() -> None:
    manifests = build(PUBLISHED, wanted=plan(env=1, renderers=7, scorer=1, judge=1))
    found = {
        item["metadata"]["name"]: item["spec"]["replicas"]
        for item in manifests
        if item["kind"] == "Deployment"
    }
    assert found == {
        "peonies-env": 1,
        "peonies-renderers": 7,
        "peonies-scorer": 1,
        "peonies-judge": 1,
    }


def test_without_an_attempt_there_is_no_trainer() -> None:
    assert not [kind for kind, _ in keys(build(wanted=plan(attempt=None))) if kind == "Job"]


def test_a_trainer_that_is_there_is_not_applied_again() -> None:
    there = (child("Job", "peonies-trainer-1"),)
    assert ("Job", "peonies-trainer-1") not in keys(build(children=there))
    assert ("Job", "peonies-trainer-2") in keys(build(children=there, wanted=plan(attempt=2)))


def test_a_run_that_is_over_keeps_its_claim_and_asks_for_nothing_else() -> None:
    claim = child("PersistentVolumeClaim", "peonies-artifacts", owner_uid=None)
    over = plan(active=False, attempt=None)
    assert keys(build(wanted=over, children=(claim,))) == [
        ("PersistentVolumeClaim", "peonies-artifacts")
    ]
    assert build(wanted=over) == []


def test_nothing_is_made_for_a_run_that_is_being_deleted() -> None:
    assert build(deleting=NOW) == []


def test_nothing_is_made_for_a_run_whose_specification_is_wrong() -> None:
    wrong = replace(observed(), spec=None, spec_problem="spec.trainer.steps=-1: below 1.")
    assert desired.manifests(wrong, plan(), Settings()) == []


def test_every_object_of_the_run_has_it_as_controller_and_carries_its_uid() -> None:
    for item in build({**PUBLISHED, "artifacts": {"keep": False}}):
        (owner,) = item["metadata"]["ownerReferences"]
        assert (owner["uid"], owner["controller"], owner["blockOwnerDeletion"]) == (UID, True, True)
        assert (owner["apiVersion"], owner["kind"]) == (
            "watercolour.dev/v1alpha1",
            "WatercolourRun",
        )
        assert item["metadata"]["labels"][names.RUN_UID] == UID
        assert item["metadata"]["namespace"] == "gardens"


def test_every_kind_is_listed_in_the_order_of_application() -> None:
    order = [kind.kind for kind in desired.KINDS]
    for mode in ("Queue", "HPA", "KEDA"):
        manifests = build({**PUBLISHED, "renderers": {"scaling": {"mode": mode}}})
        places = [order.index(item["kind"]) for item in manifests]
        assert places == sorted(places)
        versions = {kind.kind: kind.api_version for kind in desired.KINDS}
        assert all(item["apiVersion"] == versions[item["kind"]] for item in manifests)


def test_what_the_specification_asks_for_no_more_is_surplus() -> None:
    there = (
        child("Deployment", "peonies-scorer"),
        child("Service", "peonies-scorer"),
        child("HorizontalPodAutoscaler", "peonies-renderers"),
        child("Deployment", "peonies-env"),
        child("Job", "peonies-trainer-1"),
        child("PersistentVolumeClaim", "peonies-artifacts", owner_uid=None),
        child("Deployment", "peonies-judge", deleting=True),
        child("Deployment", "watercolour-scorer-0123456789", owner_uid=None),
    )
    spec = {"scorer": {"endpoint": "http://scorer.tools.svc"}, "judge": {"backend": "none"}}
    seen = observed({**spec, "recipe": {"name": "hps-only"}}, children=there)
    wanted = desired.manifests(seen, plan(attempt=2), Settings())
    assert desired.surplus(seen, wanted) == (
        Removal("Deployment", "peonies-scorer"),
        Removal("Service", "peonies-scorer"),
        Removal("HorizontalPodAutoscaler", "peonies-renderers"),
    )


def test_time_changes_nothing() -> None:
    seen = observed(PUBLISHED)
    later = observed(PUBLISHED, now=NOW + timedelta(days=1), generation=7)
    first = desired.manifests(seen, plan(), Settings())
    assert text(first) == text(desired.manifests(later, plan(), Settings()))


def test_who_shares_a_scorer_names_the_same_owners_in_the_same_order() -> None:
    spec = {"scorer": {"sharing": "Namespace"}}
    mine = build(spec, scorer_sharers=(("tulips", "u3"), ("lilies", "u2")))
    theirs = build(
        spec, name="lilies", uid="u2", scorer_sharers=(("peonies", UID), ("tulips", "u3"))
    )
    shared = [item for item in mine if names.SHARED in item["metadata"]["labels"]]
    assert shared == [item for item in theirs if names.SHARED in item["metadata"]["labels"]]
    assert {item["kind"] for item in shared} == {
        "NetworkPolicy",
        "ServiceAccount",
        "Service",
        "Deployment",
    }
    for item in shared:
        owners = item["metadata"]["ownerReferences"]
        assert [owner["uid"] for owner in owners] == ["u2", UID, "u3"]
        assert not any("controller" in owner for owner in owners)
        assert names.RUN_UID not in item["metadata"]["labels"]


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ({}, {"prompt": "a flower", "timeoutSeconds": 5.0, "idleTimeoutSeconds": 9.0}, True),
        ({}, {"backend": "hpsv3"}, False),
        ({}, {"image": "else/scorer:1"}, False),
        ({}, {"resources": {"limits": {"cpu": "4"}}}, False),
        ({}, {"batching": {"maxPaintings": 4}}, False),
    ],
)
def test_a_scorer_is_shared_by_runs_that_ask_for_the_same_pods(
    one: dict[str, Any], other: dict[str, Any], same: bool
) -> None:
    digests = [
        desired.scorer_digest(
            load.from_dict({"metadata": {"name": "a"}, "spec": {"scorer": scorer}}).spec
        )
        for scorer in (one, other)
    ]
    assert (digests[0] == digests[1]) is same


@settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=(HealthCheck.too_slow, HealthCheck.filter_too_much),
)
@given(
    spec=specs(),
    name=st.from_regex(r"\A[a-z]([-a-z0-9]{0,49}[a-z0-9])?\Z") | st.just("r" * 51),
    attempt=st.integers(1, 2**31),
)
def test_any_specification_gives_objects_that_name_and_find_each_other(
    spec: dict[str, Any], name: str, attempt: int
) -> None:
    wanted = plan(attempt=attempt, resume=True)
    try:
        manifests = build(spec, name=name, wanted=wanted)
    except InputError:
        reject()
    assert text(manifests) == text(build(spec, name=name, wanted=wanted))
    assert max(Counter(keys(manifests)).values()) == 1
    for item in manifests:
        assert len(item["metadata"]["name"]) <= LONGEST
        assert all(len(value) <= LONGEST for value in item["metadata"]["labels"].values())
        _finds_its_pods(item, manifests)
    for _, template in templates(manifests):
        account = template["spec"]["serviceAccountName"]
        assert ("ServiceAccount", account) in keys(manifests)
        _volumes_are_there(template["spec"], keys(manifests))


def _finds_its_pods(item: Manifest, manifests: list[Manifest]) -> None:
    """Each selector finds the pods of one part, but for the policy that is for all."""
    pods = [template["metadata"]["labels"] for _, template in templates(manifests)]
    own = [labels for labels in pods if names.RUN_UID in labels]
    body = item.get("spec", {})
    if item["kind"] == "Deployment":
        labels = body["template"]["metadata"]["labels"]
        assert body["selector"]["matchLabels"].items() <= labels.items()
    if item["kind"] in ("Service", "NetworkPolicy"):
        wanted = body.get("selector") or body["podSelector"]["matchLabels"]
        found = [labels for labels in pods if wanted.items() <= labels.items()]
        assert found == own if item["metadata"]["name"].endswith("-deny") else len(found) == 1


def test_ten_digits_of_an_attempt_fit_the_longest_name_of_several_pods() -> None:
    job = names.trainer_job("r" * 51, 2**31)
    assert len(f"{job}-999") <= LONGEST
    assert job != names.trainer_job("r" * 50 + "s", 2**31)
    assert names.trainer_job("peonies", 3) == "peonies-trainer-3"


def _volumes_are_there(spec: dict[str, Any], there: list[tuple[str, str]]) -> None:
    volumes = {item["name"] for item in spec["volumes"]}
    assert len(volumes) == len(spec["volumes"])
    for item in spec["containers"]:
        mounts = [mount["mountPath"] for mount in item["volumeMounts"]]
        assert len(mounts) == len(set(mounts))
        assert {mount["name"] for mount in item["volumeMounts"]} <= volumes
        assert len({variable["name"] for variable in item["env"]}) == len(item["env"])
    for item in spec["volumes"]:
        own = item.get("configMap", {}).get("name", "")
        if own.endswith("-spec"):
            assert ("ConfigMap", own) in there
