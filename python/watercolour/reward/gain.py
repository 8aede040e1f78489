"""Where a rise of the mean reward came from: fewer bad paintings or better good ones. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TypeVar

#: A reward below it counts as bad in the published reading of a run.
BAD_REWARD = 0.3

Step = TypeVar("Step")


@dataclass(frozen=True)
class Part:
    """A set of rollouts split into good and bad.

    Attributes:
        share: of good ones among the scored, 0 to 1.
        good: mean reward of the good ones; ``bad``: of the others. None for none.
    """

    share: float
    good: float | None
    bad: float | None

    @property
    def reward(self) -> float:
        """Mean reward of all scored rollouts."""
        return self.share * (self.good or 0.0) + (1 - self.share) * (self.bad or 0.0)


@dataclass(frozen=True)
class Decomposition:
    """The gain in mean reward between two sets of rollouts, in three exact parts.

    With p the share of good rollouts, a their mean reward and b that of the bad ones, before (0)
    and after (1), and a bar for the mean of before and after::

        gain        = fewer_bad + better_good + better_bad
        fewer_bad   = (p1 - p0) * (a_bar - b_bar)
        better_good = p_bar * (a1 - a0)
        better_bad  = (1 - p_bar) * (b1 - b0)

    This is the midpoint (Marshall-Edgeworth) split: it has no remainder and treats before and
    after alike. Where one side has no good (or no bad) rollouts, their mean is taken from the
    other side, so that what cannot be compared changes nothing. Unscored rollouts have no reward
    and take no part.
    """

    before: Part
    after: Part
    gain: float
    fewer_bad: float
    better_good: float
    better_bad: float


def split(values: Iterable[tuple[float, bool]]) -> Part | None:
    """Split rewards; None when there are none.

    Args:
        values: of every scored rollout its reward, and whether it is a good one.
    """
    scored = list(values)
    if not scored:
        return None
    well = [value for value, good in scored if good]
    badly = [value for value, good in scored if not good]
    return Part(len(well) / len(scored), _mean(well), _mean(badly))


def by_reward(rewards: Iterable[float], bad: float = BAD_REWARD) -> Part | None:
    """Split rewards at a threshold: a reward below it is bad."""
    return split((reward, reward >= bad) for reward in rewards)


def fifths(steps: Sequence[Step]) -> tuple[list[Step], list[Step]]:
    """The first and the last fifth of the steps, at least one step each."""
    length = max(1, len(steps) // 5)
    return list(steps[:length]), list(steps[-length:])


def decompose(before: Part | None, after: Part | None) -> Decomposition | None:
    """Where the gain came from; None when one side has no scored rollout."""
    if before is None or after is None:
        return None
    a0, a1 = _both(before.good, after.good)
    b0, b1 = _both(before.bad, after.bad)
    share = (before.share + after.share) / 2
    return Decomposition(
        before=before,
        after=after,
        gain=after.reward - before.reward,
        fewer_bad=(after.share - before.share) * ((a0 + a1) / 2 - (b0 + b1) / 2),
        better_good=share * (a1 - a0),
        better_bad=(1 - share) * (b1 - b0),
    )


def _both(before: float | None, after: float | None) -> tuple[float, float]:
    first = after if before is None else before
    last = before if after is None else after
    return (first or 0.0, last or 0.0)


def _mean(values: Sequence[float]) -> float | None:
    return fmean(values) if values else None
