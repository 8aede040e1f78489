"""The measured figures with which a run is planned, and how one reads between them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

FILE = Path(__file__).with_name("measured.yaml")

Count = Annotated[int, Field(ge=1)]
Speeds = Annotated[dict[Count, Annotated[float, Field(gt=0)]], Field(min_length=1)]


class _Row(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, extra="forbid", frozen=True)

    source: str
    """The command that prints the figures."""


class Training(_Row):
    """A model on a kind of hardware; what is None was not measured there."""

    model: str
    hardware: str
    engines: tuple[str, ...]
    targets: tuple[str, ...]
    memory_gi_b: float = Field(alias="memoryGiB")
    tokens_per_second: Speeds | None = None
    decode_source: str = ""
    update_seconds_per_thousand: float | None = None
    first_step_seconds: float | None = None
    step_seconds: float | None = None
    rollouts: int | None = None


class Painting(_Row):
    """What one painting costs."""

    sketch: str
    what: str
    cpu_seconds: float
    slot_mi_b: float = Field(alias="slotMiB")


class Scoring(_Row):
    """A scorer on a kind of hardware."""

    backend: str
    hardware: str
    pictures_per_second: Speeds
    memory_gi_b: float = Field(alias="memoryGiB")


class Table(BaseModel):
    """The whole table."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    training: tuple[Training, ...]
    painting: tuple[Painting, ...]
    scorer: tuple[Scoring, ...]


@cache
def table() -> Table:
    """The shipped table."""
    return Table.model_validate(yaml.safe_load(FILE.read_text(encoding="utf-8")))


def between(measured: Mapping[int, float], count: int) -> float | None:
    """The value at ``count``, read off the line between two measured ones; None outside them."""
    known = sorted(measured)
    if not known[0] <= count <= known[-1]:
        return None
    low = max(place for place in known if place <= count)
    high = min(place for place in known if place >= count)
    if low == high:
        return measured[low]
    share = (count - low) / (high - low)
    return measured[low] + share * (measured[high] - measured[low])


Found = TypeVar("Found", Training, Scoring)


def on(rows: Iterable[Found], hardware: str) -> Sequence[Found]:
    """The rows about a kind of hardware, whatever the case of its name."""
    return [row for row in rows if row.hardware.lower() == hardware.lower()]
