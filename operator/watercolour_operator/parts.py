"""Which parts of a run have pods of its own. Pure, and the one place where that is decided."""

from __future__ import annotations

from watercolour.api.spec import RunSpec
from watercolour_operator.names import Component

#: Backends for which an image of ours runs.
SERVED = ("embedded", "hpsv3")


def deployed(spec: RunSpec) -> frozenset[Component]:
    """The components that the operator runs; others are not needed or run elsewhere."""
    parts = {Component.TRAINER, Component.RENDERERS, Component.ENV}
    if scorer_deployed(spec):
        parts.add(Component.SCORER)
    if judge_deployed(spec):
        parts.add(Component.JUDGE)
    return frozenset(parts)


def scorer_deployed(spec: RunSpec) -> bool:
    """Whether the run has a scorer in the cluster, of its own or shared by its namespace."""
    weights = spec.recipe.weights
    weightless = weights is not None and weights.quality == 0
    return spec.scorer.backend in SERVED and not spec.scorer.endpoint and not weightless


def judged_by_scorer(spec: RunSpec) -> bool:
    """Whether the scorer judges too: the embedded one serves both."""
    return (
        spec.judge.backend == "embedded"
        and not spec.judge.endpoint
        and spec.scorer.backend == "embedded"
        and scorer_deployed(spec)
    )


def judge_deployed(spec: RunSpec) -> bool:
    """Whether the run has a judge of its own in the cluster."""
    weights = spec.recipe.weights
    if weights is not None and weights.judge == 0:
        return False
    if spec.judge.deploy is not None:
        return spec.judge.backend != "none"
    embedded = spec.judge.backend == "embedded" and not spec.judge.endpoint
    return embedded and not judged_by_scorer(spec)
