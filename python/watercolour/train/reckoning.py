"""What the trainer adds to the environment's rewards: terms about the whole group, and a check.

Both sides reckon by the same recipe at the same step. An environment that was started with another
specification would teach something else than the trainer writes down, so that is refused.
"""

from __future__ import annotations

from collections.abc import Sequence

from watercolour.api.errors import InputError
from watercolour.api.reasons import Reason
from watercolour.api.rollout import Rollout
from watercolour.reward import reckon
from watercolour.reward.recipe import Recipe

#: Weights are the same within this; both sides compute them in the same order.
SAME = 1e-9


def completed(recipe: Recipe, step: int, group: Sequence[Rollout]) -> list[Rollout]:
    """The members of a group with their rewards, terms about the group included.

    Args:
        recipe: the run's.
        step: the optimizer step; below 0 for probes before the first.
        group: all its members, as the environment left them.

    Raises:
        InputError: the environment weighs the terms otherwise (InvalidSpec).
    """
    # A member that never reached the environment does not know the subject's colours.
    told = next((one for one in group if one.hues), group[0])
    own = recipe.at(step).of(told)
    for rollout in group:
        _require_same(own, step, rollout)
    return reckon.completed(own, group)


def _require_same(recipe: Recipe, step: int, rollout: Rollout) -> None:
    """Compare the weights that the environment has used; one that tells none is believed.

    Raises:
        InputError: see :func:`completed`.
    """
    if not rollout.weights:
        return
    apart = [
        f"{term} {rollout.weights.get(term, 0.0):g} instead of {recipe.weight(term):g}"
        for term in dict.fromkeys((*recipe.weights, *rollout.weights))
        if abs(rollout.weights.get(term, 0.0) - recipe.weight(term)) > SAME
    ]
    if apart:
        raise InputError(
            Reason.INVALID_SPEC,
            f"spec.recipe: in step {step} the environment weighs {', '.join(apart)}.",
            remedy="Start the environment with the specification of this run.",
            field="spec.recipe",
            value=recipe.name,
        )
