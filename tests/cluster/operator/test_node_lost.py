"""A node falls silent under a run: what stood on it is made anew elsewhere, and the run says so."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.cluster.ground import kwok
from tests.cluster.ground.api import Api
from tests.cluster.ground.podlife import UNREADY, Running
from tests.cluster.operator.conftest import Start
from tests.cluster.operator.harness import Story, condition

from watercolour_operator import names

Json = dict[str, Any]
HOSTNAME = "kubernetes.io/hostname"
RENDERERS = {names.COMPONENT: "renderers"}


@pytest.fixture
def doomed(api: Api, namespace: str, fake_nodes: list[str]) -> Iterator[str]:
    """A ready node that nobody but the test speaks for."""
    name = f"doomed-{namespace}"
    node = kwok.fake_node(name)
    del node["metadata"]["annotations"]
    node["metadata"]["labels"] = {HOSTNAME: name}
    api.create(node)
    heard(api, name, "True")
    api.until_one("Node", name, None, kwok.takes_pods, what="the node takes pods")
    yield name
    api.delete("Node", name)


def heard(api: Api, node: str, ready: str) -> None:
    """What the API server knows of a node's kubelet; Unknown once it has been silent for long."""
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    told = {"type": "Ready", "status": ready, "reason": "Test", "message": ""}
    stamps = {"lastHeartbeatTime": now, "lastTransitionTime": now}
    api.patch("Node", node, {"status": {"conditions": [told | stamps]}}, subresource="status")


def is_on(pod: Json, node: str) -> bool:
    """Whether a pod stands on a node."""
    return pod["spec"].get("nodeName") == node


def started(pod: Json) -> bool:
    """Whether a pod's containers run."""
    return pod["status"].get("phase") == "Running"


def ready(pod: Json) -> bool:
    """Whether a pod is ready."""
    conditions = pod["status"].get("conditions", ())
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def test_renderers_of_a_node_that_falls_silent_are_made_elsewhere(
    api: Api, namespace: str, story: Story, start: Start, doomed: str
) -> None:
    where = {"matchExpressions": [{"key": HOSTNAME, "operator": "In", "values": [doomed]}]}
    wish = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 9, "preference": where}]}
    start(lease_seconds="60")
    story.create(
        renderers={"scaling": {"min": 1, "max": 1}},
        podTemplates={"renderers": {"spec": {"affinity": {"nodeAffinity": wish}}}},
    )
    story.train()
    (pod,) = api.until(
        "Pod",
        lambda found: len(found) == 1 and ready(found[0]),
        namespace,
        labels=RENDERERS,
        what="a renderer is ready",
    )
    assert is_on(pod, doomed)
    # The next one is not ready before the run was seen without any.
    story.pods.script(namespace, UNREADY, labels=RENDERERS)
    story.pods.freeze(doomed)
    heard(api, doomed, "Unknown")
    lost = api.until_one(
        names.KIND,
        story.name,
        namespace,
        lambda run: condition(run, "RenderersReady").get("reason") == "NodeLost",
        what="the run says that the node is lost",
    )
    assert doomed in condition(lost, "RenderersReady")["message"]
    found = api.until(
        "Pod",
        lambda found: any(not is_on(each, doomed) and started(each) for each in found),
        namespace,
        labels=RENDERERS,
        what="a renderer runs elsewhere",
    )
    (left,) = [each for each in found if is_on(each, doomed)]
    assert "deletionTimestamp" in left["metadata"]
    (new,) = [each["metadata"]["name"] for each in found if not is_on(each, doomed)]
    story.pods.step(namespace, new, Running())
    again = api.until_one(
        names.KIND,
        story.name,
        namespace,
        lambda run: condition(run, "RenderersReady").get("status") == "True",
        what="the renderers are ready again",
    )
    assert len(again["status"]["attempts"]) == 1
    told = api.until(
        "Event", lambda found: any(each["reason"] == "NodeLost" for each in found), namespace
    )
    assert doomed in next(each["message"] for each in told if each["reason"] == "NodeLost")
