"""A fault of a specification: the field, its value, what is wrong with it and what to do.

Every validation message of the project reads
``spec.trainer.rolloutsPerStep=10: not a multiple of groupSize=8. Set rolloutsPerStep to 8.``
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from pydantic_core import PydanticCustomError

#: The error type under which pydantic carries faults of ours.
RULE = "watercolour_rule"

#: User and password in an address.
_PASSWORD = re.compile(r"//[^/@\s]+@")

#: Longest value, in characters, that a message quotes whole.
LONGEST_VALUE = 60


class Problem(NamedTuple):
    """One fault."""

    field: str
    """Where, as a path in camelCase, relative to the part that reports it."""
    value: Any
    """What stands there; ``ABSENT`` when nothing does."""
    fault: str
    """What is wrong, without a final full stop."""
    remedy: str
    """What to do, as an imperative sentence."""

    def __str__(self) -> str:
        shown = "" if self.value is ABSENT else f"={quote(self.value)}"
        return f"{self.field}{shown}: {self.fault}. {self.remedy}".strip()


class _Absent:
    def __repr__(self) -> str:
        return "absent"


#: The value of a field that is not there.
ABSENT = _Absent()


def quote(value: Any) -> str:
    """A value as YAML would show it on one line, shortened when long, without passwords."""
    if isinstance(value, float):
        text = f"{value:g}"
    elif isinstance(value, str) and _is_plain(value):
        text = without_password(value)
    else:
        text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= LONGEST_VALUE else f"{text[: LONGEST_VALUE - 1]}…"


def without_password(text: str) -> str:
    """An address without its user and password."""
    return _PASSWORD.sub("//…@", text)


def _is_plain(text: str) -> bool:
    """Whether YAML reads the text as itself when it stands without quotes, roughly."""
    if not text.isprintable() or text != text.strip() or text in ("", "true", "false", "null"):
        return False
    try:
        float(text)
    except ValueError:
        return True
    return False


def refuse(problems: Iterable[Problem]) -> None:
    """Raise all problems as one validation error, or return when there are none.

    Raises:
        PydanticCustomError: which pydantic turns into its ValidationError; ``ctx["problems"]``
            holds the list.
    """
    found = list(problems)
    if found:
        text = " ".join(str(problem) for problem in found)
        raise PydanticCustomError(RULE, "{text}", {"text": text, "problems": found})


def sum_problem(shares: Mapping[str, float]) -> list[Problem]:
    """The fault of shares that do not sum to 1, within 1e-6, or nothing."""
    total = sum(shares.values())
    if abs(total - 1) <= 1e-6:
        return []
    names = ", ".join(f"{name}={share:g}" for name, share in shares.items())
    word = "Raise" if total < 1 else "Lower"
    return [
        Problem(
            "",
            ABSENT,
            f"{names} sum to {total:.4g}, not to 1",
            f"{word} one or more of them by {abs(1 - total):.4g} in all.",
        )
    ]
