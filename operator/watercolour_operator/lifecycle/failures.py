"""What is said of a failure: the fact, what happens next, what to do. Pure."""

from __future__ import annotations

from datetime import datetime

from watercolour.api.reasons import Reason, known
from watercolour.api.spec import RunSpec
from watercolour.api.status import Attempt, LastFailure
from watercolour_operator.lifecycle import words
from watercolour_operator.lifecycle.case import Case
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
    Reason.INFRASTRUCTURE_DEGRADED: "See RenderersReady, ScorerReady and JudgeReady.",
    Reason.DISK_FULL: "Raise artifacts.storage.size, or lower trainer.keepCheckpoints.",
    Reason.INVALID_MODEL: "Correct spec.model, or its tokenSecretRef.",
    Reason.ACTIVE_DEADLINE_EXCEEDED: "Make a new run with a later activeDeadlineSeconds.",
    Reason.STARTUP_DEADLINE_EXCEEDED: "See the conditions that are False.",
}


def fact(case: Case) -> str:
    """What ended the newest attempt, with the step, and without a full stop."""
    ending, newest = case.ledger.ending, case.newest
    if ending is None:
        said = case.status.last_failure
        return said.message.split(". ")[0].rstrip(".") if said else "The trainer ended"
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
    if step is None or (case.spec is not None and not case.spec.trainer.resume):
        return "starting anew"
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


def last_failure(case: Case, reason: Reason | None, message: str) -> LastFailure | None:
    """The newest failure: of the attempt that has just ended, or of the verdict, or the old one."""
    ending = case.ledger.ending
    if ending is not None and (ending.own_fault or ending.reason in DISRUPTIONS):
        return _of_ending(ending, message, case.now)
    if reason is None:
        return case.status.last_failure
    return LastFailure(reason=reason.value, message=message, time=stamp(case.now))


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
