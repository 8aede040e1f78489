"""What is said of a failure: the fact, what happens next, what to do. Pure."""

from __future__ import annotations

from datetime import datetime

from watercolour.api.reasons import Reason, known
from watercolour.api.spec import RunSpec
from watercolour.api.status import Attempt, LastFailure, Phase
from watercolour_operator.lifecycle import podfaults, words
from watercolour_operator.lifecycle.case import Case, Verdict
from watercolour_operator.lifecycle.endings import DISRUPTIONS, Ending
from watercolour_operator.names import Component
from watercolour_operator.times import stamp

#: What a person can do about it.
REMEDIES = {
    Reason.TRAINER_OOM_KILLED: "Lower trainer.groupSize or trainer.sampling.maxCompletionTokens, "
    "or raise trainer.resources.",
    Reason.TRAINER_FAILED: "Its last words are in status.lastFailure.log.",
    Reason.RUN_EXISTS: "Give the run another name or another artifacts.path, or remove the folder.",
    Reason.POLICY_TOO_WEAK: "Add spec.sft, or begin with a stronger model.",
    Reason.POLICY_COLLAPSED: "Lower trainer.learningRate, and look at the paintings.",
    Reason.LOSS_NOT_FINITE: "Lower trainer.learningRate; the step's batch is in the run's folder.",
    Reason.GPU_OUT_OF_MEMORY: "Lower trainer.sampling.maxCompletionTokens or rolloutsPerStep.",
    Reason.INFRASTRUCTURE_DEGRADED: "See RenderersReady, ScorerReady and JudgeReady.",
    Reason.DISK_FULL: "Raise artifacts.storage.size, or lower trainer.keepCheckpoints.",
    Reason.INVALID_MODEL: "Correct spec.model, or its tokenSecretRef.",
    Reason.ACTIVE_DEADLINE_EXCEEDED: "Make a new run with a later activeDeadlineSeconds.",
    Reason.STARTUP_DEADLINE_EXCEEDED: "Every part was ready: see the trainer's log, or make a new "
    "run with a later deadline.",
}


def fact(case: Case) -> str:
    """What ended the newest attempt, with the step, and without a full stop."""
    ending, newest = case.ledger.ending, case.newest
    if ending is None:
        said = case.status.last_failure
        return said.message.partition("; ")[0] if said else "The trainer ended"
    return _at_step(ending, newest) + _limit(ending, case.spec)


def _at_step(ending: Ending, attempt: Attempt | None) -> str:
    step = attempt.last_step if attempt else None
    if step is None:
        return ending.fact
    head, colon, rest = ending.fact.partition(": ")
    return f"{head} at step {step}{colon}{rest}"


def _limit(ending: Ending, spec: RunSpec | None) -> str:
    limit = spec.trainer.resources.limits.get("memory") if spec else None
    shown = ending.reason is Reason.TRAINER_OOM_KILLED and limit
    return f" (limit {limit})" if shown else ""


def goes_on(case: Case) -> str:
    """How the next attempt begins, for the middle of a sentence."""
    step = case.ledger.checkpoint
    if case.spec is not None and not case.spec.trainer.resume:
        return "starting anew"
    if step is None:
        # One that was never heard of may be there all the same; the trainer looks.
        return "resuming from a checkpoint, or starting anew if there is none"
    return f"resuming from step {step}"


def budget(case: Case, spec: RunSpec) -> str:
    """How much of the restart budget is used, in brackets."""
    newest, policy = case.newest, spec.restart_policy
    if newest is not None and newest.reason in DISRUPTIONS and policy.ignore_disruptions:
        return "not counted as a restart"
    return f"restart {min(case.ledger.counted, policy.max_restarts)} of {policy.max_restarts}"


def remedy(reason: Reason | str) -> str:
    """What to do, as a sentence; empty when nothing is known."""
    found = known(reason)
    return REMEDIES.get(found, "") if found else ""


def next_step(case: Case, spec: RunSpec) -> str:
    """The fact of the newest attempt's end and what happens next."""
    return f"{fact(case)}; {goes_on(case)} ({budget(case, spec)})."


def last_failure(case: Case, verdict: Verdict) -> LastFailure | None:
    """The newest failure: of the attempt that has just ended, or of the run; or the old one."""
    ending = case.ledger.ending
    fails = verdict.phase is Phase.FAILED and case.status.phase is not Phase.FAILED
    if ending is not None and (ending.own_fault or ending.reason in DISRUPTIONS):
        message = verdict.message
        if not fails and case.spec is not None:
            message = f"{next_step(case, case.spec)} {remedy(ending.reason)}".strip()
        return _of_ending(ending, message, case.now)
    return _of_run(case, verdict) if fails else case.status.last_failure


def _of_ending(ending: Ending, message: str, now: datetime) -> LastFailure:
    pod = ending.pod
    said = ending.words.text or (words.tail(pod.message) if pod else "")
    return LastFailure(
        reason=ending.reason.value,
        message=message,
        component=Component.TRAINER.value,
        pod=pod.name if pod else None,
        exit_code=pod.exit_code if pod else None,
        log=said or None,
        time=stamp(pod.ended if pod and pod.ended else now),
    )


def _of_run(case: Case, verdict: Verdict) -> LastFailure:
    """A failure of the run as a whole, with the fault of a pod that lies behind it, if one does."""
    fault = podfaults.first(case)
    pod = fault.pod if fault else None
    return LastFailure(
        reason=verdict.reason.value,
        message=verdict.message,
        component=fault.component.value if fault and fault.component else None,
        pod=pod.name if pod else None,
        exit_code=pod.exit_code if pod else None,
        log=(words.tail(pod.message) or None) if pod else None,
        time=stamp(case.now),
    )
