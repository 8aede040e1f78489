"""Figures as people read them; a value that does not exist is a dash and never a 0."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from watercolour.reward.bands import Band

NONE = "–"


def number(value: float | None) -> str:
    """Three decimals, or a dash when there is no value."""
    return NONE if value is None else f"{value:.3f}".replace("-", "−")


def signed(value: float | None) -> str:
    """Three decimals with a sign, or a dash when there is no value."""
    return NONE if value is None else f"{value:+.3f}".replace("-", "−")


def percent(value: float | None) -> str:
    """Whole percent, or a dash; a share above 0 is never shown as 0 %, nor one below 1 as 100 %."""
    if value is None:
        return NONE
    if 0 < value < 0.01:
        return "<1 %"
    if 0.99 < value < 1:
        return ">99 %"
    return f"{value * 100:.0f} %"


def capitalised(sentence: str) -> str:
    """With a capital at its beginning, and the rest as it is."""
    return sentence[:1].upper() + sentence[1:]


def duration(seconds: float | None) -> str:
    """Minutes and seconds in words, or a dash."""
    if seconds is None:
        return NONE
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def interval(value: Band | None) -> str:
    """``0.312 to 0.338``, or a dash."""
    return "–" if value is None else f"{number(value.low)} to {number(value.high)}"
