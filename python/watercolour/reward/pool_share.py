"""A pool on its way to others and back: a clean folder, or one parquet file.

What travels is what can be drawn: rated paintings, with their sketches, strengths, licences and
authors, and the comparisons that the strengths rest on, without saying whose they were. Drafts,
paintings that were set aside, seeds and the raters' own files stay at home.
"""

from __future__ import annotations

import io
import json
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image
from pydantic import ValidationError

from watercolour import disk
from watercolour.api.errors import InputError
from watercolour.api.reasons import Reason
from watercolour.reward import licences, pool_build, pool_subject, pool_votes
from watercolour.reward import pool as pools
from watercolour.reward.pool import Card, Record
from watercolour.reward.pool_votes import PoolVote

#: Keys of a parquet file's own metadata.
CARD_KEY, VOTES_KEY, FORM_KEY = b"watercolour_card", b"watercolour_votes", b"watercolour_pool"
#: There only if the pool describes its subject.
SUBJECT_KEY = b"watercolour_subject"
FORM = b"1"

#: How the hub's viewer shows the column of pictures.
_FEATURES = {"info": {"features": {"image": {"_type": "Image"}}}}

METADATA = "metadata.jsonl"

_PLAIN: dict[object, pa.DataType] = {str: pa.string(), int: pa.int64(), float: pa.float64()}


def require_publishable(source: str | Path) -> list[Record]:
    """The records that would be published, if everything about them allows it.

    Raises:
        InputError: the pool is not whole (InvalidPool), or a licence forbids it or wants an author
            who is not named (InvalidInput).
    """
    pools.load(source)
    folder = pools.locate(source)
    card = pools.read_card(folder)
    records = [record for record in pools.read_records(folder) if record.drawn]
    for licence, attribution, where in [
        (card.licence, card.made, f"{folder / pools.CARD}"),
        *((r.licence, r.attribution, r.name) for r in records if r.licence),
    ]:
        if not licences.check(licence, attribution, where=where).may_publish:
            raise InputError(
                Reason.INVALID_INPUT,
                f"{where}: the licence {licence!r} lets nobody publish it.",
                remedy="Write the pool's licence into pool.yaml, or set that painting aside.",
                field="licence",
                value=licence,
            )
    return records


def to_folder(source: str | Path, target: Path) -> int:
    """Copy what can be drawn into a new folder; return how many paintings that are.

    Raises:
        InputError: as for :func:`require_publishable`; or ``target`` is there already.
        InfrastructureError: the disk is full (DiskFull); nothing is left behind.
    """
    records = require_publishable(source)
    folder = pools.locate(source)
    with _new_folder(target) as out:
        _write_pool(
            out,
            pools.read_card(folder),
            records,
            _votes(folder, records),
            [pools.painting_path(folder, r.name).read_bytes() for r in records],
            [_sketch(folder, r) for r in records],
            pool_subject.read(folder),
        )
    return len(records)


def to_parquet(source: str | Path, target: Path) -> int:
    """Write what can be drawn as one parquet file; return how many paintings that are.

    Raises:
        InputError: as for :func:`require_publishable`.
        InfrastructureError: the disk is full (DiskFull); the old file is kept.
    """
    records = require_publishable(source)
    folder = pools.locate(source)
    with disk.full_named(target, "Make room, then publish again."):
        target.parent.mkdir(parents=True, exist_ok=True)
        disk.write_bytes(target, encode(folder, records))
    return len(records)


def encode(folder: Path, records: Sequence[Record]) -> bytes:
    """A pool as a parquet file."""
    columns: dict[str, Any] = {
        "image": pa.array(
            [
                {
                    "bytes": pools.painting_path(folder, record.name).read_bytes(),
                    "path": f"{record.name}.png",
                }
                for record in records
            ],
            pa.struct([("bytes", pa.binary()), ("path", pa.string())]),
        ),
        "sketch": pa.array([_sketch(folder, record) for record in records], pa.string()),
    }
    rows = [record.model_dump() for record in records]
    for name, field in Record.model_fields.items():
        kind = _PLAIN.get(field.annotation, pa.string())
        columns[name] = pa.array([row[name] for row in rows], kind)
    votes = [vote.model_dump() for vote in _votes(folder, records)]
    subject = pool_subject.read(folder)
    table = pa.table(columns).replace_schema_metadata(
        {
            FORM_KEY: FORM,
            CARD_KEY: json.dumps(pools.read_card(folder).model_dump()).encode(),
            VOTES_KEY: json.dumps(votes).encode(),
            **({} if subject is None else {SUBJECT_KEY: subject}),
            b"huggingface": json.dumps(_FEATURES).encode(),
        }
    )
    out = io.BytesIO()
    pq.write_table(table, out, compression="zstd")
    return out.getvalue()


def from_parquet(path: Path, target: Path) -> int:
    """Make a pool of a parquet file that :func:`to_parquet` wrote; return its paintings.

    Raises:
        InputError: the file cannot be read or holds no whole pool (InvalidPool), or ``target`` is
            there already (InvalidInput).
        InfrastructureError: the disk is full (DiskFull); nothing is left behind.
    """
    try:
        table = pq.read_table(path)
        metadata = table.schema.metadata or {}
        if metadata.get(FORM_KEY) != FORM:
            raise ValueError("it was not written by watercolour pool publish")
        card = Card.model_validate_json(metadata[CARD_KEY])
        votes = [PoolVote.model_validate(row) for row in json.loads(metadata[VOTES_KEY])]
        rows = table.to_pylist()
        records = [
            Record.model_validate({k: v for k, v in row.items() if k in Record.model_fields})
            for row in rows
        ]
        paintings = [bytes(row["image"]["bytes"]) for row in rows]
        sketches: list[str | None] = [row["sketch"] for row in rows]
    except (pa.ArrowException, OSError, ValueError, KeyError, TypeError, ValidationError) as error:
        raise _no_pool(path, str(error).splitlines()[0][:200]) from error
    with _new_folder(target) as out:
        _write_pool(out, card, records, votes, paintings, sketches, metadata.get(SUBJECT_KEY))
        pools.load(out)
        pool_subject.hues(out)
    return len(records)


def from_folder(source: Path, target: Path) -> int:
    """Copy a pool's folder, or the experiment's published layout; return its paintings.

    That layout is a ``metadata.jsonl`` with the columns file_name, source_file, tier and subject.

    Raises:
        InputError: the folder holds neither (InvalidPool), or ``target`` is there already.
        InfrastructureError: the disk is full (DiskFull); nothing is left behind.
    """
    if (source / pools.CARD).exists():
        loaded = pools.load(source)
        records = {r.name: r for r in pools.read_records(source) if r.drawn}
        votes = _votes(source, list(records.values()))
        paintings = [reference.painting for reference in loaded.references]
        sketches = [_sketch(source, record) for record in records.values()]
        with _new_folder(target) as out:
            card = pools.read_card(source)
            subject = pool_subject.read(source)
            _write_pool(out, card, list(records.values()), votes, paintings, sketches, subject)
            pool_subject.hues(out)
        return len(records)
    if (source / METADATA).exists():
        return _from_published(source, target)
    raise _no_pool(source, f"neither {pools.CARD} nor {METADATA} is in it")


def _from_published(source: Path, target: Path) -> int:
    records: list[Record] = []
    paintings: list[bytes] = []
    sketches: list[str | None] = []
    try:
        lines = (source / METADATA).read_text("utf-8").splitlines()
        for row in (json.loads(line) for line in lines if line.strip()):
            picture = _inside(source, row["file_name"])
            code = _inside(source, row["source_file"]) if row.get("source_file") else None
            sketch = None if code is None else code.read_text("utf-8")
            painting = picture.read_bytes()
            records.append(_published_record(row, picture, painting, sketch))
            paintings.append(painting)
            sketches.append(sketch)
    except (OSError, ValueError, KeyError, TypeError, ValidationError) as error:
        raise _no_pool(source / METADATA, str(error).splitlines()[0][:200]) from error
    if not records:
        raise _no_pool(source / METADATA, "no line of it names a painting")
    card = Card(
        name=source.name.lower(),
        what="Fetched from a data set in the published layout.",
        made="Tiers as published; strengths follow from them alone.",
        licence="CC-BY-4.0",
        canvas=_side(paintings[0]),
    )
    with _new_folder(target) as out:
        fitted = pool_votes.with_strengths(records, [])
        _write_pool(out, card, fitted, [], paintings, sketches)
        pools.load(out)
    return len(records)


def _published_record(
    row: dict[str, Any], picture: Path, painting: bytes, sketch: str | None
) -> Record:
    return Record(
        name="".join(c if c.isalnum() or c in "_-" else "-" for c in picture.stem.lower()),
        subject=row.get("subject") or "a flower",
        tier=row["tier"],
        origin="model" if sketch is not None else pools.IMPORTED,
        generator=row.get("generator_model") or "",
        round=int(row.get("refinement_round") or 0),
        seed_picture=row.get("reference_photo") or "",
        attribution=row.get("reference_photo_attribution") or "",
        source=row.get("reference_photo_url") or "",
        painting_sha256=pools.digest(painting),
        sketch_sha256="" if sketch is None else pools.digest(sketch.encode()),
        paint_fraction=float(row.get("paint_coverage") or 0),
    )


def _inside(folder: Path, name: str) -> Path:
    """A file below the folder.

    Raises:
        ValueError: the name leads out of it.
    """
    path = (folder / name).resolve()
    if not path.is_relative_to(folder.resolve()):
        raise ValueError(f"{name!r} leads out of the folder")
    return path


def _side(painting: bytes) -> int:
    with Image.open(io.BytesIO(painting)) as image:
        return image.width


def write_viewer(folder: Path) -> None:
    """Add what the hub's viewer and other programs read: metadata.jsonl and README.md."""
    card, records = pools.read_card(folder), pools.read_records(folder)
    rows = [
        {
            "file_name": f"paintings/{record.name}.png",
            "source_file": None if record.imported else f"sketches/{record.name}.js",
            "generator_model": record.generator or None,
            "refinement_round": record.round,
            "paint_coverage": record.paint_fraction,
            **record.model_dump(include={"tier", "subject", "standing", "strength", "origin"}),
            **record.model_dump(include={"licence", "attribution", "source"}),
        }
        for record in records
    ]
    lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    pool_build.write(folder / METADATA, lines.encode())
    pool_build.write(folder / "README.md", dataset_card(card, records).encode())


def dataset_card(card: Card, records: Sequence[Record]) -> str:
    """The README of a data set: front matter for the hub, then words for people."""
    head = {"license": card.licence.lower(), "pretty_name": card.name, "tags": ["watercolour"]}
    front = "\n".join(f"{key}: {json.dumps(value)}" for key, value in head.items())
    credits_ = sorted({f"{r.attribution} ({r.licence})" for r in records if r.attribution})
    named = "".join(f"* {line}\n" for line in credits_)
    by = f"\n## Pictures by others\n\n{named}" if named else ""
    return (
        f"---\n{front}\n---\n\n# {card.name}\n\n{card.what}\n\n{card.made}\n\n"
        f"{len(records)} paintings of {card.canvas} pixels a side. "
        f"Licence: {card.licence}, where a painting does not say otherwise.\n{by}\n"
        "Get it: `watercolour pool fetch hub:OWNER/NAME FOLDER`.\n"
    )


def _sketch(folder: Path, record: Record) -> str | None:
    return None if record.imported else pools.read_text(pools.sketch_path(folder, record.name))


def _votes(folder: Path, records: Sequence[Record]) -> list[PoolVote]:
    names = {record.name for record in records}
    votes = [*pool_votes.read(folder), *pool_votes.of_people(folder)]
    return [vote for vote in votes if {vote.first, vote.second} <= names]


def _write_pool(
    out: Path,
    card: Card,
    records: Sequence[Record],
    votes: Sequence[PoolVote],
    paintings: Sequence[bytes],
    sketches: Sequence[str | None],
    subject: bytes | None = None,
) -> None:
    for record, painting, sketch in zip(records, paintings, sketches, strict=True):
        pool_build.write(pools.painting_path(out, record.name), painting)
        if sketch is not None:
            pool_build.write(pools.sketch_path(out, record.name), sketch.encode())
    if votes:
        pool_votes.write(out, votes)
    if subject is not None:
        pool_build.write(out / pool_subject.FILE, subject)
    pool_build.write_records(out, records)
    pool_build.write_card(out, card)


@contextmanager
def _new_folder(target: Path) -> Iterator[Path]:
    """A folder to fill, which becomes ``target`` when all went well."""
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise InputError(
            Reason.INVALID_INPUT,
            f"{target}: there is something already.",
            remedy="Name a new folder.",
            field="TARGET",
            value=str(target),
        )
    with disk.full_named(target, "Make room, then do it again."):
        target.parent.mkdir(parents=True, exist_ok=True)
        part = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
        try:
            yield part
            if target.exists():
                target.rmdir()
            part.chmod(0o755)
            part.rename(target)
        except BaseException:
            shutil.rmtree(part, ignore_errors=True)
            raise


def _no_pool(path: Path, fault: str) -> InputError:
    return InputError(
        Reason.INVALID_POOL,
        f"{path}: no pool can be read from it: {fault}.",
        remedy="Name a pool's folder, a file of watercolour pool publish, or hub:OWNER/NAME.",
        field="SOURCE",
        value=str(path),
    )
