"""How a picture gets into a pool: through the gate, past its twins, whole or not at all."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from watercolour import disk
from watercolour.api.errors import InputError
from watercolour.api.reasons import Reason, ViolationCode
from watercolour.api.spec import Gate
from watercolour.render.dispatcher import Dispatcher
from watercolour.render.paint import decode
from watercolour.render.result import Painted, SketchFault
from watercolour.reward import pool as pools
from watercolour.reward import pool_build
from watercolour.reward.pool import Card, Record
from watercolour.reward.rating_book import LOCK
from watercolour.sketch import gate

#: Cells a side of the small copy by which look-alikes are told.
CELLS = 16
#: Two paintings look alike when no cell of theirs differs by more, in steps of 256.
LOOK_ALIKE = 6.0


@dataclass(frozen=True)
class Refused:
    """Why a proposal did not get in: a violation's code, ``js_error`` or ``duplicate``."""

    code: str
    message: str


@dataclass(frozen=True)
class Admitted:
    """A sketch that passed the whole gate, and its painting."""

    sketch: str
    painted: Painted


async def judge_by_gate(
    reply: str, *, seed: int, canvas: int, renderers: Dispatcher
) -> Admitted | Refused:
    """Put a sketch, or a reply that holds one, through the static gate, a renderer and the rest.

    Args:
        reply: JavaScript, or a chat reply with it.
        seed: of the painting.
        canvas: side of the painting in pixels.
        renderers: whoever paints.

    Raises:
        InfrastructureError: no renderer painted it.
    """
    verdict = gate.inspect(reply, Gate())
    if verdict.sketch is None or verdict.violations:
        first = verdict.violations[0]
        place = f" (line {first.line})" if first.line else ""
        return Refused(first.code.value, f"{first.message}{place}")
    try:
        painted = await renderers.render(verdict.sketch, seed=seed, size=canvas)
    except SketchFault as fault:
        return Refused(fault.violation.code.value, fault.violation.message)
    if painted.js_errors:
        return Refused("js_error", painted.js_errors[0])
    least = Gate().min_paint_fraction
    if painted.paint_fraction < least:
        return Refused(
            ViolationCode.BLANK_CANVAS.value,
            f"{painted.paint_fraction:.2%} of the sheet is painted, {least:.2%} is the least.",
        )
    with_size = decode(painted.painting).shape[:2]
    if with_size != (canvas, canvas):
        return Refused(
            ViolationCode.CANVAS_OUT_OF_BOUNDS.value,
            f"The canvas is {with_size[1]}x{with_size[0]}; a reference's is square.",
        )
    return Admitted(verdict.sketch, painted)


class Seen:
    """The pictures that a pool holds, by their pixels and by their looks."""

    def __init__(self, paintings: Iterable[tuple[str, bytes]] = ()) -> None:
        """Start with named PNGs."""
        self._digests: dict[str, str] = {}
        self._names: list[str] = []
        self._looks: list[NDArray[np.float64]] = []
        for name, painting in paintings:
            self.add(name, painting)

    def add(self, name: str, painting: bytes) -> None:
        """Remember a picture."""
        self._digests.setdefault(pools.pixel_digest(painting), name)
        self._names.append(name)
        self._looks.append(_look(painting))

    def twin(self, painting: bytes) -> str | None:
        """The name of a picture that is this one, or cannot be told from it; None without one."""
        same = self._digests.get(pools.pixel_digest(painting))
        if same is not None or not self._looks:
            return same
        apart = np.abs(np.stack(self._looks) - _look(painting)).max(axis=(1, 2, 3))
        nearest = int(apart.argmin())
        return self._names[nearest] if apart[nearest] <= LOOK_ALIKE else None


def _look(painting: bytes) -> NDArray[np.float64]:
    small = Image.fromarray(decode(painting)).resize((CELLS, CELLS), Image.Resampling.BOX)
    return np.asarray(small, np.float64)


def seen(folder: Path, records: Sequence[Record]) -> Seen:
    """What a pool's folder holds; paintings that are not there yet are passed over."""
    held = ((r.name, pools.painting_path(folder, r.name)) for r in records)
    return Seen((name, path.read_bytes()) for name, path in held if path.exists())


def open_or_make(folder: Path, *, canvas: int, what: str, made: str, licence: str) -> Card:
    """The card of a pool; a pool that is not there yet is made, without a painting.

    Raises:
        InputError: the folder holds something else, or a broken pool (InvalidPool).
        InfrastructureError: the disk is full (DiskFull).
    """
    if (folder / pools.CARD).exists():
        return pools.read_card(folder)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(
            Reason.INVALID_POOL,
            f"{folder}: there is something, and it is no pool.",
            remedy=f"Name a new folder, or one that holds {pools.CARD}.",
            field="FOLDER",
            value=str(folder),
        )
    name = slug(folder.resolve().name)
    card = Card(name=name, what=what, made=made, licence=licence, canvas=canvas)
    with disk.full_named(folder, "Make room, then do it again."):
        folder.mkdir(parents=True, exist_ok=True)
    pool_build.write_records(folder, ())
    pool_build.write_card(folder, card)
    return card


def slug(text: str) -> str:
    """A text as a name: small letters, digits and single hyphens."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") or "pool"


def next_name(stem: str, taken: Iterable[str]) -> str:
    """The first free name with that stem: stem_001, stem_002 ... It tells nothing of the tier."""
    number = 0
    pattern = re.compile(re.escape(stem) + r"_(\d+)")
    for name in taken:
        found = pattern.fullmatch(name)
        number = max(number, int(found[1])) if found else number
    return f"{stem}_{number + 1:03d}"


def stem_of(subject: str) -> str:
    """What a subject's paintings are called: its words without the article."""
    words = slug(subject).split("-")
    kept = words[1:] if len(words) > 1 and words[0] in ("a", "an", "the") else words
    return "-".join(kept)[:40]


def add(folder: Path, record: Record, painting: bytes, sketch: str | None) -> Record:
    """Put a painting into the pool: its files first, then its record.

    What another writer has added meanwhile is kept: a name that is taken becomes the next one.

    Args:
        folder: the pool.
        record: checksums may be empty; they are filled.
        painting: PNG.
        sketch: JavaScript; None for a picture without one.

    Returns:
        The record as written.

    Raises:
        InfrastructureError: the disk is full (DiskFull); nothing of it is left behind.
    """
    with disk.full_named(folder, "Make room, then do it again."), disk.locked(folder / LOCK):
        records = pools.read_records(folder)
        taken = {each.name for each in records}
        name = record.name
        if name in taken:
            name = next_name(re.sub(r"_\d+$", "", name), taken)
        whole = record.model_copy(
            update={
                "name": name,
                "painting_sha256": pools.digest(painting),
                "sketch_sha256": "" if sketch is None else pools.digest(sketch.encode()),
            }
        )
        files = {pools.painting_path(folder, name): painting}
        if sketch is not None:
            files[pools.sketch_path(folder, name)] = sketch.encode()
        try:
            for path, data in files.items():
                pool_build.write(path, data)
            pool_build.write_records(folder, [*records, whole])
        except BaseException:
            for path in files:
                path.unlink(missing_ok=True)
            raise
    return whole


def update(folder: Path, changed: Iterable[Record]) -> None:
    """Replace records by name.

    Raises:
        InfrastructureError: the disk is full (DiskFull); the old file is kept.
    """
    new = {record.name: record for record in changed}
    with disk.full_named(folder, "Make room, then do it again."), disk.locked(folder / LOCK):
        records = pools.read_records(folder)
        pool_build.write_records(folder, [new.get(record.name, record) for record in records])
