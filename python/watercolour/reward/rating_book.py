"""From what raters said to what the pool's records say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from watercolour import disk
from watercolour.reward import pool as pools
from watercolour.reward import pool_build, pool_votes, rating_log
from watercolour.reward.pool import Record
from watercolour.reward.pool_votes import PoolVote
from watercolour.reward.rating_log import Compared, Rated, Said, Undone
from watercolour.reward.ratings import TIERS, Standing, Tier

#: Held while paintings.json is written, so that no writer works on what another has changed.
LOCK = ".lock"

#: Why a painting takes no part that raters have set aside.
SET_ASIDE = "set aside by its raters"

#: Comparisons that a tier's paintings need, on average, before they are parted into standings.
COMPARISONS_FOR_STANDING = 2.0

Acts = Mapping[str, Sequence[Rated | Compared | Undone]]


def consensus(said: Sequence[Said]) -> Said:
    """What several raters make of one painting together.

    It is set aside when more than half of them say so. Otherwise it gets the median of the tiers;
    of two in the middle the lower one, since a reference that is rated too high teaches worse than
    one that is rated too low.

    Raises:
        ValueError: nobody has rated it.
    """
    if not said:
        raise ValueError("nobody has rated it")
    ranks = sorted(TIERS.index(each) for each in said if each != "aside")
    if 2 * len(ranks) < len(said):
        return "aside"
    return TIERS[ranks[len(ranks) // 2]]


def settle(records: Sequence[Record], acts: Acts) -> list[Record]:
    """The records as the raters leave them; strengths are still those from before.

    A painting that no one has rated keeps what its record says. One whose every rating was taken
    back gets what it had before the first of them.
    """
    said = rating_log.by_painting(acts)
    before = _before(acts)
    settled: list[Record] = []
    for record in records:
        votes = list(said.get(record.name, {}).values())
        if votes:
            settled.append(_with(record, consensus(votes)))
        elif record.name in before:
            settled.append(_with(record, before[record.name]))
        else:
            settled.append(record)
    return settled


def _before(acts: Acts) -> dict[str, Said | None]:
    """What each painting that was ever rated had before its first rating."""
    rated = sorted(
        (act for theirs in acts.values() for act in theirs if isinstance(act, Rated)),
        key=lambda act: act.at,
        reverse=True,
    )
    return {act.name: act.before for act in rated}


def said_of(record: Record) -> Said | None:
    """What a record says by itself."""
    return "aside" if record.aside else record.tier


def _with(record: Record, said: Said | None) -> Record:
    if said_of(record) == said:
        return record
    if said == "aside":
        return record.model_copy(update={"aside": record.aside or SET_ASIDE})
    return record.model_copy(update={"tier": said, "aside": "", "standing": "middle"})


def placed(records: Sequence[Record], votes: Sequence[PoolVote]) -> list[Record]:
    """The records with their standings: thirds of a tier by strength, once it was compared enough.

    A tier whose paintings were compared less than :data:`COMPARISONS_FOR_STANDING` times on average
    keeps the standings that it has.
    """
    standings: dict[str, Standing] = {}
    for tier in TIERS:
        within = [record for record in records if record.drawn and record.tier == tier]
        names = {record.name for record in within}
        met = sum((vote.first in names) + (vote.second in names) for vote in votes)
        if len(within) < 3 or met < COMPARISONS_FOR_STANDING * len(within):
            continue
        ordered = sorted(within, key=lambda record: -record.strength)
        for index, record in enumerate(ordered):
            standings[record.name] = ("upper", "middle", "lower")[3 * index // len(ordered)]
    return [
        record.model_copy(update={"standing": standings.get(record.name, record.standing)})
        for record in records
    ]


def write(folder: Path) -> list[Record]:
    """Bring paintings.json up to date with all that was rated; return its records.

    The ratings themselves are safe in their own files before this; whatever goes wrong here is
    made good by the next call.

    Raises:
        InputError: (InvalidPool) a file of the pool or of its ratings is broken.
        InfrastructureError: the disk is full (DiskFull); the old file is kept.
    """
    with disk.full_named(folder / LOCK, "Make room, then rate on."), disk.locked(folder / LOCK):
        before = list(pools.read_records(folder))
        acts = rating_log.read_all(folder)
        votes = [*pool_votes.read(folder), *pool_votes.of_people(folder)]
        settled = pool_votes.with_strengths(settle(before, acts), votes)
        after = placed(settled, votes)
        if after != before:
            pool_build.write_records(folder, after)
    return after


def tally(records: Sequence[Record]) -> dict[Tier | None, int]:
    """How many paintings each tier has, and how many nobody has rated; none that was set aside."""
    counts: dict[Tier | None, int] = dict.fromkeys((*TIERS, None), 0)
    for record in records:
        if not record.aside:
            counts[record.tier] += 1
    return counts
