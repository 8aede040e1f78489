"""How many renderers a run has: the terms, the policy, the sources of demand, a simulator."""

from watercolour_operator.scaling.policy import decide
from watercolour_operator.scaling.terms import Memory, ScalingInput, ScalingResult

__all__ = ["Memory", "ScalingInput", "ScalingResult", "decide"]
