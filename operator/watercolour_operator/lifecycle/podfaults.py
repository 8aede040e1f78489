"""What is wrong with the pods of a component, in the cluster's own words. Pure.

An ordered list: the first fault that applies is the one that is told, because it causes the others.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from watercolour.api.reasons import Reason
from watercolour_operator.lifecycle import attempts, words
from watercolour_operator.lifecycle.case import Case
from watercolour_operator.names import Component
from watercolour_operator.observed import Child, Pod

IMAGE = frozenset(
    {
        "ErrImagePull",
        "ImagePullBackOff",
        "InvalidImageName",
        "ErrImageNeverPull",
        "RegistryUnavailable",
        "ImageInspectError",
        "SignatureValidationFailed",
    }
)
CONFIG = frozenset(
    {
        "CreateContainerConfigError",
        "CreateContainerError",
        "RunContainerError",
        "StartError",
        "PreStartHookError",
        "PostStartHookError",
    }
)
#: Seconds that a new volume takes, until which its absence is no fault.
VOLUME_SECONDS = 20.0
#: Restarts of a container without a pause between them that are already a loop.
LOOP_RESTARTS = 3

TITLES = {
    Component.TRAINER: "trainer",
    Component.RENDERERS: "renderers",
    Component.ENV: "environment",
    Component.SCORER: "scorer",
    Component.JUDGE: "judge",
}


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that keeps a component's pods from working."""

    reason: Reason
    message: str
    component: Component | None = None
    pod: Pod | None = None


def first(case: Case) -> Fault | None:
    """The first fault of any component: the trainer's before the others'."""
    faults = (of(case, component) for component in Component)
    return next((fault for fault in faults if fault is not None), None)


def of(case: Case, component: Component) -> Fault | None:
    """What is wrong with a component; None when nothing is known to be."""
    pods = [pod for pod in _pods(case, component) if not pod.ready]
    for look in LOOKS:
        for pod in pods:
            fault = look(pod, TITLES[component], case)
            if fault is not None:
                return Fault(fault[0], fault[1], component, pod)
    problem = _owner_problem(case, component)
    if problem is not None:
        return Fault(*problem, component)
    return None


def _pods(case: Case, component: Component) -> tuple[Pod, ...]:
    if component is Component.TRAINER:
        return (case.runner,) if case.runner else ()
    pods = case.observed.of(component)
    return tuple(pod for pod in pods if attempts.alive(pod) and pod.deleting is None)


Found = tuple[Reason, str]
Look = Callable[[Pod, str, Case], Found | None]


def _network_open(pod: Pod, title: str, case: Case) -> Found | None:
    load = case.observed.loads.get(pod.name)
    told = load is not None and load.refuses is Reason.NETWORK_POLICY_NOT_ENFORCED
    if not told and Reason.NETWORK_POLICY_NOT_ENFORCED not in pod.message:
        return None
    return (
        Reason.NETWORK_POLICY_NOT_ENFORCED,
        f"{pod.name} reached the network although its NetworkPolicy forbids it, so it takes no "
        "work. Install a network plugin that enforces policies, or set renderers.networkCanary.",
    )


def _image(pod: Pod, title: str, case: Case) -> Found | None:
    if pod.waiting_reason not in IMAGE:
        return None
    said = _said(pod)
    return (
        Reason.IMAGE_UNAVAILABLE,
        f"The image of the {title} cannot be pulled ({pod.waiting_reason}){said}. "
        "Correct the image, or add its pull secret; the kubelet goes on trying.",
    )


def _config(pod: Pod, title: str, case: Case) -> Found | None:
    if pod.waiting_reason not in CONFIG:
        return None
    return (
        Reason.CONTAINER_CONFIG_INVALID,
        f"The container of the {title} cannot be made ({pod.waiting_reason}){_said(pod)}. "
        "Create what is missing or correct podTemplates; the kubelet goes on trying.",
    )


def _memory(pod: Pod, title: str, case: Case) -> Found | None:
    if pod.ended_reason != "OOMKilled" or pod.component is Component.TRAINER:
        return None
    return (
        Reason.OOM_KILLED,
        f"{pod.name} used more memory than its limit and is started again (restart "
        f"{pod.restarts}). Raise {pod.component}.resources.limits.memory.",
    )


def _loop(pod: Pod, title: str, case: Case) -> Found | None:
    looping = pod.waiting_reason == "CrashLoopBackOff" or pod.restarts >= LOOP_RESTARTS
    if not looping:
        return None
    code = f" with exit code {pod.exit_code}" if pod.exit_code is not None else ""
    return (
        Reason.CRASH_LOOP,
        f"{pod.name} ends again and again{code}{_said(pod)}. Kubernetes goes on starting it.",
    )


def _unschedulable(pod: Pod, title: str, case: Case) -> Found | None:
    if not pod.unschedulable or pod.scheduled is not None:
        return None
    said = words.last_line(pod.unschedulable).rstrip(".")
    if "persistentvolumeclaim" in said.lower() or "volume" in said.lower():
        if volume_left(pod, case.now) > 0:
            return None
        return (
            Reason.STORAGE_UNAVAILABLE,
            f"The {title} waits for its volume: {said}. It starts by itself once that is there; "
            "`kubectl describe pvc` says what the claim lacks, such as a default StorageClass.",
        )
    return (
        Reason.UNSCHEDULABLE,
        f"No node has room for the {title}: {said}. It starts by itself once there is room.",
    )


def volume_left(pod: Pod, now: datetime) -> float:
    """Seconds until a volume that is not there is a fault: most are made when they are claimed."""
    return VOLUME_SECONDS - (now - pod.created).total_seconds()


LOOKS: tuple[Look, ...] = (_network_open, _image, _config, _memory, _loop, _unschedulable)


def _said(pod: Pod) -> str:
    said = words.last_line(pod.message).rstrip(".")
    return f": {said}" if said else ""


def _owner_problem(case: Case, component: Component) -> Found | None:
    """The words of the Deployment or Job when it cannot even make its pods."""
    for child in _owners(case, component):
        if child.problem and child.finished is None:
            return _problem(child)
    return None


def _owners(case: Case, component: Component) -> tuple[Child, ...]:
    if component is Component.TRAINER:
        return (case.job,) if case.job else ()
    children = case.observed.children
    return tuple(
        child for child in children if child.kind == "Deployment" and child.component is component
    )


def _problem(child: Child) -> Found:
    said = words.last_line(child.problem or "").rstrip(".")
    low = said.lower()
    if "exceeded quota" in low or "quota" in low:
        todo = "Raise the quota or lower the resources; it goes on by itself then."
        return Reason.QUOTA_EXCEEDED, f"{child.kind} {child.name}: {said}. {todo}"
    return Reason.ADMISSION_REFUSED, f"{child.kind} {child.name} makes no pod: {said}."


def storage(case: Case) -> Fault | None:
    """A claim of the run that is lost or cannot be provided."""
    for child in case.observed.children:
        if child.kind != "PersistentVolumeClaim":
            continue
        if child.phase == "Lost" or child.problem:
            said = f": {words.last_line(child.problem).rstrip('.')}" if child.problem else ""
            lost = "has lost its volume" if child.phase == "Lost" else "gets no volume"
            message = f"Claim {child.name} {lost}{said}. Restore it, or name another claim."
            return Fault(Reason.STORAGE_UNAVAILABLE, message)
    return None
