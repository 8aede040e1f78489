"""From the terms of a rollout, or of a whole group, to its reward. Pure.

The environment reckons what it knows of one rollout. A term about the group waits for whoever has
the group, the trainer: until then the rollout is unscored (GroupPending), and never less.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from watercolour.api.errors import InfrastructureError
from watercolour.api.reasons import Reason
from watercolour.api.rollout import Rollout
from watercolour.reward import adjust, catalogue
from watercolour.reward.facts import Facts
from watercolour.reward.recipe import Recipe


def values(terms: Iterable[str], facts: Facts) -> dict[str, float | None]:
    """The terms' values.

    Raises:
        InfrastructureError: a term failed (TermFailed).
    """
    return {term: catalogue.evaluate(catalogue.find(term), facts) for term in terms}


def rewarded(recipe: Recipe, rollout: Rollout) -> Rollout:
    """With the reward, raw and adjusted for the draw, where there is one.

    Args:
        recipe: of the rollout's step, subject and group.
        rollout: one with all its terms.
    """
    if rollout.gate_passed is None:
        return rollout
    reward = recipe.combine(rollout.terms, rollout.gate_passed)
    adjusted = adjust.adjust(
        reward,
        gate_passed=rollout.gate_passed,
        judge_slope=recipe.slope("judge"),
        draw_strength=rollout.draw_strength,
        mean_draw_strength=rollout.mean_draw_strength,
    )
    weights = {term: weight for term, weight in recipe.weights.items() if weight > 0}
    return rollout.model_copy(
        update={"reward": reward, "reward_adjusted": adjusted, "weights": weights}
    )


def pending(recipe: Recipe, rollout: Rollout) -> Rollout:
    """As :func:`rewarded`, for a rollout whose group is not known here.

    Args:
        recipe: of the rollout's step and subject.
        rollout: one with all terms but those about the group.
    """
    done = rewarded(recipe, rollout)
    waits = recipe.asks("group")
    if done.reward is not None or done.unscored_reason is not None or not waits:
        return done
    return done.model_copy(
        update={
            "unscored_reason": Reason.GROUP_PENDING,
            "unscored_detail": f"{', '.join(waits)} needs the whole group",
        }
    )


def completed(recipe: Recipe, group: Sequence[Rollout]) -> list[Rollout]:
    """The members of a group with the terms about the group, and with their rewards.

    A member is compared with the others that have a painting. Where fewer than two have one, there
    is nothing to compare and the recipe is another one, without those terms, for every member.

    Args:
        recipe: of the step and of the group's subject.
        group: all its members, as the environment left them.
    """
    about = recipe.asks("group")
    if not about:
        return list(group)
    painted = [one for one in group if one.gate_passed and one.painting is not None]
    own = recipe if len(painted) > 1 else recipe.without(*about)
    return [_completed(own, about, one, painted) for one in group]


def _completed(
    recipe: Recipe, about: Sequence[str], rollout: Rollout, painted: Sequence[Rollout]
) -> Rollout:
    if rollout.unscored_reason not in (None, Reason.GROUP_PENDING) or not rollout.gate_passed:
        return rollout
    ready = rollout.model_copy(update={"unscored_reason": None, "unscored_detail": ""})
    others = tuple(one for one in painted if one is not rollout)
    try:
        found = values((term for term in about if recipe.weight(term) > 0), Facts(ready, others))
    except InfrastructureError as error:
        return ready.model_copy(
            update={"unscored_reason": error.reason, "unscored_detail": error.message}
        )
    return rewarded(recipe, ready.model_copy(update={"terms": ready.terms | found}))
