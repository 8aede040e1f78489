"""The quality scorer and the pairwise judge."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from watercolour.api.part import (
    CLUSTER,
    CacheUrl,
    Flag,
    Image,
    Line,
    Name,
    Natural,
    Part,
    Positive,
    Resources,
    Seconds,
    SecretRef,
    Url,
)


class Batching(Part):
    """How the scorer gathers what waits."""

    max_paintings: Positive = Field(default=32, description="Most paintings in one batch.")
    window_seconds: Seconds = Field(
        default=0.02, description="Seconds that the first painting of a batch waits for others."
    )


class Checkpoint(Part):
    """The scorer's weights, on a claim or from the hub."""

    claim: Name | None = Field(
        default=None, description="PersistentVolumeClaim that holds the weights."
    )
    path: Line = Field(default="HPSv3.safetensors", description="File within that claim.")
    id: Line | None = Field(default=None, description="Hub model, downloaded at the start.")
    revision: Line | None = Field(default=None, description="Its commit or tag.")
    base: Line | None = Field(
        default=None,
        description="Qwen2-VL's configuration and tokenizer, whose weights are not read: a folder "
        "within the claim as ./FOLDER, or a hub model; unset is Qwen/Qwen2-VL-7B-Instruct.",
    )


class Scorer(Part):
    """The quality scorer, which gives a painting a value for itself."""

    backend: Literal["embedded", "hpsv3", "vlm-mark", "none"] = Field(
        default="embedded",
        description="`embedded` needs no GPU; `hpsv3` is the published one; `vlm-mark` asks a "
        "vision-language model for a mark; `none` leaves the term out.",
    )
    endpoint: Url | None = Field(
        default=None,
        description="Base URL of a scorer that is already running; with `vlm-mark` of an "
        "OpenAI-compatible API, unset being the judge's.",
    )
    model: Line | None = Field(
        default=None,
        description="With `vlm-mark`: the model's name at that endpoint; unset is judge.model.",
    )
    prompt: Line = Field(
        default="a loose watercolour flower",
        description="Always the text sent to the scorer; naming the subject inverts the low end.",
    )
    attempts: Positive = Field(default=3, description="Calls before the rollout is unscored.")
    timeout_seconds: Seconds = Field(default=90.0, description="Limit of one call, in seconds.")
    image: Annotated[Image | None, CLUSTER] = Field(
        default=None, description="Container image; unset is the operator's."
    )
    resources: Annotated[Resources, CLUSTER] = Field(
        default_factory=Resources, description="Requests and limits of the scorer's pod."
    )
    checkpoint: Annotated[Checkpoint | None, CLUSTER] = Field(
        default=None, description="Where the weights are; unset is what the image holds."
    )
    download: Annotated[Flag, CLUSTER] = Field(
        default=False, description="Let the scorer reach the hub, to download its weights."
    )
    batching: Annotated[Batching, CLUSTER] = Field(
        default_factory=Batching, description="How the scorer gathers what waits."
    )
    idle_timeout_seconds: Annotated[Seconds, CLUSTER] = Field(
        default=600.0, description="Seconds without a call after which its GPU is given back."
    )
    sharing: Annotated[Literal["Dedicated", "Namespace"], CLUSTER] = Field(
        default="Dedicated", description="One scorer for this run, or one for its namespace."
    )
    queued: Annotated[Flag, CLUSTER] = Field(
        default=False, description="Let the scorer's pod wait in queueName too."
    )


class JudgeDeploy(Part):
    """A vision-language model that the operator runs for the judge."""

    image: Image = Field(description="Image of an OpenAI-compatible server, such as vLLM's.")
    model: Line = Field(description="Model that it loads: hub id or path within the image.")
    gpus: Natural = Field(default=1, description="GPUs of its pod.")
    resources: Resources = Field(
        default_factory=Resources, description="Further requests and limits of its pod."
    )
    download: Flag = Field(default=False, description="Let it reach the hub, to download weights.")
    queued: Flag = Field(default=False, description="Let its pod wait in queueName too.")


class JudgeCache(Part):
    """Verdicts are kept by sketch, reference, criteria, model and order."""

    enabled: Flag = Field(default=True, description="Ask once for the same comparison.")
    url: CacheUrl | None = Field(
        default=None,
        description="A Redis or Valkey server that several runs share, as redis://HOST:6379/0; "
        "unset is a file of the run's own.",
    )
    max_verdicts: Positive = Field(
        default=200_000, description="Verdicts kept in the file; the oldest go first."
    )


class JudgeBudget(Part):
    """The most that a run may ask of its judge. What it spent survives a restart."""

    calls: Positive | None = Field(
        default=None,
        description="Requests of the whole run, repeated ones included; unset is no limit.",
    )
    tokens: Positive | None = Field(
        default=None,
        description="Tokens of the whole run, as the endpoint counts them; an answer that counts "
        "none is taken for 2,000. Unset is no limit.",
    )


class JudgeBreaker(Part):
    """When calls stop going to an endpoint that is away."""

    failures: Positive = Field(
        default=8, description="Failed calls in a row after which no call is made for a while."
    )
    cooldown_seconds: Seconds = Field(
        default=30.0,
        description="Seconds until one call tries again; doubled at each failure, at most tenfold.",
    )


class Judge(Part):
    """The pairwise judge, which says which of two paintings is better."""

    backend: Literal["embedded", "openai", "none"] = Field(
        default="embedded",
        description="`embedded` needs no GPU; `openai` is any compatible endpoint that sees "
        "pictures; `none` leaves the term out.",
    )
    endpoint: Url | None = Field(
        default=None, description="Base URL of an OpenAI-compatible API, with its `/v1`."
    )
    model: Line = Field(default="embedded", description="Model's name at that endpoint.")
    criteria: Annotated[str, Field(max_length=20_000)] | None = Field(
        default=None,
        description="What makes a painting win, in words; unset is the published text.",
    )
    secret_ref: Annotated[SecretRef | None, CLUSTER] = Field(
        default=None,
        description="The endpoint's API key. On one machine: `--judge-key-file`.",
    )
    order: Literal["both", "first"] = Field(
        default="both",
        description="`both` asks twice with the pictures swapped; `first` halves the calls and "
        "lets position bias in.",
    )
    cache: JudgeCache = Field(
        default_factory=JudgeCache, description="Whether verdicts are kept, and where."
    )
    attempts: Positive = Field(default=3, description="Calls before a comparison is dropped.")
    timeout_seconds: Seconds = Field(default=120.0, description="Limit of one call, in seconds.")
    concurrency: Positive = Field(default=64, description="Calls under way at once.")
    budget: JudgeBudget = Field(
        default_factory=JudgeBudget, description="The most that the run may ask of it."
    )
    breaker: JudgeBreaker = Field(
        default_factory=JudgeBreaker, description="When calls stop going to it for a while."
    )
    fallback: Literal["none", "embedded"] = Field(
        default="none",
        description="Who judges while it is away or its budget is spent: nobody, so that rollouts "
        "are unscored; or the embedded judge, which needs `scorer.backend: embedded`.",
    )
    self_check: Literal["Refuse", "Warn", "Off"] = Field(
        default="Refuse",
        description="At the start a reference against itself must tie and the tier love must beat "
        "meh: else refuse to train, or only say so.",
    )
    deploy: Annotated[JudgeDeploy | None, CLUSTER] = Field(
        default=None, description="Run a judge for this run, instead of naming an endpoint."
    )
