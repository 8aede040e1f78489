"""The specification of a ``WatercolourRun``: the same on one machine and in a cluster.

Field names are camelCase in YAML and JSON and snake_case in Python. Every field has a default,
so that four lines of YAML are a run. Units stand in the field's name or in its description.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel

from watercolour.api.problems import Problem, refuse, sum_problem

Fraction = Annotated[float, Field(ge=0, le=1)]
Positive = Annotated[int, Field(ge=1)]
Seconds = Annotated[float, Field(gt=0)]


class Part(BaseModel):
    """A part of the specification: camelCase outside, unknown fields refused."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        populate_by_name=True,
        extra="forbid",
        frozen=True,
        defer_build=True,
    )


class Model(Part):
    """The policy to be trained."""

    id: str = Field(
        default="builtin:tiny",
        description="`builtin:tiny`, a folder, or a model of the hub.",
    )
    revision: str | None = Field(default=None, description="Commit or tag on the hub.")
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = Field(
        default="auto",
        description="Weights' type. `auto` is what the checkpoint says, never float32 by accident.",
    )
    tokenizer: str | None = Field(default=None, description="Tokenizer's id; the model's if unset.")
    chat_template_kwargs: dict[str, Any] = Field(
        default_factory=dict, description="Extra arguments of the tokenizer's chat template."
    )
    adapter: str | None = Field(default=None, description="LoRA adapter to start from.")


class Prompts(Part):
    """What the policy is asked to paint."""

    subjects: tuple[str, ...] = Field(
        default=("a peach hibiscus", "a blue iris", "a red poppy", "a yellow daisy"),
        min_length=1,
        description="Subjects, in turn, one a group.",
    )
    system: str = Field(
        default="auto",
        description="System prompt preset (`tiny`, `ten-methods`, `none`), or `auto`: `tiny` for "
        "builtin policies and `ten-methods` for others.",
    )
    thinking: bool = Field(
        default=False, description="Let the model think aloud; it eats the completion's tokens."
    )


class Weights(Part):
    """Weights of a recipe's terms; they sum to 1."""

    gate: Fraction = 0.05
    length: Fraction = 0.05
    quality: Fraction = 0.60
    judge: Fraction = 0.30

    @model_validator(mode="after")
    def _sum_is_one(self) -> Weights:
        refuse(sum_problem(self.model_dump()))
        return self


class Gate(Part):
    """What a sketch must respect before it can score."""

    allow: Literal["all", "ten"] | tuple[str, ...] = Field(
        default="all",
        description="Allowed p5.brush methods: `all` exports, the `ten` of the prompt, or a list.",
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

    name: str = Field(default="hps-led", description="`hps-only`, `hps-led` or `judge-led`.")
    weights: Weights | None = Field(default=None, description="Instead of the recipe's own.")
    gate: Gate = Field(default_factory=Gate)


class TierShares(Part):
    """How a draw of references is composed; the shares sum to 1."""

    love: Fraction = 0.5
    okay: Fraction = 0.5
    meh: Fraction = 0.0

    @model_validator(mode="after")
    def _sum_is_one(self) -> TierShares:
        refuse(sum_problem(self.model_dump()))
        return self


class References(Part):
    """The rated paintings that the judge compares with."""

    pool: str = Field(default="builtin:flowers", description="`builtin:flowers` or a folder.")
    tier_shares: TierShares = Field(default_factory=TierShares)
    per_rollout: Positive = Field(
        default=4, description="References per rollout; the same for all members of a group."
    )


class Lora(Part):
    """The adapter that is trained."""

    r: Positive = 16
    alpha: Positive = 32
    dropout: Fraction = 0.0
    targets: str | tuple[str, ...] = Field(
        default="all-linear",
        description="`all-linear` (vision tower and head excluded) or module names.",
    )


class Sampling(Part):
    """How completions are drawn."""

    temperature: Annotated[float, Field(gt=0)] = 1.0
    top_p: Annotated[float, Field(gt=0, le=1)] = 0.95
    top_k: Annotated[int, Field(ge=0)] = Field(default=20, description="0 is no limit.")
    max_completion_tokens: Positive = Field(
        default=512, description="Longest completion, in tokens."
    )


class Guards(Part):
    """What stops a run from going wrong silently."""

    min_gate_pass_rate: Fraction = Field(
        default=0.2, description="Preflight: least share of probes that pass the gate."
    )
    probes: Annotated[int, Field(ge=0)] = Field(
        default=16, description="Preflight completions; 0 skips the preflight."
    )
    collapse: bool = Field(
        default=True, description="Restore the best adapter when the reward collapses."
    )
    max_rollbacks: Annotated[int, Field(ge=0)] = Field(
        default=3, description="Collapses after which the run fails as PolicyCollapsed."
    )
    max_unscored_steps: Positive = Field(
        default=5, description="Wholly unscored steps in a row after which the run fails."
    )


class Trainer(Part):
    """GRPO: the four published changes are the defaults."""

    steps: Positive = Field(default=110, description="Optimizer steps.")
    rollouts_per_step: Positive = Field(default=16, description="A multiple of groupSize.")
    group_size: Annotated[int, Field(ge=2)] = Field(
        default=8, description="Rollouts that share prompt, references and draw."
    )
    learning_rate: Annotated[float, Field(gt=0)] = 5e-4
    lr_scheduler: str = "constant_with_warmup"
    warmup_steps: Annotated[int, Field(ge=0)] = 5
    scale_rewards: Literal["none", "group", "batch"] = "none"
    beta: Annotated[float, Field(ge=0)] = Field(
        default=0.0, description="Weight of the KL term against the policy at the run's start."
    )
    lora: Lora = Field(default_factory=Lora)
    sampling: Sampling = Field(default_factory=Sampling)
    engine: Literal["auto", "transformers", "static", "vllm"] = Field(
        default="auto", description="Generation engine; `auto` takes the fastest that fits."
    )
    checkpoint_every: Positive = Field(default=10, description="Steps between checkpoints.")
    keep_checkpoints: Positive = 2
    guards: Guards = Field(default_factory=Guards)
    grpo: dict[str, Any] = Field(
        default_factory=dict, description="Passed to TRL's GRPOConfig, whose fields are checked."
    )

    @model_validator(mode="after")
    def _whole_groups(self) -> Trainer:
        if self.rollouts_per_step % self.group_size:
            fit = max(1, round(self.rollouts_per_step / self.group_size)) * self.group_size
            problem = Problem(
                "rolloutsPerStep",
                self.rollouts_per_step,
                f"not a multiple of groupSize={self.group_size}",
                f"Set rolloutsPerStep to {fit}.",
            )
            refuse([problem])
        return self


class Renderers(Part):
    """The stateless workers that turn a sketch into a painting."""

    slots: Positive = Field(default=2, description="Sketches that one renderer paints at once.")
    size: Annotated[int, Field(ge=64, le=1024)] | None = Field(
        default=None, description="Painting's side in pixels; unset is the sketch's own canvas."
    )
    deadline_seconds: Seconds = Field(default=60.0, description="Wall-clock limit of one render.")
    allow_unsandboxed: bool = Field(
        default=False, description="Go on without Chromium's own sandbox where the kernel lacks it."
    )


class Env(Part):
    """The OpenEnv server."""

    sessions: Positive = Field(
        default=32, description="Concurrent sessions; at least trainer.rolloutsPerStep."
    )
    message_timeout_seconds: Seconds = Field(
        default=300.0, description="How long a client waits for a reply; above every deadline."
    )
    attempts: Positive = Field(default=3, description="Tries of a rollout that ends unscored.")
    idle_seconds: Seconds = Field(default=900.0, description="Idle sessions are closed after it.")


class Scorer(Part):
    """The quality scorer."""

    backend: Literal["embedded", "hpsv3", "vlm-mark", "none"] = "embedded"
    endpoint: str | None = Field(default=None, description="A scorer that is already running.")
    prompt: str = Field(
        default="a loose watercolour flower",
        description="Always the text sent to the scorer; naming the subject inverts the low end.",
    )
    attempts: Positive = 3
    timeout_seconds: Seconds = 90.0


class Judge(Part):
    """The pairwise judge."""

    backend: Literal["embedded", "openai", "none"] = "embedded"
    endpoint: str | None = Field(default=None, description="Base URL of an OpenAI-compatible API.")
    model: str = "embedded"
    attempts: Positive = 3
    timeout_seconds: Seconds = 120.0


class Artifacts(Part):
    """Where the run's files go."""

    path: str = Field(default="runs", description="Folder that gets one folder a run.")


class RunSpec(Part):
    """All of a run. ``RunSpec()`` is the embedded default."""

    seed: Annotated[int, Field(ge=0)] = Field(
        default=1, description="Seeds prompts, sampling, draws and renders."
    )
    model: Model = Field(default_factory=Model)
    prompts: Prompts = Field(default_factory=Prompts)
    recipe: Recipe = Field(default_factory=Recipe)
    references: References = Field(default_factory=References)
    trainer: Trainer = Field(default_factory=Trainer)
    renderers: Renderers = Field(default_factory=Renderers)
    env: Env = Field(default_factory=Env)
    scorer: Scorer = Field(default_factory=Scorer)
    judge: Judge = Field(default_factory=Judge)
    artifacts: Artifacts = Field(default_factory=Artifacts)


class Metadata(BaseModel):
    """The Kubernetes object's metadata, as far as one machine cares."""

    model_config = ConfigDict(extra="allow", frozen=True)

    name: str = Field(pattern=r"^[a-z0-9]([-a-z0-9]{0,51}[a-z0-9])?$")


class WatercolourRun(BaseModel):
    """One run, as in `kubectl apply -f run.yaml`."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, populate_by_name=True, alias_generator=to_camel
    )

    api_version: Literal["watercolour.dev/v1alpha1"] = "watercolour.dev/v1alpha1"
    kind: Literal["WatercolourRun"] = "WatercolourRun"
    metadata: Metadata
    spec: RunSpec = Field(default_factory=RunSpec)
    status: dict[str, Any] | None = None
