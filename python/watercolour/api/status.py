"""The status of a run: what the operator writes and what the trainer's ``/progress`` serves.

A value that is not known is ``None`` and never 0. Unknown fields are let through, so that an older
reader can show the status of a newer operator.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel


class Phase(StrEnum):
    """Where a run stands."""

    PENDING = "Pending"
    """Accepted; nothing has been started."""
    STARTING = "Starting"
    """Its objects exist; the trainer has not made its first step."""
    RUNNING = "Running"
    """The trainer makes steps."""
    SUSPENDING = "Suspending"
    """Asked to suspend; the trainer writes its checkpoint."""
    SUSPENDED = "Suspended"
    """Every GPU is given back; the files are kept."""
    COMPLETING = "Completing"
    """The last step is done; GPUs and pods are being given back."""
    SUCCEEDED = "Succeeded"
    """All steps are done."""
    FAILED = "Failed"
    """It cannot go on; ``lastFailure`` says why."""


class ConditionType(StrEnum):
    """The conditions of a run."""

    TRAINER_READY = "TrainerReady"
    """The trainer runs and reports progress."""
    RENDERERS_READY = "RenderersReady"
    """At least the wanted number of renderers is ready, each shut off from the network."""
    ENV_READY = "EnvReady"
    """The environment takes sessions."""
    SCORER_READY = "ScorerReady"
    """The scorer answers, or sleeps because nothing has to be scored."""
    JUDGE_READY = "JudgeReady"
    """The judge answers, or the recipe needs none."""
    PROGRESSING = "Progressing"
    """A step ended within the expected time."""
    DEGRADED = "Degraded"
    """It goes on, but too many rollouts are unscored or a part is missing."""
    COMPLETE = "Complete"
    """All steps are done."""
    FAILED = "Failed"
    """It cannot go on."""
    SUSPENDED = "Suspended"
    """It was asked to suspend and holds no GPU."""
    CLEANED_UP = "CleanedUp"
    """Nothing of a finished run is left but its files and its status."""


class StatusPart(BaseModel):
    """A part of the status: camelCase outside, unknown fields let through."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        populate_by_name=True,
        extra="allow",
        frozen=True,
        defer_build=True,
    )


class Condition(StatusPart):
    """A metav1.Condition."""

    type: ConditionType = Field(description="Which condition.")
    status: Literal["True", "False", "Unknown"] = Field(description="Whether it holds.")
    reason: Annotated[str, Field(pattern=r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$")] = Field(
        description="A stable word for why."
    )
    message: str = Field(default="", description="Why, in a sentence for a person.")
    last_transition_time: str = Field(description="When `status` last changed, RFC 3339 in UTC.")
    observed_generation: int | None = Field(
        default=None, ge=0, description="Generation of the specification that it speaks of."
    )


class RewardProgress(StatusPart):
    """Rewards of the newest step; unset while none is scored."""

    mean: float | None = Field(default=None, description="Mean of the scored rollouts.")
    median: float | None = Field(default=None, description="Median of the scored rollouts.")
    best: float | None = Field(default=None, description="Best of the whole run so far.")
    adjusted: float | None = Field(
        default=None, description="Mean with the difficulty of the draw taken out."
    )


class QueueProgress(StatusPart):
    """The environment's render queue."""

    queued: int = Field(default=0, ge=0, description="Sketches that wait.")
    inflight: int = Field(default=0, ge=0, description="Sketches that are being painted.")
    announced: int = Field(default=0, ge=0, description="Sketches that the trainer announced.")


class AlarmProgress(StatusPart):
    """Something about the training that a person should look at."""

    name: str = Field(description="A stable word for it.")
    message: str = Field(default="", description="What was found, with the figures.")
    advice: str = Field(default="", description="What to do.")


class Progress(StatusPart):
    """How far the training is; what the trainer's ``/progress`` serves."""

    step: int = Field(default=0, ge=0, description="Optimizer steps done.")
    steps: int = Field(default=0, ge=0, description="Optimizer steps wanted.")
    last_step_time: str | None = Field(
        default=None, description="When the newest step was first seen, RFC 3339 in UTC."
    )
    eta_seconds: float | None = Field(
        default=None, ge=0, description="Seconds that are left, by the median of recent steps."
    )
    reward: RewardProgress = Field(
        default_factory=RewardProgress, description="Rewards of the newest step."
    )
    unscored_rate: float | None = Field(
        default=None, ge=0, le=1, description="Share of rollouts without a value, so far."
    )
    gate_pass_rate: float | None = Field(
        default=None, ge=0, le=1, description="Share of the newest step that the gate admitted."
    )
    pigment_share: float | None = Field(
        default=None,
        ge=0,
        le=1,
        description="Share of the newest step's coloured pigment that has the subject's colour.",
    )
    alarms: tuple[AlarmProgress, ...] = Field(
        default=(), description="What a person should look at; docs/honest-numbers.md has them."
    )
    queue: QueueProgress | None = Field(
        default=None, description="The environment's render queue, when it was asked."
    )


class ScalingDecision(StatusPart):
    """The last decision on the number of renderers."""

    desired: int = Field(ge=0, description="Pods wanted.")
    reason: str = Field(description="A stable word for why.")
    message: str = Field(default="", description="Why, in a sentence for a person.")
    time: str | None = Field(default=None, description="When, RFC 3339 in UTC.")
    heard: bool = Field(default=False, description="Whether the demand was ever known.")
    blind_since: str | None = Field(
        default=None, description="Since when the demand is not known, RFC 3339 in UTC."
    )
    surplus_since: str | None = Field(
        default=None, description="When the newest entry of `surplusPeaks` began, RFC 3339 in UTC."
    )
    surplus_peaks: tuple[int, ...] = Field(
        default=(), description="Most pods needed in each part of scaling.idleSeconds, newest last."
    )
    start_seconds: float | None = Field(
        default=None,
        ge=0,
        description="Seconds from a pod's creation to its readiness, of the slowest of the last "
        "that became ready. Pods for announced sketches start that long before these come.",
    )


class RenderersStatus(StatusPart):
    """The renderer pods."""

    desired: int = Field(default=0, ge=0, description="Pods wanted.")
    ready: int = Field(default=0, ge=0, description="Pods ready.")
    busy: int = Field(default=0, ge=0, description="Sketches being painted.")
    replicas: int = Field(
        default=0,
        ge=0,
        description="Pods that exist and are not to go, ready or not; what the scale shows.",
    )
    selector: str | None = Field(
        default=None, description="Label selector of the pods, for an autoscaler of the scale."
    )
    summary: str | None = Field(default=None, description="ready/desired, for the column.")
    decision: ScalingDecision | None = Field(default=None, description="The last decision.")


class ComponentCost(StatusPart):
    """What one component has used."""

    gpu_seconds: float = Field(default=0, ge=0, description="GPUs times seconds held.")
    pod_seconds: float = Field(default=0, ge=0, description="Pods times seconds running.")
    idle_seconds: float = Field(default=0, ge=0, description="Seconds held without work.")


class Cost(StatusPart):
    """What the run has used, by component."""

    accounted_until: str | None = Field(
        default=None, description="Moment up to which it is counted, RFC 3339 in UTC."
    )
    gpu_minutes: float = Field(default=0, ge=0, description="All GPUs, in minutes.")
    components: dict[str, ComponentCost] = Field(
        default_factory=dict, description="By component: trainer, renderers, env, scorer, judge."
    )


class Attempt(StatusPart):
    """One start of the trainer."""

    number: int = Field(ge=1, description="From 1.")
    job: str | None = Field(default=None, description="Uid of its Job, once that was seen.")
    resumed: bool | None = Field(
        default=None, description="Whether it goes on from a checkpoint; unset when not known."
    )
    started: str | None = Field(
        default=None,
        description="When, RFC 3339 in UTC; unset while its queue holds it back.",
    )
    ended: str | None = Field(default=None, description="When, RFC 3339 in UTC.")
    first_step: int | None = Field(default=None, ge=0, description="Step that it began with.")
    last_step: int | None = Field(default=None, ge=0, description="Step that it reached.")
    reason: str | None = Field(default=None, description="A stable word for why it ended.")
    counted: bool | None = Field(
        default=None, description="Whether it counts against restartPolicy.maxRestarts."
    )


class BestRollout(StatusPart):
    """The best rollout of the run."""

    step: int = Field(ge=0, description="Its step.")
    reward: float = Field(description="Its reward.")
    painting: str | None = Field(default=None, description="Path of the PNG.")
    sketch: str | None = Field(default=None, description="Path of the sketch.")


class ArtifactsStatus(StatusPart):
    """Where the files are."""

    claim: str | None = Field(default=None, description="The PersistentVolumeClaim.")
    path: str | None = Field(default=None, description="The run's folder within it.")
    last_checkpoint_step: int | None = Field(
        default=None, ge=0, description="Step of the newest whole checkpoint."
    )
    best: BestRollout | None = Field(default=None, description="The best rollout of the run.")


class LastFailure(StatusPart):
    """The newest failure, with the pod's own words."""

    reason: str = Field(description="A stable word for why.")
    message: str = Field(default="", description="What happened, and what to do.")
    component: str | None = Field(default=None, description="The component that failed.")
    pod: str | None = Field(default=None, description="The pod's name.")
    exit_code: int | None = Field(default=None, description="The container's exit code.")
    log: str | None = Field(default=None, description="The end of its log or last message.")
    time: str | None = Field(default=None, description="When, RFC 3339 in UTC.")


#: What a column shows when nothing is known.
UNKNOWN = "-"


class Columns(StatusPart):
    """What `kubectl get wcr` shows."""

    step: str = Field(default=UNKNOWN, description="Steps done and wanted, as 412/600.")
    reward: str = Field(default=UNKNOWN, description="Mean reward of the newest step.")
    renderers: str = Field(default=UNKNOWN, description="Renderer pods ready and wanted, as 6/8.")
    scorer: str = Field(default=UNKNOWN, description="Ready, Starting, Sleeping or Stopped.")
    gpu_minutes: str = Field(default=UNKNOWN, description="GPUs times minutes held.")


class Status(StatusPart):
    """All that is known of a run."""

    phase: Phase = Field(default=Phase.PENDING, description="Where the run stands.")
    observed_generation: int | None = Field(
        default=None, ge=0, description="Generation of the specification last acted on."
    )
    conditions: tuple[Condition, ...] = Field(default=(), description="One of each type at most.")
    progress: Progress | None = Field(default=None, description="How far the training is.")
    renderers: RenderersStatus | None = Field(default=None, description="The renderer pods.")
    scorer: str | None = Field(default=None, description="Ready, Starting, Stopped or Sleeping.")
    cost: Cost | None = Field(default=None, description="What the run has used.")
    attempts: tuple[Attempt, ...] = Field(default=(), description="Starts of the trainer.")
    active_seconds: float = Field(
        default=0, ge=0, description="Seconds that the ended attempts took in all."
    )
    last_demand_time: str | None = Field(
        default=None,
        description="When something was last seen to be scored, RFC 3339 in UTC; "
        "exact to a tenth of scorer.idleTimeoutSeconds or a minute, whichever is less.",
    )
    artifacts: ArtifactsStatus | None = Field(default=None, description="Where the files are.")
    last_failure: LastFailure | None = Field(default=None, description="The newest failure.")
    columns: Columns = Field(
        default_factory=Columns, description="What `kubectl get wcr` shows; `-` is not known."
    )

    def condition(self, kind: ConditionType) -> Condition | None:
        """The condition of a type, or None when it was never set."""
        return next((found for found in self.conditions if found.type is kind), None)
