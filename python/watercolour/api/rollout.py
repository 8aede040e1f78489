"""The one record that walks the corridor from completion to reward.

Every room returns a new, fuller copy (``model_copy(update=...)``); nobody reaches back. The
trainer logs this record, the dataset stores it and the gallery shows it.
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from watercolour.api.reasons import Reason, ViolationCode


class Record(BaseModel):
    """A frozen value that refuses unknown fields."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class Violation(Record):
    """One coded reason why the gate refused a sketch."""

    code: ViolationCode = Field(description="The stable word for it.")
    message: str = Field(description="One sentence for a person, naming what was found.")
    line: int | None = Field(
        default=None, ge=1, description="Line in the sketch, from 1; None when it has no place."
    )
    column: int | None = Field(
        default=None, ge=1, description="Column in characters, from 1; None when it has no place."
    )


class Vote(Record):
    """What both calls of the judge said of one reference."""

    reference: str = Field(description="The reference's name in the pool.")
    first: str | None = Field(
        description="Winner with the painting shown as A: 'A' or 'B'; None when the call failed."
    )
    second: str | None = Field(
        description="Winner with the painting shown as B: 'A' or 'B'; None when the call failed."
    )
    value: float | None = Field(
        description="1 won, 0.5 the orders disagree, 0 lost; None when either call failed."
    )


class Rollout(Record):
    """One completion with everything that became of it.

    ``reward is None`` means unscored: no value could be obtained. It is never replaced by 0.
    """

    run: str = Field(default="", description="The run's name.")
    step: int = Field(default=-1, description="Optimizer step, from 0; -1 outside a run.")
    group: int = Field(default=0, ge=0, description="The prompt group within the step.")
    index: int = Field(default=0, ge=0, description="Position within the group.")
    subject: str = Field(default="", description="What was to be painted.")
    hues: tuple[tuple[float, float], ...] = Field(
        default=(),
        description="What counts as the subject's colours where the pool describes it: arcs of the "
        "HSV circle in degrees, each from the first value upwards to the second.",
    )
    seed: int = Field(default=0, ge=0, description="Seeds the draw and the render; one a group.")
    completion: str = Field(default="", description="The policy's whole reply.")
    tokens: int = Field(default=0, ge=0, description="Length of the completion in tokens.")
    truncated: bool = Field(default=False, description="The completion hit the token limit.")

    sketch: str | None = Field(default=None, description="None when none could be extracted.")
    violations: tuple[Violation, ...] = Field(
        default=(), description="Why the gate refused the sketch; empty when it did not."
    )
    gate_passed: bool | None = Field(
        default=None, description="None until the gate, render included, has decided."
    )
    painting: bytes | None = Field(default=None, repr=False, description="The PNG file.")
    paint_fraction: float | None = Field(
        default=None, ge=0, le=1, description="Share of pixels that are paint, 0 to 1."
    )
    pigment_share: float | None = Field(
        default=None,
        ge=0,
        le=1,
        description="Share of the coloured pigment that has the subject's colour, 0 to 1; None "
        "for a subject without one.",
    )
    shapes: int | None = Field(default=None, ge=0, description="Filled shapes painted.")
    heaviest_shape: float | None = Field(
        default=None,
        ge=0,
        le=1,
        description="Of all filled shapes the greatest share of the sheet times opacity, 0 to 1; "
        "None unless a term asked for it.",
    )
    js_errors: tuple[str, ...] = Field(
        default=(), description="JavaScript errors of the page, in order."
    )

    references: tuple[str, ...] = Field(default=(), description="The draw, by name.")
    reference_strengths: tuple[float, ...] = Field(
        default=(),
        description="Their Bradley-Terry strengths in log-odds, in the same order; the okay "
        "tier's mean is 0.",
    )
    draw_strength: float | None = Field(
        default=None,
        description="Expected share of wins of an average okay painting against this draw "
        "(0 to 1, from Bradley-Terry strengths); lower is a harder draw.",
    )
    mean_draw_strength: float | None = Field(
        default=None, description="The same, expected over the run's draws at its start."
    )
    votes: tuple[Vote, ...] = Field(default=(), description="The judge's, one a reference.")
    terms: dict[str, float | None] = Field(
        default_factory=dict, description="Each term's value, 0 to 1; None unscored."
    )
    weights: dict[str, float] = Field(
        default_factory=dict,
        description="What each term weighed in the reward, at this step and for this subject.",
    )
    mu: float | None = Field(default=None, description="The scorer's raw mean, unbounded.")
    marks: dict[str, float | None] = Field(
        default_factory=dict,
        description="A vision-language model's marks, 0 to 1 each; None where it gave none.",
    )
    reward: float | None = Field(default=None, description="What the recipe made of the terms.")
    reward_adjusted: float | None = Field(
        default=None, description="The reward with the draw's difficulty taken out."
    )
    advantage: float | None = Field(
        default=None, description="The reward less the mean of its scored group."
    )
    unscored_reason: Reason | None = Field(
        default=None, description="Why there is no reward; None when there is one."
    )
    unscored_detail: str = Field(default="", description="The same in a sentence.")

    attempts: int = Field(default=1, ge=1, description="How often this rollout was tried.")
    timings: dict[str, float] = Field(default_factory=dict, description="Seconds by room.")
    versions: dict[str, str] = Field(
        default_factory=dict, description="Version of each part that had a hand in it."
    )
