"""The run's files: metrics.csv, rollouts, paintings and thumbnails, written step by step.

Every file appears whole or not at all. A resumed run first removes what lies behind its
checkpoint, so that no step is counted twice.
"""

from __future__ import annotations

import csv
import io
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from PIL import Image

from watercolour import logs
from watercolour.api.errors import InputError
from watercolour.api.reasons import Reason
from watercolour.api.rollout import Rollout
from watercolour.train import parquet
from watercolour.train.files import disk_full_named, write_bytes, write_text
from watercolour.train.metrics import COLUMNS, PUBLISHED, Cell

log = logs.get(__name__)

THUMB_PIXELS = 96
THUMB_QUALITY = 82
METRICS = "metrics.csv"
FOLDERS = ("rollouts", "paintings", "thumbs")


@dataclass
class Artifacts:
    """A run's folder and the rows of its metrics.csv so far."""

    folder: Path
    rows: list[dict[str, Cell]] = field(default_factory=list[dict[str, Cell]])

    def add_rollouts(self, step: int, rollouts: Sequence[Rollout]) -> None:
        """Write a step's rollouts with their paintings.

        Raises:
            InfrastructureError: the disk is full (DiskFull).
        """
        with disk_full_named(f"step {step}'s rollouts"):
            places = [self._pictures(step, n, rollout) for n, rollout in enumerate(rollouts)]
            target = self.folder / "rollouts" / f"{step:05}.parquet"
            target.parent.mkdir(exist_ok=True)
            write_bytes(target, parquet.encode(rollouts, places))

    def add_row(self, row: dict[str, Cell]) -> None:
        """Append a row to metrics.csv, which is written anew: it is small, and never torn.

        Raises:
            InfrastructureError: the disk is full (DiskFull).
        """
        self.rows.append(row)
        with disk_full_named(METRICS):
            write_text(self.folder / METRICS, table(self.rows))

    def _pictures(self, step: int, number: int, rollout: Rollout) -> dict[str, str | None]:
        """Write sketch, painting and thumbnail; where they lie, relative to the folder."""
        sketch = painting = thumb = None
        if rollout.sketch is not None:
            sketch = f"paintings/{step:05}/{number:02}.js"
            self._write(sketch, rollout.sketch.encode("utf-8", "replace"))
        if rollout.painting is not None:
            painting = f"paintings/{step:05}/{number:02}.png"
            self._write(painting, rollout.painting)
            thumb = f"thumbs/{step:05}-{number:02}.webp"
            self._write(thumb, thumbnail(rollout.painting))
        return {"painting_file": painting, "sketch_file": sketch, "thumb_file": thumb}

    def _write(self, place: str, data: bytes) -> None:
        path = self.folder / place
        path.parent.mkdir(parents=True, exist_ok=True)
        # A picture without its parquet row is never read, so it needs no rename.
        path.write_bytes(data)


def thumbnail(painting: bytes) -> bytes:
    """A WebP of at most THUMB_PIXELS a side."""
    buffer = io.BytesIO()
    with Image.open(io.BytesIO(painting)) as picture:
        small = picture.convert("RGB")
        small.thumbnail((THUMB_PIXELS, THUMB_PIXELS), Image.Resampling.LANCZOS)
        small.save(buffer, "WEBP", quality=THUMB_QUALITY)
    return buffer.getvalue()


def table(rows: Iterable[dict[str, Cell]]) -> str:
    """The text of metrics.csv; a value that does not exist is an empty cell."""
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: _cell(value) for name, value in row.items()} for row in rows)
    return text.getvalue()


def _cell(value: Cell) -> str:
    if value is None:
        return ""
    return str(value) if isinstance(value, int) else f"{value:.8g}"


def read_metrics(path: Path) -> list[dict[str, Cell]]:
    """The rows of a metrics.csv.

    Raises:
        InputError: it is torn or not one of ours (ArtifactsDamaged).
    """
    try:
        with path.open(encoding="utf-8", newline="") as file:
            return [_row(line) for line in csv.DictReader(file, strict=True)]
    except (OSError, ValueError, KeyError, TypeError, csv.Error) as error:
        raise InputError(
            Reason.ARTIFACTS_DAMAGED,
            f"{path}: cannot be read back ({error}).",
            remedy="Put back a copy of it, or start the run anew under another name.",
            field="path",
            value=str(path),
        ) from error


def _row(line: dict[str, Any]) -> dict[str, Cell]:
    row: dict[str, Cell] = {
        name: float(line[name]) if line.get(name, "") != "" else None for name in COLUMNS
    }
    if missing := [name for name in PUBLISHED if name not in line]:
        # Columns of ours come with the versions; without these it is another kind of file.
        raise KeyError(missing[0])
    return {**row, "step": int(line["step"])}


def reopen(folder: Path, step: int) -> Artifacts:
    """The artifacts as they were when ``step`` steps were done; what came later is removed.

    A rollout file that cannot be read is put aside as ``*.damaged`` and said: it holds nothing
    that training needs.

    Raises:
        InputError: metrics.csv is damaged or lacks a step (ArtifactsDamaged).
    """
    path = folder / METRICS
    rows = [row for row in read_metrics(path) if (row["step"] or 0) < step] if step else []
    if [row["step"] for row in rows] != list(range(step)):
        raise InputError(
            Reason.ARTIFACTS_DAMAGED,
            f"{path}: {len(rows)} rows before step {step}, must be {step}.",
            remedy="Put back a copy of it, or start the run anew under another name.",
            field="path",
            value=str(path),
        )
    for name in FOLDERS:
        for entry in sorted((folder / name).glob("[0-9]*")):
            if int(entry.name[:5]) >= step:
                shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
    for file in rollout_files(folder):
        _set_aside_if_damaged(file)
    artifacts = Artifacts(folder, rows)
    if step or path.exists():
        write_text(path, table(rows))
    return artifacts


def rollout_files(folder: Path) -> list[Path]:
    """The run's parquet files, in the order of the steps."""
    return sorted((folder / "rollouts").glob("*.parquet"))


def _set_aside_if_damaged(file: Path) -> None:
    try:
        parquet.read(file)
    except InputError as error:
        log.warning("%s: %s It is put aside as .damaged.", error.reason, error.message)
        file.rename(file.with_suffix(".damaged"))
