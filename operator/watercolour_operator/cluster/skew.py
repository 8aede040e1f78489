"""A definition that is older than the operator: which fields of a status it does not declare. Pure.

The API server refuses a server-side apply whole when one field is unknown to it, as 500 and in the
words that are read here; other kinds of writes would drop the field in silence.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from watercolour.api.reasons import Reason
from watercolour_operator import names
from watercolour_operator.cluster.errors import ApiError
from watercolour_operator.observed import Trouble

_UNDECLARED = re.compile(r"\.(status[^\s:]*): field not declared in schema")
_SELECTOR = re.compile(r"\[[^\]]*\]")


def undeclared(error: ApiError) -> tuple[str, ...]:
    """The fields that the definition lacks, such as ``status.attempts.resumed``; or none."""
    return tuple(_SELECTOR.sub("", path) for path in _UNDECLARED.findall(error.words))


def without(status: Any, fields: Iterable[str]) -> Any:
    """A status without those fields, in every item where lists are on the way."""
    for path in fields:
        status = _dropped(status, path.split(".")[1:])
    return status


def _dropped(value: Any, keys: list[str]) -> Any:
    if isinstance(value, list):
        return [_dropped(item, keys) for item in value]  # pyright: ignore[reportUnknownVariableType]
    if not isinstance(value, dict) or not keys:
        return value  # pyright: ignore[reportUnknownVariableType]
    first, *rest = keys
    kept: dict[str, Any] = {key: item for key, item in value.items() if rest or key != first}
    if rest and first in kept:
        kept[first] = _dropped(kept[first], rest)
    return kept


def trouble(fields: Iterable[str]) -> Trouble | None:
    """What is said to a person; None when the definition lacks nothing."""
    listed = ", ".join(fields)
    if not listed:
        return None
    words = f"The definition of {names.KIND} lacks {listed}: it is older than the operator, and "
    words += "what it lacks is not kept. Upgrade the definition."
    return Trouble(Reason.VERSION_SKEW, words, transient=True)
