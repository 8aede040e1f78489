"""What the rating page shows: the painting or pair that comes next, and how far one is."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import numpy as np

from watercolour.api.errors import InputError
from watercolour.api.reasons import Reason
from watercolour.reward import agreement, pairs, pool_votes, rating_book, rating_log
from watercolour.reward import pool as pools
from watercolour.reward.pool import Record
from watercolour.reward.pool_votes import PoolVote
from watercolour.reward.rating_log import Compared, Rated, Said, Undone, Won
from watercolour.reward.ratings import TIERS, rated_wins

Mode = Literal["tiers", "pairs"]

#: Acts shown as small paintings below, and paintings that are fetched before they are asked for.
RECENT, AHEAD = 12, 2
#: The strongest paintings, shown below the pairs; disputed ones, shown with what each rater said.
LADDER, DISPUTED = 5, 24


def state(
    folder: Path, rater: str, mode: Mode, *, skipped: Sequence[str] = (), wanted: str | None = None
) -> dict[str, Any]:
    """Everything that the page shows.

    Args:
        folder: the pool.
        rater: whose page it is.
        mode: tiers shows one painting, pairs two.
        skipped: paintings that the rater wants to see last.
        wanted: a painting that the rater wants to see again now.

    Raises:
        InputError: the pool or a file of ratings is broken (InvalidPool).
    """
    card = pools.read_card(folder)
    records = pools.read_records(folder)
    acts = rating_log.read_all(folder)
    mine = acts.get(rater, [])
    shown = [record for record in records if _is_shown(record)]
    said: dict[str, Said] = {name: act.said for name, act in rating_log.tiers(mine).items()}
    return {
        "pool": {"name": card.name, "what": card.what},
        "rater": rater,
        "raters": [_rater(name, theirs) for name, theirs in sorted(acts.items())],
        "mode": mode,
        "total": len(shown),
        "rated": sum(record.name in said for record in shown),
        "tally": _tally(said[record.name] for record in shown if record.name in said),
        "recent": [_recent(act) for act in rating_log.active(mine)[-RECENT:]][::-1],
        "agreement": _agreement(acts, rater),
        **(
            _one(shown, said, rater, skipped, wanted)
            if mode == "tiers"
            else _two(folder, shown, rating_log.compared(mine), rater)
        ),
    }


def rate(folder: Path, rater: str, act_id: str, name: str, said: Said) -> None:
    """Save what a rater says of a painting; a repeated id changes nothing.

    Raises:
        InputError: there is no such painting (InvalidInput), or a file is broken (InvalidPool).
        InfrastructureError: the disk is full (DiskFull).
    """
    record = _record(folder, name)
    act = Rated(
        id=act_id,
        at=_now(),
        name=name,
        key=rating_log.key(record),
        said=said,
        before=rating_book.said_of(record),
    )
    _save(folder, rater, act)


def compare(folder: Path, rater: str, act_id: str, left: str, right: str, won: Won) -> None:
    """Save which of two paintings a rater finds better painted.

    Raises:
        InputError: there is no such painting, or it is one and the same (InvalidInput).
        InfrastructureError: the disk is full (DiskFull).
    """
    if left == right:
        raise _no_painting(left, "a painting cannot be compared with itself")
    keys = (rating_log.key(_record(folder, left)), rating_log.key(_record(folder, right)))
    act = Compared(id=act_id, at=_now(), left=left, right=right, keys=keys, won=won)
    _save(folder, rater, act)


def undo(folder: Path, rater: str, act_id: str) -> str | None:
    """Take back the rater's last act that holds; the painting that it was about, None if none.

    Raises:
        InfrastructureError: the disk is full (DiskFull).
    """
    mine = rating_log.read_all(folder).get(rater, [])
    if any(isinstance(act, Undone) and act.id == act_id for act in mine):
        return None
    held = rating_log.active(mine)
    if not held:
        return None
    last = held[-1]
    _save(folder, rater, Undone(id=act_id, at=_now(), undoes=last.id))
    return last.name if isinstance(last, Rated) else None


def _save(folder: Path, rater: str, act: Rated | Compared | Undone) -> None:
    rating_log.append(folder, rater, act)
    # Also for a repeat: the first try may have ended between the two.
    rating_book.write(folder)


def _is_shown(record: Record) -> bool:
    return not record.aside or record.aside == rating_book.SET_ASIDE


def queue(names: Sequence[str], rater: str, done: set[str], skipped: Sequence[str]) -> list[str]:
    """Who comes next: the unrated in an order of the rater's own, then those that were skipped.

    An order of one's own, since how a painting looks depends on the one before it.
    """
    last = {name: place for place, name in enumerate(skipped)}
    waiting = [name for name in names if name not in done]
    return sorted(waiting, key=lambda n: (last.get(n, -1), _lot(rater, n)))


def _lot(rater: str, name: str) -> str:
    return hashlib.sha256(f"{rater} {name}".encode()).hexdigest()


def _one(
    shown: Sequence[Record],
    said: dict[str, Said],
    rater: str,
    skipped: Sequence[str],
    wanted: str | None,
) -> dict[str, Any]:
    by_name = {record.name: record for record in shown}
    waiting = queue(list(by_name), rater, set(said), skipped)
    if wanted in by_name:
        waiting = [wanted, *(name for name in waiting if name != wanted)]
    if not waiting:
        return {"item": None, "next": []}
    item = _painting(by_name[waiting[0]]) | {"said": said.get(waiting[0])}
    return {"item": item, "next": [_url(name) for name in waiting[1 : 1 + AHEAD]]}


def _two(
    folder: Path, shown: Sequence[Record], mine: Sequence[Compared], rater: str
) -> dict[str, Any]:
    kept = [record for record in shown if not record.aside]
    votes = [*pool_votes.read(folder), *pool_votes.of_people(folder)]
    fit = fitted(kept, votes)
    done = frozenset(
        (act.left, act.right) if act.left < act.right else (act.right, act.left) for act in mine
    )
    # The lot is the rater's and that of the comparison: a reload shows the same pair again.
    rng = random.Random(f"{rater} {len(mine)}")
    pair = pairs.choose(fit, rng, without=done) if len(kept) > 1 else None
    by_name = {record.name: record for record in kept}
    best = sorted(zip(fit.strengths.tolist(), fit.names, strict=True), reverse=True)[:LADDER]
    return {
        "pair": None if pair is None else [_painting(by_name[name]) for name in pair],
        "pairs": len(mine),
        "sureness": fit.order_sureness(),
        "ladder": [{"name": name, "url": _url(name), "strength": round(s, 2)} for s, name in best],
    }


def fitted(records: Sequence[Record], votes: Sequence[PoolVote]) -> pairs.Fit:
    """Strengths of the records, unrated ones included, by tiers and comparisons."""
    names = [record.name for record in records]
    place = {name: index for index, name in enumerate(names)}
    wins = np.zeros((len(names), len(names)))
    rated = [(place[r.name], r.tier, r.standing) for r in records if r.tier is not None]
    if rated:
        at, tiers, standings = (list(column) for column in zip(*rated, strict=True))
        wins[np.ix_(at, at)] += rated_wins(tiers, standings)
    for vote in votes:
        if vote.first in place and vote.second in place:
            i, j = place[vote.first], place[vote.second]
            wins[i, j] += vote.value
            wins[j, i] += 1 - vote.value
    return pairs.fit(names, wins)


def _painting(record: Record) -> dict[str, Any]:
    """What may be shown of a painting: neither who made it nor how it was rated before."""
    return {"name": record.name, "subject": record.subject, "url": _url(record.name)}


def _url(name: str) -> str:
    return f"/paintings/{name}.png"


def _recent(act: Rated | Compared) -> dict[str, Any]:
    if isinstance(act, Rated):
        return {"kind": "tier", "name": act.name, "url": _url(act.name), "said": act.said}
    better = act.right if act.won == "right" else act.left
    said = "even" if act.won == "even" else "won"
    return {"kind": "pair", "name": better, "url": _url(better), "said": said}


def _rater(name: str, acts: Sequence[Rated | Compared | Undone]) -> dict[str, Any]:
    return {
        "name": name,
        "rated": len(rating_log.tiers(acts)),
        "pairs": len(rating_log.compared(acts)),
    }


def _tally(said: Any) -> dict[str, int]:
    counts: dict[str, int] = dict.fromkeys((*TIERS, "aside"), 0)
    for each in said:
        counts[each] += 1
    return counts


def _agreement(acts: rating_book.Acts, rater: str) -> dict[str, Any] | None:
    """How far the raters agree; what others said only of paintings that this one has rated."""
    if sum(bool(rating_log.tiers(theirs)) for theirs in acts.values()) < 2:
        return None
    said = rating_log.by_painting(acts)
    found = agreement.of(said)
    mine = [name for name in found.disputed if rater in said[name]]
    return {
        "alpha": found.alpha,
        "shared": found.shared,
        "tentative": agreement.TENTATIVE,
        "disputed": [
            {"name": name, "url": _url(name), "said": said[name]} for name in mine[:DISPUTED]
        ],
        "disputes": len(found.disputed),
    }


def _record(folder: Path, name: str) -> Record:
    for record in pools.read_records(folder):
        if record.name == name:
            return record
    raise _no_painting(name, "there is no such painting in the pool")


def _no_painting(name: str, fault: str) -> InputError:
    return InputError(
        Reason.INVALID_INPUT,
        f"name={name!r}: {fault}.",
        remedy="Reload the page.",
        field="name",
        value=name,
    )


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
