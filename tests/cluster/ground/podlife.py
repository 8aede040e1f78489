"""The lives of pods, and the status that a kubelet (1.34, containerd) writes at each step. Pure.

A life is a tuple of steps; each step says how long after the one before it comes. `status` gives
what the kubelet would have written into the pod's status on reaching a step.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]


@dataclass(frozen=True)
class Creating:
    """Bound to a node; images are pulled, volumes mounted. Containers wait: ContainerCreating."""

    after: float = 0.0


@dataclass(frozen=True)
class Waiting:
    """The first container cannot start, for a reason as the kubelet words it; phase Pending."""

    reason: str
    message: str
    after: float = 0.0


@dataclass(frozen=True)
class Running:
    """Every container runs; `ready` False is a pod whose readiness probe has not passed."""

    ready: bool = True
    after: float = 0.0


@dataclass(frozen=True)
class Exited:
    """The first container ends; its neighbours end with it.

    With restartPolicy Never, and on success with OnFailure, the pod is Succeeded or Failed. With
    any other the container is started again: a Deployment's pod never ends by itself.
    """

    code: int = 0
    reason: str = ""  # Completed, Error or OOMKilled; from the code when empty
    message: str = ""  # the termination message
    after: float = 0.0


@dataclass(frozen=True)
class CrashLoop:
    """The first container has ended `restarts` times and waits for its next start."""

    code: int = 1
    reason: str = "Error"
    message: str = ""
    restarts: int = 1
    after: float = 0.0


@dataclass(frozen=True)
class Evicted:
    """The kubelet ends the pod to relieve its node; a disruption, not the program's fault."""

    message: str = "The node was low on resource: memory."
    after: float = 0.0


Step = Creating | Waiting | Running | Exited | CrashLoop | Evicted


@dataclass(frozen=True)
class Life:
    """Steps, and what becomes of the pod when it is told to end.

    On SIGTERM the first container goes on for `stop_after` seconds and then exits with `stop_code`
    (143 as a program that ends on SIGTERM; 0 as one that ends well). None: it ignores SIGTERM and
    is killed when the grace period is over, with 137.
    """

    steps: tuple[Step, ...]
    stop_after: float | None = 0.0
    stop_code: int = 143
    stop_message: str = ""


READY = Life((Creating(), Running()))
UNREADY = Life((Creating(), Running(ready=False)))
NEVER_STARTS = Life((Creating(),))


def finishes(code: int = 0, *, after: float = 0.0, message: str = "", reason: str = "") -> Life:
    """Runs for `after` seconds and exits with `code`."""
    return Life((Creating(), Running(), Exited(code, reason, message, after)))


def out_of_memory(*, after: float = 0.0) -> Life:
    """Runs for `after` seconds and is killed by the kernel for its memory."""
    return finishes(137, after=after, reason="OOMKilled")


def crash_loops(code: int = 1, *, restarts: int = 1, message: str = "") -> Life:
    """Ends at once, again and again."""
    return Life((Creating(), CrashLoop(code, "Error", message, restarts)))


def cannot_pull(image: str = "registry.example/absent:1") -> Life:
    """The image cannot be pulled: ErrImagePull, then ImagePullBackOff."""
    fault = (
        f'failed to pull and unpack image "{image}": failed to resolve reference "{image}": '
        f"{image}: not found"
    )
    failed = f"rpc error: code = NotFound desc = {fault}"
    return Life(
        (
            Creating(),
            Waiting("ErrImagePull", failed),
            Waiting(
                "ImagePullBackOff",
                f'Back-off pulling image "{image}": ErrImagePull: {failed}',
                after=0.05,
            ),
        )
    )


def cannot_configure(message: str = 'secret "absent" not found') -> Life:
    """A Secret or ConfigMap that the container refers to is missing."""
    return Life((Creating(), Waiting("CreateContainerConfigError", message)))


@dataclass
class Played:
    """What the kubelet remembers of a pod between two steps."""

    ip: str
    host_ip: str
    restarts: int = 0
    started_at: str = ""
    last: Json = field(default_factory=dict[str, Any])


def status(pod: Json, step: Step, played: Played, now: str) -> Json:
    """The pod's status at a step; `played` is brought up to date. `now` is RFC 3339 in seconds."""
    match step:
        case Creating():
            return _pending(pod, played, now, "ContainerCreating", "", sandbox=False)
        case Waiting():
            return _pending(pod, played, now, step.reason, step.message, sandbox=True)
        case Running():
            played.started_at = now
            return _running(pod, played, now, ready=step.ready)
        case Exited():
            return _exited(pod, step, played, now)
        case CrashLoop():
            played.restarts = step.restarts
            played.last = _terminated(pod, played, now, step.code, step.reason, step.message)
            return _crash_loop(pod, played, now)
        case Evicted():
            return _evicted(pod, step, played, now)


def stopped(pod: Json, life: Life, played: Played, now: str) -> Json:
    """The status after SIGTERM: the kubelet writes a final phase before the object goes."""
    killed = life.stop_after is None
    code = 137 if killed else life.stop_code
    return _ended(pod, played, now, Exited(code, "", life.stop_message))


def _exited(pod: Json, step: Exited, played: Played, now: str) -> Json:
    policy = pod["spec"].get("restartPolicy", "Always")
    if policy == "Never" or (policy == "OnFailure" and step.code == 0):
        return _ended(pod, played, now, step)
    played.last = _terminated(pod, played, now, step.code, step.reason, step.message)
    played.restarts += 1
    played.started_at = now
    return _running(pod, played, now, ready=True)


def _evicted(pod: Json, step: Evicted, played: Played, now: str) -> Json:
    ended = _ended(pod, played, now, Exited(137))
    disrupted = _condition("DisruptionTarget", True, now, "TerminationByKubelet", step.message)
    return ended | {
        "phase": "Failed",
        "reason": "Evicted",
        "message": step.message,
        "conditions": [disrupted, *ended["conditions"]],
    }


def _pending(
    pod: Json, played: Played, now: str, reason: str, message: str, *, sandbox: bool
) -> Json:
    waiting = {"reason": reason} | ({"message": message} if message else {})
    rest = {"reason": "ContainerCreating"}
    return _base(played, now) | {
        "phase": "Pending",
        "conditions": _conditions(pod, now, sandbox=sandbox, ready=False),
        "containerStatuses": [
            _container(each, played, {"waiting": waiting if first else rest})
            for first, each in _numbered(pod)
        ],
        **_init_containers(pod, played, now),
    }


def _running(pod: Json, played: Played, now: str, *, ready: bool) -> Json:
    running = {"running": {"startedAt": played.started_at}}
    return _base(played, now) | {
        "phase": "Running",
        "conditions": _conditions(pod, now, sandbox=True, ready=ready),
        "containerStatuses": [
            _container(
                each, played, running, ready=ready, last=played.last if first else {}, started=True
            )
            for first, each in _numbered(pod)
        ],
        **_init_containers(pod, played, now),
    }


def _crash_loop(pod: Json, played: Played, now: str) -> Json:
    metadata = pod["metadata"]
    seconds = min(300, 10 * 2 ** (played.restarts - 1))
    full_name = f"{metadata['name']}_{metadata['namespace']}({metadata['uid']})"
    name = pod["spec"]["containers"][0]["name"]
    text = f"back-off {_go_duration(seconds)} restarting failed container={name} pod={full_name}"
    waiting = {"waiting": {"reason": "CrashLoopBackOff", "message": text}}
    running = {"running": {"startedAt": now}}
    return _base(played, now) | {
        "phase": "Running",
        "conditions": _conditions(pod, now, sandbox=True, ready=False),
        "containerStatuses": [
            _container(each, played, waiting, last=played.last)
            if first
            else _container(each, played, running, ready=True, started=True)
            for first, each in _numbered(pod)
        ],
        **_init_containers(pod, played, now),
    }


def _ended(pod: Json, played: Played, now: str, step: Exited) -> Json:
    phase = "Failed" if step.code else "Succeeded"
    reason = "PodFailed" if step.code else "PodCompleted"
    conditions = [
        _condition("PodReadyToStartContainers", False, now),
        _condition("Initialized", True, now, "" if step.code else reason),
        _condition("Ready", False, now, reason),
        _condition("ContainersReady", False, now, reason),
    ]
    first_end = _terminated(pod, played, now, step.code, step.reason, step.message)
    other_end = _terminated(pod, played, now, step.code and 143, "", "")
    return _base(played, now) | {
        "phase": phase,
        "conditions": conditions,
        "containerStatuses": [
            _container(each, played, first_end if first else other_end)
            for first, each in _numbered(pod)
        ],
        **_init_containers(pod, played, now),
    }


def _terminated(pod: Json, played: Played, now: str, code: int, reason: str, message: str) -> Json:
    ended = {
        "exitCode": code,
        "reason": reason or ("Error" if code else "Completed"),
        "startedAt": played.started_at or now,
        "finishedAt": now,
        "containerID": _container_id(pod["metadata"]["uid"], played.restarts),
    }
    return {"terminated": ended | ({"message": message} if message else {})}


def _base(played: Played, now: str) -> Json:
    return {
        "hostIP": played.host_ip,
        "hostIPs": [{"ip": played.host_ip}],
        "podIP": played.ip,
        "podIPs": [{"ip": played.ip}],
        "startTime": now,
    }


def _conditions(pod: Json, now: str, *, sandbox: bool, ready: bool) -> list[Json]:
    names = " ".join(each["name"] for each in pod["spec"]["containers"])
    unready = (
        ("", "") if ready else ("ContainersNotReady", f"containers with unready status: [{names}]")
    )
    gates = pod["spec"].get("readinessGates", [])
    return [
        _condition("PodReadyToStartContainers", sandbox, now),
        _condition("Initialized", True, now),
        _condition("Ready", ready and not gates, now, *unready),
        _condition("ContainersReady", ready, now, *unready),
    ]


def _condition(kind: str, true: bool, now: str, reason: str = "", message: str = "") -> Json:
    condition: Json = {
        "type": kind,
        "status": "True" if true else "False",
        "lastProbeTime": None,
        "lastTransitionTime": now,
    }
    # An empty text removes what an earlier step wrote: the conditions are merged by type.
    return condition | {"reason": reason or None, "message": message or None}


def _container(
    spec: Json,
    played: Played,
    state: Json,
    *,
    ready: bool = False,
    started: bool = False,
    last: Json | None = None,
) -> Json:
    pulled = "waiting" not in state or bool(last)
    identity = state.get("terminated", {}).get("containerID") or (
        _container_id(spec["name"], played.restarts) if pulled else ""
    )
    status: Json = {
        "name": spec["name"],
        "image": spec["image"],
        "imageID": _image_id(spec["image"]) if pulled else "",
        "ready": ready,
        "started": started,
        "restartCount": played.restarts,
        "state": state,
        "lastState": last or {},
    }
    return status | ({"containerID": identity} if identity else {})


def _init_containers(pod: Json, played: Played, now: str) -> Json:
    """Init containers have always finished; one that restarts always runs beside the others."""
    specs = pod["spec"].get("initContainers", [])
    if not specs:
        return {}
    ended = {
        "terminated": {
            "exitCode": 0,
            "reason": "Completed",
            "startedAt": now,
            "finishedAt": now,
        }
    }
    return {
        "initContainerStatuses": [
            _container(each, played, {"running": {"startedAt": now}}, ready=True, started=True)
            if each.get("restartPolicy") == "Always"
            else _container(each, played, ended, ready=True)
            for each in specs
        ]
    }


def _numbered(pod: Json) -> list[tuple[bool, Json]]:
    return [(number == 0, each) for number, each in enumerate(pod["spec"]["containers"])]


def _container_id(of: str, restarts: int) -> str:
    return f"containerd://{hashlib.sha256(f'{of} {restarts}'.encode()).hexdigest()}"


def _image_id(image: str) -> str:
    repository = image.split("@")[0].rsplit(":", 1)[0]
    return f"{repository}@sha256:{hashlib.sha256(image.encode()).hexdigest()}"


def _go_duration(seconds: int) -> str:
    return f"{seconds // 60}m{seconds % 60}s" if seconds >= 60 else f"{seconds}s"
