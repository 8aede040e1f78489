"""A scripted pod has the statuses, one after the other, that a real kubelet gave the same pod."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cluster.ground import podlife
from tests.cluster.ground.api import Api, Json
from tests.cluster.ground.podlife import Creating, Evicted, Exited, Life, Running
from tests.cluster.ground.podplayer import PodPlayer
from tests.cluster.ground.shapes import shapes

RECORDED = json.loads((Path(__file__).parent / "data" / "kubelet_statuses.json").read_text())[
    "pods"
]
REFUSED = (
    'failed to do request: Head "http://localhost:5999/v2/absent/manifests/1": '
    "dial tcp 127.0.0.1:5999: connect: connection refused"
)
START = (Creating(), Running())
OOPS = Exited(3, message="oops")
OOM = Exited(137, "OOMKilled")
LIVES: dict[str, Life] = {
    "ready": Life(START, stop_message="bye"),
    "ready-to-end-well": Life(START, stop_code=0),
    "stubborn": Life(START, stop_after=None),
    "unready": Life(podlife.UNREADY.steps, stop_after=None),
    "succeeds": podlife.finishes(message="hello"),
    "fails": podlife.finishes(1, message="oops"),
    "out-of-memory": podlife.out_of_memory(),
    "restarts": Life((*START, OOPS, OOPS, Running(), Exited(3, message="oops"))),
    "restarts-for-memory": Life((*START, OOM, OOM, Running(), OOM)),
    "cannot-pull": podlife.cannot_pull("localhost:5999/absent:1", REFUSED),
    "cannot-configure": podlife.cannot_configure(),
    "cannot-mount": podlife.NEVER_STARTS,
    "sidecar": podlife.finishes(),
    "init": Life(START, stop_after=None),
    "two": Life((*START, Exited(1))),
}


def lived(api: Api, namespace: str, since: str, done: Callable[[Json], bool]) -> list[Json]:
    """The pod's versions until one is done or the pod is gone."""
    versions: list[Json] = []
    for event in api.events_of("Pod", namespace, since=since):
        versions.append(event["object"])
        if event["type"] == "DELETED" or done(event["object"]):
            return versions
    raise AssertionError(f"not done: {versions[-1]['status'] if versions else 'no pod'}")


@pytest.mark.parametrize("name", RECORDED)
def test_statuses_are_those_of_a_real_kubelet(
    name: str, api: Api, namespace: str, pods: PodPlayer
) -> None:
    recorded = RECORDED[name]
    pods.script(namespace, LIVES[name])
    spec = recorded["spec"] | {"terminationGracePeriodSeconds": 1}
    manifest = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}
    since = api.create(manifest, namespace)["metadata"]["resourceVersion"]
    expected = recorded["alive"]
    # The recorded pod went on pulling until it was deleted.
    steps = len(expected) - (name == "cannot-pull")

    def complete(pod: Json) -> bool:
        seen.append(pod["status"])
        return len(shapes(seen)) == steps

    seen: list[Json] = []
    lived(api, namespace, since, complete)
    assert shapes(seen) == expected[:steps]
    if recorded["final"]:
        version = api.get("Pod", name, namespace)["metadata"]["resourceVersion"]
        api.delete("Pod", name, namespace)
        versions = lived(api, namespace, version, lambda _: False)
        assert shapes(version["status"] for version in versions)[-1] == recorded["final"]
    assert pods.problems == []


def test_evicted_pod_names_the_disruption(api: Api, namespace: str, pods: PodPlayer) -> None:
    container = {"name": "main", "image": "none"}
    spec = {"restartPolicy": "Never", "containers": [container]}
    manifest = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}
    api.create(manifest, namespace)
    api.until_one("Pod", "p", namespace, lambda pod: pod["status"]["phase"] == "Running")
    pods.step(namespace, "p", Evicted())
    status = api.get("Pod", "p", namespace)["status"]
    assert (status["phase"], status["reason"]) == ("Failed", "Evicted")
    [target] = [each for each in status["conditions"] if each["type"] == "DisruptionTarget"]
    assert (target["status"], target["reason"]) == ("True", "TerminationByKubelet")


def test_dead_kubelet_leaves_deleted_pods_until_it_is_back(
    api: Api, namespace: str, pods: PodPlayer
) -> None:
    spec = {"nodeName": "cpu-0", "containers": [{"name": "main", "image": "none"}]}
    manifest = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}
    api.create(manifest, namespace)
    api.until_one("Pod", "p", namespace, lambda pod: pod["status"]["phase"] == "Running")
    pods.freeze("cpu-0")
    api.delete("Pod", "p", namespace)
    # A pod made later on another node comes and goes meanwhile: the player is alive.
    other = {**manifest, "metadata": {"name": "q"}, "spec": {**spec, "nodeName": "gpu-0"}}
    api.create(other, namespace)
    api.until_one("Pod", "q", namespace, lambda pod: pod["status"]["phase"] == "Running")
    api.delete("Pod", "q", namespace)
    api.until_gone("Pod", "q", namespace)
    stuck = api.get("Pod", "p", namespace)
    assert stuck["metadata"]["deletionTimestamp"]
    assert stuck["status"]["phase"] == "Running"
    pods.thaw("cpu-0")
    api.until_gone("Pod", "p", namespace)


def test_real_eviction_is_a_disruption(api: Api, namespace: str, pods: PodPlayer) -> None:
    container = {"name": "main", "image": "none"}
    manifest = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p"},
        "spec": {"restartPolicy": "Never", "containers": [container]},
    }
    since = api.create(manifest, namespace)["metadata"]["resourceVersion"]
    api.until_one("Pod", "p", namespace, lambda pod: pod["status"]["phase"] == "Running")
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}}
    api.post("Pod", "p", namespace, "eviction", eviction)
    last = lived(api, namespace, since, lambda _: False)[-1]["status"]
    [target] = [each for each in last["conditions"] if each["type"] == "DisruptionTarget"]
    assert target["reason"] == "EvictionByEvictionAPI"
    assert last["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 143
