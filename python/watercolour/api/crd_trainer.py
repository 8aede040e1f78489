"""The rules of :mod:`watercolour.api.crd_rules` that speak of the trainer."""

from __future__ import annotations

from collections.abc import Iterator

from watercolour.api import rules
from watercolour.api.crd_rule import Rule, text
from watercolour.api.policy import BUILTIN
from watercolour.api.trainer import Sampling, decoding


def beta() -> Rule:
    """A recipe has its own KL term, or the trainer has one."""
    return Rule(
        "!has(self.recipe.kl) || self.trainer.beta <= 0.0",
        "spec.trainer.beta={self.trainer.beta}: recipe.kl sets the same weight. "
        "Keep one of trainer.beta and recipe.kl.",
        ".trainer.beta",
    )


def sampling() -> Iterator[Rule]:
    """Of the sampling, what the engine or its correction cannot represent."""
    small = decoding(Sampling(), builtin=True)
    large = decoding(Sampling(), builtin=False)
    grpo = "self.trainer.grpo"
    correction, mode = "vllm_importance_sampling_correction", "vllm_importance_sampling_mode"
    harmless = (
        f"self.trainer.engine != 'vllm' || (has({grpo}) && "
        f"((has({grpo}.{correction}) && !{grpo}.{correction}) || "
        f"(has({grpo}.{mode}) && {grpo}.{mode}.startsWith('token'))))"
    )
    for field, ours, theirs, bound in (
        ("topP", small.top_p, large.top_p, ">= 1.0"),
        ("topK", small.top_k, large.top_k, "<= 0"),
    ):
        at = f"self.trainer.sampling.{field}"
        default = f"self.model.id.startsWith({text(BUILTIN)}) ? {ours!r} : {theirs!r}"
        value = f"(has({at}) ? {at} : {default})"
        yield Rule(
            f"{harmless} || {value} {bound}",
            f"spec.trainer.sampling.{field}={{{value}}}: truncated sampling with engine=vllm and "
            "importance sampling correction by the sequence ruins the loss. Set topP to 1 and topK "
            f"to 0, or trainer.grpo.{correction} to false.",
            f".trainer.sampling.{field}",
        )
    biases = "self.trainer.sampling.logitBias"
    yield Rule(
        f"{harmless} || !has({biases}) || size({biases}) == 0",
        "spec.trainer.sampling.logitBias: a bias with engine=vllm and importance sampling "
        "correction by the sequence ruins the loss. Leave logitBias out, or set "
        f"trainer.grpo.{correction} to false.",
        ".trainer.sampling.logitBias",
    )


def thinking() -> Rule:
    """A policy that thinks needs room for it."""
    tokens, least = "self.trainer.sampling.maxCompletionTokens", rules.LEAST_THINKING_TOKENS
    return Rule(
        f"!self.prompts.thinking || {tokens} >= {least}",
        f"spec.trainer.sampling.maxCompletionTokens={{{tokens}}}: leaves no room for a sketch "
        f"after prompts.thinking=true. Set it to {least} or more, or set prompts.thinking to "
        "false.",
        ".trainer.sampling.maxCompletionTokens",
    )


def trainer() -> Iterator[Rule]:
    """Rollouts come in whole groups, and what belongs together is set together."""
    rollouts, group = "self.rolloutsPerStep", "self.groupSize"
    fit = f"{rollouts} < {group} ? {group} : {rollouts} / {group} * {group}"
    yield Rule(
        f"{rollouts} % {group} == 0",
        f"spec.trainer.rolloutsPerStep={{{rollouts}}}: not a multiple of groupSize={{{group}}}. "
        f"Set rolloutsPerStep to {{{fit}}}.",
        ".rolloutsPerStep",
    )
    yield Rule(
        f"{rollouts} % (self.replicas * self.processes) == 0",
        f"spec.trainer.rolloutsPerStep={{{rollouts}}}: not a multiple of replicas={{self.replicas}}"
        " times processes={self.processes}. Let each process have the same number of rollouts.",
        ".rolloutsPerStep",
    )


def engine() -> Iterator[Rule]:
    """What the engine in :mod:`watercolour.api.engines` cannot do."""
    yield Rule(
        "self.engine != 'vllm' || has(self.vllm)",
        "spec.trainer.vllm: engine=vllm needs a server. "
        "Name its base URL in trainer.vllm.endpoint.",
        ".vllm",
    )
    yield Rule(
        "self.engine == 'vllm' || !has(self.vllm)",
        "spec.trainer.vllm.endpoint={self.vllm.endpoint}: engine is {self.engine}, which asks no "
        "server. Set engine to vllm, or leave trainer.vllm out.",
        ".vllm",
    )
    experts = "'experts' in self.lora.targets"
    yield Rule(
        f"self.engine != 'static' || !({experts})",
        "spec.trainer.engine=static: lora.targets names experts, which this engine shares with the "
        "training unmerged. Set it to auto or transformers, or leave experts out.",
        ".engine",
    )
    yield Rule(
        f"self.lora.dropout <= 0.0 || !({experts})",
        "spec.trainer.lora.dropout={self.lora.dropout}: lora.targets names experts, whose adapter "
        "has no dropout. Set dropout to 0.",
        ".lora",
    )


def parted() -> Iterator[Rule]:
    """What cannot be where the base model is parted among the processes."""
    yield Rule(
        "!self.fsdp || self.engine == 'vllm'",
        "spec.trainer.engine={self.engine}: fsdp leaves no process the whole base model, from "
        "which it would generate. Set engine to vllm and name its server in trainer.vllm, or set "
        "fsdp to false.",
        ".engine",
    )
    yield Rule(
        "!self.fsdp || self.processes * self.replicas > 1",
        "spec.trainer.fsdp=true: a single process has nobody to part the base model with. "
        "Set processes to 2 or more, or fsdp to false.",
        ".fsdp",
    )
    yield Rule(
        "!self.fsdp || !('experts' in self.lora.targets)",
        "spec.trainer.fsdp=true: lora.targets names experts, whose adapter is added to whole "
        "tensors. Leave experts out, or set fsdp to false.",
        ".fsdp",
    )


def cold_start() -> Rule:
    """A base in parts has no cold start."""
    return Rule(
        "!self.trainer.fsdp || !has(self.sft)",
        "spec.trainer.fsdp=true: the cold start of spec.sft generates by the whole base model. "
        "Leave sft out and name an adapter in spec.model.adapter, or set fsdp to false.",
        ".trainer.fsdp",
    )


def owned() -> Iterator[Rule]:
    """Fields of TRL's that the specification sets itself."""
    for name, owner in rules.OWNED_BY_SPEC.items():
        yield Rule(
            f"!has(self.{name})",
            f"spec.trainer.grpo.{name}: set by {owner}. Set {owner} instead.",
        )
