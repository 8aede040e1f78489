"""The reference pool: rated paintings that a rollout's painting is compared with.

A pool is a folder:

    pool.yaml         its card: what it is, how it was made, licence, canvas, versions
    paintings.json    one record a painting: subject, tier, strength, checksums, provenance
    paintings/NAME.png
    sketches/NAME.js  none for a picture that was imported

A painting that nobody has rated yet, or that was set aside, lies in the folder and is never drawn.

A draw is seeded, so that all members of a group meet the same references. It does not look at the
subject: the judge is told to ignore what is depicted, and a draw over all subjects is four times
as wide.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any, get_args

from PIL import Image, UnidentifiedImageError
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from yaml import YAMLError, safe_load

from watercolour.api.errors import InputError
from watercolour.api.reasons import Reason
from watercolour.api.spec import TierShares
from watercolour.render.paint import decode
from watercolour.reward.ratings import TIERS, Standing, Tier

CARD, RECORDS = "pool.yaml", "paintings.json"
BUILTIN = "builtin:"
#: The origin of pictures that no sketch of ours painted.
IMPORTED = "imported"


class Record(BaseModel):
    """A painting's line in paintings.json.

    Checksums are SHA-256 of the file's bytes; they and the measurements are empty until the pool
    has been built. What does not apply to a painting is left out of the file.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9_-]*$", max_length=80)
    subject: str = Field(min_length=1)
    tier: Tier | None = Field(default=None, description="None until somebody has rated it.")
    standing: Standing = "middle"
    strength: float = 0.0
    origin: str = Field(
        default="written", description="written, grammar, model, rollout, critique or imported."
    )
    seed: int = Field(default=1, ge=0)
    sketch_sha256: str = ""
    painting_sha256: str = ""
    rasterizer: str = ""
    paint_fraction: float = Field(default=0.0, ge=0, le=1)
    shapes: int = Field(default=0, ge=0)
    generator: str = Field(default="", description="The model that wrote the sketch.")
    parent: str = Field(default="", description="The painting that this one improves upon.")
    round: int = Field(default=0, ge=0, description="Rounds of critique behind it.")
    seed_picture: str = Field(default="", description="The picture that its writer was shown.")
    licence: str = Field(default="", description="Its own, where it is not the pool's.")
    attribution: str = Field(default="", description="Whom the licence wants named.")
    source: str = Field(default="", description="Where it came from: an address or a rollout.")
    aside: str = Field(default="", description="Why it takes no part; empty if it does.")

    @property
    def drawn(self) -> bool:
        """Whether it can become a reference."""
        return self.tier is not None and not self.aside

    @property
    def imported(self) -> bool:
        """Whether it is a picture without a sketch."""
        return self.origin == IMPORTED


class Card(BaseModel):
    """A pool's pool.yaml."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    what: str
    made: str = Field(description="How sketches, tiers and strengths came about.")
    licence: str
    canvas: int = Field(ge=64, le=1024, description="Side of every painting in pixels.")
    versions: dict[str, str] = Field(default_factory=dict, description="Of the renderer.")


@dataclass(frozen=True)
class Reference:
    """A rated painting.

    Attributes:
        name: unique in its pool.
        subject: what its sketch was asked to paint.
        tier: ``love``, ``okay`` or ``meh``.
        strength: Bradley-Terry log-odds; the okay tier's mean is 0.
        painting: PNG.
        sketch: JavaScript; empty for an imported picture.
    """

    name: str
    subject: str
    tier: Tier
    strength: float
    painting: bytes = field(repr=False)
    sketch: str = field(repr=False)


@dataclass(frozen=True)
class Pool:
    """A whole pool in memory, in the order of its records."""

    card: Card
    references: tuple[Reference, ...]

    def tier(self, tier: Tier) -> tuple[Reference, ...]:
        """The references of one tier."""
        return tuple(r for r in self.references if r.tier == tier)


def load(source: str | Path) -> Pool:
    """Read and check a pool.

    Args:
        source: ``builtin:NAME`` or a folder.

    Raises:
        InputError: (InvalidPool) a file is missing or broken, a checksum differs, a tier is
            unknown, a name or a painting is there twice, nothing is rated; the message names
            file, value and remedy.
    """
    folder = locate(source)
    card, records = read_card(folder), read_records(folder)
    if not records:
        raise _invalid(folder / RECORDS, "no paintings", "Add at least one record.")
    rated = [record for record in records if record.drawn]
    if not rated:
        raise _invalid(
            folder / RECORDS,
            f"none of its {len(records)} paintings is rated",
            f"Rate them: watercolour pool rate {folder}.",
        )
    references = tuple(_reference(folder, card, record) for record in rated)
    _refuse_twins(folder, references)
    okay = [r.strength for r in references if r.tier == "okay"]
    zero = sum(okay) / len(okay) if okay else 0.0
    return Pool(card, tuple(_shifted(r, zero) for r in references))


def draw(pool: Pool, seed: int, per_rollout: int, shares: TierShares) -> tuple[Reference, ...]:
    """The references of one group, strongest tier first; equal for equal arguments.

    Tiers get their shares by largest remainder (ties go to the stronger tier); within a tier
    references are drawn without replacement.

    Raises:
        InputError: (InvalidPool) a tier has fewer paintings than its share needs.
    """
    rng = random.Random(f"draw {seed}")
    drawn: list[Reference] = []
    for tier, count in allocate(per_rollout, shares).items():
        rated = pool.tier(tier)
        if count > len(rated):
            raise InputError(
                Reason.INVALID_POOL,
                f"references.perRollout={per_rollout} with tierShares.{tier}="
                f"{getattr(shares, tier):g} draws {count} {tier} paintings, but pool "
                f"{pool.card.name!r} has {len(rated)}.",
                remedy="Lower references.perRollout or that share, or take a larger pool.",
                field="references.perRollout",
                value=per_rollout,
            )
        drawn += rng.sample(rated, count)
    return tuple(drawn)


def allocate(total: int, shares: TierShares) -> dict[Tier, int]:
    """How many of ``total`` references each tier gives, by largest remainder."""
    wanted: dict[Tier, float] = {tier: total * getattr(shares, tier) for tier in TIERS}
    counts: dict[Tier, int] = {tier: math.floor(share + 1e-9) for tier, share in wanted.items()}
    by_remainder = sorted(TIERS, key=lambda tier: counts[tier] - wanted[tier])
    for tier in by_remainder[: total - sum(counts.values())]:
        counts[tier] += 1
    return counts


def draw_strength(references: Sequence[Reference]) -> float:
    """Share of wins that an average okay painting expects against a draw; lower is harder.

    The mean over the draw of 1 / (1 + exp(strength)), as the okay tier's mean strength is 0.

    Raises:
        ValueError: the draw is empty.
    """
    if not references:
        raise ValueError("an empty draw has no strength")
    return sum(1 / (1 + math.exp(r.strength)) for r in references) / len(references)


# Files.


def locate(source: str | Path) -> Path:
    """The folder of a pool.

    Raises:
        InputError: (InvalidPool) there is no such folder.
    """
    name = str(source)
    if name.startswith(BUILTIN):
        shipped = Path(str(resources.files("watercolour.reward"))) / "pools"
        folder = shipped / name.removeprefix(BUILTIN)
        known = sorted(p.name for p in shipped.iterdir() if (p / CARD).is_file())
        remedy = f"Take one of {', '.join(BUILTIN + k for k in known)}, or a folder."
    else:
        folder = Path(source)
        remedy = f"Give builtin:flowers or a folder that holds {CARD} and {RECORDS}."
    if not folder.is_dir():
        raise InputError(
            Reason.INVALID_POOL,
            f"spec.references.pool={name!r}: no such pool.",
            remedy=remedy,
            field="spec.references.pool",
            value=name,
        )
    return folder


def read_card(folder: Path) -> Card:
    """The pool's card.

    Raises:
        InputError: (InvalidPool) pool.yaml is missing or breaks its rules.
    """
    path = folder / CARD
    try:
        return Card.model_validate(safe_load(_read(path).decode()))
    except (YAMLError, UnicodeDecodeError) as error:
        raise _invalid(path, f"not YAML: {error}", "Repair the file.") from error
    except ValidationError as error:
        raise _refused(path, error) from error


def read_records(folder: Path) -> tuple[Record, ...]:
    """The records of paintings.json, as they stand there.

    Raises:
        InputError: (InvalidPool) the file is missing or a record breaks its rules.
    """
    path = folder / RECORDS
    try:
        rows: Any = json.loads(_read(path))
    except ValueError as error:
        raise _invalid(path, f"not JSON: {error}", "Repair the file.") from error
    if not isinstance(rows, list):
        raise _invalid(path, f"a {type(rows).__name__}", "Make it a list of records.")
    records: list[Record] = []
    for row in rows:
        tier: Any = row.get("tier") if isinstance(row, dict) else None
        if tier is not None and tier not in get_args(Tier):
            message = f"tier={tier!r} of {row.get('name')!r} is unknown"
            raise _invalid(path, message, f"Take one of {', '.join(TIERS)}.")
        try:
            records.append(Record.model_validate(row))
        except ValidationError as error:
            raise _refused(path, error) from error
    names = [record.name for record in records]
    for name in names:
        if names.count(name) > 1:
            raise _invalid(path, f"name={name!r} appears twice", "Rename one of them.")
    return tuple(records)


def painting_path(folder: Path, name: str) -> Path:
    """Where a painting lies."""
    return folder / "paintings" / f"{name}.png"


def sketch_path(folder: Path, name: str) -> Path:
    """Where a sketch lies."""
    return folder / "sketches" / f"{name}.js"


def read_text(path: Path) -> str:
    """A file of a pool.

    Raises:
        InputError: (InvalidPool) it is missing, unreadable, or not UTF-8.
    """
    data = _read(path)
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise _invalid(path, f"not UTF-8: {error.reason}", "Save it as UTF-8.") from error


def digest(data: bytes) -> str:
    """SHA-256 in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def pixel_digest(painting: bytes) -> str:
    """What two PNGs share if and only if they show the same picture; SHA-256, hexadecimal.

    Raises:
        OSError, ValueError: the bytes are no picture that can be decoded.
    """
    pixels = decode(painting)
    return digest(f"{pixels.shape}".encode() + pixels.tobytes())


def _refuse_twins(folder: Path, references: Sequence[Reference]) -> None:
    """A picture that is there twice would count twice in a draw."""
    seen: dict[str, str] = {}
    for reference in references:
        found = pixel_digest(reference.painting)
        twin = seen.setdefault(found, reference.name)
        if twin != reference.name:
            raise _invalid(
                folder / RECORDS,
                f"{twin!r} and {reference.name!r} are the same picture, pixel for pixel",
                "Take one of them out.",
            )


def _reference(folder: Path, card: Card, record: Record) -> Reference:
    assert record.tier is not None, "only rated paintings become references"
    painting = painting_path(folder, record.name)
    pixels, source = _read(painting), ""
    _check_sum(painting, pixels, record.painting_sha256, "painting_sha256")
    if not record.imported:
        sketch = sketch_path(folder, record.name)
        source = read_text(sketch)
        _check_sum(sketch, source.encode(), record.sketch_sha256, "sketch_sha256")
    _check_png(painting, pixels, card.canvas)
    return Reference(record.name, record.subject, record.tier, record.strength, pixels, source)


def _shifted(reference: Reference, zero: float) -> Reference:
    """The reference with its strength measured from the okay tier's mean."""
    return Reference(
        reference.name,
        reference.subject,
        reference.tier,
        reference.strength - zero,
        reference.painting,
        reference.sketch,
    )


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        text = error.strerror or str(error)
        raise _invalid(path, text, "Restore the file, or build the pool again.") from error


def _check_sum(path: Path, data: bytes, expected: str, name: str) -> None:
    found = digest(data)
    if found != expected:
        raise _invalid(
            path,
            f"its SHA-256 is {found[:12]}..., but {name} in {RECORDS} is "
            f"{expected[:12] + '...' if expected else 'empty'}",
            "Restore the file, or build the pool again.",
        )


def _check_png(path: Path, data: bytes, canvas: int) -> None:
    try:
        with Image.open(io.BytesIO(data), formats=("PNG",)) as image:
            size = image.size
            # The header is believed before anything is unpacked, so that a bomb stays small.
            if size == (canvas, canvas):
                image.load()
    except (
        UnidentifiedImageError,
        OSError,
        SyntaxError,
        ValueError,
        Image.DecompressionBombError,
    ) as error:
        raise _invalid(path, f"not a whole PNG: {error}", "Build the pool again.") from error
    if size != (canvas, canvas):
        raise _invalid(
            path,
            f"{size[0]}x{size[1]} pixels, but canvas={canvas} in {CARD}",
            "Build the pool again, or correct the card.",
        )


def _refused(path: Path, error: ValidationError) -> InputError:
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"]) or "the record"
    message = f"{where}={first['input']!r}: {first['msg']}"
    return _invalid(path, message, "Correct that field.")


def _invalid(path: Path, message: str, remedy: str) -> InputError:
    return InputError(
        Reason.INVALID_POOL, f"{path}: {message}.", remedy=remedy, field=str(path), value=message
    )
