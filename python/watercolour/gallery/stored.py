"""Stored rollouts, whoever stored them: a run of ours, or a table in the published columns.

The published tables (``watercolour-rollouts-*``) have one row a rollout with ``step``,
``position_in_group``, ``reward``, ``code``, ``code_chars``, ``judge_weight`` and ``hpsv3_weight``.
They keep the reward and not its terms. Where the judge had no weight the quality follows from the
reward, the one term that is left; otherwise quality and judge stay unknown, and only the recipe of
the run itself has a reward for such a row. Terms in columns of their own are taken as they are.

A rollout may also stand in JSON: a file of one, of a list, or one a line. A table in a run's folder
takes the recipe and the paintings from the run.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import ValidationError

from watercolour.api.errors import InputError
from watercolour.api.reasons import Reason
from watercolour.api.rollout import Rollout
from watercolour.gallery import record
from watercolour.gallery.record import RunRecord
from watercolour.reward import terms

#: The published weights that no column tells.
GATE_WEIGHT, LENGTH_WEIGHT = 0.05, 0.05
#: How far a reward that was written with few decimals may lie outside what its terms allow.
ROUNDING = 0.01
#: Columns that tell a term, by term.
TOLD = {
    "length": ("length", "length_score"),
    "quality": ("quality", "quality_score"),
    "judge": ("judge", "judge_score"),
    "pigment": ("pigment",),
}
#: The record's fields that are maps; a table that is written out as JSON has them as pairs.
MAPS = ("terms", "weights", "marks", "timings", "versions")

#: The column of pictures in a table, and the key under which a row says where its own one is.
IMAGE, PLACE = "image", " place of its picture"


@dataclass(frozen=True)
class Stored:
    """Rollouts with where they are from.

    Attributes:
        name: of the run, or of the file.
        rollouts: in order of step.
        recipe: fields of ``spec.recipe`` with which they were rewarded; empty if nobody says.
        kept: rewards that no recipe can make again from the terms, for want of these, by place.
        paintings: files of the paintings that are there, by place.
        images: paintings that a table holds itself, by place: its file and the row in it.
        spec: ``spec`` of the run's ``run.yaml``; None without a run.
    """

    name: str
    rollouts: tuple[Rollout, ...]
    recipe: Mapping[str, Any]
    kept: Mapping[int, float]
    paintings: Mapping[int, Path]
    images: Mapping[int, tuple[Path, int]] = field(default_factory=dict[int, tuple[Path, int]])
    spec: Mapping[str, Any] | None = None

    def painting(self, place: int) -> bytes | None:
        """The picture of a rollout's painting; None where it is not stored.

        Raises:
            InputError: the table that holds it cannot be read any more (InvalidInput).
        """
        path = self.paintings.get(place)
        if path is not None and path.is_file():
            return path.read_bytes()
        return _image(*self.images[place]) if place in self.images else None


def read(path: Path) -> Stored:
    """Rollouts of a run's folder, or of a parquet, JSON or JSON-lines file.

    Raises:
        InputError: there is nothing at that path, or nothing that can be read as rollouts.
    """
    if path.is_dir() and not (path / "rollouts").is_dir():
        files = sorted(file for file in path.iterdir() if file.suffix in (".parquet", ".jsonl"))
        if not files:
            raise _unreadable(path, "it holds neither a run nor a table")
        return _table(path, [row for file in files for row in _rows(file)])
    if path.is_dir():
        return of_run(record.read(path))
    if not path.exists():
        raise _unreadable(path, "there is no such file or folder")
    return _table(path, list(_rows(path)))


def of_run(found: RunRecord) -> Stored:
    """The rollouts of a run that was read."""
    files = {
        place: found.folder / entry.painting
        for place, entry in enumerate(found.entries)
        if entry.painting
    }
    rollouts = tuple(entry.rollout for entry in found.entries)
    recipe, spec = record.recipe_of(found.spec), found.spec.get("spec") or {}
    return Stored(found.name, rollouts, recipe, {}, files, spec=spec)


def _rows(path: Path) -> Iterator[Mapping[str, Any]]:
    try:
        if path.suffix in (".json", ".jsonl"):
            yield from _json_rows(path)
            return
        # Pictures are most of a table; whoever wants one reads it then.
        every = pq.read_schema(path).names
        names = [name for name in every if name != IMAGE]
        rows = pq.read_table(path, columns=names).to_pylist(maps_as_pydicts="strict")
        for number, row in enumerate(rows):
            yield row | {PLACE: (path, number)} if IMAGE in every else row
    # Nesting of a hundred thousand brackets ends in a RecursionError.
    except (OSError, ValueError, pa.ArrowException, RecursionError) as error:
        raise _unreadable(path, str(error).splitlines()[0]) from error


def _image(path: Path, row: int) -> bytes | None:
    """The picture in a row of a table; None where the row has none.

    Raises:
        InputError: the table cannot be read (InvalidInput).
    """
    try:
        held = pq.ParquetFile(path).metadata
        for group in range(held.num_row_groups):
            rows = held.row_group(group).num_rows
            if row < rows:
                return _images(path, group)[row]
            row -= rows
    except (OSError, ValueError, pa.ArrowException) as error:
        raise _unreadable(path, str(error).splitlines()[0]) from error
    return None


@lru_cache(1)
def _images(path: Path, group: int) -> list[bytes | None]:
    """The pictures of a part of a table: bytes, or a data set's pair of bytes and path."""
    cells = pq.ParquetFile(path).read_row_group(group, columns=[IMAGE]).column(IMAGE).to_pylist()
    return [cell.get("bytes") if isinstance(cell, dict) else cell for cell in cells]


def _json_rows(path: Path) -> Iterator[Mapping[str, Any]]:
    """The objects of a JSON file, of its list, or of its lines.

    Raises:
        ValueError: it is not JSON, or holds something else.
    """
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines() if path.suffix == ".jsonl" else [text]
    whole = [json.loads(line) for line in lines if line.strip()]
    if path.suffix == ".json" and whole and isinstance(whole[0], list):
        whole = whole[0]
    for row in whole:
        if not isinstance(row, dict):
            raise ValueError(f"it holds a JSON {type(row).__name__}, must hold objects")
        yield row


def _table(path: Path, rows: list[Mapping[str, Any]]) -> Stored:
    if not rows:
        raise _unreadable(path, "it has no rows")
    ours = "gate_passed" in rows[0] and "terms" in rows[0]
    try:
        rollouts = [(_own if ours else published)(row) for row in rows]
    except (ValidationError, KeyError, TypeError, ValueError) as error:
        raise _unreadable(
            path, f"its columns are neither ours nor the published ones ({error!r:.200})"
        ) from error
    ordered = _ordered(rollouts)
    run = next((at for at in path.absolute().parents if (at / "run.yaml").is_file()), None)
    folder = run if ours and run else path if path.is_dir() else path.parent
    column = "painting_file" if ours else "file_name"
    places = {(one.step, one.group, one.index): place for place, one in enumerate(ordered)}
    files = {
        places[rollout.step, rollout.group, rollout.index]: folder / str(row[column])
        for row, rollout in zip(rows, rollouts, strict=True)
        if row.get(column)
    }
    images: dict[int, tuple[Path, int]] = {
        places[rollout.step, rollout.group, rollout.index]: row[PLACE]
        for row, rollout in zip(rows, rollouts, strict=True)
        if row.get(PLACE)
    }
    if ours:
        whole = record.spec_of(run) if run else {}
        recipe, spec = record.recipe_of(whole), (whole.get("spec") or {}) if whole else None
        return Stored(path.stem, ordered, recipe, {}, files, images, spec)
    kept = {
        place: rollout.reward for place, rollout in enumerate(ordered) if rollout.reward is not None
    }
    return Stored(path.stem, ordered, _weights(rows), kept, files, images)


def _own(row: Mapping[str, Any]) -> Rollout:
    """The record of a row in our own columns; a column that it does not know is passed over.

    Raises:
        TypeError, ValueError, ValidationError: a column is of another kind.
    """
    values = {name: value for name, value in row.items() if name in Rollout.model_fields}
    for name in MAPS:
        if isinstance(values.get(name), list):
            values[name] = dict(values[name])
    if isinstance(values.get("painting"), str):
        # As the environment sends it.
        values["painting"] = base64.b64decode(values["painting"], validate=True)
    return Rollout.model_validate(values)


def _ordered(rollouts: list[Rollout]) -> tuple[Rollout, ...]:
    return tuple(sorted(rollouts, key=lambda one: (one.step, one.group, one.index)))


def published(row: Mapping[str, Any]) -> Rollout:
    """The record of a row in the published columns.

    Raises:
        KeyError, TypeError, ValueError, ValidationError: a column is missing or of another kind.
    """
    code, reward = row.get("code"), row["reward"]
    reward = None if reward is None else float(reward)
    passed = None if reward is None else reward > 0
    characters = row.get("code_chars") or (len(code) if code is not None else None)
    found: dict[str, float | None] = {"gate": None if passed is None else float(passed)}
    if passed:
        if characters is not None:
            found["length"] = terms.length(int(characters))
        found["quality"] = _quality(row, reward, found.get("length"))
    for term, columns in TOLD.items():
        told = next((row[name] for name in columns if row.get(name) is not None), None)
        if told is not None:
            found[term] = float(told)
    return Rollout(
        run=str(row.get("run") or ""),
        step=int(row["step"]),
        group=int(row.get("group") or 0),
        index=int(row.get("position_in_group") or 0),
        subject=str(row.get("subject") or ""),
        sketch=code,
        gate_passed=passed,
        terms=found,
        reward=reward,
    )


def _quality(row: Mapping[str, Any], reward: float | None, length: float | None) -> float | None:
    """The quality that the reward implies; None where the judge had a part in it."""
    weight, judge = row.get("hpsv3_weight"), row.get("judge_weight")
    if reward is None or length is None or not weight or judge is None or judge > 0:
        return None
    value = (reward - GATE_WEIGHT - LENGTH_WEIGHT * length) / weight
    return min(1.0, max(0.0, value)) if -ROUNDING <= value <= 1 + ROUNDING else None


def _weights(rows: list[Mapping[str, Any]]) -> dict[str, Any]:
    """The published recipe, if all rows agree on its weights."""
    told = {(row.get("judge_weight"), row.get("hpsv3_weight")) for row in rows}
    if len(told) != 1:
        return {}
    ((judge, quality),) = told
    if judge is None or quality is None:
        return {}
    mixes = {(0.0, 0.9): "hps-only", (0.3, 0.6): "hps-led", (0.6, 0.3): "judge-led"}
    name = mixes.get((round(float(judge), 6), round(float(quality), 6)))
    return {} if name is None else {"name": name}


def _unreadable(path: Path, cause: str) -> InputError:
    return InputError(
        Reason.INVALID_INPUT,
        f"{path}: no rollouts can be read from it: {cause}.",
        remedy="Name a run's folder (runs/NAME), one of its rollouts/*.parquet, the same as JSON, "
        "or a table with step, reward, code, judge_weight and hpsv3_weight.",
        field="rollouts",
        value=str(path),
    )
