"""What may be wrong with a run, judged from its metrics alone. The one place that judges it. Pure.

Every alarm looks at the mean of a column over the last steps; those that speak of a change compare
it with the first ones. A value that does not exist raises nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

#: A row of metrics.csv, or the part of it that is there.
Row = Mapping[str, float | int | None]

#: Steps over which a mean is taken, and the least with which one is.
WINDOW, LEAST = 10, 3

#: Share of the rollouts without a value, and of the comparisons without one.
UNSCORED, DROPPED = 0.10, 0.10
#: Share of ties; the published judge had 0.22.
TIES = 0.50
#: Liking for a place: with 0.25 half of all answers follow the place and not the picture.
BIAS = 0.25
#: Share of groups whose members all have the same reward.
FLAT = 0.50
#: What is left of the first steps' entropy; the published runs kept 0.46 and more.
ENTROPY_LEFT = 0.30
#: Mean change of the probes' quality, and of their share of wins.
DRIFT_QUALITY, DRIFT_JUDGE = 0.03, 0.10
#: Rise of the reward beside which a change of the pictures is suspicious.
RISE = 0.05
#: Fall of the share of pigment in the subject's colours.
OFF_SUBJECT = 0.15
#: Share of the sheet under paint; the most among published loved paintings is 0.656.
FLOODED = 0.70
#: Shapes, and share of the sheet, with which a painting is one blob.
FEW_SHAPES, BLOB = 3.0, 0.25
#: Share of different sketches in a step.
SAME_SKETCHES = 0.50


@dataclass(frozen=True)
class Alarm:
    """Something that a person should look at.

    Attributes:
        name: a stable word.
        message: what was found, with the figures.
        advice: what to do.
    """

    name: str
    message: str
    advice: str


@dataclass(frozen=True)
class Raised:
    """An alarm with the steps in which it stood; ``message`` is that of the last one."""

    alarm: Alarm
    first_step: int
    last_step: int


def raised(rows: Sequence[Row]) -> tuple[Alarm, ...]:
    """The alarms that stand after the last row.

    Args:
        rows: metrics.csv so far.
    """
    return _judged(rows[:WINDOW], rows[-WINDOW:], early=len(rows) < 2 * WINDOW)


def history(rows: Sequence[Row]) -> list[Raised]:
    """Every alarm of a run with its first and last step, in the order of the first ones."""
    found: list[Raised] = []
    standing: dict[str, int] = {}
    for place, row in enumerate(rows):
        step = int(row.get("step") or 0)
        now: dict[str, int] = {}
        for alarm in raised(rows[: place + 1]):
            where = standing.get(alarm.name)
            if where is None:
                where = len(found)
                found.append(Raised(alarm, step, step))
            found[where] = Raised(alarm, found[where].first_step, step)
            now[alarm.name] = where
        standing = now
    return found


@dataclass(frozen=True)
class _Means:
    """Means of columns over the first and the last steps; None where too few have a value."""

    first: Sequence[Row]
    last: Sequence[Row]
    early: bool

    def now(self, column: str) -> float | None:
        return _mean(self.last, column)

    def change(self, column: str) -> float | None:
        """Last less first; None while the two overlap."""
        first, last = _mean(self.first, column), _mean(self.last, column)
        return None if self.early or first is None or last is None else last - first


def _mean(rows: Sequence[Row], column: str) -> float | None:
    known = [value for row in rows if (value := row.get(column)) is not None]
    return fmean(known) if len(known) >= LEAST else None


def _judged(first: Sequence[Row], last: Sequence[Row], *, early: bool) -> tuple[Alarm, ...]:
    means = _Means(first, last, early)
    return tuple(alarm for look in _LOOKS if (alarm := look(means)) is not None)


def _unscored(means: _Means) -> Alarm | None:
    share = means.now("unscored")
    if share is None or share <= UNSCORED:
        return None
    return Alarm(
        "unscored_rate",
        f"{share:.0%} of the last rollouts have no value",
        "See the reasons under Unscored, and the log of that service; the policy learns from the "
        "others alone.",
    )


def _dropped(means: _Means) -> Alarm | None:
    share = means.now("judge_dropped")
    if share is None or share <= DROPPED:
        return None
    return Alarm(
        "judge_calls_failing",
        f"{share:.0%} of the comparisons were dropped, because a call of the judge failed",
        "See the environment's log for what the endpoint answers; lower spec.judge.concurrency if "
        "it refuses.",
    )


def _ties(means: _Means) -> Alarm | None:
    rate = means.now("judge_tie_rate")
    if rate is None or rate <= TIES:
        return None
    return Alarm(
        "tie_rate",
        f"{rate:.0%} of the comparisons are ties",
        "The judge cannot tell the paintings from their references: take a stronger model, sharper "
        "criteria, or references nearer to the policy's level (spec.references.tierShares).",
    )


def _bias(means: _Means) -> Alarm | None:
    bias = means.now("judge_place_bias")
    if bias is None or abs(bias) <= BIAS:
        return None
    place = "first" if bias > 0 else "second"
    return Alarm(
        "position_bias",
        f"the judge prefers whichever picture comes {place}: {0.5 + abs(bias):.0%} of its answers",
        "Keep spec.judge.order at both, which cancels it, and take a stronger model: what is left "
        "are ties.",
    )


def _flat(means: _Means) -> Alarm | None:
    share = means.now("frac_reward_zero_std")
    if share is None or share <= FLAT:
        return None
    return Alarm(
        "no_spread",
        f"in {share:.0%} of the groups every member has the same reward",
        "There is nothing to learn from such a group: raise the temperature, or check that the "
        "gate does not refuse all of them.",
    )


def _entropy(means: _Means) -> Alarm | None:
    now, change = means.now("entropy"), means.change("entropy")
    if now is None or change is None or now >= ENTROPY_LEFT * (now - change):
        return None
    return Alarm(
        "entropy_collapse",
        f"the policy's entropy fell from {now - change:.3f} to {now:.3f}",
        "It writes ever the same: lower the learning rate, set spec.trainer.beta, or go back to an "
        "earlier checkpoint.",
    )


def _off_subject(means: _Means) -> Alarm | None:
    fall, rise = means.change("pigment_share"), means.change("reward")
    if fall is None or rise is None or fall > -OFF_SUBJECT or rise < RISE:
        return None
    return Alarm(
        "hack_off_subject",
        f"the reward rose by {rise:.2f} while the subject's colours lost {-fall:.0%} of the paint",
        "Look at the newest paintings: are they of what was asked for? Give pigment a weight.",
    )


def _flooded(means: _Means) -> Alarm | None:
    paint = means.now("paint_fraction_mean")
    if paint is None or paint <= FLOODED:
        return None
    return Alarm(
        "hack_flooded_sheet",
        f"paint covers {paint:.0%} of the sheet",
        "Look at the newest paintings: a flooded sheet is a known way to please a scorer.",
    )


def _blob(means: _Means) -> Alarm | None:
    shapes, paint = means.now("shapes"), means.now("paint_fraction_mean")
    if shapes is None or paint is None or shapes >= FEW_SHAPES or paint <= BLOB:
        return None
    return Alarm(
        "hack_one_blob",
        f"{shapes:.1f} shapes cover {paint:.0%} of the sheet",
        "Look at the newest paintings: one giant shape is the commonest hack of all.",
    )


def _same(means: _Means) -> Alarm | None:
    share = means.now("distinct")
    if share is None or share >= SAME_SKETCHES:
        return None
    return Alarm(
        "hack_same_sketch",
        f"only {share:.0%} of a step's sketches differ",
        "The policy has one answer to everything: raise the temperature, or reward diversity.",
    )


def _drift(means: _Means) -> Alarm | None:
    parts = [
        f"{name} by {value:.3f}"
        for name, column, most in (
            ("quality", "drift_quality", DRIFT_QUALITY),
            ("the share of wins", "drift_judge", DRIFT_JUDGE),
        )
        if (value := _newest(means.last, column)) is not None and value > most
    ]
    if not parts:
        return None
    return Alarm(
        "score_drift",
        f"the same paintings are scored otherwise than at the start: {', '.join(parts)}",
        "Scorer or judge has changed under the run; rewards before and after cannot be compared. "
        "Pin the model's version, and see versions in the rollouts.",
    )


def _newest(rows: Sequence[Row], column: str) -> float | None:
    """Drift is measured now and then, so its last value stands until the next one."""
    return next((value for row in reversed(rows) if (value := row.get(column)) is not None), None)


_LOOKS: tuple[Callable[[_Means], Alarm | None], ...] = (
    _unscored,
    _dropped,
    _ties,
    _bias,
    _flat,
    _entropy,
    _off_subject,
    _flooded,
    _blob,
    _same,
    _drift,
)

#: Every name that an alarm may have.
NAMES = (
    "unscored_rate",
    "judge_calls_failing",
    "tie_rate",
    "position_bias",
    "no_spread",
    "entropy_collapse",
    "hack_off_subject",
    "hack_flooded_sheet",
    "hack_one_blob",
    "hack_same_sketch",
    "score_drift",
)
