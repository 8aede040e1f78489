"""The status as it is written, and what is written of a run that cannot be seen whole."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from watercolour.api.status import Condition, ConditionType, Status
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


def as_written(status: Status) -> dict[str, Any]:
    """The status as the API server takes it: what is not known is left out."""
    return status.model_dump(mode="json", by_alias=True, exclude_none=True)
