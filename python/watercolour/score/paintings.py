"""Reads rated paintings from a folder and embeds them: the pool, and the probes."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from watercolour.api.errors import InputError
from watercolour.api.reasons import Reason
from watercolour.score import features
from watercolour.score.features import Features, NotAPicture

BUILTIN = Path(__file__).parent.parent / "reward" / "pools" / "flowers"


@dataclass(frozen=True)
class Paintings:
    """A pool as the heads need it; all tuples have one entry a painting.

    Attributes:
        checksum: SHA-256 over names, subjects, tiers and pictures.
    """

    names: tuple[str, ...]
    subjects: tuple[str, ...]
    tiers: tuple[str, ...]
    pictures: tuple[bytes, ...]
    checksum: str


def read(folder: Path) -> Paintings:
    """Names, subjects, tiers and pictures of a pool folder (paintings.json and PNG files).

    Raises:
        InputError: the folder is no pool, or a picture is missing (InvalidPool).
    """
    index = folder / "paintings.json"
    try:
        rows: list[dict[str, Any]] = json.loads(index.read_text())["paintings"]
        pictures = tuple((folder / row["painting"]).read_bytes() for row in rows)
        names, subjects, tiers = (
            tuple(str(row[key]) for row in rows) for key in ("name", "subject", "tier")
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(
            Reason.INVALID_POOL,
            f"--pool={folder}: {index.name} or a picture that it names cannot be read ({error}).",
            remedy="Give a folder with paintings.json and its PNG files.",
            field="pool",
            value=str(folder),
        ) from error
    digest = hashlib.sha256()
    for row in zip(names, subjects, tiers, pictures, strict=True):
        for part in row:
            data = part if isinstance(part, bytes) else part.encode()
            digest.update(len(data).to_bytes(8, "big") + data)
    return Paintings(names, subjects, tiers, pictures, digest.hexdigest())


def embed(pool: Paintings, threads: int = 2) -> list[Features]:
    """Features of a pool's paintings.

    Raises:
        InputError: one of them is no picture (InvalidPool), by name.
    """
    backbone = features.open_backbone(threads)
    found: list[Features] = []
    for name, picture in zip(pool.names, pool.pictures, strict=True):
        try:
            found += backbone.features([features.decode(picture)])
        except NotAPicture as error:
            raise InputError(
                Reason.INVALID_POOL,
                f"the painting {name!r} {error}.",
                remedy="Render it anew.",
                field=name,
            ) from error
    return found
