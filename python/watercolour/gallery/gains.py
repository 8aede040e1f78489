"""The gain of rescored rollouts, raw and adjusted for the draw, with all that a reader must know.

Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from watercolour.gallery.rescored import Rescored
from watercolour.reward import alarms, bands, gain
from watercolour.reward.bands import Band
from watercolour.reward.explain import Lack
from watercolour.reward.gain import Decomposition


@dataclass(frozen=True)
class Scored:
    """How many of some rollouts a mean is of.

    Attributes:
        rollouts: all of them; ``unscored``: those without a value.
        partial_groups: groups in which some members have a value, and not all.
    """

    rollouts: int
    unscored: int
    partial_groups: int

    @property
    def doubtful(self) -> bool:
        """Whether so many have no value that the mean of the others may be biased."""
        return self.unscored > alarms.UNSCORED * self.rollouts

    def __str__(self) -> str:
        """``3 of 16``, those without a value."""
        return f"{self.unscored} of {self.rollouts}"

    @classmethod
    def of(cls, values: Iterable[Sequence[float | None]]) -> Scored:
        """Count the values of groups' members."""
        groups = list(values)
        unscored = [sum(one is None for one in group) for group in groups]
        partial = sum(0 < n < len(group) for n, group in zip(unscored, groups, strict=True))
        return cls(sum(map(len, groups)), sum(unscored), partial)


def hint(first: Scored, last: Scored) -> str:
    """One sentence where the means of the two fifths may be biased; empty where they are not."""
    if not (first.doubtful or last.doubtful):
        return ""
    return (
        f"More than {alarms.UNSCORED:.0%} of a fifth are unscored: its mean is of the others "
        "alone, and biased unless chance chose them."
    )


@dataclass(frozen=True)
class Gain:
    """From the first to the last fifth of the steps.

    Attributes:
        split: where the gain came from; None where a fifth has no value, or where there is one
            step alone.
        sure: its interval, by a bootstrap over groups; None with fewer than two groups at an end.
        first, last: of how many rollouts the fifths' means are.
    """

    split: Decomposition | None
    sure: Band | None
    first: Scored
    last: Scored


def of(rollouts: Sequence[Rescored], value: Callable[[Rescored], float | None], bad: float) -> Gain:
    """The gain in a value.

    Args:
        rollouts: at least one.
        value: raw or adjusted reward.
        bad: a value below it is a failure.
    """
    steps: dict[int, dict[int, list[float | None]]] = {}
    for one in rollouts:
        groups = steps.setdefault(one.rollout.step, {})
        groups.setdefault(one.rollout.group, []).append(value(one))
    first, last = gain.fifths(sorted(steps))
    before, after = ([group for n in some for group in steps[n].values()] for some in (first, last))
    ends = (Scored.of(before), Scored.of(after))
    admitted = [one for one in rollouts if one.rollout.gate_passed]
    # Refused ones have a value under any recipe; alone they would make a gain of 0.
    if len(steps) < 2 or (admitted and all(value(one) is None for one in admitted)):
        return Gain(None, None, *ends)
    was, now = ([[v for v in group if v is not None] for group in end] for end in (before, after))
    parts = (gain.by_reward((v for group in end for v in group), bad) for end in (was, now))
    return Gain(gain.decompose(*parts), bands.of_gain(was, now), *ends)


def unadjusted(rollouts: Iterable[Rescored]) -> str:
    """Why the draw's difficulty is not taken out of the rewards; empty where it is."""
    paintings = [one for one in rollouts if one.rollout.gate_passed and one.reward is not None]
    if any(one.recipe is None for one in paintings):
        return "nobody says which recipe rewarded them"
    if not any(one.recipe is not None and one.recipe.slope("judge") for one in paintings):
        return "the recipe weighs no wins, which alone hang on how strong a draw is"
    unknown = sum(one.adjusted is None for one in paintings)
    if unknown:
        return f"{unknown} of {len(paintings)} paintings store no strength of their draw"
    return ""


def missing(rollouts: Iterable[Rescored]) -> list[tuple[tuple[str, ...], Lack, int]]:
    """What rollouts lack: the terms of one cause together, one of them, and how many lack it."""
    counts = Counter(lack for one in rollouts for lack in one.lacks).most_common()
    alike: dict[tuple[str, str, int], list[Lack]] = {}
    for lack, count in counts:
        alike.setdefault((lack.cause, lack.remedy, count), []).append(lack)
    return [
        (tuple(one.term for one in lacks), lacks[0], count)
        for (_, _, count), lacks in alike.items()
    ]


def unscored(rollouts: Iterable[Rescored]) -> Mapping[str, int]:
    """Rollouts that have no value, and lack no term besides, by their run's reason for it."""
    reasons = (
        one.rollout.unscored_reason for one in rollouts if one.reward is None and not one.lacks
    )
    return dict(Counter("unknown" if why is None else why.value for why in reasons).most_common())
