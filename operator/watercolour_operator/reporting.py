"""The status as it is written, and what is written of a run that cannot be seen whole."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from watercolour.api.status import Condition, ConditionType, Status
from watercolour_operator.cluster import skew
from watercolour_operator.observed import Trouble
from watercolour_operator.times import stamp


def troubled(status: Status, trouble: Trouble, generation: int, now: datetime) -> Status:
    """The status with nothing new in it but what keeps the operator from seeing the run."""
    old = status.condition(ConditionType.DEGRADED)
    since = old.last_transition_time if old and old.status == "True" else stamp(now)
    degraded = Condition(
        type=ConditionType.DEGRADED,
        status="True",
        reason=trouble.reason,
        message=trouble.message,
        last_transition_time=since,
        observed_generation=generation,
    )
    others = [found for found in status.conditions if found.type is not ConditionType.DEGRADED]
    return status.model_copy(update={"conditions": (*others, degraded)})


def as_kept(status: Status, lacking: tuple[str, ...]) -> Status:
    """The status as a definition that lacks some of its fields gives it back."""
    if not lacking:
        return status
    return Status.model_validate(skew.without(as_written(status), lacking), by_alias=True)


#: Least seconds between two writes of which the later tells only a further step or other words.
STEP_SECONDS = 5.0
#: Least seconds between two writes of which the later tells only what adds up by itself.
SUM_SECONDS = 300.0


def due_in(old: Status, new: Status, since_write: float) -> float | None:
    """Seconds until the new status is to be written; 0 is now, None is not at all.

    A transition is written at once. What changes with every step or second waits, so that a run in
    which nothing happens costs a call every five minutes.

    Args:
        old: the status as it was written last.
        new: the status as it is.
        since_write: seconds since that write; infinite when it is not known.
    """
    if new == old:
        return None
    if _transitions(new) != _transitions(old):
        return 0.0
    wait = SUM_SECONDS if only_sums(old, new) else STEP_SECONDS
    return max(0.0, wait - since_write)


def only_sums(old: Status, new: Status) -> bool:
    """Whether nothing has changed but what adds up, and what is only of the moment."""
    return _without_sums(new) == _without_sums(old)


def _transitions(status: Status) -> tuple[object, ...]:
    """What people and machines wait for."""
    renderers = status.renderers
    return (
        status.phase,
        status.observed_generation,
        status.scorer,
        status.last_failure,
        status.active_seconds,
        status.progress is None,
        [(one.type, one.status, one.reason) for one in status.conditions],
        [(one.number, one.job, one.started, one.ended, one.reason) for one in status.attempts],
        renderers and (renderers.desired, renderers.ready, renderers.replicas, renderers.decision),
    )


def _without_sums(status: Status) -> Status:
    """Without what adds up, and what is only of the moment."""
    progress, renderers = status.progress, status.renderers
    moment = {"eta_seconds": None, "queue": None}
    return status.model_copy(
        update={
            "cost": None,
            "columns": None,
            "last_demand_time": None,
            "progress": progress and progress.model_copy(update=moment),
            "renderers": renderers and renderers.model_copy(update={"busy": 0}),
        }
    )


def as_written(status: Status) -> dict[str, Any]:
    """The status as the API server takes it: what is not known is left out."""
    return status.model_dump(mode="json", by_alias=True, exclude_none=True)
