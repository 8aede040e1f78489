"""The real ReplicaSet takes its pods in the order that the scaling of renderers counts on."""

from __future__ import annotations

from tests.cluster.ground.api import Api, Json
from tests.cluster.ground.podlife import Running
from tests.cluster.ground.podplayer import PodPlayer

from watercolour_operator import names
from watercolour_operator.cluster import reduce
from watercolour_operator.names import Component
from watercolour_operator.observed import Pod
from watercolour_operator.scaling import victims
from watercolour_operator.scaling.victims import COST_BUSY, COST_GOING

NAME = "peonies-renderers"
LABELS = {names.COMPONENT: Component.RENDERERS.value, names.RUN_UID: "uid"}


def deployment(replicas: int) -> Json:
    container: Json = {"name": "renderers", "image": "registry.example/none:1"}
    pod: Json = {"containers": [container], "terminationGracePeriodSeconds": 1}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": NAME},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": LABELS},
            "template": {"metadata": {"labels": LABELS}, "spec": pod},
        },
    }


def living(found: list[Json]) -> tuple[Pod, ...]:
    pods = [reduce.pod(raw) for raw in found]
    return victims.active([pod for pod in pods if pod is not None])


def settle(api: Api, namespace: str, count: int, ready: int) -> tuple[Pod, ...]:
    """The pods, once there are so many and so many of them are ready."""

    def settled(found: list[Json]) -> bool:
        pods = living(found)
        return len(pods) == count and sum(pod.ready for pod in pods) == ready

    return living(api.until("Pod", settled, namespace, labels=LABELS))


def test_pods_go_in_the_order_that_rank_says(api: Api, namespace: str, pods: PodPlayer) -> None:
    api.create(deployment(6), namespace)
    every = [pod.name for pod in settle(api, namespace, 6, 6)]
    busy_unready, drained, again, idle, busy, other = every
    for name, cost in ((busy_unready, COST_BUSY), (drained, COST_GOING), (again, COST_GOING)):
        annotations = {names.DELETION_COST: str(cost)}
        api.patch("Pod", name, {"metadata": {"annotations": annotations}}, namespace)
    for name in (busy, other):
        annotations = {names.DELETION_COST: str(COST_BUSY)}
        api.patch("Pod", name, {"metadata": {"annotations": annotations}}, namespace)
    pods.step(namespace, busy_unready, Running(ready=False))
    left = settle(api, namespace, 6, 5)
    gone: list[str] = []
    for replicas in (5, 4, 3, 2):
        first = min(victims.rank(pod) for pod in left)
        expected = {pod.name for pod in left if victims.rank(pod) == first}
        api.patch("Deployment", NAME, {"spec": {"replicas": replicas}}, namespace)
        now = settle(api, namespace, replicas, min(replicas, 5))
        taken = {pod.name for pod in left} - {pod.name for pod in now}
        assert taken <= expected
        gone += taken
        left = now
    # However dear it is, a pod that is not ready goes first.
    assert gone[0] == busy_unready
    assert set(gone[1:3]) == {drained, again}
    assert gone[3] == idle
    assert {pod.name for pod in left} == {busy, other}
