"""A pool's strengths: from its tiers, a judge's votes and people's comparisons."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from watercolour import disk
from watercolour.api.errors import InputError
from watercolour.api.reasons import Reason
from watercolour.reward import rating_log
from watercolour.reward.pool import Record
from watercolour.reward.ratings import Matrix, strengths

VOTES = "votes.json"


class PoolVote(BaseModel):
    """One comparison of two paintings of the pool, in votes.json."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    first: str
    second: str
    value: float = Field(ge=0, le=1, description="Share that first won: 1, 0.5 or 0.")


def from_matrix(names: Sequence[str], votes: Matrix) -> list[PoolVote]:
    """Votes out of a table.

    Args:
        names: n paintings.
        votes: n x n; ``votes[i, j]`` is the share of comparisons that i won against j, NaN where
            none was made. Only the upper triangle is read.
    """
    return [
        PoolVote(first=names[i], second=names[j], value=float(votes[i, j]))
        for i in range(len(names))
        for j in range(i + 1, len(names))
        if not np.isnan(votes[i, j])
    ]


def read(folder: Path) -> list[PoolVote]:
    """The votes that the pool keeps; none if it keeps none.

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
            remedy="Correct the file, or delete it: the strengths then follow from the ratings.",
            field=str(path),
        ) from error


def write(folder: Path, votes: Sequence[PoolVote]) -> None:
    """Keep these votes with the pool, in place of those before.

    Raises:
        InfrastructureError: the disk is full (DiskFull); the old file is kept.
    """
    rows = json.dumps([vote.model_dump() for vote in votes], indent=0)
    with disk.full_named(folder / VOTES, "Make room, then do it again."):
        disk.write_text(folder / VOTES, rows + "\n")


def of_people(folder: Path) -> list[PoolVote]:
    """The comparisons that people have made on the rating page.

    Raises:
        InputError: (InvalidPool) a file of ratings is broken or belongs to another pool.
    """
    return [
        PoolVote(first=each.left, second=each.right, value=each.value)
        for acts in rating_log.read_all(folder).values()
        for each in rating_log.compared(acts)
    ]


def fitted(folder: Path, records: Sequence[Record]) -> list[Record]:
    """The records with their strengths fitted anew to all that is known.

    Raises:
        InputError: (InvalidPool) a vote compares a painting that is not in the pool, or a file of
            votes or ratings is broken.
    """
    votes = [*read(folder), *of_people(folder)]
    return with_strengths(records, votes)


def with_strengths(records: Sequence[Record], votes: Sequence[PoolVote]) -> list[Record]:
    """The records with strengths that follow from tiers, standings and votes.

    Unrated paintings, and those set aside, keep a strength of 0 and take part in no vote.

    Raises:
        InputError: (InvalidPool) a vote compares a painting that is not in the pool.
    """
    known = {record.name for record in records}
    for vote in votes:
        unknown = {vote.first, vote.second} - known
        if unknown:
            raise InputError(
                Reason.INVALID_POOL,
                f"a vote compares {sorted(unknown)[0]!r}, which is not in the pool.",
                remedy=f"Take that vote out of {VOTES}, or delete the file.",
                field=VOTES,
                value=sorted(unknown)[0],
            )
    drawn = [record for record in records if record.drawn]
    if not drawn:
        return [record.model_copy(update={"strength": 0.0}) for record in records]
    place = {record.name: index for index, record in enumerate(drawn)}
    wins = np.zeros((len(drawn), len(drawn)))
    for vote in votes:
        if vote.first in place and vote.second in place:
            i, j = place[vote.first], place[vote.second]
            wins[i, j] += vote.value
            wins[j, i] += 1 - vote.value
    found = strengths(
        [record.name for record in drawn],
        [record.tier for record in drawn if record.tier is not None],
        [record.standing for record in drawn],
        wins if votes else None,
    )
    return [
        record.model_copy(update={"strength": round(found.get(record.name, 0.0), 3)})
        for record in records
    ]
