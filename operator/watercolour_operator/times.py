"""Moments as text: RFC 3339 in UTC. Pure; nothing here asks for the time."""

from __future__ import annotations

from datetime import UTC, datetime


def stamp(moment: datetime, *, precise: bool = False) -> str:
    """A moment as text, to the second or, when precise, to the millisecond."""
    utc = moment.astimezone(UTC).replace(tzinfo=None)
    return utc.isoformat(timespec="milliseconds" if precise else "seconds") + "Z"


def moment(text: str | None) -> datetime | None:
    """A moment from text; None when there is none or it is not one."""
    if not text:
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def seconds_between(earlier: str | datetime | None, later: datetime) -> float | None:
    """Seconds from one moment to another, at least 0; None when the earlier is not known."""
    start = earlier if isinstance(earlier, datetime) else moment(earlier)
    return None if start is None else max((later - start).total_seconds(), 0.0)


def span(seconds: float) -> str:
    """A duration for a person: 45 s, 12 min, 3 h 20 min."""
    whole = round(seconds)
    if whole < 120:
        return f"{whole} s"
    minutes = round(whole / 60)
    if minutes < 120:
        return f"{minutes} min"
    hours, left = divmod(minutes, 60)
    return f"{hours} h {left} min" if left else f"{hours} h"
