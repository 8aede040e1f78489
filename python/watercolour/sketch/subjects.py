"""The subjects that ship with the project, with the colours that a person would expect."""

from __future__ import annotations

import dataclasses
from functools import cache
from importlib.resources import files
from typing import Any

import yaml


@dataclasses.dataclass(frozen=True, slots=True)
class Subject:
    """Something to paint.

    Attributes:
        name: as the prompt says it, article included.
        hue: where the petals' hue lies, in degrees of the HSV circle from the first value upwards
            to the second, through 0 when the second is smaller; None where petals are white.
        petals: pigments as ``#rrggbb``, from the palest wash to the deepest.
        heart: pigments of the flower's eye.
    """

    name: str
    hue: tuple[float, float] | None
    petals: tuple[str, ...]
    heart: tuple[str, ...]

    def has_hue(self, degrees: float) -> bool:
        """Tell whether a hue is one of the petals'; always False where petals are white."""
        if self.hue is None:
            return False
        start, end = self.hue
        return (degrees - start) % 360 <= (end - start) % 360


@cache
def subjects() -> dict[str, Subject]:
    """Return the shipped subjects by name, in the file's order."""
    text = files("watercolour.sketch").joinpath("data/subjects.yaml").read_text("utf-8")
    return {entry["name"]: _subject(entry) for entry in yaml.safe_load(text)}


def _subject(entry: dict[str, Any]) -> Subject:
    hue = entry["hue"]
    return Subject(
        entry["name"],
        (float(hue[0]), float(hue[1])) if hue else None,
        tuple(entry["petals"]),
        tuple(entry["heart"]),
    )
