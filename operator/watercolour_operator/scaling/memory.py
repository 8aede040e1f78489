"""The scaling's memory as it lies in status, and back. Pure."""

from __future__ import annotations

from datetime import UTC, datetime

from watercolour.api.status import ScalingDecision
from watercolour_operator.scaling.terms import Memory, ScalingResult


def remembered(decision: ScalingDecision | None) -> Memory:
    """What the last decision left; an unreadable time counts as never."""
    if decision is None:
        return Memory()
    return Memory(
        heard=decision.heard,
        blind_since=_time(decision.blind_since),
        surplus_since=_time(decision.surplus_since),
        surplus_peaks=decision.surplus_peaks,
    )


def recorded(
    result: ScalingResult, now: datetime, before: ScalingDecision | None
) -> ScalingDecision:
    """The decision for status; its time is when desired or reason last changed."""
    same = (
        before is not None
        and before.time is not None
        and (before.desired, before.reason) == (result.desired, result.reason)
    )
    memory = result.memory
    return ScalingDecision(
        desired=result.desired,
        reason=result.reason,
        message=result.message,
        time=before.time if before is not None and same else _text(now),
        heard=memory.heard,
        blind_since=_text(memory.blind_since),
        surplus_since=_text(memory.surplus_since),
        surplus_peaks=memory.surplus_peaks,
    )


def _time(text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _text(time: datetime | None) -> str | None:
    # Milliseconds: parts of idleSeconds may be shorter than a second.
    if time is None:
        return None
    return time.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
