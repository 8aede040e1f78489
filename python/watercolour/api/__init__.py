"""The specification, the records and the words that every part shares.

Names are looked up when first used: a program that needs only the errors does not pay for the
models.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from watercolour.api.errors import (
        InfrastructureError,
        InputError,
        InterruptedRun,
        WatercolourError,
    )
    from watercolour.api.reasons import Reason, ViolationCode
    from watercolour.api.rollout import Rollout, Violation, Vote
    from watercolour.api.spec import RunSpec, WatercolourRun

__all__ = [
    "InfrastructureError",
    "InputError",
    "InterruptedRun",
    "Reason",
    "Rollout",
    "RunSpec",
    "Violation",
    "ViolationCode",
    "Vote",
    "WatercolourError",
    "WatercolourRun",
]

_HOMES = {
    "InfrastructureError": "errors",
    "InputError": "errors",
    "InterruptedRun": "errors",
    "WatercolourError": "errors",
    "Reason": "reasons",
    "ViolationCode": "reasons",
    "Rollout": "rollout",
    "Violation": "rollout",
    "Vote": "rollout",
    "RunSpec": "spec",
    "WatercolourRun": "spec",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
