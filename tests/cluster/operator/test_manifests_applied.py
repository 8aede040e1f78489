"""What the API server makes of the manifests: ownership, idempotence, fields of others."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.cluster.ground.api import Api
from tests.unit.operator.desired.made import build, child, find, observed, plan

from watercolour_operator import desired
from watercolour_operator.desired import Manifest
from watercolour_operator.desired.run import identity, of
from watercolour_operator.names import Component
from watercolour_operator.settings import Settings

pytestmark = pytest.mark.usefixtures("crd_installed")

SHARED: dict[str, Any] = {"scorer": {"sharing": "Namespace"}}


def create_run(api: Api, namespace: str, name: str, spec: dict[str, Any]) -> str:
    """A run on the API server, which no operator looks at; its uid."""
    meta = {"name": name, "namespace": namespace}
    run = {"apiVersion": "watercolour.dev/v1alpha1", "kind": "WatercolourRun", "metadata": meta}
    return api.create({**run, "spec": spec})["metadata"]["uid"]


def made(namespace: str, name: str, uid: str, spec: dict[str, Any], **more: Any) -> list[Manifest]:
    seen = replace(observed(spec, name=name, uid=uid), namespace=namespace, **more)
    return desired.manifests(seen, plan(attempt=None, env=0, renderers=0), Settings())


#: Kinds whose status controllers write meanwhile; their generation tells of a change.
WITH_STATUS = frozenset({"Deployment", "HorizontalPodAutoscaler", "PersistentVolumeClaim"})


def apply_all(api: Api, manifests: list[Manifest]) -> dict[tuple[str, str], Any]:
    """Apply all; the version of each afterwards."""
    versions: dict[tuple[str, str], Any] = {}
    for item in manifests:
        meta = api.apply(item)["metadata"]
        field = "generation" if item["kind"] in WITH_STATUS else "resourceVersion"
        versions[item["kind"], meta["name"]] = meta.get(field)
    return versions


def test_a_second_application_changes_nothing(api: Api, namespace: str) -> None:
    spec = {"scorer": {"backend": "hpsv3"}, "renderers": {"scaling": {"mode": "HPA"}}}
    uid = create_run(api, namespace, "peonies", spec)
    manifests = made(namespace, "peonies", uid, spec)
    assert apply_all(api, manifests) == apply_all(api, manifests)


def test_a_shared_scorer_goes_with_the_last_of_its_runs(api: Api, namespace: str) -> None:
    uids = {name: create_run(api, namespace, name, SHARED) for name in ("peonies", "lilies")}
    for name, uid in uids.items():
        others = tuple(pair for pair in uids.items() if pair[0] != name)
        apply_all(api, made(namespace, name, uid, SHARED, scorer_sharers=others))
    run = of(observed(SHARED))
    assert run is not None
    scorer = identity(run, Component.SCORER).name
    owners = api.get("Deployment", scorer, namespace)["metadata"]["ownerReferences"]
    assert {owner["uid"] for owner in owners} == set(uids.values())

    api.delete("WatercolourRun", "peonies", namespace)
    api.until_gone("Deployment", "peonies-env", namespace)
    kept = api.until_one(
        "Deployment",
        scorer,
        namespace,
        lambda found: len(found["metadata"]["ownerReferences"]) == 1,
    )
    assert kept["metadata"]["ownerReferences"][0]["uid"] == uids["lilies"]

    api.delete("WatercolourRun", "lilies", namespace)
    for kind in ("Deployment", "Service", "ServiceAccount", "NetworkPolicy"):
        api.until_gone(kind, scorer, namespace)


@pytest.mark.parametrize("keep", [True, False])
def test_a_claim_outlives_its_run_only_if_it_is_to_be_kept(
    keep: bool, api: Api, namespace: str
) -> None:
    spec = {"artifacts": {"keep": keep}}
    uid = create_run(api, namespace, "peonies", spec)
    apply_all(api, made(namespace, "peonies", uid, spec))
    api.delete("WatercolourRun", "peonies", namespace)
    api.until_gone("ConfigMap", "peonies-spec", namespace)
    if not keep:
        api.until_gone("PersistentVolumeClaim", "peonies-artifacts", namespace)
        return
    claim = api.get("PersistentVolumeClaim", "peonies-artifacts", namespace)
    assert "deletionTimestamp" not in claim["metadata"]


def test_keep_may_change_while_the_run_is_there(api: Api, namespace: str) -> None:
    uid = create_run(api, namespace, "peonies", {})
    for keep, owners in ((False, 1), (True, 0), (False, 1)):
        apply_all(api, made(namespace, "peonies", uid, {"artifacts": {"keep": keep}}))
        claim = api.get("PersistentVolumeClaim", "peonies-artifacts", namespace)
        assert len(claim["metadata"].get("ownerReferences", [])) == owners


def test_replicas_that_somebody_else_owns_are_left_alone(api: Api, namespace: str) -> None:
    uid = create_run(api, namespace, "peonies", {})
    spec = {"renderers": {"scaling": {"mode": "HPA"}}}
    wanted = build(spec, uid=uid, wanted=plan(attempt=None, renderers=None))
    deployment = find(wanted, "Deployment", "peonies-renderers")
    deployment["metadata"]["namespace"] = namespace
    api.apply(deployment)
    api.patch("Deployment", "peonies-renderers", {"spec": {"replicas": 5}}, namespace)
    api.apply(deployment)
    found = api.get("Deployment", "peonies-renderers", namespace)
    assert found["spec"]["replicas"] == 5


def test_a_queue_s_word_on_a_job_stands(api: Api, namespace: str) -> None:
    spec = {"queueName": "gpus"}
    uid = create_run(api, namespace, "peonies", spec)
    seen = replace(observed(spec, uid=uid), namespace=namespace)
    job = desired.manifests(seen, plan(), Settings())[-1]
    assert api.apply(job)["spec"]["suspend"] is True
    api.patch("Job", "peonies-trainer-1", {"spec": {"suspend": False}}, namespace)
    again = replace(seen, children=(child("Job", "peonies-trainer-1"),))
    for item in desired.manifests(again, plan(), Settings()):
        api.apply(item)
    assert api.get("Job", "peonies-trainer-1", namespace)["spec"]["suspend"] is False
