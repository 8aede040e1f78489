"""What a pool says of its own subject: a description beside the paintings, where it has one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from watercolour.reward import pool
from watercolour.sketch import figure
from watercolour.sketch.figure import Arc

#: The description's file in the pool's folder.
FILE = "subject.yaml"

#: Arcs of the HSV circle in degrees, by the subject's name.
Hues = Mapping[str, tuple[Arc, ...]]


def read(folder: Path) -> bytes | None:
    """The description's file as it stands, to go where the pool goes; None without one."""
    path = folder / FILE
    return path.read_bytes() if path.is_file() else None


def hues(source: str | Path) -> Hues:
    """What counts as the colours of the subject that a pool describes; empty if it describes none.

    Args:
        source: ``builtin:NAME`` or a folder.

    Raises:
        InputError: there is no such pool (InvalidPool), or its description breaks a rule
            (InvalidInput).
    """
    path = pool.locate(source) / FILE
    if not path.is_file():
        return {}
    described = figure.load(path)
    return {described.name: figure.hues(described)}
