"""Building a reference pool: sketches and tiers in, paintings, checksums and strengths out.

A pool's author writes ``pool.yaml``, the sketches, and in ``paintings.json`` a record for each
with at least name, subject and tier. The rest of a record is filled here.
"""

from __future__ import annotations

import asyncio
import io
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from PIL import Image, ImageDraw
from yaml import safe_dump

from watercolour import disk
from watercolour.api.errors import InputError
from watercolour.api.reasons import Reason
from watercolour.api.rollout import Violation
from watercolour.api.spec import Gate
from watercolour.render.dispatcher import Dispatcher
from watercolour.render.result import Painted, SketchFault
from watercolour.reward import pool as pools
from watercolour.reward import pool_votes
from watercolour.reward.pool import Card, Pool, Record
from watercolour.sketch import gate

#: Fields of a record that are left out of the file where they do not apply.
PROVENANCE = {
    "generator",
    "parent",
    "round",
    "seed_picture",
    "licence",
    "attribution",
    "source",
    "aside",
}

#: Height of a caption on a contact sheet, in pixels.
CAPTION = 14

#: Renders asked for at once; the renderer keeps the rest waiting.
AT_ONCE = 4

Progress = Callable[[int, int], None]


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
    card, every = pools.read_card(folder), pools.read_records(folder)
    records = [record for record in every if not record.imported and not record.aside]
    sketches = [_admitted(folder, record) for record in records]
    painted = await _paint_all(folder, card.canvas, records, sketches, urls, progress)
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
    filled = {
        record.name: record.model_copy(update=facts(sketch, each))
        for record, sketch, each in zip(records, sketches, painted, strict=True)
    }
    for record, each in zip(records, painted, strict=True):
        write(pools.painting_path(folder, record.name), each.painting)
    whole = [filled.get(record.name, record) for record in every]
    write_records(folder, pool_votes.fitted(folder, whole))
    if painted:
        write_card(folder, card.model_copy(update={"versions": painted[0].versions}))
    rasterizer = rasterizers[0] if rasterizers else ""
    return Built(len(painted), changed, rasterizer, time.monotonic() - started)


def facts(sketch: str, painted: Painted) -> dict[str, object]:
    """What a record says of a sketch and its painting."""
    return {
        "sketch_sha256": pools.digest(sketch.encode()),
        "painting_sha256": pools.digest(painted.painting),
        "rasterizer": painted.rasterizer,
        "paint_fraction": round(painted.paint_fraction, 4),
        "shapes": painted.shapes,
    }


def check(source: str | Path) -> Pool:
    """Load a pool and put its sketches through the static gate.

    Raises:
        InputError: (InvalidPool) as for ``pool.load``, or the gate refuses a sketch.
    """
    pool = pools.load(source)
    folder = pools.locate(source)
    for record in pools.read_records(folder):
        if record.drawn and not record.imported:
            _admitted(folder, record)
    return pool


def write_records(folder: Path, records: Sequence[Record]) -> None:
    """Write paintings.json, whole or not at all.

    Raises:
        InfrastructureError: the disk is full (DiskFull); the old file is kept.
    """
    lines = ",\n".join(" " + json.dumps(_told(record), ensure_ascii=False) for record in records)
    write(folder / pools.RECORDS, f"[\n{lines}\n]\n".encode())


def _told(record: Record) -> dict[str, object]:
    """The record without what does not apply to it."""
    fields = record.model_dump()
    return {
        name: value
        for name, value in fields.items()
        if name not in PROVENANCE or value != Record.model_fields[name].default
    }


def sheet(pictures: Sequence[tuple[bytes, str]], *, columns: int = 8, side: int = 192) -> bytes:
    """A contact sheet: the pictures in the given order with their captions below; PNG.

    Args:
        pictures: at least one; PNG and caption.
        columns: pictures in a row, at most.
        side: of a picture on the sheet, in pixels.
    """
    columns = min(columns, len(pictures))
    rows = -(-len(pictures) // columns)
    paper = Image.new("RGB", (columns * side, rows * (side + CAPTION)), "white")
    pen = ImageDraw.Draw(paper)
    for index, (picture, caption) in enumerate(pictures):
        x, y = index % columns * side, index // columns * (side + CAPTION)
        with Image.open(io.BytesIO(picture)) as painting:
            paper.paste(painting.convert("RGB").resize((side, side)), (x, y))
        pen.text((x + 2, y + side), caption, fill="black")
    out = io.BytesIO()
    paper.save(out, "PNG")
    return out.getvalue()


async def _paint_all(
    folder: Path,
    canvas: int,
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
            painted = await _paint(renderers, folder, canvas, record, sketch)
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


async def _paint(
    renderers: Dispatcher, folder: Path, canvas: int, record: Record, sketch: str
) -> Painted:
    path = pools.sketch_path(folder, record.name)
    try:
        painted = await renderers.render(sketch, seed=record.seed, size=canvas, fresh=True)
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


def write_card(folder: Path, card: Card) -> None:
    """Write pool.yaml, whole or not at all.

    Raises:
        InfrastructureError: the disk is full (DiskFull); the old file is kept.
    """
    text = safe_dump(card.model_dump(), sort_keys=False, allow_unicode=True, width=96)
    write(folder / pools.CARD, text.encode())


def write(path: Path, data: bytes) -> None:
    """Write a file of a pool, whole or not at all.

    Raises:
        InfrastructureError: the disk is full (DiskFull); the old file is kept.
    """
    with disk.full_named(path, "Make room, then do it again."):
        path.parent.mkdir(parents=True, exist_ok=True)
        disk.write_bytes(path, data)
