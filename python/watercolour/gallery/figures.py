"""The run's figures: curve by step, first and last fifth, where the gain came from. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, median

from watercolour.api.rollout import Rollout
from watercolour.reward import bands, gain, votes
from watercolour.reward.bands import Band
from watercolour.reward.gain import Part


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
        around: mean adjusted reward of the step and those near it; ``band`` its interval.
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
    around: float | None = None
    band: Band | None = None


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


def curve(steps: Mapping[int, Sequence[Rollout]]) -> list[Step]:
    """The figures of every step, with the mean of those near it and its interval."""
    near = bands.windows({step: groups(each, adjusted) for step, each in steps.items()})
    return [
        replace(
            step_figures(step, each),
            around=mean(value for group in near[step] for value in group),
            band=bands.of_mean(near[step]),
        )
        for step, each in steps.items()
    ]


def groups(
    rollouts: Iterable[Rollout], value: Callable[[Rollout], float | None]
) -> list[list[float]]:
    """The values of the scored members, group by group."""
    found: dict[tuple[int, int], list[float]] = {}
    for rollout in rollouts:
        members = found.setdefault((rollout.step, rollout.group), [])
        if (known := value(rollout)) is not None:
            members.append(known)
    return list(found.values())


def _reward(rollout: Rollout) -> float | None:
    return rollout.reward


@dataclass(frozen=True)
class Sure:
    """Intervals of the mean over the first and the last fifth, and of the rise between them."""

    first: Band | None
    last: Band | None
    gain: Band | None


def sure(before: Sequence[Rollout], after: Sequence[Rollout], *, adjust: bool) -> Sure:
    """How sure the two ends of a run are, adjusted for the draw or raw."""
    value = adjusted if adjust else _reward
    first, last = groups(before, value), groups(after, value)
    return Sure(bands.of_mean(first), bands.of_mean(last), bands.of_gain(first, last))


@dataclass(frozen=True)
class Judging:
    """What the votes say of the judge; None where there is nothing to say."""

    votes: int
    ties: float | None
    place_bias: float | None
    dropped: float | None
    judges: tuple[tuple[str, int], ...]


def judging(rollouts: Iterable[Rollout]) -> Judging:
    """The judge's habits, and who judged how many rollouts."""
    judged = [rollout for rollout in rollouts if rollout.votes]
    cast = [vote for rollout in judged for vote in rollout.votes]
    who = Counter(rollout.versions.get("judge", "unknown") for rollout in judged)
    return Judging(
        len(cast),
        votes.tie_rate(cast),
        votes.place_bias(cast),
        votes.dropped(cast),
        tuple(who.most_common()),
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


def split(rollouts: Iterable[Rollout], good: Callable[[Rollout], bool]) -> Part | None:
    """Split scored rollouts by their adjusted reward; None when none is scored."""
    return gain.split(
        (value, good(rollout)) for rollout in rollouts if (value := adjusted(rollout)) is not None
    )


def admitted(rollout: Rollout) -> bool:
    """Good in the gate's sense."""
    return bool(rollout.gate_passed)


def above_bad(rollout: Rollout) -> bool:
    """Good in the published sense: a reward of at least :data:`gain.BAD_REWARD`."""
    value = adjusted(rollout)
    return value is not None and value >= gain.BAD_REWARD


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
