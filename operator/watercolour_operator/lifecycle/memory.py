"""The scaling's memory as the status keeps it. Pure."""

from __future__ import annotations

from datetime import datetime

from watercolour.api.status import ScalingDecision
from watercolour_operator.scaling import Memory, ScalingResult
from watercolour_operator.times import moment, stamp


def recalled(decision: ScalingDecision | None) -> Memory:
    """What the last decision left in the status; nothing for the first."""
    if decision is None:
        return Memory()
    return Memory(
        heard=decision.heard,
        blind_since=moment(decision.blind_since),
        surplus_since=moment(decision.surplus_since),
        surplus_peaks=decision.surplus_peaks,
        start_seconds=decision.start_seconds,
    )


def noted(result: ScalingResult, old: ScalingDecision | None, now: datetime) -> ScalingDecision:
    """A decision for the status; its time is that of the last change."""
    kept = result.memory
    same = old is not None and (old.desired, old.reason) == (result.desired, result.reason)
    return ScalingDecision(
        desired=result.desired,
        reason=result.reason.value,
        message=result.message,
        time=old.time if old is not None and same else stamp(now),
        heard=kept.heard,
        blind_since=_text(kept.blind_since),
        surplus_since=_text(kept.surplus_since),
        surplus_peaks=kept.surplus_peaks,
        start_seconds=kept.start_seconds,
    )


def _text(when: datetime | None) -> str | None:
    return None if when is None else stamp(when, precise=True)
