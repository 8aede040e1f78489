"""Building a reference pool: sketches and tiers in, paintings, checksums and strengths out.

A pool's author writes ``pool.yaml``, the sketches, and in ``paintings.json`` a record for each
with at least name, subject and tier. The rest of a record is filled here.
"""

from __future__ import annotations

import asyncio
import io
import json
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError
from yaml import safe_dump

from watercolour.api.errors import InputError
from watercolour.api.reasons import Reason
from watercolour.api.rollout import Violation
from watercolour.api.spec import Gate
from watercolour.render.dispatcher import Dispatcher
from watercolour.render.result import Painted, SketchFault
from watercolour.reward import pool as pools
from watercolour.reward.pool import Card, Pool, Record, Reference
from watercolour.reward.ratings import Matrix, Standing, Tier, strengths
from watercolour.sketch import gate

VOTES = "votes.json"

#: Renders asked for at once; the renderer keeps the rest waiting.
AT_ONCE = 4

Progress = Callable[[int, int], None]


class PoolVote(BaseModel):
    """One comparison of two paintings of the pool by a judge, in votes.json."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    first: str
    second: str
    value: float = Field(ge=0, le=1, description="Share that first won: 1, 0.5 or 0.")


@dataclass(frozen=True)
class Built:
    """What a build did.

    Attributes:
        paintings: how many were painted.
        changed: names whose painting differs from the one before.
        rasterizer: what turned shapes into pixels.
        seconds: of wall time.
    """

    paintings: int
    changed: tuple[str, ...]
    rasterizer: str
    seconds: float


async def build(folder: Path, urls: Sequence[str], *, progress: Progress | None = None) -> Built:
    """Paint every sketch of a pool, and write paintings, checksums and strengths.

    Nothing is written unless every sketch was painted.

    Args:
        folder: the pool.
        urls: renderers; all with one rasterizer.
        progress: called with paintings done and paintings in all.

    Raises:
        InputError: (InvalidPool) a file breaks its rules, or the gate refuses a sketch.
        InfrastructureError: a renderer failed for good.
    """
    started = time.monotonic()
    card, records = pools.read_card(folder), pools.read_records(folder)
    sketches = [_admitted(folder, record) for record in records]
    painted: list[Painted] = await _paint_all(folder, records, sketches, urls, progress)
    rasterizers = sorted({each.rasterizer for each in painted})
    if len(rasterizers) > 1:
        raise InputError(
            Reason.INVALID_POOL,
            f"{folder}: the renderers paint with different rasterizers {rasterizers}.",
            remedy="Give renderers of one kind, or only one.",
            field="renderer",
        )
    changed = tuple(
        record.name
        for record, each in zip(records, painted, strict=True)
        if record.painting_sha256 != pools.digest(each.painting)
    )
    fitted = _strengths(records, read_votes(folder))
    filled = [
        record.model_copy(
            update={
                "strength": round(fitted[record.name], 3),
                "sketch_sha256": pools.digest(sketch.encode()),
                "painting_sha256": pools.digest(each.painting),
                "rasterizer": each.rasterizer,
                "paint_fraction": round(each.paint_fraction, 4),
                "shapes": each.shapes,
            }
        )
        for record, sketch, each in zip(records, sketches, painted, strict=True)
    ]
    for record, each in zip(records, painted, strict=True):
        _write(pools.painting_path(folder, record.name), each.painting)
    write_records(folder, filled)
    if painted:
        _write_card(folder, card.model_copy(update={"versions": painted[0].versions}))
    rasterizer = rasterizers[0] if rasterizers else ""
    return Built(len(painted), changed, rasterizer, time.monotonic() - started)


def check(source: str | Path) -> Pool:
    """Load a pool and put its sketches through the static gate.

    Raises:
        InputError: (InvalidPool) as for ``pool.load``, or the gate refuses a sketch.
    """
    pool = pools.load(source)
    folder = pools.locate(source)
    for record in pools.read_records(folder):
        _admitted(folder, record)
    return pool


def calibrate(folder: Path, names: Sequence[str], votes: Matrix) -> dict[str, float]:
    """Keep a judge's votes with the pool and fit the strengths anew.

    Args:
        folder: a built pool.
        names: n paintings of the pool.
        votes: n x n; ``votes[i, j]`` is the share of comparisons that i won against j, NaN where
            none was made. Only the upper triangle is read.

    Returns:
        The strengths written, by name.

    Raises:
        InputError: (InvalidPool) the pool is broken or a name is not in it.
    """
    cast = [
        PoolVote(first=names[i], second=names[j], value=float(votes[i, j]))
        for i in range(len(names))
        for j in range(i + 1, len(names))
        if not np.isnan(votes[i, j])
    ]
    records = pools.read_records(folder)
    fitted = _strengths(records, cast)
    rows = [vote.model_dump() for vote in cast]
    _write(folder / VOTES, (json.dumps(rows, indent=0) + "\n").encode())
    write_records(
        folder,
        [r.model_copy(update={"strength": round(fitted[r.name], 3)}) for r in records],
    )
    return fitted


def read_votes(folder: Path) -> list[PoolVote]:
    """The judge's votes that the pool keeps; none if it keeps none.

    Raises:
        InputError: (InvalidPool) votes.json breaks its rules.
    """
    path = folder / VOTES
    if not path.exists():
        return []
    try:
        return TypeAdapter(list[PoolVote]).validate_json(path.read_bytes())
    except ValidationError as error:
        raise InputError(
            Reason.INVALID_POOL,
            f"{path}: {error.errors()[0]['msg']}.",
            remedy="Correct the file, or delete it and calibrate again.",
            field=str(path),
        ) from error


def write_records(folder: Path, records: Sequence[Record]) -> None:
    """Write paintings.json, whole or not at all."""
    lines = ",\n".join(" " + json.dumps(record.model_dump()) for record in records)
    _write(folder / pools.RECORDS, f"[\n{lines}\n]\n".encode())


def sheet(references: Sequence[Reference], *, columns: int = 8, side: int = 192) -> bytes:
    """A contact sheet: the paintings in the given order, names and strengths below; PNG.

    Args:
        references: at least one.
        columns: paintings in a row.
        side: of a painting on the sheet, in pixels.
    """
    caption = 14
    rows = -(-len(references) // columns)
    paper = Image.new("RGB", (columns * side, rows * (side + caption)), "white")
    pen = ImageDraw.Draw(paper)
    for index, reference in enumerate(references):
        x, y = index % columns * side, index // columns * (side + caption)
        with Image.open(io.BytesIO(reference.painting)) as painting:
            paper.paste(painting.convert("RGB").resize((side, side)), (x, y))
        pen.text((x + 2, y + side), f"{reference.name} {reference.strength:+.1f}", fill="black")
    out = io.BytesIO()
    paper.save(out, "PNG")
    return out.getvalue()


async def _paint_all(
    folder: Path,
    records: Sequence[Record],
    sketches: Sequence[str],
    urls: Sequence[str],
    progress: Progress | None,
) -> list[Painted]:
    done = 0
    free = asyncio.Semaphore(AT_ONCE * len(urls))

    async def one(renderers: Dispatcher, record: Record, sketch: str) -> Painted:
        nonlocal done
        async with free:
            painted = await _paint(renderers, folder, record, sketch)
        done += 1
        if progress:
            progress(done, len(records))
        return painted

    async with Dispatcher(urls) as renderers:
        jobs = [
            asyncio.create_task(one(renderers, record, sketch))
            for record, sketch in zip(records, sketches, strict=True)
        ]
        try:
            return await asyncio.gather(*jobs)
        finally:
            for job in jobs:
                job.cancel()
            await asyncio.gather(*jobs, return_exceptions=True)


async def _paint(renderers: Dispatcher, folder: Path, record: Record, sketch: str) -> Painted:
    path = pools.sketch_path(folder, record.name)
    try:
        painted = await renderers.render(sketch, seed=record.seed, fresh=True)
    except SketchFault as fault:
        raise _refused(path, (fault.violation,)) from fault
    least = Gate().min_paint_fraction
    if painted.js_errors or painted.paint_fraction < least:
        wrong = painted.js_errors[0] if painted.js_errors else "blank_canvas"
        raise InputError(
            Reason.INVALID_POOL,
            f"{path}: {wrong} (paint fraction {painted.paint_fraction:.4f}, least {least:g}).",
            remedy="Repair the sketch, or take it out of the pool.",
            field=str(path),
        )
    return painted


def _admitted(folder: Path, record: Record) -> str:
    """The sketch, once the static gate has admitted it."""
    path = pools.sketch_path(folder, record.name)
    sketch = pools.read_text(path)
    violations = gate.check(sketch, Gate())
    if violations:
        raise _refused(path, violations)
    return sketch


def _refused(path: Path, violations: Sequence[Violation]) -> InputError:
    first = violations[0]
    place = f" in line {first.line}" if first.line else ""
    return InputError(
        Reason.INVALID_POOL,
        f"{path}: the gate refuses it: {first.code}{place}: {first.message}",
        remedy="Repair the sketch, or take it out of the pool.",
        field=str(path),
        value=first.code,
    )


def _strengths(records: Sequence[Record], votes: Sequence[PoolVote]) -> dict[str, float]:
    names = [record.name for record in records]
    place = {name: index for index, name in enumerate(names)}
    wins = np.zeros((len(names), len(names)))
    for vote in votes:
        unknown = {vote.first, vote.second} - place.keys()
        if unknown:
            raise InputError(
                Reason.INVALID_POOL,
                f"a vote compares {sorted(unknown)[0]!r}, which is not in the pool.",
                remedy=f"Delete {VOTES} and calibrate again.",
                field=VOTES,
                value=sorted(unknown)[0],
            )
        i, j = place[vote.first], place[vote.second]
        wins[i, j] += vote.value
        wins[j, i] += 1 - vote.value
    tiers: list[Tier] = [r.tier for r in records]
    standings: list[Standing] = [r.standing for r in records]
    return strengths(names, tiers, standings, wins if votes else None)


def _write_card(folder: Path, card: Card) -> None:
    text = safe_dump(card.model_dump(), sort_keys=False, allow_unicode=True, width=96)
    _write(folder / pools.CARD, text.encode())


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.part")
    part.write_bytes(data)
    os.replace(part, path)
