"""GRPO: sizes, optimisation, adapter, sampling, guards."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NamedTuple

from pydantic import Field

from watercolour.api.part import (
    CLUSTER,
    FIXED,
    MOST,
    WHOLE,
    Above0,
    Flag,
    Fraction,
    Image,
    Line,
    Natural,
    Part,
    Positive,
    Resources,
    Url,
    Word,
    Words,
)


class Lora(Part):
    """The adapter that is trained."""

    r: Positive = Field(default=16, description="Rank of the adapter's matrices.")
    alpha: Positive = Field(
        default=32, description="Numerator of the scale; the update is multiplied by alpha / r."
    )
    dropout: Fraction = Field(
        default=0.0, description="Share of the adapter's inputs dropped in training, 0 to 1."
    )
    targets: Words = Field(
        default=("all-linear",),
        description="Module names; `all-linear`, which leaves vision tower and head out; `experts`,"
        " the routed experts of a mixture, alone or beside either.",
    )


class Sampling(Part):
    """How completions are drawn.

    The loss is taken over the whole distribution, so what topP or topK cut off is never drawn and
    never learnt from: it may grow unseen until the policy loses its grammar. Large models bear it;
    for small ones temperature alone is the safe way to draw less wildly.
    """

    temperature: Above0 | None = Field(
        default=None,
        description="Divides the logits; 1 is the policy itself. Unset is 0.7 for builtin policies "
        "and the published 1 for others.",
    )
    top_p: Annotated[float, Field(strict=True, gt=0, le=1)] | None = Field(
        default=None,
        description="Keep the likeliest tokens up to this probability; 1 keeps all. Unset is 1 for "
        "builtin policies and the published 0.95 for others.",
    )
    top_k: Natural | None = Field(
        default=None,
        description="Keep at most so many tokens a step; 0 is no limit. Unset is 0 for builtin "
        "policies and the published 20 for others.",
    )
    max_completion_tokens: Annotated[int, Field(strict=True, ge=1, le=131_072), WHOLE] = Field(
        default=512, description="Longest completion, in tokens."
    )

    logit_bias: Annotated[
        dict[str, Annotated[float, Field(strict=True, ge=-100, le=100)]], Field(max_length=64)
    ] = Field(
        default_factory=dict,
        description="Added to the logits of single tokens, by their text, before one is drawn: "
        "-100 never draws it. It shapes what is drawn and not what the loss is taken over.",
    )


class Decoding(NamedTuple):
    """How completions are drawn, with nothing left open; fields as in :class:`Sampling`.

    ``bias`` is for tokens what ``logit_bias`` is for their texts; only a tokenizer can tell them.
    """

    max_completion_tokens: int
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    bias: tuple[tuple[int, float], ...] = ()


def decoding(sampling: Sampling, *, builtin: bool) -> Decoding:
    """What a specification's sampling comes to for a builtin policy, or for another one.

    Others draw as published. A policy of a million parameters that drew so broke its own grammar
    after some eighty steps; it draws from its whole distribution, a little cooled.
    """
    temperature, top_p, top_k = (0.7, 1.0, 0) if builtin else (1.0, 0.95, 20)
    return Decoding(
        max_completion_tokens=sampling.max_completion_tokens,
        temperature=temperature if sampling.temperature is None else sampling.temperature,
        top_p=top_p if sampling.top_p is None else sampling.top_p,
        top_k=top_k if sampling.top_k is None else sampling.top_k,
    )


class Vllm(Part):
    """A vLLM server that generates, on GPUs of its own, beside the training."""

    endpoint: Url = Field(
        description="Its base URL, such as http://vllm:8000, without /v1. It serves the same model "
        "with `--enable-lora` and lets adapters be loaded while it runs."
    )
    run_folder: Line | None = Field(
        default=None,
        description="The run's folder as that server sees it, on storage that both mount; unset is "
        "the trainer's own path.",
    )


class Guards(Part):
    """What stops a run from going wrong silently."""

    min_gate_pass_rate: Fraction = Field(
        default=0.2, description="Preflight: least share of probes that pass the gate."
    )
    probes: Natural = Field(default=16, description="Preflight completions; 0 skips the preflight.")
    collapse: Flag = Field(
        default=True, description="Restore the best adapter when the reward collapses."
    )
    max_rollbacks: Natural = Field(
        default=3, description="Collapses after which the run fails as PolicyCollapsed."
    )
    max_unscored_steps: Positive = Field(
        default=5, description="Wholly unscored steps in a row after which the run fails."
    )
    drift_every: Natural = Field(
        default=20,
        description="Steps between two scorings of the same paintings, which show whether scorer "
        "and judge still say the same; 0 never does.",
    )


class Trainer(Part):
    """The training by GRPO; the four published changes are the defaults."""

    steps: Positive = Field(default=100, description="Optimizer steps.")
    rollouts_per_step: Positive = Field(
        default=16, description="Rollouts per optimizer step; a multiple of groupSize."
    )
    group_size: Annotated[int, Field(strict=True, ge=2, le=MOST), WHOLE] = Field(
        default=8, description="Rollouts that share prompt, references and draw."
    )
    learning_rate: Above0 | None = Field(
        default=None,
        description="Peak learning rate. Unset is 1e-3 for builtin policies, which are small, and "
        "the published 5e-5 for others.",
    )
    lr_scheduler: Word = Field(
        default="constant_with_warmup", description="A scheduler of transformers, by name."
    )
    warmup_steps: Natural = Field(
        default=5, description="Optimizer steps in which the learning rate rises from 0."
    )
    scale_rewards: Literal["none", "group", "batch"] = Field(
        default="none",
        description="Divide advantages by the standard deviation of the group or batch, or not.",
    )
    beta: Annotated[float, Field(strict=True, ge=0)] = Field(
        default=0.0, description="Weight of the KL term against the policy before the first step."
    )
    lora: Annotated[Lora, FIXED] = Field(
        default_factory=Lora, description="The adapter that is trained."
    )
    sampling: Sampling = Field(default_factory=Sampling, description="How completions are drawn.")
    engine: Literal["auto", "transformers", "static", "vllm"] = Field(
        default="auto",
        description="Generation engine; `auto` takes the fastest that fits in the trainer itself.",
    )
    vllm: Vllm | None = Field(
        default=None, description="The server of `engine: vllm`, and of no other."
    )
    checkpoint_every: Positive = Field(default=10, description="Steps between checkpoints.")
    keep_checkpoints: Positive = Field(default=2, description="Newest checkpoints that are kept.")
    resume: Annotated[Flag, CLUSTER] = Field(
        default=True,
        description="A new attempt goes on from the newest checkpoint; false starts it anew.",
    )
    guards: Guards = Field(
        default_factory=Guards, description="What stops a run from going wrong silently."
    )
    grpo: dict[str, Any] = Field(
        default_factory=dict, description="Passed to TRL's GRPOConfig, whose fields are checked."
    )
    image: Annotated[Image | None, CLUSTER] = Field(
        default=None, description="Container image; unset is the operator's."
    )
    resources: Annotated[Resources, CLUSTER] = Field(
        default_factory=Resources, description="Requests and limits of one trainer pod."
    )
    replicas: Annotated[Positive, CLUSTER] = Field(
        default=1, description="Trainer pods that share one training."
    )
    processes: Positive = Field(
        default=1, description="Training processes in each pod, one GPU each."
    )
    fsdp: Flag = Field(
        default=False,
        description="Part the frozen base model among all processes (FSDP2), for one that no GPU "
        "holds whole; false gives each process all of it. Needs `engine: vllm`.",
    )
