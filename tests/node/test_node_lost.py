"""A second node, and its loss: pods of both reach each other, and a run outlives it."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest
from tests.cluster.ground import processes
from tests.cluster.node import cluster
from tests.cluster.node.cluster import Cluster
from tests.cluster.node.place import FIRST, SECOND, Place
from tests.node.conftest import Json, Space, announce
from tests.node.test_ground import policy, shut_off

HOSTNAME = "kubernetes.io/hostname"
BOTH = [(FIRST.name, SECOND.name), (SECOND.name, FIRST.name)]


@pytest.fixture(scope="module")
def second(found: Cluster, request: pytest.FixtureRequest) -> Iterator[Place]:
    """The second node; one that was not there before is gone afterwards, its object too."""
    if found.place is None:
        pytest.skip("a node of KUBECONFIG's cluster is not ours to lose")
    was_there = found.place.wanted.exists()
    yield cluster.second(found, announce(request))
    if not was_there:
        cluster.lose(found.place)
        Space(found, "default").kubectl("delete", "node", SECOND.name)


def on(node: str) -> Json:
    """What of a pod's specification binds it to a node."""
    return {"nodeSelector": {HOSTNAME: node}}


def running(space: Space, *command: str, **more: Any) -> str:
    """A pod of the probe's that is ready."""
    name = space.pod(*command, **more)
    space.wait(f"pod/{name}", "condition=Ready")
    return name


def opens(space: Space, pod: str, target: str) -> bool:
    """Whether a pod reaches an address; endpoints come a moment after their pod."""
    return processes.wait_until(lambda: space.probe(pod, "dial", target) == f"{target} open\n", 30)


@pytest.mark.parametrize(("here", "there"), BOTH)
def test_pods_of_both_nodes_reach_each_other(
    space: Space, second: Place, here: str, there: str
) -> None:
    """By address, by a Service's address and by its name, which is resolved on the first node."""
    server = running(space, "serve", ":8080", **on(there))
    found = space.get("pod", server)
    assert found["spec"]["nodeName"] == there
    asker = running(space, "pause", **on(here))
    assert opens(space, asker, f"{found['status']['podIP']}:8080")
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "hello"},
        "spec": {"selector": {"probe": "serve"}, "ports": [{"port": 80, "targetPort": 8080}]},
    }
    space.apply(service)
    address = space.get("service", "hello")["spec"]["clusterIP"]
    assert opens(space, asker, f"{address}:80")
    name = f"hello.{space.name}.svc.cluster.local"
    assert space.probe(asker, "lookup", name).split() == [address]


@pytest.mark.parametrize(("here", "there"), BOTH)
def test_policy_knows_the_pods_of_the_other_node(
    space: Space, second: Place, here: str, there: str
) -> None:
    server = running(space, "serve", ":8080", **on(there))
    target = f"{space.get('pod', server)['status']['podIP']}:8080"
    friend = running(space, "pause", labels={"friend": "yes"}, **on(here))
    strangers = [running(space, "pause", **on(node)) for node in (here, there)]
    shut = running(space, "pause", labels={"friend": "yes", "shut": "yes"}, **on(here))
    assert all(opens(space, each, target) for each in (friend, *strangers, shut))
    who = {"podSelector": {"matchLabels": {"friend": "yes"}}}
    space.apply(
        policy("friends", {"probe": "serve"}, ingress=[{"from": [who]}]),
        policy("shut", {"shut": "yes"}),
    )
    assert all(shut_off(space, each, target) for each in (*strangers, shut))
    assert opens(space, friend, target)


def test_pod_with_a_disk_goes_where_disks_are(space: Space, second: Place) -> None:
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "disk"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "16Mi"}}},
    }
    space.apply(claim)
    volume = {"name": "disk", "persistentVolumeClaim": {"claimName": "disk"}}
    pod = running(space, "pause", volumes=[volume], affinity=prefers(SECOND.name))
    assert space.get("pod", pod)["spec"]["nodeName"] == FIRST.name
    other = running(space, "pause", affinity=prefers(SECOND.name))
    assert space.get("pod", other)["spec"]["nodeName"] == SECOND.name


def prefers(node: str) -> Json:
    """An affinity that brings a pod to a node, and to another when that one is gone."""
    where = {"matchExpressions": [{"key": HOSTNAME, "operator": "In", "values": [node]}]}
    wish = {"weight": 100, "preference": where}
    return {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [wish]}}


def test_daemon_of_the_second_node_comes_back(space: Space, second: Place, place: Place) -> None:
    before, first = cluster.daemon(second, "kubelet"), cluster.daemon(place, "kubelet")
    assert before
    assert before != first
    os.kill(before, signal.SIGKILL)
    found = processes.wait_until(
        lambda: cluster.daemon(second, "kubelet") not in {None, before}, 30
    )
    assert found, (second.logs / "supervisor.log").read_text()
    assert cluster.daemon(place, "kubelet") == first
    running(space, "pause", **on(SECOND.name))


def test_lost_node_tells_nobody_and_can_come_back(
    space: Space, second: Place, place: Place
) -> None:
    server = running(space, "serve", ":8080", **on(SECOND.name))
    target = f"{space.get('pod', server)['status']['podIP']}:8080"
    asker = running(space, "pause", **on(FIRST.name))
    assert opens(space, asker, target)
    assert cluster.lose(place)
    assert cluster.daemon(second, "kubelet") is None
    assert space.probe(asker, "dial", target) != f"{target} open\n"
    assert not cluster.lose(place)
    cluster.second(space.cluster, lambda text: None)
    again = running(space, "serve", ":8080", **on(SECOND.name))
    assert opens(space, asker, f"{space.get('pod', again)['status']['podIP']}:8080")
