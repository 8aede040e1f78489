"""Read a run's folder back: its rollouts, specification, summary and what could not be read."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import yaml
from pydantic import ValidationError

from watercolour.api.errors import InputError
from watercolour.api.reasons import Reason
from watercolour.api.rollout import Rollout
from watercolour.api.spec import Recipe


@dataclass(frozen=True)
class Entry:
    """One rollout and where its painting lies.

    Attributes:
        rollout: the record, without the painting's bytes.
        painting: path relative to the run's folder; None when there is none.
        thumb: the same of a small copy.
        sketch: the same of the sketch's text.
    """

    rollout: Rollout
    painting: str | None
    thumb: str | None = None
    sketch: str | None = None


@dataclass(frozen=True)
class RunRecord:
    """What a run's folder holds.

    Attributes:
        folder: the run's folder.
        spec: ``run.yaml`` as plain data, and ``spec_text`` as it stands in the file.
        entries: all rollouts in order of step, group and index; none twice.
        summary: ``summary.json``; empty while the run has not ended.
        damaged: files that could not be read, as ``(path, cause)``.
        metrics: rows of ``metrics.csv``; an empty cell is None.
        selfcheck: what came of the judge's, from ``selfcheck.json``; empty without one.
    """

    folder: Path
    spec: Mapping[str, Any]
    spec_text: str
    entries: tuple[Entry, ...]
    summary: Mapping[str, Any]
    damaged: tuple[tuple[str, str], ...]
    metrics: tuple[Mapping[str, float | None], ...] = ()
    selfcheck: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def name(self) -> str:
        """The run's name."""
        return str(self.spec.get("metadata", {}).get("name") or self.folder.name)

    def by_step(self) -> dict[int, list[Entry]]:
        """The entries of every step, steps in order."""
        steps: dict[int, list[Entry]] = {}
        for entry in self.entries:
            steps.setdefault(entry.rollout.step, []).append(entry)
        return dict(sorted(steps.items()))


def read(folder: Path) -> RunRecord:
    """Read a run's folder; a partial run is as good as a whole one.

    A damaged file does not hide the rest: it is listed in ``damaged``.

    Raises:
        InputError: there is no run at that path, or it has not finished a single step.
    """
    if not folder.is_dir():
        raise _not_a_run(folder, "there is no such folder", "Name a run's folder: runs/NAME.")
    text = _text(folder / "run.yaml")
    damaged: list[tuple[str, str]] = []
    entries: dict[tuple[int, int, int], Entry] = {}
    for path in sorted((folder / "rollouts").glob("*.parquet")):
        try:
            rows = list(_rows(path))
        except (pa.ArrowException, OSError, ValueError, ValidationError) as error:
            damaged.append((path.relative_to(folder).as_posix(), str(error).splitlines()[0]))
            continue
        for entry in rows:
            # A step that was repeated after a resume is the one that counted.
            key = (entry.rollout.step, entry.rollout.group, entry.rollout.index)
            entries[key] = entry
    if not entries:
        cause = f"{damaged[0][0]} cannot be read ({damaged[0][1]})" if damaged else "no rollouts"
        raise _not_a_run(folder, cause, "Let the run finish a step first.")
    return RunRecord(
        folder=folder,
        spec=_mapping(text),
        spec_text=text,
        entries=tuple(entries[key] for key in sorted(entries)),
        summary=_json(folder / "summary.json", damaged),
        selfcheck=_json(folder / "selfcheck.json", damaged),
        metrics=tuple(_metrics(folder / "metrics.csv", damaged)),
        damaged=tuple(damaged),
    )


def spec_of(folder: Path) -> Mapping[str, Any]:
    """What stands in a run's ``run.yaml``; empty without one, or with one that is no YAML."""
    return _mapping(_text(folder / "run.yaml"))


def recipe_of(spec: Mapping[str, Any]) -> Mapping[str, Any]:
    """The fields of ``spec.recipe``, those of the default where a run names none.

    Args:
        spec: what stands in ``run.yaml``; without any nobody knows, and there are no fields.
    """
    if not spec:
        return {}
    return (spec.get("spec") or {}).get("recipe") or {"name": Recipe().name}


def _not_a_run(folder: Path, cause: str, remedy: str) -> InputError:
    return InputError(
        Reason.ARTIFACTS_DAMAGED,
        f"{folder}: not a run that can be shown: {cause}.",
        remedy=remedy,
        field="run",
        value=str(folder),
    )


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""


def _mapping(text: str) -> Mapping[str, Any]:
    try:
        found: Any = yaml.safe_load(text)
    except yaml.YAMLError:
        return {}
    return found if isinstance(found, dict) else {}


def _metrics(path: Path, damaged: list[tuple[str, str]]) -> Iterator[dict[str, float | None]]:
    if not path.exists():
        return
    try:
        with path.open(encoding="utf-8", newline="") as file:
            for line in csv.DictReader(file, strict=True):
                yield {name: float(cell) if cell else None for name, cell in line.items()}
    except (OSError, ValueError, TypeError, csv.Error) as error:
        damaged.append((path.name, str(error)))


def _json(path: Path, damaged: list[tuple[str, str]]) -> Mapping[str, Any]:
    if not path.exists():
        return {}
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        damaged.append((path.name, str(error)))
        return {}


def _rows(path: Path) -> Iterator[Entry]:
    rows: list[dict[str, Any]] = pq.read_table(path).to_pylist(maps_as_pydicts="strict")
    for row in rows:
        # A column that a later version adds is no reason to refuse an old or a new run.
        values = {name: value for name, value in row.items() if name in Rollout.model_fields}
        places = (row.get(name) for name in ("painting_file", "thumb_file", "sketch_file"))
        yield Entry(Rollout.model_validate(values), *places)
