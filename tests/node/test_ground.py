"""The node is a real one: it runs, limits, connects and separates pods, and gives them disks."""

from __future__ import annotations

import os
import signal
import socket

import pytest
from tests.cluster.ground import processes
from tests.cluster.node import cluster
from tests.cluster.node.place import ADDRESS, DNS, OUTSIDE, Place
from tests.node.conftest import Json, Space


def policy(name: str, pods: Json, **rules: list[Json]) -> Json:
    """A NetworkPolicy that allows what `ingress` and `egress` list and nothing else."""
    spec = {"podSelector": {"matchLabels": pods}, "policyTypes": ["Ingress", "Egress"]}
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": name},
        "spec": {**spec, **rules},
    }


def server(space: Space) -> tuple[str, str]:
    """A pod that serves on port 8080: its name and address."""
    name = space.pod("serve", ":8080")
    space.wait(f"pod/{name}", "condition=Ready")
    return name, space.get("pod", name)["status"]["podIP"]


def client(space: Space, **labels: str) -> str:
    """A pod that waits for questions."""
    name = space.pod("pause", labels=labels)
    space.wait(f"pod/{name}", "condition=Ready")
    return name


def shut_off(space: Space, pod: str, *targets: str) -> bool:
    """Whether none is reached any more; until the rules are in the kernel some still are."""
    return processes.wait_until(lambda: " open\n" not in space.probe(pod, "dial", *targets), 60)


def test_names_resolve_and_services_lead_to_pods(space: Space) -> None:
    server(space)
    asker = client(space)
    address = space.hello()
    name = f"hello.{space.name}.svc.cluster.local"
    assert space.probe(asker, "lookup", name).split() == [address]
    # The endpoints come a moment after the pod.
    opened = processes.wait_until(
        lambda: space.probe(asker, "dial", "hello:80") == "hello:80 open\n", 30
    )
    assert opened
    assert "no such host" in space.probe(asker, "lookup", f"nobody.{space.name}.svc.cluster.local")


def test_policy_lets_in_whom_it_names_alone(space: Space) -> None:
    _, address = server(space)
    friend, stranger = client(space, friend="yes"), client(space)
    target = f"{address}:8080"
    assert space.probe(stranger, "dial", target) == f"{target} open\n"
    who = {"podSelector": {"matchLabels": {"friend": "yes"}}}
    space.apply(policy("friends", {"probe": "serve"}, ingress=[{"from": [who]}]))
    assert shut_off(space, stranger, target)
    assert space.probe(friend, "dial", target) == f"{target} open\n"


def test_policy_without_a_way_out_leaves_none(space: Space) -> None:
    _, address = server(space)
    space.apply(policy("shut", {"shut": "yes"}))
    shut, free = client(space, shut="yes"), client(space)
    where = ["service", "kubernetes", "-n", "default", "-o", "jsonpath={.spec.clusterIP}"]
    kubernetes = space.kubectl("get", *where)
    targets = [f"{address}:8080", f"{DNS}:53", f"{kubernetes}:443"]
    if space.cluster.place:
        targets += [f"{ADDRESS}:6443", f"{ADDRESS}:10250"]
    assert space.probe(free, "dial", *targets).count(" open\n") == len(targets)
    assert shut_off(space, shut, *targets)
    if space.cluster.place:
        with socket.create_server((OUTSIDE, 0)) as host:
            target = f"{OUTSIDE}:{host.getsockname()[1]}"
            assert " open\n" in space.probe(free, "dial", target)
            assert " open\n" not in space.probe(shut, "dial", target)


def test_memory_limit_kills_and_says_so(space: Space) -> None:
    limit = {"resources": {"limits": {"memory": "64Mi"}, "requests": {"memory": "64Mi"}}}
    eater = space.pod("eat", "200", container=limit)
    space.wait(f"pod/{eater}", "jsonpath={.status.phase}=Failed")
    ended = space.get("pod", eater)["status"]["containerStatuses"][0]["state"]["terminated"]
    assert (ended["reason"], ended["exitCode"]) == ("OOMKilled", 137)


def test_pod_security_refuses_a_privileged_pod(space: Space) -> None:
    manifest = """
apiVersion: v1
kind: Pod
metadata: {name: privileged}
spec: {containers: [{name: c, image: i, securityContext: {privileged: true}}]}
"""
    told = space.kubectl("apply", "-f", "-", stdin=manifest, check=False)
    assert 'violates PodSecurity "restricted' in told


def test_claim_becomes_a_disk_of_its_size(space: Space) -> None:
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "disk"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "32Mi"}},
        },
    }
    space.apply(claim)
    volume = {"name": "disk", "persistentVolumeClaim": {"claimName": "disk"}}
    mounted = {"volumeMounts": [{"name": "disk", "mountPath": "/disk"}]}
    group = {"runAsUser": 65532, "fsGroup": 65532}
    writer = space.pod(
        "fill", "/disk/file", container=mounted, volumes=[volume], securityContext=group
    )
    space.wait(f"pod/{writer}", "jsonpath={.status.phase}=Failed")
    told = space.kubectl("logs", writer)
    assert "no space left on device" in told
    assert 24 <= int(told.split()[0]) <= 32, told


def test_daemon_that_ends_comes_back(space: Space, place: Place) -> None:
    before = cluster.daemon(place, "kubelet")
    assert before
    os.kill(before, signal.SIGKILL)
    found = processes.wait_until(lambda: cluster.daemon(place, "kubelet") not in {None, before}, 30)
    assert found, (place.logs / "supervisor.log").read_text()
    client(space)


@pytest.mark.parametrize("name", ["etcd", "kube-apiserver"])
def test_control_plane_comes_back_with_its_objects(space: Space, place: Place, name: str) -> None:
    asker = client(space)
    before = cluster.daemon(place, name)
    assert before
    os.kill(before, signal.SIGKILL)
    assert processes.wait_until(lambda: cluster.daemon(place, name) not in {None, before}, 30)
    up = processes.wait_until(
        lambda: space.kubectl("get", "--raw", "/readyz", check=False) == "ok", 60
    )
    assert up
    assert space.get("pod", asker)["status"]["phase"] == "Running"
