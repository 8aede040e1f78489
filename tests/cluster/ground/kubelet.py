"""What a kubelet (1.34 with containerd) writes into a pod's status at each step of its life. Pure.

The rules were read off a real kubelet's writes, which tests/cluster/data/kubelet_statuses.json
keeps and test_ground_kubelet.py compares with these. An eviction's are from its documentation.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.cluster.ground.podlife import Creating, Evicted, Exited, Life, Running, Step, Waiting

Json = dict[str, Any]
LOST = "The container could not be located when the pod was terminated"


@dataclass
class Container:
    """One container of a pod, as the kubelet sees it."""

    name: str
    image: str
    sidecar: bool
    resources: Json
    state: Json
    last: Json = field(default_factory=dict[str, Any])
    ready: bool = False
    restarts: int = 0
    ran: bool = False

    @property
    def ended(self) -> bool:
        """Whether it has terminated."""
        return "terminated" in self.state


@dataclass
class Pod:
    """One pod, as the kubelet sees it."""

    manifest: Json
    ip: str
    host_ip: str
    inits: list[Container]
    mains: list[Container]
    sandbox: bool = False
    deleted: bool = False
    phase: str = "Pending"
    started: str = ""

    @property
    def sidecars(self) -> list[Container]:
        """Init containers that run beside the others."""
        return [each for each in self.inits if each.sidecar]


def admit(manifest: Json, ip: str, host_ip: str) -> Pod:
    """The kubelet's view of a pod that was bound to its node."""
    spec = manifest["spec"]
    first = {
        "waiting": {
            "reason": "PodInitializing" if spec.get("initContainers") else "ContainerCreating"
        }
    }

    def containers(kind: str) -> list[Container]:
        return [
            Container(
                each["name"],
                each["image"],
                each.get("restartPolicy") == "Always",
                each.get("resources", {}),
                first,
            )
            for each in spec.get(kind, [])
        ]

    return Pod(manifest, ip, host_ip, containers("initContainers"), containers("containers"))


def statuses(pod: Pod, step: Step, now: str) -> Iterator[Json]:
    """The statuses that the kubelet writes on a step, one after the other.

    `now` is RFC 3339 in whole seconds, as the kubelet writes times.
    """
    pod.started = pod.started or now
    match step:
        case Creating():
            yield _status(pod, now)
        case Waiting():
            yield from _initialize(pod, now)
            pod.mains[0].state = {"waiting": {"reason": step.reason, "message": step.message}}
            yield _status(pod, now)
        case Running():
            yield from _initialize(pod, now)
            for container in pod.mains:
                _run(container, now, ready=step.ready)
            pod.phase = "Running"
            yield _status(pod, now)
        case Exited():
            yield from _exit(pod, step, now)
        case Evicted():
            yield _evict(pod, step, now)


def stopped(pod: Pod, life: Life, now: str) -> Json:
    """The final status of a pod that was told to end, written before the object goes."""
    pod.deleted = True
    pod.sandbox = False
    pod.started = pod.started or now  # it may be told to end before its first step
    if not pod.mains[0].ran:
        conditions = _conditions(pod, now)
        unknown = {"exitCode": 137, "reason": "ContainerStatusUnknown", "message": LOST}
        for container in pod.mains:
            container.state = {"terminated": unknown}
        pod.phase = "Failed"
        return _status(pod, now) | {"conditions": conditions}
    for number, container in enumerate(pod.mains):
        if "waiting" in container.state and container.last:
            container.state = container.last  # it was not running while it backed off
        if not container.ended:
            first = (
                Exited(137)
                if life.stop_after is None
                else Exited(life.stop_code, message=life.stop_message)
            )
            _end(pod, container, first if number == 0 else Exited(0), now)
        container.last = {}
    for container in pod.sidecars:
        _end(pod, container, Exited(0), now)
    pod.phase = _outcome(pod)
    return _status(pod, now)


def _initialize(pod: Pod, now: str) -> Iterator[Json]:
    """The sandbox comes up; the init containers run one after the other."""
    if pod.sandbox:
        return
    pod.sandbox = True
    for container in pod.inits:
        _run(container, now, ready=container.sidecar)
        yield _status(pod, now)
        if not container.sidecar:
            _end(pod, container, Exited(0), now)
            container.ready = True
            yield _status(pod, now)


def _exit(pod: Pod, step: Exited, now: str) -> Iterator[Json]:
    container = next((each for each in pod.mains if each.name == step.container), pod.mains[0])
    before = container.state
    _end(pod, container, step, now)
    yield _status(pod, now)
    policy = pod.manifest["spec"].get("restartPolicy", "Always")
    if policy == "Always" or (policy == "OnFailure" and step.code):
        container.last = container.state
        if container.restarts == 0:
            _run(container, now, ready=container.ready or "running" in before)
            container.restarts = 1
        else:
            container.state = {"waiting": _back_off(pod, container)}
        yield _status(pod, now)
    elif all(each.ended for each in pod.mains):
        if pod.sidecars:
            for sidecar in pod.sidecars:
                _end(pod, sidecar, Exited(0), now)
            pod.sandbox = False
            yield _status(pod, now)
        pod.sandbox = False
        pod.phase = _outcome(pod)
        yield _status(pod, now)


def _evict(pod: Pod, step: Evicted, now: str) -> Json:
    pod.sandbox = False
    pod.deleted = True  # as far as restarts go
    for container in [*pod.mains, *pod.sidecars]:
        if not container.ended:
            _end(pod, container, Exited(137), now)
    pod.phase = "Failed"
    disrupted = _condition(pod, "DisruptionTarget", now, True, "TerminationByKubelet", step.message)
    status = _status(pod, now)
    status["conditions"].insert(0, disrupted)
    return status | {"reason": "Evicted", "message": step.message}


def _run(container: Container, now: str, *, ready: bool) -> None:
    if "waiting" in container.state and container.last:
        container.restarts += 1
    container.state = {"running": {"startedAt": now}}
    container.ready = ready
    container.ran = True


def _end(pod: Pod, container: Container, step: Exited, now: str) -> None:
    ended = {
        "exitCode": step.code,
        "reason": step.reason or ("Error" if step.code else "Completed"),
        "startedAt": container.state.get("running", {}).get("startedAt", now),
        "finishedAt": now,
        "containerID": _container_id(pod, container),
    }
    container.state = {"terminated": ended | ({"message": step.message} if step.message else {})}
    container.ready = False


def _outcome(pod: Pod) -> str:
    """Succeeded or Failed when the pod has ended for good, or an empty text."""
    policy = pod.manifest["spec"].get("restartPolicy", "Always")
    codes = [each.state["terminated"]["exitCode"] for each in pod.mains if each.ended]
    if len(codes) < len(pod.mains) or not all(each.ended for each in pod.sidecars):
        return ""
    if not pod.deleted and (policy == "Always" or (policy == "OnFailure" and any(codes))):
        return ""
    return "Failed" if any(codes) else "Succeeded"


def _status(pod: Pod, now: str) -> Json:
    place: Json = {"hostIP": pod.host_ip, "hostIPs": [{"ip": pod.host_ip}]}
    if pod.sandbox or any(each.ran for each in pod.mains):
        place |= {"podIP": pod.ip, "podIPs": [{"ip": pod.ip}]}
    inits = [_container(pod, each) for each in pod.inits]
    return {
        "observedGeneration": pod.manifest["metadata"].get("generation", 1),
        "phase": pod.phase,
        "conditions": _conditions(pod, now),
        **place,
        "startTime": pod.started,
        **({"initContainerStatuses": inits} if inits else {}),
        "containerStatuses": [_container(pod, each) for each in pod.mains],
    }


def _conditions(pod: Pod, now: str) -> list[Json]:
    outcome = _outcome(pod)
    end = {"Succeeded": "PodCompleted", "Failed": "PodFailed"}.get(outcome, "")
    incomplete = [
        each.name for each in pod.inits if not each.ran or not (each.sidecar or each.ended)
    ]
    unready = [each.name for each in [*pod.sidecars, *pod.mains] if not each.ready]
    readiness = (
        (False, end, "")
        if end
        else (False, "ContainersNotReady", f"containers with unready status: [{' '.join(unready)}]")
        if unready
        else (True, "", "")
    )
    gates = pod.manifest["spec"].get("readinessGates")
    gated = (False, "ReadinessGatesNotReady", "") if gates and readiness[0] else readiness
    initialized = (
        (
            False,
            "ContainersNotInitialized",
            f"containers with incomplete status: [{' '.join(incomplete)}]",
        )
        if incomplete
        else (True, end if outcome == "Succeeded" else "", "")
    )
    return [
        _condition(pod, "PodReadyToStartContainers", now, pod.sandbox),
        _condition(pod, "Initialized", now, *initialized),
        _condition(pod, "Ready", now, *gated),
        _condition(pod, "ContainersReady", now, *readiness),
    ]


def _condition(
    pod: Pod, kind: str, now: str, true: bool, reason: str = "", message: str = ""
) -> Json:
    return {
        "type": kind,
        "observedGeneration": pod.manifest["metadata"].get("generation", 1),
        "status": "True" if true else "False",
        "lastProbeTime": None,
        "lastTransitionTime": now,
        # The patch merges conditions by type: None takes away what an earlier step wrote.
        "reason": reason or None,
        "message": message or None,
    }


def _container(pod: Pod, container: Container) -> Json:
    running = "running" in container.state
    status: Json = {
        "name": container.name,
        "image": container.image,
        "imageID": _image_id(container.image) if container.ran else "",
        "ready": container.ready,
        "started": running,
        "restartCount": container.restarts,
        "state": container.state,
        "lastState": container.last,
    }
    if container.ran:
        status |= {"containerID": _container_id(pod, container), "resources": container.resources}
    return status


def _back_off(pod: Pod, container: Container) -> Json:
    metadata = pod.manifest["metadata"]
    seconds = min(300, 10 * 2 ** (container.restarts - 1))
    words = f"{seconds // 60}m{seconds % 60}s" if seconds >= 60 else f"{seconds}s"
    whole_name = f"{metadata['name']}_{metadata['namespace']}({metadata['uid']})"
    text = f"back-off {words} restarting failed container={container.name} pod={whole_name}"
    return {"reason": "CrashLoopBackOff", "message": text}


def _container_id(pod: Pod, container: Container) -> str:
    seed = f"{pod.manifest['metadata']['uid']} {container.name} {container.restarts}"
    return f"containerd://{hashlib.sha256(seed.encode()).hexdigest()}"


def _image_id(image: str) -> str:
    repository = image.split("@")[0].rsplit(":", 1)[0]
    return f"{repository}@sha256:{hashlib.sha256(image.encode()).hexdigest()}"
