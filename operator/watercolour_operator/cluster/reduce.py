"""Raw objects of the API server → the small records that decisions are made from. Pure.

A thousand runs have some eighteen thousand objects; whole, they would take a gigabyte.
"""

from __future__ import annotations

import json
import sys
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal, cast

from watercolour.api.rules import quantity
from watercolour_operator import names
from watercolour_operator.names import Component
from watercolour_operator.observed import Child, Pod

Raw = Mapping[str, Any]

#: Pod reasons that mean "asked to go by the cluster" where the condition is missing.
_DISRUPTED = frozenset({"Evicted", "Preempting", "NodeShutdown", "NodeLost", "Terminated"})
#: The condition's reason when the node got a taint.
_TAINTED = "DeletionByTaintManager"
#: Waiting reasons of every healthy start.
_USUAL_WAITS = frozenset({"ContainerCreating", "PodInitializing"})
#: Longest words of a pod that are kept: the kubelet's own limit of a termination message.
LONGEST_WORDS = 4096


@dataclass(slots=True)
class Entry:
    """One object of a run in memory, with what applying it again has to know."""

    kind: str
    namespace: str
    version: int
    record: Child | Pod
    #: Name and uid of the run in its labels; both empty when runs of the namespace share it.
    run: str
    run_uid: str
    #: Digest in the label of what is shared.
    shared: str | None
    #: Whether its label says that it outlives its run.
    kept: bool
    #: Digest of the manifest it was last made from, by its own annotation.
    applied: str | None
    #: Changes when somebody takes a field of ours away or changes its value.
    mark: int
    #: Whether the number of its pods is a field of ours.
    sizes: bool = False
    #: Digest and mark when it was last what a manifest says; None when that is not known.
    known: tuple[str, int] | None = None
    #: Whether this process has made it so; otherwise its annotation was believed.
    checked: bool = False

    @property
    def disturbed(self) -> bool:
        """Whether somebody has changed a field of ours since."""
        return self.known is not None and self.known[1] != self.mark


@dataclass(frozen=True, slots=True)
class Run:
    """One run as the API server has it; specification and status are kept as packed JSON."""

    namespace: str
    name: str
    uid: str
    version: int
    generation: int
    created: datetime
    deleting: datetime | None
    packed_spec: bytes
    packed_status: bytes
    #: Whether it wants to share its scorer with other runs of its namespace.
    shares: bool

    @property
    def spec(self) -> bytes:
        """The specification as JSON."""
        return unpacked(self.packed_spec)

    @property
    def status(self) -> bytes:
        """The status as JSON."""
        return unpacked(self.packed_status)

    @property
    def spec_data(self) -> dict[str, Any]:
        """The specification as plain data."""
        return json.loads(self.spec)


def packed(text: bytes) -> bytes:
    """A text as it is kept between two looks: a thousand runs have some 15 MiB of it."""
    return zlib.compress(text, 1)


def unpacked(kept: bytes) -> bytes:
    """The text again; takes some ten microseconds."""
    return zlib.decompress(kept)


def version(raw: Raw) -> int:
    """The object's resourceVersion, which the API server lets clients compare as a number."""
    return int(raw["metadata"].get("resourceVersion") or 0)


def run(raw: Raw) -> Run:
    """A WatercolourRun."""
    metadata, spec = raw["metadata"], raw.get("spec") or {}
    return Run(
        namespace=sys.intern(metadata["namespace"]),
        name=metadata["name"],
        uid=metadata["uid"],
        version=version(raw),
        generation=metadata.get("generation", 0),
        created=_time(metadata["creationTimestamp"]),
        deleting=_time_or_none(metadata.get("deletionTimestamp")),
        packed_spec=_packed(spec),
        packed_status=_packed(raw.get("status") or {}),
        shares=(spec.get("scorer") or {}).get("sharing") == "Namespace",
    )


def _packed(data: Raw) -> bytes:
    return packed(json.dumps(data, separators=(",", ":")).encode())


def entry(kind: str, raw: Raw) -> Entry | None:
    """An object of a run or of several; None when its labels say neither, or no known component."""
    metadata = raw["metadata"]
    labels: Mapping[str, str] = metadata.get("labels") or {}
    if names.RUN_UID not in labels and names.SHARED not in labels:
        return None
    record = pod(raw) if kind == "Pod" else child(kind, raw)
    if record is None:
        return None
    return Entry(
        kind=kind,
        namespace=sys.intern(metadata["namespace"]),
        version=version(raw),
        record=record,
        run=sys.intern(labels.get(names.RUN, "")),
        run_uid=sys.intern(labels.get(names.RUN_UID, "")),
        shared=None if names.RUN_UID in labels else labels[names.SHARED],
        kept=names.KEEP in labels,
        applied=(metadata.get("annotations") or {}).get(names.APPLIED),
        mark=0 if kind == "Pod" else _mark(metadata),
        sizes=kind == "Deployment" and "f:replicas" in _our_fields(metadata).get("f:spec", {}),
    )


def _mark(metadata: Raw) -> int:
    """A number for the set of fields that are ours: a change of one by somebody else shrinks it."""
    fields = _our_fields(metadata)
    return hash(json.dumps(fields)) if fields else 0


def _our_fields(metadata: Raw) -> Raw:
    """The fields that we have applied; empty when there are none."""
    for manager in metadata.get("managedFields") or ():
        ours = manager.get("manager") == names.MANAGER and manager.get("operation") == "Apply"
        if ours and not manager.get("subresource"):
            return manager.get("fieldsV1") or {}
    return {}


def child(kind: str, raw: Raw) -> Child:
    """An object other than a pod, whole or its metadata alone."""
    metadata = raw["metadata"]
    labels: Mapping[str, str] = metadata.get("labels") or {}
    spec: Raw = raw.get("spec") or {}
    status: Raw = raw.get("status") or {}
    wanted = ready = finished = phase = problem = None
    if kind == "Deployment":
        wanted, ready = spec.get("replicas", 1), status.get("readyReplicas", 0)
        problem = _stuck_deployment(status)
    elif kind == "Job":
        finished, problem = _finished(status)
    elif kind == "PersistentVolumeClaim":
        phase = status.get("phase")
    owner = _owner(metadata)
    return Child(
        kind=kind,
        name=metadata["name"],
        uid=metadata["uid"],
        generation=metadata.get("generation", 0),
        created=_time(metadata["creationTimestamp"]),
        owner_uid=sys.intern(owner) if owner else None,
        component=_component(labels),
        attempt=_number(labels.get(names.ATTEMPT)),
        deleting="deletionTimestamp" in metadata,
        wanted=wanted,
        ready=ready,
        suspended=kind == "Job" and bool(spec.get("suspend")),
        finished=finished,
        phase=phase,
        problem=problem,
    )


def _stuck_deployment(status: Raw) -> str | None:
    conditions = {found["type"]: found for found in status.get("conditions") or ()}
    failed = conditions.get("ReplicaFailure")
    if failed and failed.get("status") == "True":
        return failed.get("message") or failed.get("reason")
    progressing = conditions.get("Progressing")
    wrong = progressing and progressing.get("reason") not in ("ProgressDeadlineExceeded", None)
    if progressing and wrong and progressing.get("status") == "False":
        return progressing.get("message") or progressing.get("reason")
    return None


def _finished(status: Raw) -> tuple[Literal["Complete", "Failed"] | None, str | None]:
    for condition in status.get("conditions") or ():
        if condition.get("status") == "True" and condition["type"] in ("Complete", "Failed"):
            return condition["type"], condition.get("message")
    return None, None


def pod(raw: Raw) -> Pod | None:
    """A pod of a run; None when its label names no component that is known."""
    metadata, spec, status = raw["metadata"], raw.get("spec") or {}, raw.get("status") or {}
    labels: Mapping[str, str] = metadata.get("labels") or {}
    component = _component(labels)
    if component is None:
        return None
    conditions = {found["type"]: found for found in status.get("conditions") or ()}
    state = _container(component, status)
    node = spec.get("nodeName")
    disruption: Raw = conditions.get("DisruptionTarget") or {}
    readied = _readied(conditions.get("Ready") or {}, metadata)
    return Pod(
        name=metadata["name"],
        uid=metadata["uid"],
        component=component,
        phase=status.get("phase") or "Pending",
        created=_time(metadata["creationTimestamp"]),
        attempt=_number(labels.get(names.ATTEMPT)),
        index=_number(labels.get(names.INDEX)),
        owner_uid=_owner(metadata),
        node=sys.intern(node) if node else None,
        scheduled=_scheduled(node, conditions, metadata),
        unschedulable=_unschedulable(conditions),
        ready=readied is not None,
        readied=readied,
        deleting=_asked_to_go(metadata),
        grace_seconds=float(metadata.get("deletionGracePeriodSeconds") or 0),
        disrupted=disruption.get("status") == "True" or status.get("reason") in _DISRUPTED,
        node_lost=_node_lost(disruption, status),
        tainted=disruption.get("status") == "True" and disruption.get("reason") == _TAINTED,
        waiting_reason=state.waiting,
        exit_code=state.exit_code,
        ended_reason=state.ended_reason,
        message=(state.words or status.get("message") or "")[-LONGEST_WORDS:],
        started=state.started,
        ended=state.ended,
        restarts=state.restarts,
        gpus=_gpus(spec),
        ip=status.get("podIP"),
        deletion_cost=_number((metadata.get("annotations") or {}).get(names.DELETION_COST)),
    )


@dataclass(slots=True)
class _Container:
    waiting: str | None = None
    exit_code: int | None = None
    ended_reason: str | None = None
    words: str = ""
    started: datetime | None = None
    ended: datetime | None = None
    restarts: int = 0


def _container(component: Component, status: Raw) -> _Container:
    """The main container's state, or that of the one that keeps it from starting."""
    found = _Container()
    every: list[Raw] = [
        *(status.get("initContainerStatuses") or ()),
        *(status.get("containerStatuses") or ()),
    ]
    main = _main(component, status.get("containerStatuses") or ())
    if main is not None:
        found = _state(main)
    if found.exit_code is None and found.started is None:
        for other in every:
            stuck = _state(other)
            if stuck.waiting and stuck.waiting not in _USUAL_WAITS:
                return stuck
    return found


def _main(component: Component, statuses: Iterable[Raw]) -> Raw | None:
    """The container named after its component, or else the first."""
    every = list(statuses)
    named = (found for found in every if found.get("name") == component)
    return next(named, every[0] if every else None)


def _state(container: Raw) -> _Container:
    state: Raw = container.get("state") or {}
    found = _Container(restarts=container.get("restartCount", 0))
    ended = state.get("terminated")
    if waiting := state.get("waiting"):
        found.waiting, found.words = waiting.get("reason"), waiting.get("message") or ""
        # Between two starts the container's last words say more than the kubelet's.
        ended = (container.get("lastState") or {}).get("terminated")
    elif running := state.get("running"):
        found.started = _time_or_none(running.get("startedAt"))
    if ended:
        found.exit_code, found.ended_reason = ended.get("exitCode"), ended.get("reason")
        found.words = ended.get("message") or found.words
        found.started = _time_or_none(ended.get("startedAt"))
        found.ended = _time_or_none(ended.get("finishedAt"))
    return found


def _node_lost(disruption: Raw, status: Raw) -> bool:
    """Whether the pod was given up with its node, as pod garbage collection says it."""
    orphaned = disruption.get("reason") == "DeletionByPodGC"
    return (orphaned and disruption.get("status") == "True") or status.get("reason") == "NodeLost"


def _asked_to_go(metadata: Raw) -> datetime | None:
    """When deletion was asked for: the API server's own stamp has the grace added to it."""
    due = _time_or_none(metadata.get("deletionTimestamp"))
    return due and due - timedelta(seconds=metadata.get("deletionGracePeriodSeconds") or 0)


def _scheduled(node: str | None, conditions: Mapping[str, Raw], metadata: Raw) -> datetime | None:
    bound = conditions.get("PodScheduled")
    if bound and bound.get("status") == "True":
        return _time_or_none(bound.get("lastTransitionTime"))
    return _time(metadata["creationTimestamp"]) if node else None


def _readied(condition: Raw, metadata: Raw) -> datetime | None:
    """When the pod became ready; its creation where nobody says."""
    if condition.get("status") != "True":
        return None
    return _time_or_none(condition.get("lastTransitionTime")) or _time(
        metadata["creationTimestamp"]
    )


def _unschedulable(conditions: Mapping[str, Raw]) -> str | None:
    bound = conditions.get("PodScheduled")
    if bound and bound.get("status") == "False" and bound.get("reason") == "Unschedulable":
        return bound.get("message") or "Unschedulable"
    return None


def _gpus(spec: Raw) -> int:
    """GPUs that the pod holds: extended resources of any vendor whose name ends in /gpu."""
    total = 0
    for container in spec.get("containers") or ():
        limits: Mapping[str, str] = (container.get("resources") or {}).get("limits") or {}
        # The API server writes large numbers as quantities, such as 100k.
        total += sum(
            int(quantity(str(count))) for name, count in limits.items() if name.endswith("/gpu")
        )
    return total


def _owner(metadata: Raw) -> str | None:
    """Uid of the controlling owner; of a sole owner where none controls."""
    owners = metadata.get("ownerReferences") or ()
    controlling = next((owner["uid"] for owner in owners if owner.get("controller")), None)
    return controlling or (owners[0]["uid"] if len(owners) == 1 else None)


def _component(labels: Mapping[str, str]) -> Component | None:
    try:
        return Component(labels.get(names.COMPONENT))
    except ValueError:
        return None


def _number(text: Any) -> int | None:
    try:
        return int(cast(str, text))
    except (TypeError, ValueError):
        return None


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)


def _time_or_none(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None
