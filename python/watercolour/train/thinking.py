"""A policy that thinks aloud although it is not to: it leaves no token for the sketch."""

from __future__ import annotations

import re
from collections.abc import Iterable

from watercolour.api.errors import InputError
from watercolour.api.reasons import Reason
from watercolour.train.metrics import share

_OPEN = re.compile(r"<(think|thinking|reasoning)>(?!.*</\1>)", re.DOTALL)
_BEGINS = re.compile(r"\s*<(think|thinking|reasoning)>")
#: The share of probes that think from which on a run is refused.
MOST = 0.5


def require_shut(prompt: str) -> None:
    """Refuse a prompt in which the chat template has begun a thought.

    Raises:
        InputError: it ends inside one (InvalidSpec).
    """
    if _OPEN.search(prompt):
        raise _refused("the chat template begins a thought all the same")


def share_of(completions: Iterable[str]) -> float | None:
    """The share of completions that begin with a thought, or None if there are none."""
    return share(bool(_BEGINS.match(text)) for text in completions)


def require_rare(found: float | None, probes: int) -> None:
    """Refuse a policy whose probes think.

    Raises:
        InputError: at least MOST of them do (InvalidSpec).
    """
    if found is not None and found >= MOST:
        raise _refused(f"{found:.0%} of {probes} probes begin with a thought all the same")


def _refused(fault: str) -> InputError:
    return InputError(
        Reason.INVALID_SPEC,
        f"spec.prompts.thinking=false: {fault}.",
        remedy="Name in spec.model.chatTemplateKwargs what switches it off in this model's "
        "template, or set spec.prompts.thinking to true and maxCompletionTokens higher.",
        field="spec.prompts.thinking",
        value=False,
    )
