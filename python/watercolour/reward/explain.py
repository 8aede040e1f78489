"""How a reward came about, and what another recipe would have made of the same rollouts. Pure.

What a rollout's rooms found out stands in its record, so neither needs a browser or a scorer: the
terms are read back and joined again by the one rule there is (:mod:`watercolour.reward.recipes`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from watercolour.api.rollout import Rollout
from watercolour.reward import catalogue
from watercolour.reward.recipe import Recipe

#: Reward below which the published analysis counts a painting as a failure.
BAD = 0.3


@dataclass(frozen=True)
class Part:
    """What one term brought.

    Attributes:
        term: its name.
        value: 0 to 1; None when nobody was asked or could say.
        weight: the recipe's, for this rollout's subject.
        adds: to the reward; None when it has weight and no value.
        words: what the value was made of.
    """

    term: str
    value: float | None
    weight: float
    adds: float | None
    words: str


def parts(recipe: Recipe, rollout: Rollout) -> tuple[Part, ...]:
    """The terms of an admitted rollout, in the order of the tables.

    Those come that the recipe weighs at the rollout's step, and those that were found out besides.

    Args:
        recipe: the run's, or another one; made for the rollout's step and subject here.
        rollout: one whose gate has decided.
    """
    own = of_rollout(recipe, rollout)
    found: list[Part] = []
    for term in catalogue.ordered({"gate", *own.terms, *rollout.terms}):
        weight = own.weight(term)
        value = 1.0 if term == "gate" and rollout.gate_passed else rollout.terms.get(term)
        adds = 0.0 if weight == 0 else None if value is None else own.worth(term, value)
        found.append(Part(term, value, weight, adds, _words(term, rollout)))
    return tuple(found)


def of_rollout(recipe: Recipe, rollout: Rollout) -> Recipe:
    """The recipe as it is at a rollout's step, for its subject and for its group.

    In a group with one painting alone there is no diversity: the run left the term out there for
    every member, and so does whoever counts again.
    """
    own = recipe.at(rollout.step).of(rollout.subject)
    left_out = [
        term
        for term in own.asks("group")
        if rollout.weights and term not in rollout.weights and rollout.terms.get(term) is None
    ]
    return own.without(*left_out)


def reward(recipe: Recipe, rollout: Rollout) -> float | None:
    """What a recipe makes of a rollout; None where it lacks a term that the recipe needs.

    A rollout on which the gate never decided has no reward under any recipe.
    """
    if rollout.gate_passed is None:
        return None
    return of_rollout(recipe, rollout).combine(rollout.terms, rollout.gate_passed)


def _words(term: str, rollout: Rollout) -> str:
    match term:
        case "gate":
            return "; ".join(f"{one.code}: {one.message}" for one in rollout.violations)
        case "length" if rollout.sketch is not None:
            return f"{len(rollout.sketch):,} characters"
        case "quality" if rollout.mu is not None:
            return f"mu {rollout.mu:+.2f}"
        case "judge" | "utility" if rollout.votes:
            return ", ".join(f"{vote.reference} {_outcome(vote.value)}" for vote in rollout.votes)
        case "pigment" if rollout.pigment_share is not None:
            return f"{rollout.pigment_share:.0%} of the paint is in the subject's colours"
        case "area" if rollout.heaviest_shape is not None:
            return f"the heaviest shape takes {rollout.heaviest_shape:.0%} of the sheet"
        case _:
            return ""


def _outcome(value: float | None) -> str:
    if value is None:
        return "no answer"
    return {1.0: "won", 0.5: "tied", 0.0: "lost"}[value]


@dataclass(frozen=True)
class Gain:
    """A rise of the mean reward, split into what may have caused it; the three add up.

    Attributes:
        first, last: mean rewards.
        bad_first, bad_last: shares of failures, 0 to 1.
        fewer_bad: what fewer failures brought.
        better_good: what better paintings among the others brought.
        better_bad: what less bad failures brought.
    """

    first: float
    last: float
    bad_first: float
    bad_last: float
    fewer_bad: float
    better_good: float
    better_bad: float


def gain(first: Sequence[float], last: Sequence[float], bad: float = BAD) -> Gain | None:
    """Split the difference of two means by failures and others; None if either is empty.

    With the share p of failures, mean = p * m_bad + (1 - p) * m_good. Each factor's change counts
    at the mean of the other factor's two values, so the parts add up exactly and do not depend on
    an order.

    Args:
        first: rewards of the earlier rollouts; unscored ones are left out before.
        last: rewards of the later ones.
        bad: a reward below it is a failure.
    """
    if not first or not last:
        return None
    share1, low1, high1 = _split(first, bad)
    share2, low2, high2 = _split(last, bad)
    # A side without a member has no mean of its own; its change then counts with the shares.
    low1, low2 = _filled(low1, low2)
    high1, high2 = _filled(high1, high2)
    return Gain(
        first=sum(first) / len(first),
        last=sum(last) / len(last),
        bad_first=share1,
        bad_last=share2,
        fewer_bad=(share1 - share2) * ((high1 + high2) - (low1 + low2)) / 2,
        better_good=(high2 - high1) * (2 - share1 - share2) / 2,
        better_bad=(low2 - low1) * (share1 + share2) / 2,
    )


def _split(rewards: Sequence[float], bad: float) -> tuple[float, float | None, float | None]:
    """The share of failures, and both sides' means."""
    low = [value for value in rewards if value < bad]
    high = [value for value in rewards if value >= bad]
    return len(low) / len(rewards), _mean(low), _mean(high)


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _filled(one: float | None, two: float | None) -> tuple[float, float]:
    """Both means; one that is missing is taken to be the other."""
    known = one if one is not None else two
    if known is None:
        return 0.0, 0.0
    return (known if one is None else one), (known if two is None else two)


def fifths(rewards: Mapping[int, Sequence[float]]) -> tuple[list[float], list[float]]:
    """The rewards of the first and of the last fifth of the steps, at least one step each.

    Args:
        rewards: the scored rewards of each step.
    """
    steps = sorted(rewards)
    count = max(1, len(steps) // 5)
    first, last = steps[:count], steps[-count:]
    return (
        [value for step in first for value in rewards[step]],
        [value for step in last for value in rewards[step]],
    )
