"""How many renderer pods a run has and which go first. Pure: the same input, the same decision."""

from __future__ import annotations

from watercolour_operator.scaling.terms import ScalingInput, ScalingResult


def decide(seen: ScalingInput) -> ScalingResult:
    """The decision on the renderer pods of a running run."""
    raise NotImplementedError
