"""Where a run stands: an ordered list of pure checks, of which the first that answers decides."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from watercolour.api.reasons import Reason, known
from watercolour.api.spec import RunSpec
from watercolour.api.status import ConditionType, Phase
from watercolour_operator.lifecycle import (
    attempts,
    deadlines,
    failures,
    leftovers,
    podfaults,
    restarts,
    words,
)
from watercolour_operator.lifecycle.case import OVER, Case, Verdict
from watercolour_operator.lifecycle.endings import FINAL
from watercolour_operator.observed import Child
from watercolour_operator.times import span

Check = Callable[[Case], Verdict | None]


def verdict(case: Case) -> Verdict:
    """The word of the first check that has one."""
    for check in CHECKS:
        found = check(case)
        if found is not None:
            return found
    return running(case)


def over(case: Case) -> Verdict | None:
    """A finished run stays as it is, whatever is observed."""
    phase = case.status.phase
    if phase not in OVER:
        return None
    kind = ConditionType.COMPLETE if phase is Phase.SUCCEEDED else ConditionType.FAILED
    said = case.status.condition(kind)
    reason = Reason.SUCCEEDED if phase is Phase.SUCCEEDED else Reason.RESTARTS_EXHAUSTED
    if said is not None:
        reason = known(said.reason) or reason
    return Verdict(phase, reason, said.message if said else "")


def behind_an_older_run(case: Case) -> Verdict | None:
    """Before the start: objects of our names that belong to somebody else."""
    others = [child for child in case.observed.foreign if _in_the_way(child)]
    if case.begun or not others:
        return None
    old = [child for child in others if child.deleting or child.owner_uid]
    shown = old or others
    listed = ", ".join(f"{child.kind} {child.name}" for child in shown[:3])
    more = f" and {len(shown) - 3} more" if len(shown) > 3 else ""
    if old:
        text = f"An older run of this name is still ending: {listed}{more}. This one starts then."
        return Verdict(Phase.PENDING, Reason.WAITING_FOR_OLD_RUN, text, hold=True)
    text = f"{listed}{more} belong to somebody else. Remove them, or give the run another name."
    return Verdict(Phase.PENDING, Reason.NAME_TAKEN, text, hold=True)


def _in_the_way(child: Child) -> bool:
    # A claim that outlived its run has no owner; it is taken over with the files in it.
    return child.kind != "PersistentVolumeClaim" or child.owner_uid is not None or child.deleting


def invalid(case: Case) -> Verdict | None:
    """The specification breaks a rule: nothing starts, and what runs goes on as it is."""
    if case.spec is not None:
        return None
    problem = (case.observed.spec_problem or "The specification breaks a rule").rstrip(".")
    if not case.begun:
        message = f"{problem}. Nothing is started until it is corrected."
        return Verdict(Phase.PENDING, Reason.INVALID_SPEC, message, hold=True)
    phase = case.status.phase if case.status.phase in (Phase.STARTING, Phase.RUNNING) else None
    newest = case.newest
    still = newest if newest and newest.ended is None else None
    message = f"{problem}. What runs goes on; nothing more is started until it is corrected."
    return Verdict(phase or Phase.STARTING, Reason.INVALID_SPEC, message, still, hold=True)


def succeeded(case: Case) -> Verdict | None:
    """All steps are done."""
    newest = case.newest
    if newest is None or newest.reason != Reason.SUCCEEDED or newest.ended is None:
        return None
    if restarts.more_steps_wanted(case):
        return None
    message = _achieved(case)
    left = leftovers.working(case)
    if left:
        kinds = ", ".join(sorted({pod.component.value for pod in left}))
        return Verdict(Phase.COMPLETING, Reason.CLEANING_UP, f"{message} Ending: {kinds}.")
    return Verdict(Phase.SUCCEEDED, Reason.SUCCEEDED, message)


def _achieved(case: Case) -> str:
    progress, newest = case.status.progress, case.newest
    step = (newest.last_step if newest else None) or (progress.step if progress else None)
    steps = f"{step} step{'' if step == 1 else 's'}" if step else "All steps are done"
    pods = attempts.trainer_pods(case.observed, newest.number if newest else None)
    for said in (words.of(pod.message) for pod in pods if pod.phase == "Succeeded"):
        if said.reward_first is not None and said.reward_last is not None:
            return f"{steps}, reward {said.reward_first:.2f} → {said.reward_last:.2f}."
    reward = progress.reward.mean if progress else None
    return f"{steps}, reward {reward:.2f}." if reward is not None else f"{steps}."


def failed(case: Case) -> Verdict | None:
    """The trainer failed for good: once too often, or so that trying again changes nothing."""
    newest, spec = case.newest, case.spec
    if newest is None or spec is None or newest.ended is None:
        return None
    reason = known(newest.reason) or Reason.TRAINER_FAILED
    said = failures.fact(case)
    todo = failures.remedy(reason)
    if reason in FINAL:
        message = f"{said}. Another attempt would end alike. {todo}".strip()
        return Verdict(Phase.FAILED, reason, message)
    limit = spec.restart_policy.max_restarts
    if case.ledger.counted <= limit:
        return None
    kept = case.ledger.checkpoint
    saved = f" Step {kept} is saved." if kept is not None else ""
    message = f"{said}; restarts {limit} of {limit} used.{saved} {todo}".strip()
    return Verdict(Phase.FAILED, Reason.RESTARTS_EXHAUSTED, message)


def too_long(case: Case) -> Verdict | None:
    """The active deadline has passed."""
    left = deadlines.active_left(case)
    if left is None or left > 0 or case.spec is None:
        return None
    limit = span(case.spec.active_deadline_seconds or 0)
    kept = case.ledger.checkpoint
    saved = f"Step {kept} is saved. " if kept is not None else ""
    todo = failures.remedy(Reason.ACTIVE_DEADLINE_EXCEEDED)
    message = f"Active for longer than activeDeadlineSeconds ({limit}). {saved}{todo}"
    return Verdict(Phase.FAILED, Reason.ACTIVE_DEADLINE_EXCEEDED, message)


def too_slow(case: Case) -> Verdict | None:
    """The attempt has not made its first step in time."""
    left = deadlines.startup_left(case)
    if left is None or left > 0 or case.spec is None:
        return None
    limit = span(case.spec.startup_deadline_seconds)
    fault = podfaults.first(case) or case.observed.trouble
    cause = fault.message if fault else _last_in_the_way(case)
    message = f"No first step within startupDeadlineSeconds ({limit}). {cause}"
    return Verdict(Phase.FAILED, Reason.STARTUP_DEADLINE_EXCEEDED, message)


def _last_in_the_way(case: Case) -> str:
    """The part that was not ready when it was last looked at: the end makes all of them so."""
    for found in case.status.conditions:
        waits = found.status == "False" and found.reason in (
            Reason.POD_STARTING,
            Reason.TRAINER_SCHEDULED,
        )
        if waits:
            return f"{found.type} was False: {found.message}"
    return failures.remedy(Reason.STARTUP_DEADLINE_EXCEEDED)


def suspended(case: Case) -> Verdict | None:
    """spec.suspend is true: give everything back, the trainer with a checkpoint."""
    if case.spec is None or not case.spec.suspend:
        return None
    left = leftovers.working(case) or leftovers.job_at_work(case)
    if left or case.status.phase in (Phase.STARTING, Phase.RUNNING):
        message = "Suspending: the trainer writes its checkpoint, the other parts stop."
        return Verdict(Phase.SUSPENDING, Reason.SUSPEND_REQUESTED, message)
    step = case.ledger.checkpoint
    onward = f"goes on from step {step}" if step is not None else "starts the training"
    message = f"Every GPU is given back and the files are kept; suspend=false {onward}."
    return Verdict(Phase.SUSPENDED, Reason.RUN_SUSPENDED, message)


def lacking(case: Case) -> Verdict | None:
    """Before the start: a Secret or a claim that the specification names is not there."""
    missing, unasked = case.observed.missing, case.observed.unasked
    if case.begun:
        return None
    if unasked is not None:
        return Verdict(Phase.PENDING, unasked.reason, unasked.message, hold=True)
    if not missing:
        return None
    what = "it" if len(missing) == 1 else "them"
    message = f"Not in the namespace: {', '.join(missing)}. "
    message += f"Create {what}; the run starts by itself then."
    return Verdict(Phase.PENDING, reason_for_missing(missing), message, hold=True)


def reason_for_missing(missing: Sequence[str]) -> Reason:
    """The reason for objects that the specification names and the namespace lacks."""
    kinds = {name.partition(" ")[0] for name in missing}
    if "Secret" in kinds:
        return Reason.SECRET_MISSING
    if "PersistentVolumeClaim" in kinds:
        return Reason.STORAGE_UNAVAILABLE
    return Reason.CONTAINER_CONFIG_INVALID


def restarting(case: Case) -> Verdict | None:
    """Between two attempts: the old one's pods go first, and one that fails at once is slowed."""
    newest, spec = case.newest, case.spec
    if newest is None or spec is None:
        return None
    if newest.ended is None:
        return _stopping(case)
    lingering = [pod for pod in attempts.trainer_pods(case.observed) if attempts.alive(pod)]
    pause = restarts.pause_left(case)
    if not lingering and not leftovers.job_at_work(case) and pause <= 0:
        return None
    before = case.status.condition(ConditionType.PROGRESSING)
    if case.ledger.ending is None and before and before.reason == Reason.RESTARTING:
        return Verdict(Phase.STARTING, Reason.RESTARTING, before.message)
    return Verdict(Phase.STARTING, Reason.RESTARTING, failures.next_step(case, spec))


def _stopping(case: Case) -> Verdict | None:
    """An attempt whose Job is gone while a pod of it still ends."""
    newest, job = case.newest, case.job
    gone = newest is not None and newest.job is not None and (job is None or job.deleting)
    pods = attempts.trainer_pods(case.observed, newest.number) if newest else ()
    if not gone or not any(attempts.alive(pod) for pod in pods):
        return None
    message = "The trainer's Job is gone; the next attempt starts when its pod has ended."
    return Verdict(Phase.STARTING, Reason.RESTARTING, message)


def starting(case: Case) -> Verdict | None:
    """The next attempt may begin: the first one, or none of the older runs any more."""
    newest, spec = case.newest, case.spec
    if spec is None or (newest is not None and newest.ended is None):
        return None
    attempt = restarts.next_attempt(case, spec)
    reason = Reason.QUEUED if spec.queue_name else Reason.STARTED
    return Verdict(Phase.STARTING, reason, _begins(case, spec, attempt.number), attempt)


def _begins(case: Case, spec: RunSpec, number: int) -> str:
    if spec.queue_name:
        return f"Attempt {number} waits in the queue {spec.queue_name}."
    if number == 1:
        return "Attempt 1: policies, storage, renderers, environment and trainer applied."
    return f"Attempt {number}: {failures.goes_on(case)}."


def running(case: Case) -> Verdict:
    """The newest attempt is on its way."""
    newest = case.newest
    if case.queued:
        queue = case.spec.queue_name if case.spec else None
        message = f"Kueue holds the trainer back until the queue {queue or ''} has room."
        return Verdict(Phase.STARTING, Reason.QUEUED, message.replace("  ", " "), newest)
    if case.stepped:
        return Verdict(Phase.RUNNING, Reason.TRAINING, "The trainer makes steps.", newest)
    before = case.status.condition(ConditionType.PROGRESSING)
    if before and before.reason in (Reason.STARTED, Reason.RESUMED):
        return Verdict(Phase.STARTING, Reason(before.reason), before.message, newest)
    number = newest.number if newest else 1
    message = f"Attempt {number} is on its way to its first step."
    return Verdict(Phase.STARTING, Reason.STARTED, message, newest)


CHECKS: tuple[Check, ...] = (
    over,
    behind_an_older_run,
    succeeded,
    invalid,
    failed,
    too_long,
    too_slow,
    suspended,
    lacking,
    restarting,
    starting,
)
