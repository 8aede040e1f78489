"""From texts to the tokens whose logits are moved before one is drawn."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from watercolour.api.errors import InputError
from watercolour.api.reasons import Reason

#: Tokens that a message names.
NAMED = 6


def of_tokens(tokenizer: Any, wanted: Mapping[str, float]) -> tuple[tuple[int, float], ...]:
    """The bias by token.

    Args:
        tokenizer: the policy's.
        wanted: ``spec.trainer.sampling.logitBias``: the bias by a token's text.

    Raises:
        InputError: the policy writes a text with none or with several tokens (InvalidSpec). Biasing
            the first of them would touch everything else that begins so.
    """
    found: list[tuple[int, float]] = []
    for text, bias in wanted.items():
        ids: list[int] = tokenizer(text, add_special_tokens=False)["input_ids"]
        if len(ids) != 1:
            parts = [repr(tokenizer.decode([one])) for one in ids[:NAMED]]
            raise InputError(
                Reason.INVALID_SPEC,
                f"spec.trainer.sampling.logitBias.{text}: the policy has no token of that text; "
                f"it writes {', '.join(parts) or 'nothing'}.",
                remedy="Name single tokens, such as those.",
                field=f"spec.trainer.sampling.logitBias.{text}",
                value=bias,
            )
        found.append((ids[0], bias))
    return tuple(found)
