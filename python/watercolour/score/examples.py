"""Rated paintings as the heads learn from them: the pool, the same recoloured, counterexamples.

Recoloured: every painting once more with red and blue exchanged and its paper kept, so that a
red poppy teaches what a blue iris needs and no head learns a subject's colour for merit. (Green
stays, hence leaves do.) Counterexamples are attempts to cheat, rendered and shipped, and good
paintings that were spoilt; both count as meh.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from watercolour.api.errors import InputError
from watercolour.api.reasons import Reason
from watercolour.score import degrade, features
from watercolour.score.features import Backbone, Features, Pixels
from watercolour.score.pictures import NotAPicture

BUILTIN = Path(__file__).parent.parent / "reward" / "pools" / "flowers"
COUNTEREXAMPLES = Path(__file__).parent / "data" / "counterexamples"

#: Tiers in rising order, with the mean that HPSv3 gave to paintings of that tier.
TIER_MU = {"meh": -7.0, "okay": 2.5, "love": 3.5}


@dataclass(frozen=True)
class Examples:
    """What the heads are fitted on; every field has one entry an example.

    Attributes:
        quality, judge: features [n, 768] and [n, 1536].
        ranks: [n], the tier's place in TIER_MU.
        subjects: [n], names.
        own: [n], true for the pool's paintings as they are: only by these are accuracies measured
            and the scale set.
        counter: [n], true for counterexamples, spoilt paintings among them.
        kinds: [n], how a good painting was spoilt, by its name in :mod:`degrade`; empty for the
            others. The judge alone learns from them: quality notices without.
    """

    quality: NDArray[np.float32]
    judge: NDArray[np.float32]
    ranks: NDArray[np.int64]
    subjects: NDArray[np.str_]
    own: NDArray[np.bool_]
    counter: NDArray[np.bool_]
    kinds: NDArray[np.str_]


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
    """Names, subjects, tiers and pictures of a pool folder (paintings.json, paintings/NAME.png).

    Raises:
        InputError: the folder is no pool, or a picture is missing (InvalidPool).
    """
    index = folder / "paintings.json"
    try:
        rows: list[dict[str, Any]] = json.loads(index.read_text())
        pictures = tuple((folder / "paintings" / f"{row['name']}.png").read_bytes() for row in rows)
        names, subjects, tiers = (
            tuple(str(row[key]) for row in rows) for key in ("name", "subject", "tier")
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(
            Reason.INVALID_POOL,
            f"--pool={folder}: {index.name} or a picture that it names cannot be read ({error}).",
            remedy="Give a folder with paintings.json and paintings/NAME.png.",
            field="pool",
            value=str(folder),
        ) from error
    digest = hashlib.sha256()
    for row in zip(names, subjects, tiers, pictures, strict=True):
        for part in row:
            data = part if isinstance(part, bytes) else part.encode()
            digest.update(len(data).to_bytes(8, "big") + data)
    return Paintings(names, subjects, tiers, pictures, digest.hexdigest())


def rank(tiers: Sequence[str]) -> NDArray[np.int64]:
    """Tier names to 0, 1, 2.

    Raises:
        InputError: a tier that does not exist.
    """
    order = list(TIER_MU)
    for tier in tiers:
        if tier not in order:
            raise InputError(
                Reason.INVALID_POOL,
                f"tier {tier!r} does not exist.",
                remedy=f"Use one of {', '.join(order)}.",
                field="tier",
                value=tier,
            )
    return np.array([order.index(tier) for tier in tiers], np.int64)


def decode(rated: Paintings) -> list[Pixels]:
    """Pixels of all paintings.

    Raises:
        InputError: one of them is no picture (InvalidPool), by name.
    """
    found: list[Pixels] = []
    for name, picture in zip(rated.names, rated.pictures, strict=True):
        try:
            found.append(features.decode(picture))
        except NotAPicture as error:
            raise InputError(
                Reason.INVALID_POOL,
                f"the painting {name!r} {error}.",
                remedy="Render it anew.",
                field=name,
            ) from error
    return found


def paper(pixels: Pixels) -> NDArray[np.float64]:
    """[3], the commonest colour of the picture's border, to 8 levels a channel."""
    edge = np.concatenate([pixels[0], pixels[-1], pixels[:, 0], pixels[:, -1]])
    coarse = (edge >> 5).astype(np.int64) @ np.array([64, 8, 1])
    commonest = np.bincount(coarse).argmax()
    return np.median(edge[coarse == commonest], axis=0)


def recolour(pixels: Pixels) -> Pixels:
    """The picture with red and blue exchanged; its paper keeps its colour."""
    sheet = np.maximum(paper(pixels), 1.0)
    swapped = pixels[:, :, ::-1] / sheet[::-1] * sheet
    return np.clip(swapped, 0, 255).astype(np.uint8)


def stack(found: Sequence[Features]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Quality features [n, 768] and judge features [n, 1536]."""
    return np.stack([f.quality for f in found]), np.stack([f.judge for f in found])


def gather(pool: Paintings, counterexamples: Paintings, backbone: Backbone) -> Examples:
    """The pool and the counterexamples, then both recoloured; then good paintings spoilt.

    Raises:
        InputError: a painting cannot be decoded, or a tier does not exist (InvalidPool).
    """
    pixels = [*decode(pool), *decode(counterexamples)]
    taught, _ = good(pool)
    spoilt = [(number, kind) for kind in degrade.ALL for number in taught]
    ruins = [features.decode(degrade.spoil(pool.pictures[n], kind)) for n, kind in spoilt]
    quality, judge = stack(features.embed(backbone, [*pixels, *map(recolour, pixels), *ruins]))
    whole, place = 2 * len(pixels), np.tile(np.arange(len(pixels)), 2)
    ranks = np.tile(rank([*pool.tiers, *counterexamples.tiers]), 2)
    subjects = np.tile(np.array([*pool.subjects, *counterexamples.subjects]), 2)
    return Examples(
        quality,
        judge,
        np.concatenate([ranks, np.zeros(len(ruins), np.int64)]),
        np.concatenate([subjects, np.array([pool.subjects[n] for n, _ in spoilt])]),
        np.arange(whole + len(ruins)) < len(pool.names),
        np.concatenate([place >= len(pool.names), np.ones(len(ruins), bool)]),
        np.array([*[""] * whole, *(kind for _, kind in spoilt)]),
    )


def good(pool: Paintings) -> tuple[list[int], list[int]]:
    """Places of the good paintings that are spoilt to teach, and of those spoilt to test."""
    places = [n for n, tier in enumerate(pool.tiers) if tier != "meh"]
    return places[4::9], places[::9]
