"""Recipes: named sets of terms, weights and the rule that joins them.

:func:`combine` is the only place where terms become a reward. Its two rules hold on every hop:

* a failed gate is a value (the recipe says which), because the sketch is at fault;
* a term that has weight and no value makes the whole reward unscored (``None``). A sum without
  the missing term would punish a rollout for the scorer's failure.

A term that cannot exist is another matter: a white flower has no pigment of its own. For such a
subject the recipe is another one, :meth:`Recipe.without` the term, for every member of the group.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, replace

from watercolour.api import spec
from watercolour.api.errors import InputError
from watercolour.api.reasons import Reason
from watercolour.reward import pigment

#: The terms, in the order in which tables show them.
TERMS = ("gate", "length", "quality", "judge", "pigment")

#: What each term is, in a few words; :mod:`watercolour.reward.terms` has the formulas.
MEANINGS = {
    "gate": "1 for a sketch that the gate admits",
    "length": "how much of the wanted length it has: 0 below 150 tokens, 1 from 3,000",
    "quality": "the scorer's mean on a scale of 0 to 1: 1 / (1 + exp(-mu / 4))",
    "judge": "the share of comparisons with references that it wins, a tie for half",
    "pigment": "how far its paint has the subject's colours",
}


@dataclass(frozen=True)
class Recipe:
    """A named way from terms to a reward.

    Attributes:
        name: the recipe's name.
        weights: one weight a term of :data:`TERMS`; they sum to 1.
        failed_gate: the reward of a sketch that the gate refused; the least there is.
        signed: terms other than the gate count from -1 to 1 instead of from 0: a poor painting
            costs what a good one earns.
    """

    name: str
    weights: Mapping[str, float]
    failed_gate: float = 0.0
    signed: bool = False

    @property
    def range(self) -> tuple[float, float]:
        """The least and the greatest reward."""
        return self.failed_gate, sum(self.weights.values())

    def worth(self, term: str, value: float) -> float:
        """What a term's value, 0 to 1, adds to the reward."""
        signed = self.signed and term != "gate"
        return self.weights[term] * (2 * value - 1 if signed else value)

    def slope(self, term: str) -> float:
        """How far the reward rises while a term's value rises from 0 to 1."""
        return self.worth(term, 1.0) - self.worth(term, 0.0)

    def needs(self, term: str) -> bool:
        """Whether the term must have a value before there can be a reward."""
        return self.weights[term] > 0

    def missing(self, terms: Mapping[str, float | None]) -> tuple[str, ...]:
        """The terms with weight that have no value, in the order of :data:`TERMS`."""
        return tuple(term for term in TERMS if self.needs(term) and terms.get(term) is None)

    def of(self, subject: str) -> Recipe:
        """The recipe for a subject: one without a colour of its own is not asked for pigment."""
        return self if pigment.with_hue(subject) else self.without("pigment")

    def without(self, term: str) -> Recipe:
        """The recipe for a subject to which the term does not apply.

        The other weights grow in proportion, so that the rewards keep their range.
        """
        left = sum(weight for name, weight in self.weights.items() if name != term)
        whole = sum(self.weights.values())
        grown = {name: weight * whole / left for name, weight in self.weights.items()}
        return replace(self, weights={**grown, term: 0.0})

    def combine(self, terms: Mapping[str, float | None], gate_passed: bool) -> float | None:
        """See :func:`combine`."""
        return combine(self, terms, gate_passed)


def combine(recipe: Recipe, terms: Mapping[str, float | None], gate_passed: bool) -> float | None:
    """The reward, or None when it is unscored. The one implementation.

    Admitted: ``sum of weight * term``; in a signed recipe ``weight * (2 * term - 1)`` for every
    term but the gate. Refused: ``recipe.failed_gate``, whatever the terms.

    Args:
        recipe: weights and the worth of a failed gate.
        terms: each term's value, 0 to 1, or None. Terms without weight may be missing. ``gate``
            may be missing too: it is 1 whenever the gate passed.
        gate_passed: whether the gate, render included, admitted the sketch.
    """
    if not gate_passed:
        return recipe.failed_gate
    total = 0.0
    for term, weight in recipe.weights.items():
        if weight == 0:
            continue
        value = 1.0 if term == "gate" else terms.get(term)
        if value is None:
            return None
        total += recipe.worth(term, value)
    return total


def _published(name: str, *, judge: float, quality: float) -> Recipe:
    """One of the published mixes, which share the weights of gate and length."""
    weights = {"gate": 0.05, "length": 0.05, "quality": quality, "judge": judge, "pigment": 0.0}
    return Recipe(name=name, weights=weights)


#: Ours, for the embedded scorer and judge, which know good painting but no subject: hps-led with
#: a share of pigment. Without it a policy learns to paint the flower that they like best, whatever
#: it was asked for.
_EMBEDDED = Recipe(
    name="embedded",
    weights={"gate": 0.05, "length": 0.05, "quality": 0.40, "judge": 0.20, "pigment": 0.30},
)


#: Of an article that proposes R = r_exec + 0.5 r_aes + 0.4 r_style with r_exec 0.1, or -1 for a
#: sketch that fails, and both others from -1 to 1. With the scorer's mean mu, r_aes is
#: ``tanh(mu / 8) = 2 * quality - 1``; r_style here is the share of comparisons won on that scale,
#: because within a group, whose members meet the same draw, it orders as the article's
#: Bradley-Terry utility does.
_HYBRID = Recipe(
    name="hybrid",
    weights={"gate": 0.1, "length": 0.0, "quality": 0.5, "judge": 0.4, "pigment": 0.0},
    failed_gate=-1.0,
    signed=True,
)


RECIPES: Mapping[str, Recipe] = {
    recipe.name: recipe
    for recipe in (
        _published("hps-only", judge=0.00, quality=0.90),
        _published("hps-led", judge=0.30, quality=0.60),
        _published("judge-led", judge=0.60, quality=0.30),
        _EMBEDDED,
        _HYBRID,
    )
}


def get(wanted: spec.Recipe) -> Recipe:
    """The recipe of a run, with the run's own weights where it gives some.

    Raises:
        InputError: no recipe has that name (UnknownRecipe).
    """
    known = RECIPES.get(wanted.name)
    if known is None:
        raise _unknown(wanted.name)
    if wanted.weights is None:
        return known
    return replace(known, weights={term: getattr(wanted.weights, term) for term in TERMS})


def _unknown(name: str) -> InputError:
    near = difflib.get_close_matches(name.lower(), RECIPES, n=1)
    guess = f"Did you mean {near[0]!r}? " if near else ""
    return InputError(
        Reason.UNKNOWN_RECIPE,
        f"spec.recipe.name={name!r}: no such recipe.",
        remedy=f"{guess}Choose one of {', '.join(RECIPES)}.",
        field="spec.recipe.name",
        value=name,
    )
