"""What each generation engine can do: the table by which a specification is checked. Pure.

Whether an engine computes what a certain model computes is only known once the model's own
configuration is read; :mod:`watercolour.train.engines` looks at it then, by the same table.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from watercolour.api.problems import ABSENT, Problem

if TYPE_CHECKING:
    from watercolour.api.spec import RunSpec

#: The word for the routed experts of a mixture among the adapter's targets.
EXPERTS = "experts"
#: GPUs of one vendor, as Kubernetes counts them.
GPU = "nvidia.com/gpu"


@dataclass(frozen=True, slots=True)
class Engine:
    """One row of the table."""

    where: str
    """Where it runs."""
    models: tuple[str, ...]
    """transformers' model types that it computes; empty is every causal model."""
    experts: bool
    """Whether the adapter may be on routed experts."""
    exact: bool
    """Whether it tells a token's log-probability before topP and topK cut anything off, so that
    it compares with the training's."""
    drawn_alike: bool
    """Whether equal weights and seeds give equal rows, whoever else is in the batch."""
    whole: bool
    """Whether it needs the whole base model in each of the trainer's processes."""


ENGINES: Mapping[str, Engine] = {
    "transformers": Engine(
        where="in the trainer, by `generate`",
        models=(),
        experts=True,
        exact=True,
        drawn_alike=True,
        whole=True,
    ),
    "static": Engine(
        where="in the trainer; on a GPU each token is one CUDA graph",
        models=("qwen3", "qwen3_5_text", "qwen3_5_moe_text"),
        experts=False,
        exact=True,
        drawn_alike=True,
        whole=True,
    ),
    "vllm": Engine(
        where="on a server with GPUs of its own",
        models=(),
        experts=True,
        exact=False,
        drawn_alike=False,
        whole=False,
    ),
}


def problems(spec: RunSpec) -> Iterator[Problem]:
    """What the chosen engine cannot do, with fields relative to ``spec``."""
    yield from _server(spec)
    yield from _adapter(spec)
    yield from _processes(spec)
    yield from _parted(spec)
    if "enable_thinking" in spec.model.chat_template_kwargs:
        yield Problem(
            "model.chatTemplateKwargs.enable_thinking",
            spec.model.chat_template_kwargs["enable_thinking"],
            "set by prompts.thinking",
            "Set prompts.thinking instead.",
        )


def _server(spec: RunSpec) -> Iterator[Problem]:
    trainer = spec.trainer
    if trainer.engine == "vllm" and trainer.vllm is None:
        yield Problem(
            "trainer.vllm",
            ABSENT,
            "engine=vllm needs a server",
            "Name its base URL in trainer.vllm.endpoint.",
        )
    if trainer.engine != "vllm" and trainer.vllm is not None:
        yield Problem(
            "trainer.vllm.endpoint",
            trainer.vllm.endpoint,
            f"engine is {trainer.engine}, which asks no server",
            "Set engine to vllm, or leave trainer.vllm out.",
        )
    if trainer.engine in ("static", "vllm") and "cache_implementation" in trainer.grpo:
        yield Problem(
            "trainer.grpo.cache_implementation",
            trainer.grpo["cache_implementation"],
            f"engine={trainer.engine} has caches of its own",
            "Leave it out, or set engine to transformers.",
        )


def _adapter(spec: RunSpec) -> Iterator[Problem]:
    trainer, lora = spec.trainer, spec.trainer.lora
    if EXPERTS not in lora.targets:
        return
    if trainer.engine == "static":
        yield Problem(
            "trainer.engine",
            trainer.engine,
            "lora.targets names experts, which this engine shares with the training unmerged",
            "Set it to auto or transformers, or leave experts out.",
        )
    if lora.dropout > 0:
        yield Problem(
            "trainer.lora.dropout",
            lora.dropout,
            "lora.targets names experts, whose adapter has no dropout",
            "Set dropout to 0.",
        )


def _processes(spec: RunSpec) -> Iterator[Problem]:
    trainer = spec.trainer
    given = trainer.resources.limits.get(GPU, trainer.resources.requests.get(GPU))
    if given is not None and given != str(trainer.processes):
        yield Problem(
            "trainer.processes",
            trainer.processes,
            f"the pod gets {GPU}={given}, and a process uses one",
            f"Set processes to {given}, or the GPUs to {trainer.processes}.",
        )


def _parted(spec: RunSpec) -> Iterator[Problem]:
    """A base model that is parted among the processes: none of them can compute by itself."""
    trainer = spec.trainer
    if not trainer.fsdp:
        return
    if trainer.engine == "auto" or ENGINES[trainer.engine].whole:
        yield Problem(
            "trainer.engine",
            trainer.engine,
            "fsdp leaves no process the whole base model, from which it would generate",
            "Set engine to vllm and name its server in trainer.vllm, or set fsdp to false.",
        )
    if trainer.processes * trainer.replicas == 1:
        yield Problem(
            "trainer.fsdp",
            True,
            "a single process has nobody to part the base model with",
            "Set processes to 2 or more, or fsdp to false.",
        )
    if EXPERTS in trainer.lora.targets:
        yield Problem(
            "trainer.fsdp",
            True,
            "lora.targets names experts, whose adapter is added to whole tensors",
            "Leave experts out, or set fsdp to false.",
        )
    if spec.sft is not None:
        yield Problem(
            "trainer.fsdp",
            True,
            "the cold start of spec.sft generates by the whole base model",
            "Leave sft out and name an adapter in spec.model.adapter, or set fsdp to false.",
        )
