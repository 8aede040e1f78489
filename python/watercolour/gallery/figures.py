"""The run's figures: curve by step, first and last fifth, where the gain came from. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean, median

from watercolour.api.rollout import Rollout

#: Admitted paintings with a smaller reward count as bad in the published reading of a run.
BAD_REWARD = 0.3


@dataclass(frozen=True)
class Step:
    """One step's figures; None where nothing was scored.

    Attributes:
        step: number from 0.
        reward: mean over scored rollouts, raw.
        adjusted: the same with the draw's difficulty taken out.
        low: lower quartile of the raw rewards; ``high``: the upper one.
        admitted: mean adjusted reward among rollouts that the gate admitted.
        gate_pass_rate: admitted among those the gate decided.
    pigment: mean share of the pigment in the subject's colours, among the admitted.
        unscored_rate: unscored among all.
        rollouts: how many there are.
    """

    step: int
    reward: float | None
    adjusted: float | None
    low: float | None
    high: float | None
    admitted: float | None
    gate_pass_rate: float | None
    pigment: float | None
    unscored_rate: float
    rollouts: int


def adjusted(rollout: Rollout) -> float | None:
    """The reward with the draw's difficulty taken out; the raw one where nothing was drawn."""
    return rollout.reward if rollout.reward_adjusted is None else rollout.reward_adjusted


def mean(values: Iterable[float | None]) -> float | None:
    """Mean of what has a value; None when nothing has."""
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def rate(values: Iterable[bool | None]) -> float | None:
    """Share of True among what is decided; None when nothing is."""
    return mean(None if value is None else float(value) for value in values)


def quantile(values: Sequence[float], share: float) -> float:
    """The value below which that share of the sorted values lies, linearly interpolated."""
    place = share * (len(values) - 1)
    low = int(place)
    high = min(low + 1, len(values) - 1)
    return values[low] + (values[high] - values[low]) * (place - low)


def step_figures(step: int, rollouts: Sequence[Rollout]) -> Step:
    """The figures of one step's rollouts (at least one)."""
    rewards = sorted(r.reward for r in rollouts if r.reward is not None)
    return Step(
        step=step,
        reward=mean(rewards),
        adjusted=mean(adjusted(r) for r in rollouts),
        low=quantile(rewards, 0.25) if rewards else None,
        high=quantile(rewards, 0.75) if rewards else None,
        admitted=mean(adjusted(r) for r in rollouts if r.gate_passed),
        gate_pass_rate=rate(r.gate_passed for r in rollouts),
        pigment=pigment(rollouts),
        unscored_rate=sum(r.reward is None for r in rollouts) / len(rollouts),
        rollouts=len(rollouts),
    )


def pigment(rollouts: Iterable[Rollout]) -> float | None:
    """Mean share of the pigment in the subject's colours; None where no subject has one."""
    return mean(r.pigment_share for r in rollouts if r.gate_passed)


@dataclass(frozen=True)
class Colours:
    """How far one subject's admitted paintings had its colours, before and after; None for none."""

    subject: str
    before: float | None
    after: float | None


def colours(before: Sequence[Rollout], after: Sequence[Rollout]) -> list[Colours]:
    """The subjects that have colours of their own, by name."""
    names = sorted({r.subject for r in (*before, *after) if r.pigment_share is not None})
    return [
        Colours(
            name,
            pigment(r for r in before if r.subject == name),
            pigment(r for r in after if r.subject == name),
        )
        for name in names
    ]


def fifths(steps: Sequence[int]) -> tuple[list[int], list[int]]:
    """The first and the last fifth of the steps, at least one step each."""
    length = max(1, len(steps) // 5)
    return list(steps[:length]), list(steps[-length:])


@dataclass(frozen=True)
class Part:
    """A set of rollouts split into good and bad.

    Attributes:
        share: of good ones among the scored, 0 to 1.
        good: mean adjusted reward of the good ones; ``bad``: of the others. None for none.
    """

    share: float
    good: float | None
    bad: float | None

    @property
    def reward(self) -> float:
        """Mean adjusted reward of all scored rollouts."""
        return self.share * (self.good or 0.0) + (1 - self.share) * (self.bad or 0.0)


@dataclass(frozen=True)
class Decomposition:
    """The gain in mean adjusted reward between two sets of rollouts, in three exact parts.

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


def split(rollouts: Iterable[Rollout], good: Callable[[Rollout], bool]) -> Part | None:
    """Split scored rollouts; None when none is scored."""
    scored = [(r, value) for r in rollouts if (value := adjusted(r)) is not None]
    if not scored:
        return None
    well = [value for r, value in scored if good(r)]
    badly = [value for r, value in scored if not good(r)]
    return Part(len(well) / len(scored), mean(well), mean(badly))


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


def admitted(rollout: Rollout) -> bool:
    """Good in the gate's sense."""
    return bool(rollout.gate_passed)


def above_bad(rollout: Rollout) -> bool:
    """Good in the published sense: a reward of at least :data:`BAD_REWARD`."""
    value = adjusted(rollout)
    return value is not None and value >= BAD_REWARD


def violation_counts(rollouts: Iterable[Rollout]) -> list[tuple[str, int]]:
    """Rollouts by the codes for which they were refused, most frequent first."""
    counts = Counter(
        code for r in rollouts for code in {violation.code.value for violation in r.violations}
    )
    return counts.most_common()


def unscored_counts(rollouts: Iterable[Rollout]) -> list[tuple[str, int]]:
    """Unscored rollouts by reason, most frequent first."""
    reasons = [r.unscored_reason for r in rollouts if r.reward is None]
    return Counter(reason.value if reason else "unknown" for reason in reasons).most_common()


@dataclass(frozen=True)
class Timing:
    """Seconds that rollouts spent in one room."""

    room: str
    median: float
    total: float
    rollouts: int


def timings(rollouts: Iterable[Rollout]) -> list[Timing]:
    """Seconds by room, the greatest total first."""
    seconds: dict[str, list[float]] = {}
    for rollout in rollouts:
        for room, value in rollout.timings.items():
            seconds.setdefault(room, []).append(value)
    found = [Timing(room, median(all_), sum(all_), len(all_)) for room, all_ in seconds.items()]
    return sorted(found, key=lambda timing: -timing.total)
