"""From the specification to TRL's GRPOConfig, with the pass-through checked field by field."""

from __future__ import annotations

import dataclasses
import difflib
from pathlib import Path
from typing import Any, get_type_hints

from pydantic import PydanticSchemaGenerationError, TypeAdapter, ValidationError
from trl.trainer.grpo_config import GRPOConfig

from watercolour.api.errors import InputError
from watercolour.api.policy import BUILTIN
from watercolour.api.reasons import Reason
from watercolour.api.rules import OWNED_BY_SPEC
from watercolour.api.spec import Kl, RunSpec
from watercolour.api.trainer import decoding
from watercolour.reward import recipes
from watercolour.train import packing
from watercolour.train.batches import Batches
from watercolour.train.correction import Correction


def config(spec: RunSpec, batches: Batches, out: Path, *, on_cpu: bool) -> GRPOConfig:
    """TRL's configuration of a run.

    Raises:
        InputError: ``spec.trainer.grpo`` names an unknown field, one that the specification sets
            itself, or a value of the wrong kind (InvalidSpec).
    """
    trainer = spec.trainer
    drawn = decoding(trainer.sampling, builtin=is_builtin(spec))
    check(trainer.grpo)
    settings: dict[str, Any] = {
        # A policy on the CPU computes in its own type and has memory for its activations.
        "bf16": not on_cpu,
        "use_cpu": on_cpu,
        "gradient_checkpointing": not on_cpu,
        # The router is frozen under LoRA; its balancing loss would only add noise.
        "router_aux_loss_coef": 0.0,
        **{name: value for name, value in trainer.grpo.items() if name not in _SPLIT},
        "output_dir": str(out / "checkpoints"),
        "learning_rate": learning_rate(spec),
        "lr_scheduler_type": trainer.lr_scheduler,
        "warmup_steps": trainer.warmup_steps,
        "scale_rewards": trainer.scale_rewards,
        "beta": beta(spec),
        "max_steps": trainer.steps,
        "num_generations": batches.group_size,
        "num_iterations": batches.reuse,
        "per_device_train_batch_size": batches.per_device,
        "gradient_accumulation_steps": batches.accumulation,
        "max_completion_length": drawn.max_completion_tokens,
        "temperature": drawn.temperature,
        "top_p": drawn.top_p,
        "top_k": drawn.top_k,
        "seed": spec.seed % 2**31,
        "shuffle_dataset": False,
        "logging_steps": 1,
        "logging_nan_inf_filter": False,
        # transformers refuses to write the optimizer of a model that was parted as it was loaded.
        # Here it has the adapter's state alone, which is whole, and a step's end asks for it.
        "save_strategy": "no" if trainer.fsdp else "steps",
        "save_steps": trainer.checkpoint_every,
        "save_total_limit": None,
        "report_to": "none",
        "disable_tqdm": True,
        "dataloader_pin_memory": False,
    }
    try:
        return GRPOConfig(**settings)
    except (ValueError, TypeError) as error:
        raise InputError(
            Reason.INVALID_SPEC,
            f"spec.trainer: TRL refuses the settings ({error}).",
            remedy="Change the field that it names.",
            field="spec.trainer",
        ) from error


def learning_rate(spec: RunSpec) -> float:
    """The peak rate: what the specification says, else what suits the policy.

    5e-5 is the rate at which the published experiment's curve began to move (it was flat at
    2e-5). A policy of a million parameters needs twenty times that.
    """
    if spec.trainer.learning_rate is not None:
        return spec.trainer.learning_rate
    return 1e-3 if is_builtin(spec) else 5e-5


def kl(spec: RunSpec) -> Kl | None:
    """The KL term's weight by step, from the recipe; None where the specification sets one."""
    found = recipes.get(spec.recipe).kl
    is_nothing = found is None or max(found.start, found.end) == 0
    return None if is_nothing or spec.trainer.beta > 0 else found


def beta(spec: RunSpec) -> float:
    """The greatest weight that the KL term has in any step."""
    by_step = kl(spec)
    return spec.trainer.beta if by_step is None else max(by_step.start, by_step.end)


def correction(spec: RunSpec, config: GRPOConfig) -> Correction | None:
    """How the sampler's rounding is weighed out; None where it is only reported.

    On by default with vLLM, as TRL has it. The other engines compute as the training does, so they
    are corrected when asked to be.
    """
    name = "vllm_importance_sampling_correction"
    if not spec.trainer.grpo.get(name, spec.trainer.engine == "vllm"):
        return None
    return Correction(
        config.vllm_importance_sampling_mode,
        config.vllm_importance_sampling_clip_min,
        config.vllm_importance_sampling_clip_max,
    )


def is_builtin(spec: RunSpec) -> bool:
    """Whether the policy is one of the small ones that ship with the project."""
    return spec.model.id.startswith(BUILTIN)


#: Pass-through fields that :mod:`watercolour.train.batches` has already turned into a plan.
_SPLIT = ("per_device_train_batch_size", "num_iterations")


def check(grpo: dict[str, Any]) -> None:
    """Refuse what GRPOConfig does not have, what is not to be set here, and wrong kinds.

    Raises:
        InputError: as said (InvalidSpec).
    """
    fields = {field.name for field in dataclasses.fields(GRPOConfig) if field.init}
    hints: dict[str, Any] = get_type_hints(GRPOConfig)
    for name, value in grpo.items():
        place = f"spec.trainer.grpo.{name}"
        if name in OWNED_BY_SPEC:
            owner = OWNED_BY_SPEC[name]
            raise _refused(place, value, "the specification sets it", f"Set {owner} instead.")
        if name not in fields:
            near = difflib.get_close_matches(name, fields, n=1, cutoff=0.5)
            remedy = f"Did you mean {near[0]}?" if near else "See TRL's documentation of it."
            raise _refused(place, value, "GRPOConfig has no such field", remedy)
        fault = _wrong_kind(hints[name], value)
        if fault:
            raise _refused(place, value, fault, "Correct the value, or leave the field out.")


def packs(grpo: dict[str, Any]) -> bool:
    """Whether the loss can be split into packed micro-batches, by the pass-through fields."""
    fields = {field.name: field.default for field in dataclasses.fields(GRPOConfig)} | grpo
    additive = fields["loss_type"] in packing.ADDITIVE
    return additive and not fields["entropy_coef"] and not fields["use_adaptive_entropy"]


def _refused(place: str, value: Any, fault: str, remedy: str) -> InputError:
    return InputError(
        Reason.INVALID_SPEC, f"{place}={value!r}: {fault}.", remedy=remedy, field=place, value=value
    )


def _wrong_kind(hint: Any, value: Any) -> str:
    """What is wrong with a value of a field so annotated; empty if nothing is, or if unknown."""
    try:
        adapter = TypeAdapter[Any](hint)
    except PydanticSchemaGenerationError:
        return ""
    try:
        adapter.validate_python(value)
    except ValidationError as error:
        message = error.errors(include_url=False)[0]["msg"]
        return message[:1].lower() + message[1:].rstrip(".")
    return ""
