"""The trainer's attempts: who is seen, how far each came, how it ended, what it cost the budget.

The records live in the status. A record that was lost with a status write is found again by the
Job's labels, so no attempt is ever made twice. An attempt is over when none of its pods can run any
more; only then may the next one begin.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from watercolour.api.reasons import Reason
from watercolour.api.spec import RunSpec
from watercolour.api.status import Attempt, ConditionType, Phase, Progress, Status
from watercolour_operator.lifecycle import endings
from watercolour_operator.lifecycle.endings import Ending
from watercolour_operator.names import Component
from watercolour_operator.observed import Child, Observed, Pod
from watercolour_operator.times import moment, seconds_between, stamp

#: Records kept; older ones that do not count against the budget are dropped first.
KEPT = 100


@dataclass(frozen=True, slots=True)
class Ledger:
    """The attempts, brought up to date."""

    attempts: tuple[Attempt, ...] = ()
    #: Seconds that the ended attempts took in all.
    active_seconds: float = 0.0
    #: How the newest attempt ended, if that has been found just now.
    ending: Ending | None = None
    #: Step of the newest checkpoint that was heard of.
    checkpoint: int | None = None

    @property
    def newest(self) -> Attempt | None:
        """The attempt with the greatest number."""
        return self.attempts[-1] if self.attempts else None

    @property
    def counted(self) -> int:
        """Attempts that count against restartPolicy.maxRestarts."""
        return sum(1 for attempt in self.attempts if attempt.counted)


def alive(pod: Pod) -> bool:
    """Whether the pod may still run something, a terminating one included."""
    return pod.phase not in ("Succeeded", "Failed")


def trainer_pods(observed: Observed, number: int | None = None) -> tuple[Pod, ...]:
    """The trainer's pods of an attempt, or of all, oldest first."""
    pods = observed.of(Component.TRAINER)
    return tuple(pod for pod in pods if number is None or pod.attempt == number)


def trainer_jobs(observed: Observed) -> dict[int, Child]:
    """The trainer's Jobs by attempt."""
    return {
        child.attempt: child
        for child in observed.children
        if child.kind == "Job" and child.component is Component.TRAINER and child.attempt
    }


def runner(observed: Observed, number: int) -> Pod | None:
    """The attempt's pod that trains or will: the leader where there are several."""
    pods = [pod for pod in trainer_pods(observed, number) if alive(pod)]
    staying = [pod for pod in pods if pod.deleting is None]
    return min(staying or pods, key=lambda pod: pod.index or 0, default=None)


def overdue(pod: Pod, observed: Observed, patience: float) -> bool:
    """Whether a terminating pod will not end by itself.

    A kubelet that lives kills what has not ended when its grace is over; a pod that outlasts that
    by far has lost its node.
    """
    asked = seconds_between(pod.deleting, observed.now)
    return alive(pod) and asked is not None and asked > pod.grace_seconds + patience


def up_to_date(observed: Observed, spec: RunSpec | None, patience: float) -> Ledger:
    """The records of the status, with all that the observation adds.

    Args:
        observed: the run and its surroundings.
        spec: the specification in force.
        patience: seconds after which a pod that will not end is deleted by force.
    """
    jobs = trainer_jobs(observed)
    seen = {*jobs, *(pod.attempt for pod in trainer_pods(observed) if pod.attempt)}
    records = {attempt.number: attempt for attempt in observed.status.attempts}
    newest = max((*records, 0))
    # Below a record that exists, a missing one was dropped for its age.
    records |= {number: _lost(number) for number in seen if number > newest}
    ledger = Ledger(
        active_seconds=observed.status.active_seconds, checkpoint=_known_checkpoint(observed)
    )
    for number in sorted(records):
        ledger = _take_in(ledger, records[number], jobs.get(number), observed, spec, patience)
    return replace(ledger, attempts=_kept(ledger.attempts))


def _lost(number: int) -> Attempt:
    """The record of an attempt of which only its Job is known; a first one resumes nothing."""
    return Attempt(number=number, resumed=False if number == 1 else None)


def _take_in(
    ledger: Ledger,
    record: Attempt,
    job: Child | None,
    observed: Observed,
    spec: RunSpec | None,
    patience: float,
) -> Ledger:
    if record.ended is not None:
        return replace(ledger, attempts=(*ledger.attempts, record))
    pods = trainer_pods(observed, record.number)
    record = _begun(record, job, pods, observed.now)
    ledger = replace(ledger, checkpoint=_newest(ledger.checkpoint, _heard(record, observed)))
    record = _gone_on(record, observed, patience)
    ending = _ending(record, job, pods, observed, spec)
    if ending is not None:
        ledger = replace(
            ledger,
            ending=ending,
            checkpoint=_newest(ledger.checkpoint, ending.words.last_checkpoint_step),
        )
        record = _closed(record, ending, observed.now, spec)
        took = seconds_between(record.started, moment(record.ended) or observed.now)
        ledger = replace(ledger, active_seconds=ledger.active_seconds + (took or 0.0))
    return replace(ledger, attempts=(*ledger.attempts, record))


def _begun(record: Attempt, job: Child | None, pods: Sequence[Pod], now: datetime) -> Attempt:
    """Its Job and its start, once they are seen; a Job that its queue holds has not started."""
    changes: dict[str, object] = {}
    if job is not None and record.job is None:
        changes["job"] = job.uid
    elif pods and record.job is None:
        changes["job"] = pods[0].owner_uid or pods[0].uid
    if record.started is None and ((job is not None and not job.suspended) or pods):
        lost = record.job is None and job is not None
        changes["started"] = stamp(job.created if lost and job else now)
    return record.model_copy(update=changes) if changes else record


def _heard(record: Attempt, observed: Observed) -> int | None:
    pod = runner(observed, record.number)
    return checkpoint_in(observed.progress) if pod and pod.started else None


def checkpoint_in(progress: Progress | None) -> int | None:
    """Step of the newest checkpoint in the trainer's /progress; None when it does not say."""
    if progress is None:
        return None
    said = getattr(progress, "last_checkpoint_step", None)
    if said is None:
        said = (progress.model_extra or {}).get("lastCheckpointStep")
    return said if isinstance(said, int) else None


def _gone_on(record: Attempt, observed: Observed, patience: float) -> Attempt:
    """How far it is, and the first sign that it is being taken away."""
    changes: dict[str, object] = {}
    pod, progress = runner(observed, record.number), observed.progress
    if pod and pod.started and progress is not None:
        first = record.first_step
        if first is None and (record.number == 1 or record.resumed is False):
            # Who begins anew begins with 0, however far it is when it is first heard.
            first = 0
        last = max(record.last_step or 0, first or 0, progress.step)
        changes = {"first_step": first, "last_step": last}
    stopping = _stopping(observed.status)
    if stopping is not None:
        changes["reason"] = stopping.value
    elif pod and record.reason not in endings.WANTED and _lost_with_node(pod, observed, patience):
        changes["reason"] = Reason.NODE_LOST.value
    elif pod and record.reason is None and endings.disrupted(pod):
        changes["reason"] = Reason.TRAINER_DISRUPTED.value
    return record.model_copy(update=changes) if changes else record


def _lost_with_node(pod: Pod, observed: Observed, patience: float) -> bool:
    return pod.node_lost or overdue(pod, observed, patience)


def _ending(
    record: Attempt,
    job: Child | None,
    pods: Sequence[Pod],
    observed: Observed,
    spec: RunSpec | None,
) -> Ending | None:
    """How the attempt ended; None while it may still run or is yet to begin."""
    if any(alive(pod) for pod in pods):
        return None
    needed = spec.trainer.replicas if spec else 1
    succeeded = sum(pod.phase == "Succeeded" for pod in pods)
    complete = (job is not None and job.finished == "Complete") or succeeded >= max(needed, 1)
    if complete:
        return endings.of(pods, complete=True, sign=None)
    sign = _sign(record)
    job_goes = job is None or job.deleting
    if sign in endings.WANTED and job_goes:
        return endings.of(pods, complete=False, sign=sign)
    failed = (job is not None and job.finished == "Failed") or any(
        pod.phase == "Failed" for pod in pods
    )
    if failed:
        # It failed by itself before it could be stopped.
        own = None if sign in endings.WANTED else sign
        return endings.of(pods, complete=False, sign=own)
    if job is not None and job.suspended and not job.deleting and record.started is not None:
        fact = "The queue took the trainer's room back"
        return Ending(Reason.TRAINER_DISRUPTED, fact)
    if job_goes and record.job is not None:
        return endings.of(pods, complete=False, sign=sign)
    return None


def _stopping(status: Status) -> Reason | None:
    """Why the operator itself ends the trainer; None while it wants it to run."""
    if status.phase in (Phase.SUSPENDING, Phase.SUSPENDED):
        return Reason.RUN_SUSPENDED
    if status.phase is not Phase.FAILED:
        return None
    failed = status.condition(ConditionType.FAILED)
    known = failed is not None and failed.reason in endings.WANTED
    return Reason(failed.reason) if failed and known else Reason.ACTIVE_DEADLINE_EXCEEDED


def _sign(record: Attempt) -> Reason | None:
    """Why an attempt that is not over yet is going to be."""
    return Reason(record.reason) if record.reason in endings.DISRUPTIONS | endings.WANTED else None


def _closed(record: Attempt, ending: Ending, now: datetime, spec: RunSpec | None) -> Attempt:
    ended = ending.pod.ended if ending.pod and ending.pod.ended else now
    reached = ending.words.step
    last = record.last_step
    if reached is not None:
        # A resumed trainer that ended before its first step counts from 0.
        last = max(last or 0, record.first_step or 0, reached)
    forgiven = spec is None or spec.restart_policy.ignore_disruptions
    counted = ending.own_fault or (ending.reason in endings.DISRUPTIONS and not forgiven)
    changes = {
        "ended": stamp(max(ended, moment(record.started) or ended)),
        "last_step": last,
        "reason": ending.reason.value,
        "counted": counted,
    }
    return record.model_copy(update=changes)


def _known_checkpoint(observed: Observed) -> int | None:
    artifacts = observed.status.artifacts
    return artifacts.last_checkpoint_step if artifacts else None


def _newest(known: int | None, heard: int | None) -> int | None:
    """Checkpoints only move forward: an older answer may come later."""
    return max((step for step in (known, heard) if step is not None), default=None)


def _kept(attempts: tuple[Attempt, ...]) -> tuple[Attempt, ...]:
    surplus = len(attempts) - KEPT
    if surplus <= 0:
        return attempts
    harmless = [attempt.number for attempt in attempts[:-1] if not attempt.counted][:surplus]
    return tuple(attempt for attempt in attempts if attempt.number not in harmless)
