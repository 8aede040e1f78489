"""The recipes that ship, and the recipe of a run: a shipped one, a changed one, or its own."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import replace

from watercolour.api import spec
from watercolour.api.errors import InputError
from watercolour.api.reasons import Reason
from watercolour.api.spec import Kl, TierShares
from watercolour.reward import catalogue
from watercolour.reward.catalogue import OF_PAINTINGS
from watercolour.reward.recipe import Recipe, Schedule, combine

__all__ = ["RECIPES", "Recipe", "combine", "get"]


def _published(name: str, about: str, *, judge: float, quality: float) -> Recipe:
    """One of the published mixes, which share the weights of gate and length."""
    weights = {"gate": 0.05, "length": 0.05, "quality": quality}
    return Recipe(name, weights | ({"judge": judge} if judge else {}), about=about)


_HPS_ONLY = _published(
    "hps-only",
    "Published. The scorer's idea of a good picture, and a little length.",
    judge=0.0,
    quality=0.90,
)
_HPS_LED = _published(
    "hps-led",
    "Published. Led by the scorer; the judge's comparisons tell good from very good.",
    judge=0.30,
    quality=0.60,
)
_JUDGE_LED = _published(
    "judge-led",
    "Published. Led by the judge's comparisons with rated paintings.",
    judge=0.60,
    quality=0.30,
)

#: "A curriculum towards love only", an idea that the published experiment ends with. The steps are
#: ours: thirds of its 110 steps and a last stretch.
_CURRICULUM = replace(
    _JUDGE_LED,
    name="judge-led-curriculum",
    about="judge-led against references that get better: from mostly okay ones to loved ones only.",
    curriculum=(
        (0, TierShares(love=0.25, okay=0.75, meh=0.0)),
        (30, TierShares(love=0.5, okay=0.5, meh=0.0)),
        (60, TierShares(love=0.75, okay=0.25, meh=0.0)),
        (90, TierShares(love=1.0, okay=0.0, meh=0.0)),
    ),
)

#: Ours, for the embedded scorer and judge, which know good painting but no subject: hps-led with
#: a share of pigment. Without it a policy learns to paint the flower that they like best, whatever
#: it was asked for.
_EMBEDDED = Recipe(
    "embedded",
    {"gate": 0.05, "length": 0.05, "quality": 0.40, "judge": 0.20, "pigment": 0.30},
    about="hps-led with a share of the subject's colours, for a scorer that knows no subject.",
)

#: Of an article that proposes R = r_exec + 0.5 r_aes + 0.4 r_style with r_exec 0.1, or -1 for a
#: sketch that fails, and both others from -1 to 1. With the scorer's mean mu, r_aes is
#: ``tanh(mu / 8) = 2 * quality - 1``. r_style is the pairwise utility of a Bradley-Terry model; a
#: quarter of it goes to the handling of the references and an eighth to being unlike the group's
#: others, against the collapse that the article warns of. Those two shares are ours.
_HYBRID = Recipe(
    "hybrid",
    {"gate": 0.1, "quality": 0.5, "utility": 0.25, "perceptual": 0.1, "diversity": 0.05},
    failed_gate=-1.0,
    signed=True,
    kl=Kl(start=0.02, end=0.04, steps=100, shape="cosine"),
    cpu_budget_seconds=2.0,
    memory_mib=512,
    about="A refused sketch costs 1, a poor painting costs what a good one earns; with a KL term, "
    "2 CPU seconds and 512 MiB a sketch.",
)

#: The nine signals are an early rubric's (compiles, uses p5.brush, length, HPSv3, adherence,
#: recognisability, aesthetics, technique, depth); its weights were never published, these are ours:
#: half for the five marks and a quarter for the overall one, what is seen most weighing most.
_NINE_SIGNAL = Recipe(
    "nine-signal",
    {
        "gate": 0.05,
        "length": 0.05,
        "quality": 0.25,
        "brush": 0.05,
        "mark_adherence": 0.10,
        "mark_recognisability": 0.15,
        "mark_aesthetics": 0.15,
        "mark_technique": 0.10,
        "mark_depth": 0.10,
    },
    about="Absolute marks of a vision-language model, and no comparison.",
)

_CONTROL = Recipe(
    "control",
    {"gate": 0.1, "fills": 0.9},
    paints=False,
    about="A number of fill calls. It needs neither browser nor scorer nor judge: a trainer that "
    "does not learn it is at fault itself.",
)

_RANDOM = Recipe(
    "random",
    {"chance": 1.0},
    paints=False,
    gated=False,
    about="Chance, whatever the sketch. A curve that rises under it shows nothing.",
)

#: Every shipped recipe by name.
RECIPES: Mapping[str, Recipe] = {
    recipe.name: recipe
    for recipe in (
        _HPS_ONLY,
        _HPS_LED,
        _JUDGE_LED,
        _CURRICULUM,
        _EMBEDDED,
        _HYBRID,
        _NINE_SIGNAL,
        _CONTROL,
        _RANDOM,
    )
}


def get(wanted: spec.Recipe) -> Recipe:
    """The recipe of a run: the shipped one of that name with the run's own changes, or its own.

    Raises:
        InputError: no recipe has that name and there are no weights (UnknownRecipe), a term is
            unknown (UnknownTerm) or cannot be used (InvalidTerm), or the parts do not agree
            (InvalidSpec).
    """
    recipe = _base(wanted)
    own = wanted.weights
    if own is not None:
        # A shipped schedule would soon put the shipped weights back.
        recipe = replace(recipe, weights=_ordered(own), schedule=Schedule())
    if wanted.schedule is not None:
        stages = tuple((one.step, _ordered(one.weights)) for one in wanted.schedule.stages)
        recipe = replace(recipe, schedule=Schedule(stages, wanted.schedule.between))
    if wanted.curriculum is not None:
        stages = tuple((one.step, one.tier_shares) for one in wanted.curriculum)
        recipe = replace(recipe, curriculum=stages)
    gate = wanted.gate
    given = {
        "failed_gate": wanted.failed_gate,
        "signed": wanted.signed,
        "paints": wanted.paints,
        "kl": wanted.kl,
        "cpu_budget_seconds": gate.cpu_budget_seconds,
        "memory_mib": gate.memory_mib,
    }
    recipe = replace(recipe, **{name: one for name, one in given.items() if one is not None})
    if own is not None or wanted.failed_gate is not None:
        recipe = replace(recipe, gated=True)
    _check(recipe, wanted)
    return recipe


def _base(wanted: spec.Recipe) -> Recipe:
    """The shipped recipe of that name, or one of the run's own to be filled in."""
    known = RECIPES.get(wanted.name)
    if known is not None:
        return known
    if wanted.weights is None:
        near = difflib.get_close_matches(wanted.name.lower(), RECIPES, n=1)
        guess = f"Did you mean {near[0]!r}? " if near else ""
        raise InputError(
            Reason.UNKNOWN_RECIPE,
            f"spec.recipe.name={wanted.name!r}: no such recipe.",
            remedy=f"{guess}Choose one of {', '.join(RECIPES)}, or give spec.recipe.weights for a "
            "recipe of your own.",
            field="spec.recipe.name",
            value=wanted.name,
        )
    return Recipe(wanted.name, {}, about="A recipe of the run's own.")


def _ordered(weights: Mapping[str, float]) -> dict[str, float]:
    return {term: weights[term] for term in catalogue.ordered(weights)}


def _check(recipe: Recipe, wanted: spec.Recipe) -> None:
    """Refuse what no single field can tell.

    Raises:
        InputError: see :func:`get`.
    """
    places = {} if wanted.weights is None else {"spec.recipe.weights": wanted.weights}
    for number, stage in enumerate(wanted.schedule.stages if wanted.schedule else ()):
        places[f"spec.recipe.schedule.stages[{number}].weights"] = stage.weights
    for place, weights in places.items():
        for term in weights:
            catalogue.find(term, place)
    if not recipe.paints and (unpaintable := _needing_paint(recipe.terms)):
        raise _invalid(
            "spec.recipe.paints",
            "false",
            f"{unpaintable[0]} has weight and needs a painting",
            f"Set it to true, or take the weight of {', '.join(unpaintable)} away.",
        )
    for weights in recipe.weightings:
        gate = weights.get("gate", 0.0)
        least = 2 * gate - 1 if recipe.signed else gate
        if recipe.gated and recipe.failed_gate > least + 1e-9:
            raise _invalid(
                "spec.recipe.failedGate",
                f"{recipe.failed_gate:g}",
                f"an admitted sketch may earn {least:g}, less than a refused one",
                f"Set it to {least:g} or less.",
            )


def _needing_paint(terms: Iterable[str]) -> list[str]:
    return [term for term in terms if catalogue.find(term).needs & OF_PAINTINGS]


def _invalid(field: str, value: str, why: str, remedy: str) -> InputError:
    return InputError(
        Reason.INVALID_SPEC, f"{field}={value}: {why}.", remedy=remedy, field=field, value=value
    )
