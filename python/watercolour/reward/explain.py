"""How a reward came about, and what another recipe would have made of the same rollouts. Pure.

What a rollout's rooms found out stands in its record, so neither needs a browser or a scorer: the
terms are read back, or read off the sketch and the painting that are there, and joined again by the
one rule there is (:mod:`watercolour.reward.recipe`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from watercolour.api.errors import InfrastructureError
from watercolour.api.reasons import Reason
from watercolour.api.rollout import Rollout
from watercolour.reward import adjust, catalogue
from watercolour.reward.facts import Facts
from watercolour.reward.recipe import Recipe

#: Why a rollout has no votes although the judge was asked.
_JUDGE_FAILED = (Reason.JUDGE_UNAVAILABLE, Reason.JUDGE_BUDGET_SPENT)


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


def of_rollout(recipe: Recipe, rollout: Rollout, painted: int | None = None) -> Recipe:
    """The recipe as it is at a rollout's step, for its subject and for its group.

    In a group with one painting alone there is no diversity: the run left the term out there for
    every member, and so does whoever counts again. Whether it did shows in the weights that the
    rollout carries; those of another recipe say nothing of this one's terms, but the group does.

    Args:
        recipe: the run's, or another one.
        rollout: one of any.
        painted: members of its group that have a painting; None where the group is not known.
    """
    own = recipe.at(rollout.step).of(rollout)
    rest = own.without(*own.asks("group"))
    if painted is not None and painted < 2:
        return rest
    left = {term: weight for term, weight in rest.weights.items() if weight > 0}
    same = left.keys() == rollout.weights.keys() and all(
        math.isclose(weight, rollout.weights[term], abs_tol=1e-9) for term, weight in left.items()
    )
    return rest if same else own


@dataclass(frozen=True)
class Lack:
    """A term that a recipe weighs, and that has no value for a rollout.

    Attributes:
        term: its name.
        cause: what it would have needed; equal for rollouts that lack it for the same cause.
        remedy: what gives it a value, as a sentence; empty where nothing does.
    """

    term: str
    cause: str
    remedy: str = ""


def filled(own: Recipe, facts: Facts) -> tuple[Rollout, tuple[Lack, ...]]:
    """The rollout with those terms of a recipe that its run did not ask for, if they show.

    What only a scorer, a judge or a renderer can tell, and did not, stays without a value.

    Args:
        own: the recipe of the rollout's step, subject and group.
        facts: the rollout with its painting, the others of its group that have one, and the
            paintings of its draw, as far as they are there.

    Returns:
        It, and the terms that still have no value; none for a refused sketch, which needs none.
    """
    rollout = facts.rollout
    if not rollout.gate_passed:
        return rollout, ()
    found = dict(rollout.terms)
    lacks: list[Lack] = []
    for term in own.terms:
        if term == "gate" or found.get(term) is not None:
            continue
        try:
            found[term] = catalogue.evaluate(catalogue.find(term), facts)
        except InfrastructureError as error:
            found[term] = None
            lacks.append(Lack(term, error.message, "See that term's code."))
            continue
        if found[term] is None:
            lacks.append(_lack(term, facts))
    return rollout.model_copy(update={"terms": found}), tuple(lacks)


def _lack(term: str, facts: Facts) -> Lack:
    """Why a term had nothing to say."""
    rollout, needs = facts.rollout, catalogue.find(term).needs
    failed = rollout.unscored_reason
    if "painting" in needs and rollout.painting is None:
        return Lack(
            term,
            "its painting is not stored",
            "Keep the paintings where the table says; a recipe that paints nothing has none.",
        )
    if "marks" in needs:
        return Lack(
            term,
            "no vision-language model was asked for this mark",
            "Train by a recipe that weighs it, with spec.scorer.backend: vlm-mark.",
        )
    if "scorer" in needs:
        if failed == Reason.SCORER_UNAVAILABLE:
            return Lack(term, "the scorer failed")
        return Lack(term, "no scorer was asked", "--embedded asks the embedded one.")
    if "judge" in needs:
        if term == "utility" and facts.votes and not facts.strengths:
            return Lack(term, "the strengths of its references are not stored")
        if facts.votes or failed in _JUDGE_FAILED:
            return Lack(term, "the judge failed")
        return Lack(
            term,
            "no judge was asked",
            "--embedded asks the embedded one, of a run's pool or --pool's.",
        )
    if "references" in needs and not facts.references:
        return Lack(
            term, "the paintings of its draw are not here", "--pool names the pool they are of."
        )
    if "replay" in needs and rollout.heaviest_shape is None:
        return Lack(
            term, "what its sketch paints was not recorded", "--repaint paints the sketches anew."
        )
    if "group" in needs and not facts.others:
        return Lack(term, "the paintings of its group are not stored")
    if rollout.sketch is None:
        return Lack(term, "its sketch is not stored")
    return Lack(term, "the term has nothing to say")


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


def adjusted(own: Recipe, rollout: Rollout, reward: float | None) -> float | None:
    """The reward with the draw's difficulty taken out; None where that cannot be told.

    Unlike :func:`watercolour.reward.adjust.adjust` it does not take an unknown draw for an average
    one. A recipe without the judge has nothing to take out.

    Args:
        own: the recipe of the rollout's step, subject and group.
        rollout: with the strength of its draw, where that is known.
        reward: what the recipe makes of it.
    """
    slope = own.slope("judge")
    known = rollout.draw_strength is not None and rollout.mean_draw_strength is not None
    if rollout.gate_passed and slope and not known:
        return None
    return adjust.adjust(
        reward,
        gate_passed=rollout.gate_passed,
        judge_slope=slope,
        draw_strength=rollout.draw_strength,
        mean_draw_strength=rollout.mean_draw_strength,
    )


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
