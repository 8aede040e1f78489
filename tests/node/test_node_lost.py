"""A second node, and its loss: pods of both reach each other, and a run outlives it."""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cluster.ground import processes
from tests.cluster.node import cluster, images, run
from tests.cluster.node.cluster import Cluster
from tests.cluster.node.place import FIRST, SECOND, Place
from tests.node.conftest import Json, Space, announce, restricted
from tests.node.lives import PATIENCE, Run, ready, step
from tests.node.test_ground import policy, shut_off

from watercolour.train import parquet

HOSTNAME = "kubernetes.io/hostname"
STEPS = 8
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
    address = space.hello()
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


@pytest.fixture
def garden(
    found: Cluster, place: Place, second: Place, request: pytest.FixtureRequest
) -> Iterator[Space]:
    """A namespace for a run, both nodes with our images, the operator on the first."""
    say = announce(request)
    for node, names in ((place, ()), (second, ("operator", "renderer"))):
        images.bring(node, say, names)
    selector = f"operator.nodeSelector.{HOSTNAME.replace('.', chr(92) + '.')}={FIRST.name}"
    run.install(found, say, "--set", selector)
    yield from restricted(found)


def test_run_outlives_the_node_of_its_renderers(
    garden: Space, second: Place, place: Place, tmp_path: Path, say: Callable[[str], None]
) -> None:
    story = Run(garden, "storm")
    parts = {part: {"spec": on(FIRST.name)} for part in ("trainer", "env", "scorer")}
    wish = {"renderers": {"spec": {"affinity": prefers(SECOND.name)}}}
    story.apply(
        STEPS, every=2, renderers={"scaling": {"min": 2, "max": 2}}, podTemplates=parts | wish
    )

    def standing() -> list[str]:
        """The nodes of the renderers that are ready and stay."""
        return [each["spec"]["nodeName"] for each in story.pods("renderers") if ready(each)]

    story.until("running", lambda found: step(found) >= 1)
    both = processes.wait_until(lambda: standing() == [SECOND.name] * 2, PATIENCE)
    assert both, garden.kubectl("get", "pods", "-o", "wide")
    story.until("painting", lambda found: found.get("renderers", {}).get("busy"))
    cluster.lose(place)
    lost = time.monotonic()
    silent = story.until("without renderers", lambda found: found["renderers"]["ready"] == 0)
    say(f"the loss was seen after {time.monotonic() - lost:.0f} s")
    back = processes.wait_until(lambda: standing() == [FIRST.name] * 2, PATIENCE)
    assert back, garden.kubectl("get", "pods", "-o", "wide")
    say(f"both renderers are back after {time.monotonic() - lost:.0f} s")
    further = story.until("a step further", lambda found: step(found) > step(silent))
    say(f"a step further after {time.monotonic() - lost:.0f} s")
    told = garden.get("events", "", "--field-selector=reason=NodeLost")["items"]
    assert [each["involvedObject"]["name"] for each in told] == [story.name]
    assert SECOND.name in told[0]["message"]
    found = story.until("succeeded", lambda found: found["phase"] == "Succeeded")
    assert len(found["attempts"]) == len(further["attempts"]) == 1
    assert step(found) == STEPS
    folder = run.fetch(garden.cluster, garden.name, story.name, tmp_path)
    whole(folder)
    # The node never says that they have ended.
    label = f"watercolour.dev/run={story.name}"
    gone = processes.wait_until(
        lambda: (
            not garden.get(
                "pods", "", "-l", label, f"--field-selector=spec.nodeName={SECOND.name}"
            )["items"]
        ),
        PATIENCE,
    )
    assert gone, garden.kubectl("get", "pods", "-o", "wide")


def whole(folder: Path) -> None:
    """Every rollout of the run is there and was scored, or refused for what the policy wrote."""
    rows = [row for file in sorted(folder.glob("rollouts/*.parquet")) for row in parquet.read(file)]
    sizes = Counter(row["step"] for row in rows)
    assert sorted(sizes) == list(range(STEPS))
    assert len(set(sizes.values())) == 1, sizes
    unscored = [(row["step"], row["unscored_reason"]) for row in rows if row["reward"] is None]
    assert unscored == []
    made_up = [row for row in rows if row["reward"] == 0 and not row["violations"]]
    assert made_up == []
