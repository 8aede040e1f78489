"""The trainer's Job."""

from __future__ import annotations

from typing import Any

from tests.unit.operator.desired.made import build, container, find, plan, pod, variables

from watercolour_operator.desired import Manifest

NAME = "peonies-trainer-1"


def job(spec: dict[str, Any] | None = None, attempt: int = 1) -> Manifest:
    return find(build(spec, wanted=plan(attempt=attempt)), "Job", f"peonies-trainer-{attempt}")


def test_one_pod_and_never_a_second_for_an_attempt() -> None:
    spec = job(attempt=3)["spec"]
    assert (spec["completions"], spec["parallelism"], spec["backoffLimit"]) == (1, 1, 0)
    assert spec["podReplacementPolicy"] == "Failed"
    assert spec["template"]["spec"]["restartPolicy"] == "Never"
    assert "ttlSecondsAfterFinished" not in spec


def test_the_attempt_stands_on_the_job_and_on_its_pod() -> None:
    made = job(attempt=3)
    assert made["metadata"]["labels"]["watercolour.dev/attempt"] == "3"
    assert made["spec"]["template"]["metadata"]["labels"]["watercolour.dev/attempt"] == "3"


def test_an_attempt_that_goes_on_says_so() -> None:
    assert "--resume-if-any" not in container(build(), NAME)["args"]
    assert "--resume-if-any" in container(build(wanted=plan(resume=True)), NAME)["args"]


def test_a_further_attempt_that_begins_anew_may_write_over_the_one_before() -> None:
    assert "--anew" not in container(build(), NAME)["args"]
    later = container(build(wanted=plan(attempt=2)), "peonies-trainer-2")["args"]
    assert "--anew" in later
    assert "--resume-if-any" not in later


def test_the_command_line_is_one_that_the_trainer_reads() -> None:
    from watercolour.train import run

    found = container(build(wanted=plan(resume=True)), NAME)
    args = run._parser().parse_args(found["args"])  # pyright: ignore[reportPrivateUsage]
    assert (args.env, str(args.out)) == ("http://peonies-env:8000", "/artifacts/runs/peonies")
    assert (args.host, args.port, args.resume_if_any) == ("0.0.0.0", 8000, True)
    assert args.report


def test_a_queue_gets_a_suspended_job_and_nobody_else_does() -> None:
    queued = job({"queueName": "gpus"})
    assert queued["spec"]["suspend"] is True
    assert queued["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "gpus"
    assert "suspend" not in job()["spec"]


def test_there_is_time_for_a_checkpoint() -> None:
    assert pod(build(), NAME)["terminationGracePeriodSeconds"] == 300


def test_a_builtin_policy_needs_no_gpu_and_others_get_what_is_given() -> None:
    small = container(build(), NAME)["resources"]
    assert small["limits"] == {"cpu": "2", "ephemeral-storage": "4Gi", "memory": "4Gi"}
    given = {"limits": {"nvidia.com/gpu": 1, "memory": "120Gi"}}
    large = {"model": {"id": "owner/name"}, "trainer": {"resources": given}}
    found = container(build(large), NAME)["resources"]
    assert found["limits"]["nvidia.com/gpu"] == found["requests"]["nvidia.com/gpu"] == "1"
    assert found["limits"]["memory"] == found["requests"]["memory"] == "120Gi"


def test_downloads_are_kept_on_the_claim_that_is_named() -> None:
    def cache(spec: dict[str, Any]) -> dict[str, Any]:
        volumes = pod(build(spec), NAME)["volumes"]
        return next(item for item in volumes if item["name"] == "cache")

    assert cache({})["emptyDir"] == {}
    kept = cache({"model": {"id": "o/n", "cacheClaim": "hub"}})
    assert kept["persistentVolumeClaim"] == {"claimName": "hub"}


def test_without_a_way_out_the_hub_is_not_tried() -> None:
    assert variables(container(build(), NAME))["HF_HUB_OFFLINE"] == "1"
    free = container(build({"egress": {"trainer": ["all"]}}), NAME)
    assert "HF_HUB_OFFLINE" not in variables(free)


def test_several_pods_find_their_first_by_name() -> None:
    made = job({"trainer": {"replicas": 2}}, attempt=2)
    assert made["spec"]["completionMode"] == "Indexed"
    assert made["spec"]["parallelism"] == made["spec"]["completions"] == 2
    spec = made["spec"]["template"]["spec"]
    assert spec["subdomain"] == "peonies-trainer"
    found = variables(spec["containers"][0])
    assert found["MASTER_ADDR"] == "peonies-trainer-2-0.peonies-trainer"
    service = find(build({"trainer": {"replicas": 2}}), "Service", spec["subdomain"])["spec"]
    assert (service["clusterIP"], service["publishNotReadyAddresses"]) == ("None", True)


def test_node_autoscalers_leave_it_alone() -> None:
    annotations = job()["spec"]["template"]["metadata"]["annotations"]
    assert annotations["cluster-autoscaler.kubernetes.io/safe-to-evict"] == "false"
