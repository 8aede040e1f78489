"""What has to go, and in which order: what holds GPUs without training goes first. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from watercolour.api.reasons import Reason
from watercolour.api.status import ConditionType, Phase
from watercolour_operator.lifecycle import attempts, leftovers
from watercolour_operator.lifecycle.case import OVER, Case, Verdict
from watercolour_operator.names import Component
from watercolour_operator.observed import Child
from watercolour_operator.plan import Removal
from watercolour_operator.times import seconds_between

#: Seconds that parts without a state get to end once the run has.
GRACE_SECONDS = 5
#: The order in which Deployments go; between judge and renderers comes the trainer's Job.
FIRST = (Component.SCORER, Component.JUDGE)
LAST = (Component.RENDERERS, Component.ENV)
#: Objects that would go on scaling what is gone.
AUTOSCALERS = ("HorizontalPodAutoscaler", "ScaledObject")
#: Kinds that outlive the clean-up: the files.
KEPT_KINDS = ("PersistentVolumeClaim",)
#: Seconds that the Job controller has to notice that a Job's pods are over.
JOB_LAG_SECONDS = 30.0
#: Seconds that garbage collection has to ask a Deployment's pods to go.
GC_LAG_SECONDS = 4.0


def removals(case: Case, verdict: Verdict) -> tuple[Removal, ...]:
    """Everything that has to go now, in order."""
    ending = ends(case, verdict)
    going: list[Removal] = []
    if ending or _stuck(case, verdict):
        going += _deployments(case, FIRST)
    going += _jobs(case, ending)
    if ending:
        going += _autoscalers(case)
        going += _deployments(case, LAST)
        going += _orphans(case)
    going += _forced(case)
    left = ttl_left(case)
    if left is not None and left <= 0:
        going += _rest(case, going)
    return tuple(going)


def ends(case: Case, verdict: Verdict) -> bool:
    """Whether the run's parts are to go."""
    deleting = case.observed.deleting is not None
    return deleting or (verdict.phase is not Phase.PENDING and not verdict.active)


def _stuck(case: Case, verdict: Verdict) -> bool:
    """Whether the trainer is over and the next attempt has to wait for a person."""
    return verdict.reason is Reason.INVALID_SPEC and case.begun and verdict.attempt is None


def ttl_left(case: Case) -> float | None:
    """Seconds until what a finished run has left goes; None while it has not finished."""
    kept = case.spec.cleanup.ttl_seconds if case.spec else 0
    since = finished_for(case)
    return None if since is None else kept - since


def run_ttl_left(case: Case) -> float | None:
    """Seconds until the run itself is deleted; None when it never is."""
    since = finished_for(case)
    if since is None or case.spec is None:
        return None
    cleanup = case.spec.cleanup
    succeeded = case.status.phase is Phase.SUCCEEDED
    kept = cleanup.run_ttl_seconds_succeeded if succeeded else cleanup.run_ttl_seconds_failed
    return None if kept is None else kept - since


def finished_for(case: Case) -> float | None:
    """Seconds since the run finished; None while its status does not say so."""
    if case.status.phase not in OVER:
        return None
    done = case.status.condition(ConditionType.COMPLETE)
    lost = case.status.condition(ConditionType.FAILED)
    end = next((found for found in (done, lost) if found and found.status == "True"), None)
    return seconds_between(end.last_transition_time if end else None, case.now)


def remaining(case: Case) -> tuple[Child, ...]:
    """Objects of the run other than its files, and other than a scorer that others use."""
    shared = leftovers.shares_scorer(case)
    return tuple(
        child
        for child in case.observed.children
        if child.kind not in KEPT_KINDS and not (shared and child.component is Component.SCORER)
    )


def _deployments(case: Case, components: tuple[Component, ...]) -> Iterator[Removal]:
    for component in components:
        for child in remaining(case):
            if child.kind == "Deployment" and child.component is component and not child.deleting:
                yield Removal(child.kind, child.name, GRACE_SECONDS)


def _autoscalers(case: Case) -> Iterator[Removal]:
    for child in remaining(case):
        if child.kind in AUTOSCALERS and not child.deleting:
            yield Removal(child.kind, child.name)


def _jobs(case: Case, ending: bool) -> Iterator[Removal]:
    """Jobs that must make no pod any more; a finished one stays, and its pod's log with it."""
    records = {attempt.number: attempt for attempt in case.ledger.attempts}
    for number, job in sorted(attempts.trainer_jobs(case.observed).items()):
        if job.finished is not None or job.deleting:
            continue
        record = records.get(number)
        if record is None or record.ended is None:
            stale = record is None or number < records[max(records)].number
            if ending or stale:
                # Its own grace, in which the trainer writes a checkpoint.
                yield Removal(job.kind, job.name)
            continue
        lag = seconds_between(record.ended, case.now)
        if job.suspended or (lag is not None and lag > JOB_LAG_SECONDS):
            yield Removal(job.kind, job.name)


def _orphans(case: Case) -> Iterator[Removal]:
    """Pods of parts whose Deployment is gone: none gets longer to end than it needs.

    Garbage collection asks them to go, with the grace of their template; what it has not asked
    after a while is asked here. Who has outlasted its grace is not asked again: the API server
    would count anew, and deletion by force wait as long.
    """
    owners = {child.component for child in case.observed.children if child.kind == "Deployment"}
    for pod in leftovers.working(case):
        if pod.component in owners or pod.component is Component.TRAINER:
            continue
        forgotten = pod.deleting is None and _ending_for(case) > GC_LAG_SECONDS
        asked = seconds_between(pod.deleting, case.now)
        if forgotten or (asked is not None and GRACE_SECONDS < pod.grace_seconds > asked):
            yield Removal("Pod", pod.name, GRACE_SECONDS)


def _ending_for(case: Case) -> float:
    """Seconds for which the run's parts have been going, as far as is known."""
    if case.observed.deleting is not None:
        return seconds_between(case.observed.deleting, case.now) or 0.0
    stopped = case.status.condition(ConditionType.PROGRESSING)
    if stopped is None or stopped.status != "False":
        return 0.0
    return seconds_between(stopped.last_transition_time, case.now) or 0.0


def _forced(case: Case) -> Iterator[Removal]:
    """Pods that will not end by themselves.

    The next attempt and the run's end wait for them, and so does a Deployment whose template has
    changed.
    """
    patience = case.settings.force_delete_seconds
    for pod in leftovers.working(case):
        if attempts.overdue(pod, case.observed, patience):
            yield Removal("Pod", pod.name, 0)


def _rest(case: Case, going: list[Removal]) -> Iterator[Removal]:
    named = {(removal.kind, removal.name) for removal in going}
    for child in remaining(case):
        if not child.deleting and (child.kind, child.name) not in named:
            yield Removal(child.kind, child.name)
