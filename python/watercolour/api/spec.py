"""The specification of a ``WatercolourRun``: the same on one machine and in a cluster.

Every field has a default, so that four lines of YAML are a run. Units stand in the field's name or
in its description. The parts are in modules of their own and can be imported from here.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel

from watercolour.api import rules
from watercolour.api.lifecycle import (
    Artifacts,
    Cleanup,
    Egress,
    PodTemplates,
    RestartPolicy,
    Tracking,
)
from watercolour.api.part import (
    CLUSTER,
    FIXED,
    RUN_NAME,
    Flag,
    Name,
    Natural,
    Part,
    Resources,
    SecretRef,
    WholeSeconds,
)
from watercolour.api.policy import Model, Prompts, Sft
from watercolour.api.problems import refuse
from watercolour.api.recipe import (
    Gate,
    Kl,
    Recipe,
    References,
    Schedule,
    Stage,
    TierShares,
    TierStage,
)
from watercolour.api.scoring import Judge, Scorer
from watercolour.api.status import Status
from watercolour.api.trainer import Guards, Lora, Sampling, Trainer
from watercolour.api.workers import Env, Renderers

__all__ = [
    "Artifacts",
    "Env",
    "Gate",
    "Guards",
    "Judge",
    "Kl",
    "Lora",
    "Metadata",
    "Model",
    "Prompts",
    "Recipe",
    "References",
    "Renderers",
    "Resources",
    "RunSpec",
    "Sampling",
    "Schedule",
    "Scorer",
    "SecretRef",
    "Sft",
    "Stage",
    "Status",
    "TierShares",
    "TierStage",
    "Trainer",
    "WatercolourRun",
]


class RunSpec(Part):
    """What the run is to do; left empty, it is the embedded default."""

    seed: Annotated[Natural, FIXED] = Field(
        default=1, description="Seeds prompts, sampling, draws and renders."
    )
    model: Annotated[Model, FIXED] = Field(
        default_factory=Model, description="The policy to be trained."
    )
    prompts: Annotated[Prompts, FIXED] = Field(
        default_factory=Prompts, description="What the policy is asked to paint."
    )
    recipe: Annotated[Recipe, FIXED] = Field(
        default_factory=Recipe, description="How terms become a reward."
    )
    references: Annotated[References, FIXED] = Field(
        default_factory=References, description="The rated paintings that the judge compares with."
    )
    sft: Sft | None = Field(
        default=None, description="A supervised cold start before the first step."
    )
    trainer: Trainer = Field(default_factory=Trainer, description="The training by GRPO.")
    renderers: Renderers = Field(
        default_factory=Renderers,
        description="The stateless workers that turn a sketch into a painting.",
    )
    env: Env = Field(default_factory=Env, description="The OpenEnv server.")
    scorer: Scorer = Field(default_factory=Scorer, description="The quality scorer.")
    judge: Judge = Field(default_factory=Judge, description="The pairwise judge.")
    artifacts: Artifacts = Field(default_factory=Artifacts, description="Where the run's files go.")
    tracking: Tracking = Field(
        default_factory=Tracking, description="Where the figures go besides metrics.csv."
    )
    suspend: Annotated[Flag, CLUSTER] = Field(
        default=False, description="Give every GPU back and keep the files; false goes on."
    )
    active_deadline_seconds: Annotated[WholeSeconds | None, CLUSTER] = Field(
        default=None, description="Seconds that the run may be active in all; unset is no limit."
    )
    startup_deadline_seconds: Annotated[WholeSeconds, CLUSTER] = Field(
        default=1800, description="Seconds from the start to the trainer's first step."
    )
    restart_policy: Annotated[RestartPolicy, CLUSTER] = Field(
        default_factory=RestartPolicy,
        description="How often a trainer that failed is started again.",
    )
    cleanup: Annotated[Cleanup, CLUSTER] = Field(
        default_factory=Cleanup, description="When the objects of a finished run go."
    )
    queue_name: Annotated[Name | None, CLUSTER] = Field(
        default=None, description="Kueue's LocalQueue that admits the run."
    )
    pod_templates: Annotated[PodTemplates, CLUSTER] = Field(
        default_factory=PodTemplates,
        description="Pod templates that are merged, by container name, into the operator's.",
    )
    egress: Annotated[Egress, CLUSTER] = Field(
        default_factory=Egress, description="What may be reached outside the cluster."
    )

    @model_validator(mode="after")
    def _parts_agree(self) -> RunSpec:
        refuse(rules.problems(self))
        return self


class Metadata(BaseModel):
    """The Kubernetes object's metadata, as far as one machine cares."""

    model_config = ConfigDict(extra="allow", frozen=True, defer_build=True)

    name: str = Field(
        pattern=RUN_NAME,
        description="The run's name: 1 to 51 small letters, digits and dashes.",
    )


class WatercolourRun(BaseModel):
    """One run, as in `kubectl apply -f run.yaml`."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        populate_by_name=True,
        alias_generator=to_camel,
        defer_build=True,
    )

    api_version: Literal["watercolour.dev/v1alpha1"] = Field(
        default="watercolour.dev/v1alpha1", description="Version of this format."
    )
    kind: Literal["WatercolourRun"] = Field(default="WatercolourRun", description="Kind of object.")
    metadata: Metadata = Field(description="The run's name, and labels in a cluster.")
    spec: RunSpec = Field(default_factory=RunSpec, description="What the run is to do.")
    status: Status | None = Field(
        default=None, description="What the run has done; written by the operator alone."
    )
