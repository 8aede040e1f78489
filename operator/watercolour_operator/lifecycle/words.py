"""A pod's own words: the trainer's summary, or the end of its log, without secrets. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from pydantic import ValidationError

from watercolour.api.reasons import Reason, known
from watercolour.api.status import BestRollout

#: Characters of a pod's words that the status keeps.
LONGEST = 1500

#: What looks like a secret is not repeated, whoever said it: pattern, and what stands instead.
_SECRETS = (
    (re.compile(r"\b(?:hf|sk|ghp|gho|glpat|xoxb|AKIA)[-_]?[A-Za-z0-9_\-]{12,}"), "***"),
    (re.compile(r"(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=\-]{6,}"), r"\1 ***"),
    (
        re.compile(
            r"(?i)([\w-]*(?:token|secret|password|passwd|api[_-]?key|authorization)[\w-]*"
            r"[\"']?\s*[=:]\s*[\"']?)[^\s\"',;}]{4,}"
        ),
        r"\1***",
    ),
    (re.compile(r"(?i)(https?://)[^\s/@]+@"), r"\1***@"),
)


@dataclass(frozen=True, slots=True)
class Words:
    """What the trainer said at its end. None is what it did not say."""

    reason: Reason | None = None
    #: For a person; the end of its log when it wrote no summary.
    text: str = ""
    #: Steps done, and steps wanted.
    step: int | None = None
    steps: int | None = None
    last_checkpoint_step: int | None = None
    reward_first: float | None = None
    reward_last: float | None = None
    best: BestRollout | None = None


def redacted(text: str) -> str:
    """The text with everything that looks like a secret taken out."""
    for pattern, instead in _SECRETS:
        text = pattern.sub(instead, text)
    return text


def tail(text: str) -> str:
    """The end of a pod's words, fit for the status."""
    clean = redacted(text).strip()
    return clean if len(clean) <= LONGEST else "…" + clean[1 - LONGEST :]


def last_line(text: str) -> str:
    """The last line that says something, without secrets: for a sentence in a condition."""
    lines = [line.strip() for line in redacted(text).splitlines() if line.strip()]
    return lines[-1][:300] if lines else ""


def of(message: str) -> Words:
    """Read a termination message: the trainer's JSON summary, or else plain words.

    The summary has the names of summary.json or of /progress: ``reason``, ``message``, ``step``,
    ``steps``, ``lastCheckpointStep``, ``reward_first_fifth``, ``reward_last_fifth``,
    ``best_rollout``. Names in snake_case and camelCase are the same.
    """
    said = _summary(message)
    if said is None:
        return Words(text=tail(message))
    return Words(
        reason=known(said.get("reason")),
        text=tail(str(said.get("message") or "")),
        step=_count(said.get("step")),
        steps=_count(said.get("steps")),
        last_checkpoint_step=_count(said.get("lastcheckpointstep")),
        reward_first=_number(said.get("rewardfirstfifth")),
        reward_last=_number(said.get("rewardlastfifth")),
        best=best(said.get("bestrollout") or said.get("best")),
    )


def best(said: Any) -> BestRollout | None:
    """The best rollout in the trainer's words; None when it is not there or not whole."""
    try:
        return BestRollout.model_validate(said) if said else None
    except ValidationError:
        return None


def _summary(message: str) -> dict[str, Any] | None:
    """The last JSON object that is a line, or all, of the message."""
    for text in (message, *reversed(message.splitlines())):
        if not text.lstrip().startswith("{"):
            continue
        try:
            found = json.loads(text)
        except ValueError:
            continue
        if isinstance(found, Mapping):
            fields = cast("Mapping[str, Any]", found)
            return {name.replace("_", "").lower(): value for name, value in fields.items()}
    return None


def _count(said: Any) -> int | None:
    return said if isinstance(said, int) and not isinstance(said, bool) and said >= 0 else None


def _number(said: Any) -> float | None:
    return float(said) if isinstance(said, int | float) and not isinstance(said, bool) else None
