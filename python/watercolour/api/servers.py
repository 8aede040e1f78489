"""Which servers a run brings along, and which it only talks to. Pure.

A scorer or a judge is there for a term of the recipe. It runs for the run, it is somebody else's
(an endpoint is named), or the term has no weight and nobody is needed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

from watercolour.api import terms
from watercolour.api.terms import Server

if TYPE_CHECKING:
    from watercolour.api.recipe import Recipe
    from watercolour.api.spec import RunSpec

Term = Literal["quality", "judge"]

#: Named recipes that need a server's answer not at all. The weights belong to the reward.
WITHOUT: Mapping[str, frozenset[Term]] = {
    "hps-only": frozenset[Term]({"judge"}),
    "nine-signal": frozenset[Term]({"judge"}),
    "control": frozenset[Term]({"quality", "judge"}),
    "random": frozenset[Term]({"quality", "judge"}),
}


def needs(recipe: Recipe, term: Term) -> bool:
    """Whether the recipe ever weighs an answer of the scorer (quality) or of the judge.

    A recipe of an unknown name is taken to, and so is a term that comes with a package.
    """
    server: Server = "scorer" if term == "quality" else "judge"
    if terms.asks(recipe.weightings, server):
        return True
    return recipe.weights is None and term not in WITHOUT.get(recipe.name, frozenset())


def runs_scorer(spec: RunSpec) -> bool:
    """Whether the run has a scorer of its own, or one that it shares.

    The embedded scorer judges as well, so a run whose recipe needs only the judge has it too, and
    one for whose judge it stands in.
    """
    scorer = spec.scorer
    if scorer.endpoint or scorer.backend not in ("embedded", "hpsv3"):
        return False
    judges = _embedded_judge(spec) or (
        spec.judge.fallback == "embedded" and needs(spec.recipe, "judge")
    )
    return needs(spec.recipe, "quality") or (scorer.backend == "embedded" and judges)


def runs_judge(spec: RunSpec) -> bool:
    """Whether the run has a judge of its own beside the scorer.

    A deployed vision-language model also serves a scorer that asks one for a mark.
    """
    judge, scorer = spec.judge, spec.scorer
    if judge.backend == "openai" and judge.deploy and not judge.endpoint:
        marks = scorer.backend == "vlm-mark" and not scorer.endpoint
        return needs(spec.recipe, "judge") or (marks and needs(spec.recipe, "quality"))
    return _embedded_judge(spec) and not scorer_judges(spec)


def scorer_judges(spec: RunSpec) -> bool:
    """Whether the run's own scorer is its judge too: both embedded, one process."""
    return runs_scorer(spec) and spec.scorer.backend == "embedded" and _embedded_judge(spec)


def _embedded_judge(spec: RunSpec) -> bool:
    judge = spec.judge
    return judge.backend == "embedded" and not judge.endpoint and needs(spec.recipe, "judge")
