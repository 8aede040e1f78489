"""The player gives pods the life that a test scripts, as the controllers see it."""

from __future__ import annotations

from typing import Any

from tests.cluster.ground import podlife
from tests.cluster.ground.api import Api, Json
from tests.cluster.ground.podlife import Exited
from tests.cluster.ground.podplayer import PodPlayer


def workload(kind: str, name: str, *, gpus: int = 0, **spec: Any) -> Json:
    """A Deployment or a Job of one container."""
    container: Json = {"name": "main", "image": "registry.example/none:1"}
    if gpus:
        container["resources"] = {"limits": {"nvidia.com/gpu": str(gpus)}}
    labels = {"app": name}
    pod: Json = {"containers": [container], "terminationGracePeriodSeconds": 5}
    body: Json = {"template": {"metadata": {"labels": labels}, "spec": pod}, **spec}
    if kind == "Job":
        pod["restartPolicy"] = "Never"
        body.setdefault("backoffLimit", 0)
        version = "batch/v1"
    else:
        body["selector"] = {"matchLabels": labels}
        version = "apps/v1"
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": body}


def finished(job: Json) -> str:
    """Complete, Failed or an empty text."""
    conditions = job.get("status", {}).get("conditions", [])
    ends = ("Complete", "Failed")
    return next((c["type"] for c in conditions if c["type"] in ends and c["status"] == "True"), "")


def test_deployment_becomes_available(api: Api, namespace: str, pods: PodPlayer) -> None:
    api.create(workload("Deployment", "d", replicas=20), namespace)
    api.until_one(
        "Deployment", "d", namespace, lambda d: d.get("status", {}).get("availableReplicas") == 20
    )
    addresses = {pod["status"]["podIP"] for pod in api.list("Pod", namespace)}
    assert len(addresses) == 20


def test_gpu_job_is_withheld_until_a_gpu_is_free(api: Api, namespace: str, pods: PodPlayer) -> None:
    api.create(workload("Job", "big", gpus=9), namespace)
    api.create(workload("Job", "small", gpus=1), namespace)
    running = api.until(
        "Pod",
        lambda found: any(p["status"]["phase"] == "Running" for p in found),
        namespace,
        labels={"app": "small"},
    )
    assert running[0]["spec"]["nodeName"].startswith("gpu-")
    withheld = api.until(
        "Pod",
        lambda found: found and found[0]["status"].get("conditions"),
        namespace,
        labels={"app": "big"},
    )
    condition = withheld[0]["status"]["conditions"][0]
    assert condition["reason"] == "Unschedulable"
    assert "Insufficient nvidia.com/gpu" in condition["message"]


def test_job_ends_as_its_pod_was_told(api: Api, namespace: str, pods: PodPlayer) -> None:
    api.create(workload("Job", "good"), namespace)
    [pod] = api.until(
        "Pod",
        lambda found: found and found[0]["status"]["phase"] == "Running",
        namespace,
        labels={"app": "good"},
    )
    pods.step(namespace, pod["metadata"]["name"], Exited(0, message='{"step": 3}'))
    assert finished(api.until_one("Job", "good", namespace, finished)) == "Complete"
    [ended] = api.list("Pod", namespace, labels={"app": "good"})
    state = ended["status"]["containerStatuses"][0]["state"]["terminated"]
    assert state["message"] == '{"step": 3}'

    pods.script(namespace, podlife.out_of_memory(), labels={"app": "bad"})
    api.create(workload("Job", "bad"), namespace)
    assert finished(api.until_one("Job", "bad", namespace, finished)) == "Failed"
    [ended] = api.list("Pod", namespace, labels={"app": "bad"})
    state = ended["status"]["containerStatuses"][0]["state"]["terminated"]
    assert (state["exitCode"], state["reason"]) == (137, "OOMKilled")
    assert pods.problems == []
