"""Fuller copies of a rollout: with a violation, with what the rooms found, with its terms. Pure."""

from __future__ import annotations

import hashlib

from watercolour.api.errors import InfrastructureError
from watercolour.api.reasons import ViolationCode
from watercolour.api.rollout import Rollout, Violation
from watercolour.api.spec import RunSpec
from watercolour.env.measure import NOT_ASKED, Finding
from watercolour.reward import reckon, terms
from watercolour.reward.facts import Facts
from watercolour.reward.recipe import Recipe


def sketch_key(sketch: str) -> str:
    """What equal sketches share: within one run they also share the seed and the canvas."""
    return hashlib.sha256(sketch.encode("utf-8", "surrogatepass")).hexdigest()


def painting_key(rollout: Rollout, spec: RunSpec) -> str:
    """What equal paintings of any run share: the sketch and all that its picture depends on."""
    assert rollout.sketch is not None
    versions = ",".join(f"{name}={rollout.versions[name]}" for name in sorted(rollout.versions))
    made = f"{sketch_key(rollout.sketch)} {spec.seed} {spec.renderers.size} {versions}"
    return hashlib.sha256(made.encode()).hexdigest()


def blank_canvas(paint_fraction: float, least: float) -> Violation | None:
    """The violation of a sheet with less paint than the recipe asks for."""
    if paint_fraction >= least:
        return None
    return Violation(
        code=ViolationCode.BLANK_CANVAS,
        message=f"paint covers {paint_fraction:.2%} of the sheet, the least is {least:.2%}",
    )


def too_much_memory(peak_bytes: int | None, limit_mib: int | None) -> Violation | None:
    """The violation of a sketch whose page used more memory than the recipe allows.

    Args:
        peak_bytes: highest resident memory of the page while it painted; None if unknown.
        limit_mib: the recipe's; None leaves it to the renderer's own limit.
    """
    if peak_bytes is None or limit_mib is None or peak_bytes <= limit_mib * 2**20:
        return None
    return Violation(
        code=ViolationCode.SKETCH_OOM,
        message=f"its page used {peak_bytes / 2**20:.0f} MiB of memory, the most is {limit_mib}",
    )


def refused(rollout: Rollout, violation: Violation) -> Rollout:
    """The rollout with one more violation and a failed gate."""
    return rollout.model_copy(
        update={
            "violations": (*rollout.violations, violation),
            "gate_passed": False,
            "terms": {"gate": 0.0},
        }
    )


def measured(
    rollout: Rollout, *, quality: Finding, judge: Finding, pigment: Finding = NOT_ASKED
) -> Rollout:
    """The admitted rollout with what the rooms found; None for a term that nobody was asked for."""
    assert rollout.sketch is not None
    timings, versions = dict(rollout.timings), dict(rollout.versions)
    record: dict[str, object] = {}
    for finding in (quality, judge, pigment):
        timings |= finding.timings or {}
        versions |= finding.versions or {}
        record |= finding.record or {}
    failed = next((one for one in (quality, judge, pigment) if one.reason is not None), NOT_ASKED)
    return rollout.model_copy(
        update={
            **record,
            "terms": {
                "gate": 1.0,
                "length": terms.length(len(rollout.sketch)),
                "quality": quality.value,
                "judge": judge.value,
                "pigment": pigment.value,
            },
            "timings": timings,
            "versions": versions,
            "unscored_reason": failed.reason,
            "unscored_detail": failed.detail,
        }
    )


def with_terms(rollout: Rollout, recipe: Recipe, references: tuple[bytes, ...] = ()) -> Rollout:
    """The rollout with every term of the recipe that needs no group.

    Those that the rooms have brought stay. A term that fails leaves the rollout unscored.

    Args:
        rollout: one whose gate has decided.
        recipe: of its step and subject.
        references: the paintings of the draw.
    """
    found = dict(rollout.terms)
    if rollout.gate_passed:
        found.setdefault("gate", 1.0)
        found.setdefault("length", terms.length(len(rollout.sketch or "")))
    done = (*found, *recipe.asks("group"))
    update: dict[str, object] = {}
    try:
        facts = Facts(rollout, references=references)
        found |= reckon.values((term for term in recipe.terms if term not in done), facts)
    except InfrastructureError as error:
        if rollout.unscored_reason is None:
            update = {"unscored_reason": error.reason, "unscored_detail": error.message}
    return rollout.model_copy(update={"terms": found, **update})
