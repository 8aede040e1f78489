"""KWOK: it keeps fake nodes alive, and, where nobody scripts them, plays their pods as well.

Tests script pods through podplayer.py, and KWOK then leaves pods alone (`pods=False`). At scale,
where every pod simply becomes ready and ends when it is deleted, KWOK plays them by itself.
"""

from __future__ import annotations

from pathlib import Path

import yaml
from tests.cluster.ground import processes
from tests.cluster.ground.api import Api, Json
from tests.cluster.ground.processes import Program

FAKE = "ground.watercolour.dev/fake"
GPU = "nvidia.com/gpu"

_NODE_STATUS = """
{{ $now := Now }}
conditions:
{{ range NodeConditions }}
- type: {{ .type | Quote }}
  status: {{ .status | Quote }}
  reason: {{ .reason | Quote }}
  message: {{ .message | Quote }}
  lastHeartbeatTime: {{ $now | Quote }}
  lastTransitionTime: {{ $now | Quote }}
{{ end }}
addresses:
- type: InternalIP
  address: {{ NodeIP | Quote }}
- type: Hostname
  address: {{ NodeName | Quote }}
"""

_POD_READY = """
{{ $now := Now }}
phase: Running
startTime: {{ $now | Quote }}
podIP: {{ PodIPWith .spec.nodeName false .metadata.uid .metadata.name .metadata.namespace | Quote }}
conditions:
{{ range $type := list "PodReadyToStartContainers" "Initialized" "ContainersReady" "Ready" }}
- type: {{ $type | Quote }}
  status: "True"
  lastTransitionTime: {{ $now | Quote }}
{{ end }}
containerStatuses:
{{ range .spec.containers }}
- name: {{ .name | Quote }}
  image: {{ .image | Quote }}
  imageID: ""
  ready: true
  started: true
  restartCount: 0
  state: {running: {startedAt: {{ $now | Quote }}}}
{{ end }}
"""


def _stage(name: str, kind: str, expressions: list[Json], step: Json, delay_ms: int = 0) -> Json:
    return {
        "apiVersion": "kwok.x-k8s.io/v1alpha1",
        "kind": "Stage",
        "metadata": {"name": name},
        "spec": {
            "resourceRef": {"apiGroup": "v1", "kind": kind},
            "selector": {"matchExpressions": expressions},
            "delay": {"durationMilliseconds": delay_ms},
            "next": step,
        },
    }


def stages(*, pods: bool) -> list[Json]:
    """What KWOK does: nodes become ready; with `pods`, so do pods, and deleted pods go."""
    unready = {
        "key": '.status.conditions.[] | select( .type == "Ready" ) | .status',
        "operator": "NotIn",
        "values": ["True"],
    }
    alive = {"key": ".metadata.deletionTimestamp", "operator": "DoesNotExist"}
    pending = {"key": ".status.phase", "operator": "In", "values": ["Pending"]}
    deleted = {"key": ".metadata.deletionTimestamp", "operator": "Exists"}
    node = _stage("node-ready", "Node", [unready], {"statusTemplate": _NODE_STATUS})
    if not pods:
        return [node]
    return [
        node,
        _stage("pod-ready", "Pod", [alive, pending], {"statusTemplate": _POD_READY}, 50),
        _stage("pod-gone", "Pod", [deleted], {"delete": True}),
    ]


def start(program: Path, kubeconfig: Path, folder: Path, *, pods: bool = False) -> Program:
    """Start KWOK for the nodes that `fake_node` makes."""
    config = folder / "kwok.yaml"
    config.write_text(yaml.safe_dump_all(stages(pods=pods)))
    command = [
        program,
        f"--kubeconfig={kubeconfig}",
        f"--config={config}",
        f"--manage-nodes-with-annotation-selector={FAKE}=true",
        "--node-lease-duration-seconds=40",
        "--server-address=127.0.0.1:0",
    ]
    return processes.start("kwok", command, folder / "log" / "kwok.log")


def fake_node(name: str, *, gpus: int = 0, labels: dict[str, str] | None = None) -> Json:
    """A node's manifest with room for 1,000 pods and this many GPUs."""
    room = {"cpu": "512", "memory": "4Ti", "pods": "1000", "ephemeral-storage": "4Ti"}
    if gpus:
        room[GPU] = str(gpus)
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "annotations": {FAKE: "true"},
            "labels": {
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
                **(labels or {}),
            },
        },
        "status": {"capacity": room, "allocatable": room},
    }


def add_node(api: Api, name: str, *, gpus: int = 0, labels: dict[str, str] | None = None) -> None:
    """Add a fake node and wait until it is Ready and takes pods."""
    api.create(fake_node(name, gpus=gpus, labels=labels))
    api.until_one("Node", name, None, takes_pods, what=f"node {name} is ready")


def takes_pods(node: Json) -> bool:
    """Whether a node is Ready and no taint keeps pods away."""
    conditions = node.get("status", {}).get("conditions", [])
    ready = any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
    return ready and not node["spec"].get("taints")
