"""What a run has used: GPUs and pods times seconds, by component, counted from the pods. Pure.

The count goes on from ``status.cost.accountedUntil``, so it is right over any time in which the
operator was away, as far as the pods can still be seen. A pod costs from the moment at which it got
its node, because from then on nobody else has that room, to its end.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from watercolour.api.status import ComponentCost, Cost
from watercolour_operator.names import Component
from watercolour_operator.observed import Load, Observed, Pod
from watercolour_operator.times import moment, stamp


def accounted(observed: Observed) -> Cost | None:
    """The cost up to now; None as long as nothing has cost anything, the old one if nothing more.

    Idle seconds are those of pods that had nothing to do when they were looked at: a renderer that
    paints nothing, a scorer or judge while the environment has nothing to score. The state at the
    moment of the count stands for the whole time since the last one, five minutes at most.
    """
    old = observed.status.cost or Cost()
    since = moment(old.accounted_until)
    parts = dict(old.components)
    for component in Component:
        used = _used(observed, component, since)
        if used.pod_seconds > 0:
            parts[component.value] = _sum(parts.get(component.value) or ComponentCost(), used)
    if parts == old.components:
        return observed.status.cost
    minutes = sum(part.gpu_seconds for part in parts.values()) / 60
    return Cost(
        accounted_until=stamp(observed.now, precise=True),
        gpu_minutes=round(minutes, 2),
        components=parts,
    )


def _used(observed: Observed, component: Component, since: datetime | None) -> ComponentCost:
    gpu = held = idle = 0.0
    share = _share(observed) if component is Component.SCORER else 1.0
    for pod in observed.of(component):
        seconds = _held(pod, since, observed.now) * share
        held += seconds
        gpu += seconds * pod.gpus
        if _is_idle(pod, observed):
            idle += seconds
    return ComponentCost(gpu_seconds=gpu, pod_seconds=held, idle_seconds=idle)


def _share(observed: Observed) -> float:
    """This run's share of its scorer: that of one among all who want it now, if several do."""
    spec = observed.spec or observed.started_with
    if spec is None or spec.scorer.sharing == "Dedicated":
        return 1.0
    wants = observed.status.scorer in ("Ready", "Starting")
    return 1.0 / max(observed.scorer_users, 1) if wants else 0.0


def _held(pod: Pod, since: datetime | None, now: datetime) -> float:
    if pod.scheduled is None:
        return 0.0
    over = pod.phase in ("Succeeded", "Failed")
    # A pod that failed without an end of its container, as after an eviction, ended unseen.
    end = pod.ended or (since or pod.scheduled if over else now)
    start = pod.scheduled if since is None else max(pod.scheduled, since)
    return max((min(end, now) - start).total_seconds(), 0.0)


def _is_idle(pod: Pod, observed: Observed) -> bool:
    if pod.component is Component.RENDERERS:
        return pod.ready and _idle(observed.loads, pod.name)
    if pod.component in (Component.SCORER, Component.JUDGE):
        demand = observed.demand
        if not pod.ready or demand is None:
            return False
        return demand.queued + demand.inflight == 0
    return False


def _idle(loads: Mapping[str, Load], name: str) -> bool:
    load = loads.get(name)
    return load is not None and load.busy == 0


def _sum(one: ComponentCost, other: ComponentCost) -> ComponentCost:
    return ComponentCost(
        gpu_seconds=round(one.gpu_seconds + other.gpu_seconds, 3),
        pod_seconds=round(one.pod_seconds + other.pod_seconds, 3),
        idle_seconds=round(one.idle_seconds + other.idle_seconds, 3),
    )
