"""What pods answer, read without trust: of the agreed shape, or no answer. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from watercolour.api.reasons import Reason
from watercolour.api.status import Progress
from watercolour_operator.observed import Demand, Load

#: Largest number of renders that is believed.
MOST_RENDERS = 1_000_000

#: Longest wait that is believed, in seconds.
MOST_SECONDS = 1e6

#: What /progress says beyond status.progress and other parts of the status show.
BESIDES = ("lastCheckpointStep", "bestRollout")

REASONS = {reason.value: reason for reason in Reason}

Said = Mapping[str, Any]


def read(body: bytes) -> Said | None:
    """The JSON object in an answer; None when it is none. NaN and infinities count as unknown."""
    try:
        found = json.loads(body, parse_constant=lambda _: None)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def progress(said: Said | None) -> Progress | None:
    """The fields of status.progress and ``BESIDES``, no others; None when one of them is wrong."""
    if said is None:
        return None
    known = (*(info.alias or name for name, info in Progress.model_fields.items()), *BESIDES)
    try:
        return Progress.model_validate({key: said[key] for key in known if key in said})
    except ValidationError:
        return None


def demand(said: Said | None) -> Demand | None:
    """The environment's queue."""
    if said is None:
        return None
    queued, inflight, announced = (
        _count(said.get(key)) for key in ("queued", "inflight", "announced")
    )
    if queued is None or inflight is None or announced is None:
        return None
    scorer = said.get("scorer")
    scoring = _count(scorer.get("waiting")) if isinstance(scorer, dict) else None
    due = _seconds(said.get("due_seconds"))
    return Demand(queued, inflight, announced, due_seconds=due or 0.0, scoring=scoring or 0)


def load(said: Said | None) -> Load | None:
    """A renderer's load."""
    if said is None:
        return None
    slots, busy, draining = (
        _count(said.get("slots")),
        _count(said.get("busy")),
        said.get("draining"),
    )
    if slots is None or busy is None or not isinstance(draining, bool):
        return None
    refuses = said.get("refuses")
    return Load(slots, busy, draining, REASONS.get(refuses) if isinstance(refuses, str) else None)


def _seconds(value: Any) -> float | None:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if number and 0 <= value <= MOST_SECONDS else None


def _count(value: Any) -> int | None:
    right = isinstance(value, int) and not isinstance(value, bool) and value >= 0
    return min(value, MOST_RENDERS) if right else None
