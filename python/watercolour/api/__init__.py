"""The specification, the records and the words that every part shares."""

from watercolour.api.errors import InfrastructureError, InputError, InterruptedRun, WatercolourError
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
