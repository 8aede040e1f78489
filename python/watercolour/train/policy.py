"""Load the policy to be trained: builtin, from a folder or from the hub; nothing by accident."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from peft import LoraConfig, PeftModel, get_peft_model_state_dict
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn
from torch.distributed.tensor import DTensor
from transformers import AutoModelForCausalLM, AutoTokenizer
from transformers.distributed.configuration_utils import DistributedConfig

from watercolour.api.errors import InputError
from watercolour.api.policy import BUILTIN
from watercolour.api.reasons import Reason
from watercolour.api.spec import Lora, Model
from watercolour.train import gpu_memory, targets

POLICIES = Path(__file__).parent / "policies"
ADAPTER_FILE = "adapter_model.safetensors"
#: What PEFT calls the adapter that is trained, and TRL the one that the KL term is measured
#: against; without the latter that is the base model.
TRAINED, REFERENCE = "default", "ref"
#: Parameters up to which one forward pass may hold all rollouts of a step.
SMALL_PARAMETERS = 20_000_000


@dataclass(frozen=True)
class Policy:
    """A policy ready for training."""

    model: Any
    """A transformers causal model, or a PEFT model when it starts from an adapter."""
    tokenizer: Any
    """Its tokenizer, with a chat template and a padding token."""
    ends: frozenset[int]
    """Tokens that end a completion."""
    lora: LoraConfig | None
    """The adapter to add; None when the model brings its own."""

    @property
    def small(self) -> bool:
        """Whether one forward pass may hold all rollouts of a step."""
        return sum(weight.numel() for weight in self.model.parameters()) <= SMALL_PARAMETERS


def load(spec: Model, lora: Lora, parts: int = 1) -> Policy:
    """Load model, tokenizer and, if the specification names one, the adapter to start from.

    Args:
        spec: where from.
        lora: the adapter to add where none is named.
        parts: processes of the training that hold the base model together, each reading its own
            part of every tensor; with 1 each that loads holds all. The adapter is whole in each.

    Raises:
        InputError: one of them cannot be loaded whole (InvalidModel), or the adapter's targets are
            not in the model (InvalidSpec).
        InfrastructureError: the GPU is too small for it (GpuOutOfMemory).
    """
    source = _source(spec)
    with gpu_memory.full_named(
        lambda: (
            "loading the policy",
            "Name a smaller spec.model, use a larger GPU, or part the model among more processes "
            "by spec.trainer.fsdp.",
        )
    ):
        model = _model(spec, source, parts)
        if torch.cuda.is_available() and parts == 1:
            model = model.to("cuda")
    tokenizer = _tokenizer(spec, source)
    ends = _ends(model, tokenizer)
    if spec.adapter is not None:
        return Policy(adapted(model, spec.adapter), tokenizer, ends, None)
    return Policy(model, tokenizer, ends, lora_of(model, lora))


def _source(spec: Model) -> str:
    if not spec.id.startswith(BUILTIN):
        return spec.id
    folder = POLICIES / spec.id.removeprefix(BUILTIN)
    known = sorted(path.name for path in POLICIES.iterdir() if path.is_dir())
    if folder.name not in known:
        raise _invalid(
            "spec.model.id",
            spec.id,
            "no such builtin policy",
            f"Use {' or '.join(BUILTIN + name for name in known)}.",
        )
    return str(folder)


def _model(spec: Model, source: str, parts: int) -> Any:
    try:
        # A name alone would load as float32 where TRL does it; `auto` is the checkpoint's type.
        loaded: Any = AutoModelForCausalLM.from_pretrained(
            source,
            revision=spec.revision,
            dtype=spec.dtype if spec.dtype == "auto" else getattr(torch, spec.dtype),
            use_safetensors=True,
            output_loading_info=True,
            distributed_config=DistributedConfig(fsdp_size=parts) if parts > 1 else None,
        )
    except torch.OutOfMemoryError:
        raise
    except (OSError, ValueError, KeyError, RuntimeError, SafetensorError) as error:
        raise _invalid(
            "spec.model.id", spec.id, _first_line(error), "Name a causal model in safetensors."
        ) from error
    model, report = loaded
    lost = sorted(report["missing_keys"]) + [str(key) for key in report["mismatched_keys"]]
    if lost:
        raise _invalid(
            "spec.model.id",
            spec.id,
            f"{len(lost)} weights are not in the checkpoint, such as {lost[0]}",
            "Name a whole checkpoint of a causal model.",
        )
    return model


def _tokenizer(spec: Model, source: str) -> Any:
    name = spec.tokenizer or source
    try:
        tokenizer: Any = AutoTokenizer.from_pretrained(
            name, revision=None if spec.tokenizer else spec.revision, padding_side="left"
        )
    except (OSError, ValueError, KeyError) as error:
        raise _invalid(
            "spec.model.tokenizer", name, _first_line(error), "Name a tokenizer that loads."
        ) from error
    if tokenizer.chat_template is None:
        raise _invalid(
            "spec.model.tokenizer",
            name,
            "it has no chat template",
            "Use an instruction-tuned model, or name its tokenizer.",
        )
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    return tokenizer


def _ends(model: Any, tokenizer: Any) -> frozenset[int]:
    declared: int | list[int] | None = model.generation_config.eos_token_id
    more = declared if isinstance(declared, list) else [declared]
    return frozenset(end for end in [tokenizer.eos_token_id, *more] if isinstance(end, int))


def lora_of(model: Any, lora: Lora) -> LoraConfig:
    """The adapter to add to a model."""
    meant = targets.find(model, lora.targets)
    return LoraConfig(
        r=lora.r,
        lora_alpha=lora.alpha,
        lora_dropout=lora.dropout,
        target_modules=meant.modules,
        target_parameters=meant.parameters,
        exclude_modules=meant.excluded,
        bias="none",
        task_type="CAUSAL_LM",
    )


def adapted(model: Any, adapter: str) -> PeftModel:
    """The model with a trainable adapter, all of whose stored tensors were taken up."""
    try:
        adapted = PeftModel.from_pretrained(model, adapter, is_trainable=True)
    except (OSError, ValueError, KeyError, RuntimeError, SafetensorError) as error:
        raise _invalid(
            "spec.model.adapter", adapter, _first_line(error), "Name a LoRA adapter of this model."
        ) from error
    file = Path(adapter) / ADAPTER_FILE
    if file.exists():
        require_whole(adapted, file)
    return adapted


@torch.no_grad()
def keep_reference(model: Any) -> None:
    """Have the KL term measured against the adapter as it is now, in a frozen copy of it."""
    if REFERENCE not in model.peft_config:
        model.add_adapter(REFERENCE, model.peft_config[TRAINED])
    weights = dict(model.named_parameters())
    for name, weight in weights.items():
        if f".{TRAINED}." in name:
            weights[name.replace(f".{TRAINED}.", f".{REFERENCE}.")].copy_(weight)


def adapter_of(model: nn.Module) -> dict[str, Tensor] | None:
    """The adapter's weights for PEFT to write, where the base model is parted among processes.

    Left to itself PEFT would gather the whole base from them all first, and wait for ever where
    one process writes alone. None where it may look for the adapter itself.
    """
    if not any(isinstance(weight, DTensor) for weight in model.parameters()):
        return None
    return {name: one.detach() for name, one in model.named_parameters() if one.requires_grad}


def require_whole(model: Any, file: Path) -> None:
    """Compare an adapter file with the adapter in a model, tensor by tensor.

    A load through another model class was seen to drop 700 of 920 tensors without a word.

    Raises:
        InputError: a name is missing on either side (InvalidModel).
    """
    with safe_open(str(file), framework="pt") as stored:
        there = set(stored.keys())
    here = set(get_peft_model_state_dict(model, adapter_of(model)))
    lost = sorted(there ^ here)
    if lost:
        raise _invalid(
            "spec.model.adapter",
            str(file.parent),
            f"{len(lost)} of {len(there | here)} tensors have no counterpart, such as {lost[0]}",
            "Load it into the model class that it was trained with.",
        )


def _first_line(error: Exception) -> str:
    text = str(error).strip() or type(error).__name__
    return text.splitlines()[0].rstrip(".")[:300]


def _invalid(field: str, value: str, fault: str, remedy: str) -> InputError:
    return InputError(
        Reason.INVALID_MODEL, f"{field}={value}: {fault}.", remedy=remedy, field=field, value=value
    )
