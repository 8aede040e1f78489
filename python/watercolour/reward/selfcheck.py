"""Whether a judge can judge: asked about pairs of which the answer is known.

A reference against itself must tie: a judge that prefers one of two equal pictures is led by chance
or by a place. The tier love must beat meh: a judge to whom that is not plain teaches nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from watercolour.api.reasons import Reason
from watercolour.api.rollout import Vote
from watercolour.reward import votes
from watercolour.reward.judge import Judge
from watercolour.reward.pool import Pool, Reference

#: Pairs of each kind; every pair is two calls.
PAIRS = 4
#: Shares that a sound judge reaches. One slip in four pairs is a hosted model's chance.
LEAST_TIES, LEAST_WINS = 0.75, 0.75


@dataclass(frozen=True)
class SelfCheck:
    """What came of it.

    Attributes:
        passed: None when too many calls failed to tell.
        ties: share of references that tied with themselves; None when none could be told.
        wins: share of comparisons that love won against meh, a tie for half; None as before.
        place_bias: see :func:`watercolour.reward.votes.place_bias`.
        pairs: how many pairs were asked about, and how many of them have an answer.
        answered: of these.
        message: all that in a sentence.
        reason: JudgeUnfit, JudgeUnavailable or JudgeBudgetSpent if it did not pass.
    """

    passed: bool | None
    ties: float | None
    wins: float | None
    place_bias: float | None
    pairs: int
    answered: int
    message: str
    reason: Reason | None = None


async def check(judge: Judge, pool: Pool) -> SelfCheck:
    """Ask the judge itself, with nothing remembered and nobody standing in.

    Args:
        judge: asked in both orders, or in one if that is how it judges; then equal pictures cannot
            tie, and only love and meh are asked about.
        pool: where the pairs are from.
    """
    equal = [] if not judge.both_orders else [(r, r) for r in spread(pool.references, PAIRS)]
    unequal = pairs(pool)
    found = await asyncio.gather(
        *(judge.compare(a.painting, [b], fresh=True) for a, b in (*equal, *unequal))
    )
    cast = [one.votes[0] for one in found]
    failures = dict.fromkeys(why for one in found for why in one.failures)
    gone = next((one.reason for one in found if not one.resolved), None)
    return judged(cast[: len(equal)], cast[len(equal) :], tuple(failures), gone)


def judged(
    equal: Sequence[Vote],
    unequal: Sequence[Vote],
    failures: Sequence[str] = (),
    gone: Reason | None = None,
) -> SelfCheck:
    """What the votes on equal and on unequal pairs come to. Pure.

    Args:
        equal: a reference against itself.
        unequal: love against meh.
        failures: why calls failed.
        gone: the reason of these.
    """
    ties = _share([None if v.value is None else float(v.value == 0.5) for v in equal])
    wins = _share([vote.value for vote in unequal])
    cast = [*equal, *unequal]
    answered = sum(vote.value is not None for vote in cast)
    unknown = [] if cast else ["the pool has no pair to ask about"]
    if (equal and ties is None) or (unequal and wins is None):
        unknown = [f"the judge did not answer: {'; '.join(failures)}"]
    faults: list[str] = []
    if ties is not None and ties < LEAST_TIES:
        faults.append(f"only {ties:.0%} of the references tie with themselves")
    if wins is not None and wins < LEAST_WINS:
        faults.append(f"love wins only {wins:.0%} of its comparisons with meh")
    said = [
        *([] if ties is None else [f"{ties:.0%} of the references tie with themselves"]),
        *([] if wins is None else [f"love wins {wins:.0%} of its comparisons with meh"]),
    ]
    return SelfCheck(
        passed=False if faults else None if unknown else True,
        ties=ties,
        wins=wins,
        place_bias=votes.place_bias(cast),
        pairs=len(cast),
        answered=answered,
        message=", ".join(faults or unknown or said),
        reason=Reason.JUDGE_UNFIT if faults else gone if unknown else None,
    )


def pairs(pool: Pool) -> list[tuple[Reference, Reference]]:
    """Love and meh, of the same subject where there is such a pair."""
    found: list[tuple[Reference, Reference]] = []
    meh = pool.tier("meh")
    for better in spread(pool.tier("love"), PAIRS if meh else 0):
        same = [one for one in meh if one.subject == better.subject] or list(meh)
        found.append((better, same[len(found) % len(same)]))
    return found


def spread(references: Sequence[Reference], count: int) -> list[Reference]:
    """So many references, from all over the pool; always the same ones."""
    taken = min(count, len(references))
    return [references[place * len(references) // taken] for place in range(taken)]


def _share(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None
