"""Raw objects become small records: what decisions need is kept, and only that."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from watercolour_operator import names
from watercolour_operator.cluster import reduce
from watercolour_operator.names import Component

Json = dict[str, Any]
MADE = "2026-09-01T10:00:00Z"
AT = datetime(2026, 9, 1, 10, tzinfo=UTC)


def pod(status: Json | None = None, **metadata: Any) -> Json:
    labels = {names.RUN: "peonies", names.RUN_UID: "u", names.COMPONENT: "trainer"}
    return {
        "metadata": {
            "name": "peonies-trainer-1-x",
            "namespace": "studio",
            "uid": "p",
            "resourceVersion": "7",
            "creationTimestamp": MADE,
            "labels": {**labels, names.ATTEMPT: "1"},
            **metadata,
        },
        "spec": {
            "nodeName": "gpu-0",
            "containers": [{"resources": {"limits": {"nvidia.com/gpu": "2", "cpu": "4"}}}],
        },
        "status": status or {},
    }


def container(name: str = "trainer", **state: Any) -> Json:
    return {"name": name, "restartCount": 0, **state}


def reduced(raw: Json) -> Any:
    found = reduce.pod(raw)
    assert found is not None
    return found


def test_a_pod_says_where_it_runs_what_it_holds_and_whose_it_is() -> None:
    owners = [{"uid": "j", "controller": True}]
    found = reduced(pod({"phase": "Running", "podIP": "10.0.0.1"}, ownerReferences=owners))
    assert (found.component, found.attempt, found.owner_uid) == (Component.TRAINER, 1, "j")
    assert (found.node, found.gpus, found.ip, found.scheduled) == ("gpu-0", 2, "10.0.0.1", AT)


def test_a_pod_says_since_when_it_is_ready() -> None:
    def since(**condition: str) -> Any:
        found = reduced(pod({"conditions": [{"type": "Ready", **condition}]}))
        assert found.ready is (found.readied is not None)
        return found.readied

    later = "2026-09-01T10:00:21Z"
    assert since(status="True", lastTransitionTime=later) == AT + timedelta(seconds=21)
    assert since(status="False", lastTransitionTime=later) is None
    assert since(status="True") == AT
    assert reduced(pod()).readied is None


def test_the_schedulers_words_are_kept() -> None:
    bound = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    raw = pod({"conditions": [{**bound, "message": "0/3 nodes: Insufficient nvidia.com/gpu"}]})
    raw["spec"].pop("nodeName")
    assert reduced(raw).unschedulable == "0/3 nodes: Insufficient nvidia.com/gpu"
    assert reduced(raw).scheduled is None


@pytest.mark.parametrize(
    ("status", "disrupted"),
    [
        ({"conditions": [{"type": "DisruptionTarget", "status": "True"}]}, True),
        ({"conditions": [{"type": "DisruptionTarget", "status": "False"}]}, False),
        ({"reason": "Evicted"}, True),
        ({"reason": "DeadlineExceeded"}, False),
    ],
)
def test_a_pod_that_the_cluster_asked_to_go_is_told_from_one_that_failed(
    status: Json, disrupted: bool
) -> None:
    assert reduced(pod(status)).disrupted is disrupted


@pytest.mark.parametrize(
    ("status", "lost"),
    [
        (
            {
                "conditions": [
                    {"type": "DisruptionTarget", "status": "True", "reason": "DeletionByPodGC"}
                ]
            },
            True,
        ),
        (
            {
                "conditions": [
                    {
                        "type": "DisruptionTarget",
                        "status": "True",
                        "reason": "EvictionByEvictionAPI",
                    }
                ]
            },
            False,
        ),
        ({"reason": "NodeLost"}, True),
        ({}, False),
    ],
)
def test_a_pod_that_went_with_its_node_is_told_from_one_that_was_evicted(
    status: Json, lost: bool
) -> None:
    assert reduced(pod(status)).node_lost is lost


@pytest.mark.parametrize(
    ("reason", "tainted"), [("DeletionByTaintManager", True), ("EvictionByEvictionAPI", False)]
)
def test_a_pod_is_told_that_was_taken_off_its_node_by_a_taint(reason: str, tainted: bool) -> None:
    told = {"type": "DisruptionTarget", "status": "True", "reason": reason}
    assert reduced(pod({"conditions": [told]})).tainted is tainted
    assert not reduced(pod({"conditions": [told | {"status": "False"}]})).tainted


def test_a_pod_among_several_knows_its_number() -> None:
    raw = pod()
    assert reduced(raw).index is None
    raw["metadata"]["labels"][names.INDEX] = "3"
    assert reduced(raw).index == 3


def test_an_end_is_kept_with_the_containers_own_words() -> None:
    ended = {"exitCode": 137, "reason": "OOMKilled", "message": "last words", "finishedAt": MADE}
    statuses = [container("istio"), container(state={"terminated": ended})]
    found = reduced(pod({"phase": "Failed", "containerStatuses": statuses}))
    assert (found.exit_code, found.ended_reason, found.message) == (137, "OOMKilled", "last words")
    assert found.ended == AT


def test_between_two_starts_the_containers_words_beat_the_kubelets() -> None:
    crash = container(
        state={"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 10s"}},
        lastState={"terminated": {"exitCode": 1, "reason": "Error", "message": "no weights"}},
        restartCount=3,
    )
    found = reduced(pod({"containerStatuses": [crash]}))
    assert (found.waiting_reason, found.exit_code, found.message) == (
        "CrashLoopBackOff",
        1,
        "no weights",
    )
    assert found.restarts == 3


def test_a_container_that_runs_again_shows_no_old_end() -> None:
    again = container(
        state={"running": {"startedAt": MADE}}, lastState={"terminated": {"exitCode": 1}}
    )
    found = reduced(pod({"containerStatuses": [again]}))
    assert (found.exit_code, found.started) == (None, AT)


def test_an_init_container_that_cannot_start_is_what_a_pod_waits_for() -> None:
    waits = container(state={"waiting": {"reason": "PodInitializing"}})
    stuck = container("init", state={"waiting": {"reason": "ErrImagePull", "message": "no such"}})
    found = reduced(pod({"initContainerStatuses": [stuck], "containerStatuses": [waits]}))
    assert (found.waiting_reason, found.message) == ("ErrImagePull", "no such")


def test_a_pod_of_no_known_part_is_none_of_ours() -> None:
    assert reduce.entry("Pod", pod(labels={names.RUN_UID: "u"})) is None
    assert reduce.entry("Pod", pod(labels={"app": "x"})) is None


def child(kind: str, spec: Json | None = None, status: Json | None = None) -> Any:
    metadata = {"name": "n", "uid": "c", "creationTimestamp": MADE, "generation": 3}
    return reduce.child(kind, {"metadata": metadata, "spec": spec or {}, "status": status or {}})


def test_metadata_alone_is_enough_for_a_child() -> None:
    raw = {"metadata": {"name": "n", "uid": "c", "creationTimestamp": MADE}}
    found = reduce.child("ConfigMap", raw)
    assert (found.wanted, found.ready, found.phase) == (None, None, None)


def test_a_deployment_that_gets_no_pods_says_why() -> None:
    refused = {"type": "ReplicaFailure", "status": "True", "message": "exceeded quota: small"}
    found = child("Deployment", {"replicas": 2}, {"conditions": [refused], "readyReplicas": 1})
    assert (found.wanted, found.ready, found.problem) == (2, 1, "exceeded quota: small")


@pytest.mark.parametrize("interim", ["SuccessCriteriaMet", "FailureTarget"])
def test_a_job_whose_pods_still_end_is_not_finished(interim: str) -> None:
    conditions = [{"type": interim, "status": "True"}]
    assert child("Job", status={"conditions": conditions}).finished is None
    conditions.append({"type": "Complete", "status": "True"})
    assert child("Job", status={"conditions": conditions}).finished == "Complete"


def managed(fields: Json, manager: str = names.MANAGER, **more: str) -> Json:
    return {"manager": manager, "operation": "Apply", "fieldsV1": fields, **more}


def test_the_mark_changes_only_when_a_field_of_ours_does() -> None:
    def mark(*fields: Json) -> int:
        labels = {names.RUN: "peonies", names.RUN_UID: "u"}
        metadata = {
            "name": "n",
            "namespace": "studio",
            "uid": "c",
            "creationTimestamp": MADE,
            "labels": labels,
            "managedFields": list(fields),
        }
        found = reduce.entry("Service", {"metadata": metadata})
        assert found is not None
        return found.mark

    ours = managed({"f:spec": {"f:ports": {}}})
    assert mark(ours) == mark(managed({"f:x": {}}, "kubectl"), ours)
    assert mark(ours) == mark(managed({"f:y": {}}, subresource="status"), ours)
    assert mark(ours) != mark(managed({"f:spec": {}}))


def test_gpus_may_be_written_as_quantities() -> None:
    raw = pod()
    limits = {"nvidia.com/gpu": "2k", "amd.com/gpu": "3", "cpu": "4"}
    raw["spec"]["containers"][0]["resources"]["limits"] = limits
    assert reduced(raw).gpus == 2003
