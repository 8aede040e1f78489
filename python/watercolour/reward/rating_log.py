"""What people said of a pool's paintings: a line an act, one file a rater, never rewritten.

    ratings/RATER.jsonl

The first line names the pool, each further one is a rating, a comparison or the undoing of one.
Lines are only ever appended, under a lock and flushed to the disk before anybody is told that they
are saved. So two raters, two windows or two servers lose nothing to each other, a rating survives
whatever ends the program, and undoing survives it too.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from watercolour import disk
from watercolour.api.errors import InputError
from watercolour.api.reasons import Reason
from watercolour.reward import pool as pools
from watercolour.reward.pool import Record
from watercolour.reward.ratings import Tier

FOLDER = "ratings"

#: How a rater may be called: the name becomes that of a file.
RATER = re.compile(r"[a-z0-9][a-z0-9_-]{0,31}")

#: What a rating says: a tier, or that the painting takes no part.
Said = Tier | Literal["aside"]

#: What a comparison says.
Won = Literal["left", "even", "right"]


class _Line(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Header(_Line):
    """The first line of a file: whose paintings these are."""

    kind: Literal["pool"] = "pool"
    pool: str
    rater: str


class Rated(_Line):
    """One painting's tier. ``before`` is what its record said, for whoever takes it back."""

    kind: Literal["tier"] = "tier"
    id: str = Field(
        min_length=8, max_length=64, description="Of the act; a repeat changes nothing."
    )
    at: str = Field(description="When, ISO 8601.")
    name: str
    key: str = Field(description="Of the picture; see key().")
    said: Said
    before: Said | None = None


class Compared(_Line):
    """Two paintings beside each other, and which of them is better painted."""

    kind: Literal["pair"] = "pair"
    id: str = Field(min_length=8, max_length=64)
    at: str
    left: str
    right: str
    keys: tuple[str, str]
    won: Won

    @property
    def value(self) -> float:
        """Share that left won: 1, 0.5 for no difference, or 0."""
        return {"left": 1.0, "even": 0.5, "right": 0.0}[self.won]


class Undone(_Line):
    """An act taken back."""

    kind: Literal["undo"] = "undo"
    id: str = Field(min_length=8, max_length=64)
    at: str
    undoes: str


Act = Annotated[Rated | Compared | Undone, Field(discriminator="kind")]
_LINE: TypeAdapter[Header | Rated | Compared | Undone] = TypeAdapter(
    Annotated[Header | Rated | Compared | Undone, Field(discriminator="kind")]
)


def key(record: Record) -> str:
    """What a rating is tied to: the sketch, or the picture where there is none.

    A painting that another renderer painted again keeps its ratings, one that was redrawn loses
    them.
    """
    return (record.sketch_sha256 or record.painting_sha256)[:16]


def checked_rater(rater: str) -> str:
    """The rater's name, in small letters.

    Raises:
        InputError: it cannot be the name of a file.
    """
    found = rater.strip().lower()
    if not RATER.fullmatch(found):
        raise InputError(
            Reason.INVALID_INPUT,
            f"rater={rater!r} is no name for a rater.",
            remedy="Use up to 32 letters a-z, digits, - and _; a letter or digit first.",
            field="rater",
            value=rater,
        )
    return found


def path_of(folder: Path, rater: str) -> Path:
    """The file of a rater."""
    return folder / FOLDER / f"{rater}.jsonl"


def active(acts: Iterable[Rated | Compared | Undone]) -> list[Rated | Compared]:
    """The acts that hold: neither undone nor an undoing, in their order."""
    kept: dict[str, Rated | Compared] = {}
    for act in acts:
        if isinstance(act, Undone):
            kept.pop(act.undoes, None)
        else:
            kept[act.id] = act
    return list(kept.values())


def tiers(acts: Iterable[Rated | Compared | Undone]) -> dict[str, Rated]:
    """Each painting's last rating that holds, by the painting's name."""
    return {act.name: act for act in active(acts) if isinstance(act, Rated)}


def compared(acts: Iterable[Rated | Compared | Undone]) -> list[Compared]:
    """The comparisons that hold."""
    return [act for act in active(acts) if isinstance(act, Compared)]


def read_all(folder: Path) -> dict[str, list[Rated | Compared | Undone]]:
    """What every rater did, by the rater's name; of a painting that has changed since, nothing.

    Raises:
        InputError: (InvalidPool) a file is broken, or belongs to another pool.
    """
    files = sorted((folder / FOLDER).glob("*.jsonl"))
    if not files:
        return {}
    name = pools.read_card(folder).name
    keys = {record.name: key(record) for record in pools.read_records(folder)}
    return {path.stem: _read(path, name, keys) for path in files}


def append(folder: Path, rater: str, act: Rated | Compared | Undone) -> bool:
    """Save an act; False if an act of that id has been saved before.

    Raises:
        InputError: (InvalidPool) the rater's file is broken or belongs to another pool.
        InfrastructureError: the disk is full (DiskFull); the file is as it was.
    """
    path = path_of(folder, rater)
    with disk.full_named(path, "Make room, then rate on: nothing else is lost."):
        path.parent.mkdir(exist_ok=True)
        with disk.locked(path) as held:
            end = _whole_end(held)
            saved = os.pread(held, end, 0)
            name = pools.read_card(folder).name
            lines = _parse(path, saved, name) if saved else []
            if any(line.id == act.id for line in lines):
                return False
            header = "" if saved else Header(pool=name, rater=rater).model_dump_json() + "\n"
            _extend(held, end, (header + act.model_dump_json() + "\n").encode())
    return True


def _whole_end(held: int) -> int:
    """Where the last whole line ends: what a crash left half-written was never acknowledged."""
    size = os.fstat(held).st_size
    return os.pread(held, size, 0).rfind(b"\n") + 1


def _extend(held: int, end: int, data: bytes) -> None:
    """Put data behind the last whole line, or leave the file as it was up to there."""
    os.ftruncate(held, end)
    try:
        written = 0
        while written < len(data):
            written += os.write(held, data[written:])
        os.fsync(held)
    except OSError:
        os.ftruncate(held, end)
        raise


def _read(path: Path, pool: str, keys: Mapping[str, str]) -> list[Rated | Compared | Undone]:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise _broken(path, error.strerror or str(error), "Restore the file.") from error
    acts = _parse(path, data[: data.rfind(b"\n") + 1], pool)
    known = [act for act in acts if _holds(act, keys)]
    if any(not isinstance(act, Undone) for act in acts) and not any(
        not isinstance(act, Undone) for act in known
    ):
        raise _broken(
            path,
            f"none of the paintings that it rates is in the pool {pool!r}",
            "Put the file where it belongs, or delete it.",
        )
    return known


def _holds(act: Rated | Compared | Undone, keys: Mapping[str, str]) -> bool:
    """Whether what the act speaks of is still what was looked at."""
    if isinstance(act, Rated):
        return keys.get(act.name) == act.key
    if isinstance(act, Compared):
        return (keys.get(act.left), keys.get(act.right)) == act.keys
    return True


def _parse(path: Path, data: bytes, pool: str) -> list[Rated | Compared | Undone]:
    lines = data.splitlines()
    acts: list[Rated | Compared | Undone] = []
    for number, text in enumerate(lines, 1):
        try:
            line = _LINE.validate_json(text)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"])
            message = f"line {number}: {where + ': ' if where else ''}{first['msg']}"
            raise _broken(path, message, "Correct that line, or take it out.") from error
        if (number == 1) != isinstance(line, Header):
            message = (
                f"line {number}: the name of the pool stands in the first line and nowhere else"
            )
            raise _broken(path, message, "Put the file where it belongs.")
        if isinstance(line, Header):
            if line.pool != pool:
                raise _broken(
                    path,
                    f"these are ratings of the pool {line.pool!r}, and this is {pool!r}",
                    "Put the file where it belongs, or delete it.",
                )
        else:
            acts.append(line)
    return acts


def _broken(path: Path, message: str, remedy: str) -> InputError:
    return InputError(
        Reason.INVALID_POOL, f"{path}: {message}.", remedy=remedy, field=str(path), value=message
    )


def by_painting(
    acts: Mapping[str, Sequence[Rated | Compared | Undone]],
) -> dict[str, dict[str, Said]]:
    """Ratings that hold: by the painting's name, then by the rater's."""
    found: dict[str, dict[str, Said]] = {}
    for rater, theirs in acts.items():
        for name, act in tiers(theirs).items():
            found.setdefault(name, {})[rater] = act.said
    return found
