"""Which weights of a model the adapter sits on; a word that names none of them is refused."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from torch import nn

from watercolour.api.engines import EXPERTS
from watercolour.api.errors import InputError
from watercolour.api.reasons import Reason

ALL_LINEAR = "all-linear"
#: Never adapted: a vision tower sees nothing here, and TRL reads the head's weight directly.
EXCLUDED = r".*(visual|vision|lm_head).*"
#: Routed experts in one tensor, as transformers keeps them.
_EXPERTS = re.compile(r"(?:.*\.)?((?:\w+\.)?experts\.\w+)")
_NEAREST = 3


@dataclass(frozen=True)
class Targets:
    """PEFT's own words for it."""

    modules: str | list[str] | None
    parameters: list[str] | None
    excluded: str | None


def find(model: nn.Module, words: Sequence[str]) -> Targets:
    """The weights that the words of ``spec.trainer.lora.targets`` mean.

    Raises:
        InputError: a word means none; the message names the nearest that do (InvalidSpec).
    """
    names = [name for name, module in model.named_modules() if isinstance(module, nn.Linear)]
    linear = [name for name in names if not re.fullmatch(EXCLUDED, name)]
    for word in words:
        if word not in (ALL_LINEAR, EXPERTS) and not any(map(_meant_by(word), linear)):
            raise _unknown(word, sorted({name.rpartition(".")[2] for name in linear}))
    modules = [word for word in words if word not in (ALL_LINEAR, EXPERTS)]
    anywhere = any(re.fullmatch(EXCLUDED, name) for name, _ in model.named_modules())
    return Targets(
        modules=ALL_LINEAR if ALL_LINEAR in words else modules or None,
        parameters=_experts(model) if EXPERTS in words else None,
        excluded=EXCLUDED if anywhere else None,
    )


def _meant_by(word: str) -> Any:
    return lambda name: name == word or name.endswith(f".{word}")


def _experts(model: nn.Module) -> list[str]:
    """The routed experts' tensors, by the end of their names."""
    stacked = [name for name, weight in model.named_parameters() if weight.dim() == 3]
    found = {match[1] for name in stacked if (match := _EXPERTS.fullmatch(name))}
    if not found:
        raise _refused(EXPERTS, "the model has no routed experts", "Leave experts out.")
    return sorted(found)


def _unknown(word: str, known: Sequence[str]) -> InputError:
    near = difflib.get_close_matches(word, known, n=_NEAREST, cutoff=0.5) or known
    meant = f"{', '.join(near[:-1])} or {near[-1]}" if len(near) > 1 else near[0]
    return _refused(word, "no linear layer has that name", f"Use {meant}, or {ALL_LINEAR}.")


def _refused(word: str, fault: str, remedy: str) -> InputError:
    field = "spec.trainer.lora.targets"
    return InputError(
        Reason.INVALID_SPEC, f"{field}={word}: {fault}.", remedy=remedy, field=field, value=word
    )
