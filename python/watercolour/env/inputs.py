"""What of a run's input can be refused before anything is started."""

from __future__ import annotations

from watercolour.api.errors import InputError
from watercolour.api.reasons import Reason
from watercolour.api.spec import RunSpec
from watercolour.env import draws
from watercolour.reward import pool, recipes
from watercolour.reward.pool import Pool
from watercolour.reward.recipe import Recipe
from watercolour.sketch import exports, prompt

#: The scorer's backend that gives marks.
VLM_MARK = "vlm-mark"


def require(spec: RunSpec) -> Pool | None:
    """Refuse what could never train; the pool of references, if the recipe compares with any.

    Raises:
        InputError: the recipe is unknown, needs a backend that is off or gives no marks, or draws
            from a pool that cannot be used (InvalidPool); the gate allows a method that p5.brush
            does not have; there is no such system prompt.
    """
    recipe = recipes.get(spec.recipe)
    exports.allowed(spec.recipe.gate)
    prompt.preset(spec.prompts.system, spec.model.id)
    require_backends(spec, recipe)
    if not recipe.asks("judge", "references"):
        return None
    rated = pool.load(spec.references.pool)
    draws.require(rated, recipe, spec.references, spec.seed)
    return rated


def require_backends(spec: RunSpec, recipe: Recipe) -> None:
    """Refuse a recipe whose terms nobody would answer.

    Raises:
        InputError: a backend is off, or gives no marks, although the recipe weighs its terms.
    """
    if spec.scorer.backend != VLM_MARK and (marked := recipe.asks("marks")):
        raise invalid(
            "spec.scorer.backend",
            spec.scorer.backend,
            f"recipe {recipe.name} weighs {', '.join(marked)}, and that backend gives no marks",
            f"Set it to {VLM_MARK}, or take those weights away.",
        )
    for room, backend, asking in (
        ("scorer", spec.scorer.backend, recipe.asks("scorer", "marks")),
        ("judge", spec.judge.backend, recipe.asks("judge")),
    ):
        if asking and backend == "none":
            raise invalid(
                f"spec.{room}.backend",
                backend,
                f"recipe {recipe.name} weighs {', '.join(asking)}",
                f"Choose another backend, or set spec.recipe.weights.{asking[0]} to 0.",
            )


def invalid(field: str, value: object, why: str, remedy: str) -> InputError:
    """A fault of the specification (InvalidSpec)."""
    return InputError(
        Reason.INVALID_SPEC, f"{field}={value}: {why}.", remedy=remedy, field=field, value=value
    )
