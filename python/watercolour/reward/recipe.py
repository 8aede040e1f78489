"""Recipes: named sets of terms, weights and the rule that joins them.

:func:`combine` is the only place where terms become a reward. Its two rules hold on every hop:

* a failed gate is a value (the recipe says which), because the sketch is at fault;
* a term that has weight and no value makes the whole reward unscored (``None``). A sum without
  the missing term would punish a rollout for the scorer's failure.

A term that cannot exist is another matter: a white flower has no pigment of its own. For such a
subject the recipe is another one, :meth:`Recipe.without` the term, for every member of the group.

Weights may move with the optimizer's steps: :meth:`Recipe.at` is the recipe of one step.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from watercolour.api.rollout import Rollout
from watercolour.api.spec import Kl, TierShares
from watercolour.reward import catalogue
from watercolour.reward.catalogue import Need

#: CPU seconds that a sketch's browser may use, unless recipe or run say otherwise.
CPU_BUDGET_SECONDS = 20.0

Weighting = Mapping[str, float]


@dataclass(frozen=True)
class Schedule:
    """Weights by step.

    Attributes:
        stages: steps and the weights that hold from each on, by rising step.
        between: whether a stage's weights hold until the next, or move evenly towards it.
    """

    stages: tuple[tuple[int, Weighting], ...] = ()
    between: Literal["hold", "linear"] = "hold"

    def at(self, step: int, before: Weighting) -> Weighting:
        """The weights of a step, from 0; ``before`` are those of the steps before all stages."""
        now, began = before, 0
        for start, weights in self.stages:
            if step < start:
                if self.between == "hold":
                    return now
                return _mixed(now, weights, (step - began) / (start - began))
            now, began = weights, start
        return now


def _mixed(one: Weighting, two: Weighting, share: float) -> Weighting:
    """Weights on the way from one to the other; they sum to 1 as both of those do."""
    terms = catalogue.ordered({*one, *two})
    return {term: (1 - share) * one.get(term, 0) + share * two.get(term, 0) for term in terms}


@dataclass(frozen=True)
class Recipe:
    """A named way from terms to a reward.

    Attributes:
        name: the recipe's name.
        weights: by term; they sum to 1, and a term that is not named has none.
        failed_gate: the reward of a sketch that the gate refused; the least there is.
        signed: terms other than the gate count from -1 to 1 instead of from 0: a poor painting
            costs what a good one earns.
        paints: whether sketches are painted; otherwise the static gate alone admits them.
        gated: whether the gate decides at all. Only a recipe that must not teach anything, not
            even to pass the gate, does without.
        schedule: how the weights move.
        curriculum: steps and the tier shares that hold from each on; before the first one the
            run's own hold.
        kl: the KL term's weight by step; None leaves it to the run.
        cpu_budget_seconds: that a sketch's browser may use.
        memory_mib: that a sketch's page may use while it paints; None is the renderer's limit.
        about: what it rewards, in a sentence.
    """

    name: str
    weights: Weighting
    failed_gate: float = 0.0
    signed: bool = False
    paints: bool = True
    gated: bool = True
    schedule: Schedule = field(default_factory=Schedule)
    curriculum: tuple[tuple[int, TierShares], ...] = ()
    kl: Kl | None = None
    cpu_budget_seconds: float = CPU_BUDGET_SECONDS
    memory_mib: int | None = None
    about: str = ""

    @property
    def range(self) -> tuple[float, float]:
        """The least and the greatest reward."""
        return self.failed_gate, sum(self.weights.values())

    @property
    def weightings(self) -> tuple[Weighting, ...]:
        """All weights that there are at any step."""
        return (self.weights, *(weights for _, weights in self.schedule.stages))

    @property
    def terms(self) -> tuple[str, ...]:
        """The terms that have weight at any step, in the tables' order."""
        weighed = {term for one in self.weightings for term, weight in one.items() if weight > 0}
        return catalogue.ordered(weighed)

    def weight(self, term: str) -> float:
        """A term's weight before the schedule's first stage, or in the step that this is of."""
        return self.weights.get(term, 0.0)

    def worth(self, term: str, value: float) -> float:
        """What a term's value, 0 to 1, adds to the reward."""
        signed = self.signed and term != "gate"
        return self.weight(term) * (2 * value - 1 if signed else value)

    def slope(self, term: str) -> float:
        """How far the reward rises while a term's value rises from 0 to 1."""
        return self.worth(term, 1.0) - self.worth(term, 0.0)

    def needs(self, term: str) -> bool:
        """Whether the term must, at any step, have a value before there can be a reward."""
        return term in self.terms

    def asks(self, *needs: Need) -> tuple[str, ...]:
        """The terms with weight at any step that need one of these, such as the scorer."""
        wanted = set(needs)
        return tuple(term for term in self.terms if wanted & catalogue.find(term).needs)

    def missing(self, terms: Mapping[str, float | None]) -> tuple[str, ...]:
        """The terms with weight that have no value, in the tables' order."""
        return tuple(term for term in self.terms if terms.get(term) is None)

    def at(self, step: int) -> Recipe:
        """The recipe of one optimizer step; of those before the first for a negative one."""
        return replace(
            self, weights=self.schedule.at(max(0, step), self.weights), schedule=Schedule()
        )

    def of(self, rollout: Rollout) -> Recipe:
        """The recipe for a rollout's subject: one without colours is not asked for pigment."""
        idle = [term for term in self.terms if not catalogue.find(term).applies(rollout)]
        return self.without(*idle)

    def without(self, *terms: str) -> Recipe:
        """The recipe where terms do not apply.

        The other weights grow in proportion, so that the rewards keep their range. Where nothing
        else has weight, passing the gate is all there is.
        """
        if not any(self.weights.get(term) for term in terms):
            return self
        left = {term: weight for term, weight in self.weights.items() if term not in terms}
        share, whole = sum(left.values()), sum(self.weights.values())
        if share <= 0:
            return replace(self, weights={"gate": whole})
        return replace(self, weights={term: one * whole / share for term, one in left.items()})

    def tier_shares(self, step: int, own: TierShares) -> TierShares:
        """How a draw of a step is composed; ``own`` are the run's references.tierShares."""
        found = own
        for start, shares in self.curriculum:
            if max(0, step) >= start:
                found = shares
        return found

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
    if not gate_passed and recipe.gated:
        return recipe.failed_gate
    total = 0.0
    for term, weight in recipe.weights.items():
        if weight == 0:
            continue
        value = float(gate_passed) if term == "gate" else terms.get(term)
        if value is None:
            return None
        total += recipe.worth(term, value)
    return total


def kl_at(kl: Kl, step: int) -> float:
    """The KL term's weight in a step, from 0.

    Linear: even from ``start`` to ``end``. Cosine: along half a wave, so that it leaves the one and
    reaches the other slowly.
    """
    share = min(1.0, step / kl.steps)
    if kl.shape == "cosine":
        share = (1 - math.cos(math.pi * share)) / 2
    return kl.start + share * (kl.end - kl.start)


def plain(recipe: Recipe) -> dict[str, float | str | bool | None]:
    """All that decides rewards, flat: names as in the specification, and their values."""
    found: dict[str, float | str | bool | None] = {
        "name": recipe.name,
        "failedGate": recipe.failed_gate,
        "signed": recipe.signed,
        "paints": recipe.paints,
        "gate.cpuBudgetSeconds": recipe.cpu_budget_seconds,
        "gate.memoryMib": recipe.memory_mib,
    }
    found |= {f"weights.{term}": weight for term, weight in sorted(recipe.weights.items())}
    if recipe.schedule.stages:
        found["schedule.between"] = recipe.schedule.between
    for start, weights in recipe.schedule.stages:
        for term, weight in sorted(weights.items()):
            found[f"schedule.stages[step={start}].weights.{term}"] = weight
    for start, shares in recipe.curriculum:
        for tier, share in shares.model_dump().items():
            found[f"curriculum[step={start}].tierShares.{tier}"] = share
    if recipe.kl is not None:
        found |= {f"kl.{name}": value for name, value in recipe.kl.model_dump().items()}
    return found


def differences(
    before: Mapping[str, float | str | bool | None], now: Mapping[str, float | str | bool | None]
) -> list[str]:
    """What two plain recipes differ in, one a line such as ``weights.judge: 0.3 -> 0.4``."""
    return [
        f"{name}: {_shown(before, name)} → {_shown(now, name)}"
        for name in dict.fromkeys((*before, *now))
        if before.get(name, "absent") != now.get(name, "absent")
    ]


def _shown(values: Mapping[str, float | str | bool | None], name: str) -> str:
    if name not in values:
        return "absent"
    value = values[name]
    if value is None:
        return "unset"
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return f"{value:g}" if is_number else str(value).lower()


def weighed(recipes: Iterable[Recipe]) -> tuple[str, ...]:
    """The terms that any of the recipes weighs, in the tables' order."""
    return catalogue.ordered({term for one in recipes for term in one.terms})
