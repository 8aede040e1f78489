"""The events of a run: the difference of two statuses. Pure.

An event is posted for a transition and follows the writing of the status; its words are those of
the condition that changed. What changes with every step is in the status and the metrics. A healthy
run has at most six, however long it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from watercolour.api.reasons import Reason, known
from watercolour.api.status import ConditionType, Phase, Status

#: Longest message of an event; the API server refuses more.
LONGEST = 1024

#: Reasons of False or degraded conditions that a person ought to hear of.
ALARMS = frozenset(
    {
        Reason.INVALID_SPEC,
        Reason.WAITING_FOR_OLD_RUN,
        Reason.NAME_TAKEN,
        Reason.UNSCHEDULABLE,
        Reason.IMAGE_UNAVAILABLE,
        Reason.CONTAINER_CONFIG_INVALID,
        Reason.OOM_KILLED,
        Reason.CRASH_LOOP,
        Reason.STORAGE_UNAVAILABLE,
        Reason.SECRET_MISSING,
        Reason.QUOTA_EXCEEDED,
        Reason.PERMISSION_DENIED,
        Reason.ADMISSION_REFUSED,
        Reason.API_UNAVAILABLE,
        Reason.VERSION_SKEW,
        Reason.IMMUTABLE_FIELD,
        Reason.NETWORK_POLICY_NOT_ENFORCED,
        Reason.UNSCORED_RATE_HIGH,
        Reason.SCALING_DEGRADED,
        Reason.STEP_OVERDUE,
        Reason.NODE_LOST,
    }
)


@dataclass(frozen=True, slots=True)
class Event:
    """One event to be posted."""

    type: Literal["Normal", "Warning"]
    reason: Reason
    message: str


def between(old: Status, new: Status) -> list[Event]:
    """What happened from one status to the next; nothing when they say the same."""
    found: dict[tuple[Reason, str], Event] = {}
    for event in (*_ended_attempts(old, new), *_phases(old, new), *_alarms(old, new)):
        # One fault shows in several conditions and is told once.
        found.setdefault((event.reason, event.message), event)
    return list(found.values())


def _ended_attempts(old: Status, new: Status) -> Iterator[Event]:
    """Attempts that ended badly; how the run goes on is in the same sentence."""
    told = {attempt.number for attempt in old.attempts if attempt.ended is not None}
    failure = new.last_failure
    if new.phase is Phase.FAILED:
        # The run's own event says how the last of them ended.
        return
    for attempt in new.attempts:
        if attempt.ended is None or attempt.number in told or failure is None:
            continue
        if attempt.reason == failure.reason and failure != old.last_failure:
            yield _event("Warning", failure.reason, failure.message)


def _phases(old: Status, new: Status) -> Iterator[Event]:
    yield from _starts(old, new)
    yield from _scheduled(old, new)
    if old.phase is new.phase:
        return
    told = _TOLD.get(new.phase)
    condition = new.condition(told) if told else None
    if condition is not None:
        kind = "Warning" if new.phase is Phase.FAILED else "Normal"
        yield _event(kind, condition.reason, condition.message)


#: The condition that tells of a phase that has begun.
_TOLD = {
    Phase.RUNNING: ConditionType.PROGRESSING,
    Phase.SUSPENDED: ConditionType.SUSPENDED,
    Phase.SUCCEEDED: ConditionType.COMPLETE,
    Phase.FAILED: ConditionType.FAILED,
}


def _starts(old: Status, new: Status) -> Iterator[Event]:
    """A further attempt, or the first; what keeps one from starting is an alarm."""
    progressing = new.condition(ConditionType.PROGRESSING)
    if progressing is None or progressing.reason in ALARMS or new.phase is not Phase.STARTING:
        return
    if _attempt(new) > _attempt(old):
        yield _event("Normal", progressing.reason, progressing.message)


#: What TrainerReady says once the trainer's pod has a node.
_HAS_NODE = frozenset({Reason.TRAINER_SCHEDULED, Reason.READY})


def _scheduled(old: Status, new: Status) -> Iterator[Event]:
    """The trainer of an attempt has got its node: told once, however soon it is ready."""
    trainer, before = (status.condition(ConditionType.TRAINER_READY) for status in (new, old))
    if trainer is None or trainer.reason not in _HAS_NODE or new.phase is not Phase.STARTING:
        return
    told = before is not None and before.reason in _HAS_NODE and _attempt(old) == _attempt(new)
    if not told:
        yield _event("Normal", Reason.TRAINER_SCHEDULED, trainer.message)


def _attempt(status: Status) -> int:
    return status.attempts[-1].number if status.attempts else 0


def _alarms(old: Status, new: Status) -> Iterator[Event]:
    told = {ConditionType.COMPLETE, ConditionType.FAILED, ConditionType.SUSPENDED}
    if new.phase is Phase.PENDING:
        # What keeps a run from starting keeps all its parts from it, and they only point there.
        told |= set(ConditionType) - {ConditionType.PROGRESSING, ConditionType.DEGRADED}
    for condition in new.conditions:
        wrong = condition.status == ("True" if _is_alarm(condition.type) else "False")
        if condition.type in told or not wrong or condition.reason not in ALARMS:
            continue
        if not _known(Reason(condition.reason), old):
            yield _event("Warning", condition.reason, condition.message)


def _is_alarm(kind: ConditionType) -> bool:
    return kind is ConditionType.DEGRADED


def _known(reason: Reason, status: Status) -> bool:
    """Whether any condition gave that reason before."""
    return any(condition.reason == reason for condition in status.conditions)


def _event(kind: Literal["Normal", "Warning"], reason: str, message: str) -> Event:
    text = message if len(message) <= LONGEST else message[: LONGEST - 1] + "…"
    return Event(kind, known(reason) or Reason.INTERNAL_ERROR, text)
