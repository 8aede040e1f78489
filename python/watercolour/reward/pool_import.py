"""Real pictures for a pool, with licence and author: as references, or as what writers paint from.

seeds.json          one line a seed: its name, licence, attribution, source
seeds/NAME.png      the seed, at most SEED_SIDE pixels a side
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from PIL import Image
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from watercolour import disk
from watercolour.api.errors import InputError
from watercolour.api.reasons import Reason
from watercolour.reward import licences, picture_file, pool_build, pool_intake
from watercolour.reward import pool as pools
from watercolour.reward.pool import IMPORTED, Record
from watercolour.reward.pool_writers import Seed
from watercolour.reward.rating_book import LOCK
from watercolour.reward.ratings import Tier

SEEDS = "seeds.json"
#: Longest side of a seed, in pixels: what vision models look at.
SEED_SIDE = 1024

#: Columns of a metadata file; others are passed over.
COLUMNS = ("file", "licence", "attribution", "source")


class SeedRecord(BaseModel):
    """A seed's line in seeds.json."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9_-]*$")
    sha256: str
    file: str = Field(description="What it was called.")
    licence: str
    attribution: str = ""
    source: str = ""


@dataclass(frozen=True)
class Rights:
    """What is known of a picture: its licence, whom to name, where it came from."""

    licence: str
    attribution: str = ""
    source: str = ""


@dataclass
class Imported:
    """What became of the files: names that were added; file and twin of those there already."""

    added: list[str] = field(default_factory=list[str])
    twins: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])


def read_metadata(path: Path) -> dict[str, Rights]:
    """Rights by file name, from a CSV with the columns file, licence, attribution and source.

    Raises:
        InputError: it cannot be read, or lacks one of the first two columns (InvalidInput).
    """
    try:
        rows = list(csv.DictReader(io.StringIO(path.read_text("utf-8-sig"))))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise picture_file.refused(
            path, f"no CSV can be read ({error})", "Save it in UTF-8."
        ) from (error)
    missing = {"file", "licence"} - set(rows[0] if rows else ())
    if missing:
        raise picture_file.refused(
            path,
            f"lacks the column {sorted(missing)[0]!r}, or has no rows",
            f"Name the columns {', '.join(COLUMNS)} in the first line.",
        )
    return {
        row["file"]: Rights(
            row["licence"] or "", row.get("attribution") or "", row.get("source") or ""
        )
        for row in rows
    }


def import_references(
    folder: Path,
    files: Sequence[Path],
    rights: Mapping[str, Rights],
    *,
    subject: str,
    tier: Tier | None,
    fit: Literal["whole", "crop"],
) -> Imported:
    """Take pictures as paintings of the pool. All files are read before one is added.

    Args:
        folder: a pool.
        files: PNG, JPEG, WebP or TIFF.
        rights: by file name.
        subject: what they show.
        tier: None leaves them to be rated.
        fit: see :func:`watercolour.reward.picture_file.square`.

    Raises:
        InputError: a file cannot be used, or its licence is unknown or wants an author
            (InvalidInput); the pool is broken (InvalidPool).
        InfrastructureError: the disk is full (DiskFull).
    """
    canvas = pools.read_card(folder).canvas
    checked = [(path, _checked(path, rights)) for path in files]
    pictures = [
        picture_file.png(picture_file.square(picture_file.read(path), canvas, fit))
        for path, _ in checked
    ]
    records = pools.read_records(folder)
    seen, done = pool_intake.seen(folder, records), Imported()
    for (path, right), painting in zip(checked, pictures, strict=True):
        twin = seen.twin(painting)
        if twin is not None:
            done.twins.append((str(path), twin))
            continue
        record = Record(
            name=f"{pool_intake.stem_of(subject)}_001",
            subject=subject,
            tier=tier,
            origin=IMPORTED,
            licence=right.licence,
            attribution=right.attribution,
            source=right.source or path.name,
        )
        added = pool_intake.add(folder, record, painting, None)
        seen.add(added.name, painting)
        done.added.append(added.name)
    return done


def import_seeds(folder: Path, files: Sequence[Path], rights: Mapping[str, Rights]) -> Imported:
    """Take pictures as what writers paint from. All files are read before one is added.

    Raises:
        InputError: as for :func:`import_references`.
        InfrastructureError: the disk is full (DiskFull).
    """
    checked = [(path, _checked(path, rights)) for path in files]
    pictures: list[bytes] = []
    for path, _ in checked:
        image = picture_file.read(path)
        image.thumbnail((SEED_SIDE, SEED_SIDE), Image.Resampling.LANCZOS)
        pictures.append(picture_file.png(image))
    done = Imported()
    with disk.full_named(folder, "Make room, then do it again."), disk.locked(folder / LOCK):
        rows = list(read_seeds(folder))
        held = {row.sha256: row.name for row in rows}
        for (path, right), picture in zip(checked, pictures, strict=True):
            found = pools.digest(picture)
            if found in held:
                done.twins.append((str(path), held[found]))
                continue
            name = pool_intake.next_name("seed", (row.name for row in rows))
            pool_build.write(seed_path(folder, name), picture)
            row = SeedRecord(
                name=name,
                sha256=found,
                file=path.name,
                licence=right.licence,
                attribution=right.attribution,
                source=right.source,
            )
            rows.append(row)
            held[found] = name
            done.added.append(name)
        text = json.dumps([row.model_dump() for row in rows], indent=1, ensure_ascii=False)
        pool_build.write(folder / SEEDS, (text + "\n").encode())
    return done


def seed_path(folder: Path, name: str) -> Path:
    """Where a seed lies."""
    return folder / "seeds" / f"{name}.png"


def read_seeds(folder: Path) -> list[SeedRecord]:
    """The pool's seeds; none if it has none.

    Raises:
        InputError: seeds.json is broken (InvalidPool).
    """
    path = folder / SEEDS
    if not path.exists():
        return []
    try:
        return TypeAdapter(list[SeedRecord]).validate_json(path.read_bytes())
    except ValidationError as error:
        raise InputError(
            Reason.INVALID_POOL,
            f"{path}: {error.errors()[0]['msg']}.",
            remedy="Correct the file, or delete it and import the seeds again.",
            field=str(path),
        ) from error


def load_seeds(folder: Path) -> list[Seed]:
    """The pool's seeds with their pictures.

    Raises:
        InputError: a file is missing or broken (InvalidPool).
    """
    found: list[Seed] = []
    for row in read_seeds(folder):
        path = seed_path(folder, row.name)
        try:
            picture = path.read_bytes()
        except OSError as error:
            raise InputError(
                Reason.INVALID_POOL,
                f"{path}: {error.strerror}.",
                remedy=f"Restore the file, or take {row.name} out of {SEEDS}.",
                field=str(path),
            ) from error
        found.append(Seed(row.name, picture, row.attribution, row.licence))
    return found


def require_rights(files: Sequence[Path], rights: Mapping[str, Rights]) -> None:
    """Refuse pictures whose licence is not given, not known, or wants an author who is not named.

    Raises:
        InputError: as said (InvalidInput).
    """
    for path in files:
        _checked(path, rights)


def _checked(path: Path, rights: Mapping[str, Rights]) -> Rights:
    right = rights.get(path.name)
    if right is None:
        raise picture_file.refused(
            path, "no licence is given for it", "Give --licence, or a line in the metadata."
        )
    licence = licences.check(right.licence, right.attribution, where=path.name)
    return Rights(licence.name, right.attribution.strip(), right.source.strip())
