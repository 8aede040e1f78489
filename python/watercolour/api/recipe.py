"""How terms become a reward, what a sketch must respect, and what the judge compares with."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from watercolour.api.part import (
    CLUSTER,
    Fraction,
    Line,
    Name,
    Part,
    PinnedDataset,
    Positive,
    Seconds,
    Words,
)
from watercolour.api.problems import refuse, sum_problem


class Weights(Part):
    """Weights of a recipe's terms; they sum to 1."""

    gate: Fraction = Field(default=0.05, description="Weight of having passed the gate, 0 to 1.")
    length: Fraction = Field(default=0.05, description="Weight of the sketch's length, 0 to 1.")
    quality: Fraction = Field(default=0.60, description="Weight of the scorer's value, 0 to 1.")
    judge: Fraction = Field(default=0.30, description="Weight of the judge's value, 0 to 1.")
    pigment: Annotated[float, Field(strict=True, ge=0, lt=1)] = Field(
        default=0.0,
        description="Weight of the subject's colours, below 1. A subject without a colour of its "
        "own, white or unknown, is rewarded by the other weights, raised in proportion.",
    )

    @model_validator(mode="after")
    def _sum_is_one(self) -> Weights:
        refuse(sum_problem(self.model_dump()))
        return self


class Gate(Part):
    """What a sketch must respect before it can score."""

    allow: Words = Field(
        default=("all",),
        description="Allowed p5.brush methods, by name; or the one word `all` for every export, or "
        "`ten` for those of the prompt.",
    )
    min_paint_fraction: Fraction = Field(
        default=0.005, description="Least share of painted pixels; below it the canvas is blank."
    )
    max_characters: Positive = Field(
        default=48_000, description="Longest sketch, in characters, that is parsed at all."
    )
    cpu_budget_seconds: Seconds = Field(
        default=20.0,
        description="CPU seconds that a sketch's browser may use; more is `sketch_timeout`.",
    )


class Recipe(Part):
    """How terms become a reward."""

    name: Line = Field(
        default="embedded",
        description="`hps-only`, `hps-led` or `judge-led`, the published ones; `embedded`: hps-led "
        "with a share of the subject's colours, for scorer and judge that know no subject; or "
        "`hybrid`: -1 for a refused sketch, and terms that count from -1 to 1.",
    )
    weights: Weights | None = Field(
        default=None, description="Weights instead of the recipe's own."
    )
    gate: Gate = Field(default_factory=Gate, description="The gate's limits.")


class TierShares(Part):
    """How a draw of references is composed; the shares sum to 1."""

    love: Fraction = Field(default=0.5, description="Share of the tier `love`, 0 to 1.")
    okay: Fraction = Field(default=0.5, description="Share of the tier `okay`, 0 to 1.")
    meh: Fraction = Field(default=0.0, description="Share of the tier `meh`, 0 to 1.")

    @model_validator(mode="after")
    def _sum_is_one(self) -> TierShares:
        refuse(sum_problem(self.model_dump()))
        return self


class References(Part):
    """The rated paintings that the judge compares with. At most one source besides the default."""

    pool: Line = Field(
        default="builtin:flowers", description="`builtin:NAME` or a folder with a pool in it."
    )
    dataset: Annotated[PinnedDataset | None, CLUSTER] = Field(
        default=None, description="A pool on the hub, pinned: `owner/name@commit`."
    )
    claim: Annotated[Name | None, CLUSTER] = Field(
        default=None, description="PersistentVolumeClaim whose root is a pool folder."
    )
    config_map: Annotated[Name | None, CLUSTER] = Field(
        default=None, description="ConfigMap whose files are a small pool (below 1 MiB)."
    )
    tier_shares: TierShares = Field(
        default_factory=TierShares, description="How a draw of references is composed."
    )
    per_rollout: Positive = Field(
        default=4, description="References per rollout; the same for all members of a group."
    )
