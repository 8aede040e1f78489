"""How a reward came about, and what another recipe would have made of the same rollouts. Pure.

What a rollout's rooms found out stands in its record, so neither needs a browser or a scorer: the
terms are read back, or read off the sketch and the painting that are there, and joined again by the
one rule there is (:mod:`watercolour.reward.recipe`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from watercolour.api.errors import InfrastructureError
from watercolour.api.rollout import Rollout
from watercolour.reward import catalogue
from watercolour.reward.facts import Facts
from watercolour.reward.recipe import Recipe


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

    Those come that the recipe weighs at any step, and those that were found out besides.

    Args:
        recipe: the run's, or another one; made for the rollout's step and subject here.
        rollout: one whose gate has decided.
    """
    own = of_rollout(recipe, rollout)
    found: list[Part] = []
    for term in catalogue.ordered({"gate", *recipe.terms, *rollout.terms}):
        weight = own.weight(term)
        value = 1.0 if term == "gate" and rollout.gate_passed else rollout.terms.get(term)
        adds = 0.0 if weight == 0 else None if value is None else own.worth(term, value)
        found.append(Part(term, value, weight, adds, _words(term, rollout)))
    return tuple(found)


def of_rollout(recipe: Recipe, rollout: Rollout) -> Recipe:
    """The recipe as it is at a rollout's step, for its subject and for its group.

    In a group with one painting alone there is no diversity: the run left the term out there for
    every member, and so does whoever counts again. Whether it did shows in the weights that the
    rollout carries; those of another recipe say nothing of this one's terms.
    """
    own = recipe.at(rollout.step).of(rollout)
    rest = own.without(*own.asks("group"))
    left = {term: weight for term, weight in rest.weights.items() if weight > 0}
    same = left.keys() == rollout.weights.keys() and all(
        math.isclose(weight, rollout.weights[term], abs_tol=1e-9) for term, weight in left.items()
    )
    return rest if same else own


def filled(recipe: Recipe, rollout: Rollout, others: Sequence[Rollout] = ()) -> Rollout:
    """The rollout with those terms of the recipe that its own run did not ask for, if they show.

    What only a scorer, a judge or a renderer can tell, and did not, stays without a value.

    Args:
        recipe: the one to reward by.
        rollout: with its painting, where a term looks at it.
        others: the other members of its group that have a painting.
    """
    if not rollout.gate_passed:
        return rollout
    facts = Facts(rollout, tuple(others))
    found = dict(rollout.terms)
    for term in of_rollout(recipe, rollout).terms:
        if found.get(term) is not None:
            continue
        try:
            found[term] = catalogue.evaluate(catalogue.find(term), facts)
        except InfrastructureError:
            # Said by the lack of a value; the run itself goes on without it, too.
            found[term] = None
    return rollout.model_copy(update={"terms": found})


def carried(rollout: Rollout) -> Recipe | None:
    """The weights that a rollout carries as a recipe; None unless they make its reward."""
    if rollout.reward is None or not rollout.weights:
        return None
    for signed in (False, True):
        own = Recipe("its own weights", rollout.weights, failed_gate=rollout.reward, signed=signed)
        made = reward(own, rollout)
        if made is not None and math.isclose(made, rollout.reward, abs_tol=1e-9):
            return own
    return None


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
