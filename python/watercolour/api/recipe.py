"""How terms become a reward, what a sketch must respect, and what the judge compares with."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from watercolour.api.part import (
    CLUSTER,
    Flag,
    Fraction,
    Line,
    Name,
    Natural,
    Part,
    PinnedDataset,
    Positive,
    Seconds,
    Words,
)
from watercolour.api.problems import Problem, refuse, sum_problem

#: A term's name, and the most terms that weights may name.
TERM = r"^[a-z][a-z0-9_]*$"
LONGEST_TERM = 40
TERM_REMEDY = "Use 1 to 40 small letters, digits and underscores, beginning with a letter."
MOST_TERMS = 24
#: Most stages of a schedule or a curriculum.
MOST_STAGES = 20


def _sound(weights: dict[str, float]) -> dict[str, float]:
    """The weights, if each has the name of a term and they sum to 1."""
    refuse(
        Problem(name, weight, "not a term's name", TERM_REMEDY)
        for name, weight in weights.items()
        if len(name) > LONGEST_TERM or not re.fullmatch(TERM, name)
    )
    refuse(sum_problem(weights))
    return weights


#: Weights by term, each 0 to 1; they sum to 1, and a term that is not named has the weight 0.
Weights = Annotated[
    dict[str, Fraction], Field(min_length=1, max_length=MOST_TERMS), AfterValidator(_sound)
]


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
    cpu_budget_seconds: Seconds | None = Field(
        default=None,
        description="CPU seconds that a sketch's browser may use; more is `sketch_timeout`. Unset "
        "is the recipe's: 2 of `hybrid`, 20 of the others.",
    )
    memory_mib: Positive | None = Field(
        default=None,
        description="MiB of memory that a sketch's page may use while it paints; more is "
        "`sketch_oom`. Unset is the recipe's: 512 of `hybrid`; with the others only the "
        "renderer's own limit holds.",
    )


class TierShares(Part):
    """How a draw of references is composed; the shares sum to 1."""

    love: Fraction = Field(default=0.5, description="Share of the tier `love`, 0 to 1.")
    okay: Fraction = Field(default=0.5, description="Share of the tier `okay`, 0 to 1.")
    meh: Fraction = Field(default=0.0, description="Share of the tier `meh`, 0 to 1.")

    @model_validator(mode="after")
    def _sum_is_one(self) -> TierShares:
        refuse(sum_problem(self.model_dump()))
        return self


class Stage(Part):
    """Weights from a step on."""

    step: Natural = Field(description="Optimizer step, from 0.")
    weights: Weights = Field(description="Weights by term, each 0 to 1, that sum to 1.")


class Schedule(Part):
    """Weights by step. Before its first stage the recipe's own weights hold."""

    between: Literal["hold", "linear"] = Field(
        default="hold",
        description="`hold`: a stage's weights hold until the next one. `linear`: they move evenly "
        "from one stage to the next.",
    )
    stages: Annotated[tuple[Stage, ...], Field(min_length=1, max_length=MOST_STAGES)] = Field(
        description="By rising step."
    )

    @model_validator(mode="after")
    def _rises(self) -> Schedule:
        refuse(_not_rising("stages", [stage.step for stage in self.stages]))
        return self


class TierStage(Part):
    """How draws are composed from a step on."""

    step: Natural = Field(description="Optimizer step, from 0.")
    tier_shares: TierShares = Field(description="Instead of references.tierShares.")


class Kl(Part):
    """The weight of the KL term by step: from `start` to `end`, and `end` from then on."""

    start: Annotated[float, Field(strict=True, ge=0)] = Field(
        default=0.02, description="Weight in the first step."
    )
    end: Annotated[float, Field(strict=True, ge=0)] = Field(
        default=0.04, description="Weight from step `steps` on."
    )
    steps: Positive = Field(default=100, description="Optimizer steps from the one to the other.")
    shape: Literal["cosine", "linear"] = Field(
        default="cosine", description="How it moves: slowly at both ends, or evenly."
    )


class Recipe(Part):
    """How terms become a reward."""

    name: Line = Field(
        default="embedded",
        description="A shipped recipe (`watercolour recipe list`), or a name of your own beside "
        "weights of your own.",
    )
    weights: Weights | None = Field(
        default=None,
        description="Weights by term, each 0 to 1, that sum to 1, instead of the recipe's own; a "
        "term that is not named has the weight 0. Terms: `watercolour recipe terms`.",
    )
    failed_gate: Annotated[float, Field(strict=True, ge=-10, le=0)] | None = Field(
        default=None,
        description="Reward of a sketch that the gate refuses. Unset is the recipe's: -1 of "
        "`hybrid`, 0 of the others and of your own.",
    )
    signed: Flag | None = Field(
        default=None,
        description="Let terms other than the gate count from -1 to 1 instead of from 0. Unset is "
        "the recipe's; false for your own.",
    )
    paints: Flag | None = Field(
        default=None,
        description="Have sketches painted. False leaves it at the static gate and at terms that "
        "read the sketch alone. Unset is the recipe's; true for your own.",
    )
    schedule: Schedule | None = Field(
        default=None, description="Weights by step. Unset is the recipe's."
    )
    curriculum: Annotated[tuple[TierStage, ...], Field(max_length=MOST_STAGES)] | None = Field(
        default=None,
        description="Tier shares by step, by rising step; before the first one "
        "references.tierShares hold. Unset is the recipe's; an empty list is none.",
    )
    kl: Kl | None = Field(
        default=None, description="The KL term's weight by step. Unset is the recipe's."
    )
    gate: Gate = Field(default_factory=Gate, description="The gate's limits.")

    @model_validator(mode="after")
    def _rises(self) -> Recipe:
        refuse(_not_rising("curriculum", [stage.step for stage in self.curriculum or ()]))
        return self

    @property
    def weightings(self) -> tuple[dict[str, float], ...]:
        """All weights that stand in the specification itself."""
        own = () if self.weights is None else (self.weights,)
        stages = () if self.schedule is None else self.schedule.stages
        return (*own, *(stage.weights for stage in stages))


def _not_rising(field: str, steps: Sequence[int]) -> Iterator[Problem]:
    for number, (before, after) in enumerate(pairwise(steps), 1):
        if after <= before:
            yield Problem(
                f"{field}[{number}].step",
                after,
                f"not above the step {before} of the stage before",
                f"Order {field} by rising step.",
            )


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
