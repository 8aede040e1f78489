"""One row of metrics.csv from a step's rollouts and what the trainer logged. Pure.

The first columns are those of the published experiment, so that curves can be laid over each
other. An empty cell is a value that does not exist: it is never written as 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import fmean, median, pstdev
from typing import Any

from watercolour.api.reasons import RENDERED
from watercolour.api.rollout import Rollout
from watercolour.reward import votes
from watercolour.train.rollouts import Painted

Cell = float | int | None

PUBLISHED = (
    "step",
    "reward",
    "reward_std",
    "frac_reward_zero_std",
    "entropy",
    "loss",
    "grad_norm",
    "learning_rate",
    "step_time",
    "completions/mean_length",
    "clipped_ratio",
    "judge_mean",
    "length_mean",
    "paint_fraction_mean",
    "quality_mean",
)
OURS = (
    "reward_median",
    "reward_best",
    "reward_admitted",
    "reward_adjusted",
    "reward_adjusted_admitted",
    "draw_strength_mean",
    "gate_pass",
    "gate_static",
    "gate_painted",
    "unscored",
    "phantom_zeros",
    "judge_tie_rate",
    "judge_place_bias",
    "judge_dropped",
    "drift_quality",
    "drift_judge",
    "pigment_mean",
    "pigment_share",
    "distinct",
    "shapes",
    "kl",
    "mismatch_mean",
    "mismatch_max",
    "skipped",
    "attempts",
    "rollbacks",
    "renders",
    "tokens",
    "tokens_per_second",
    "seconds_generate",
    "seconds_wait",
    "seconds_update",
    "seconds_write",
    "gpu_memory_bytes",
)
#: Means over the rollouts of what the environment timed, as ``seconds_<room>``.
ROOMS = ("gate", "queue", "render", "render_cpu", "score", "judge", "env")
COLUMNS = (*PUBLISHED, *OURS, *(f"seconds_{room}" for room in ROOMS))


def mean(values: Iterable[float | None]) -> float | None:
    """The mean of the values that exist, or None."""
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def share(flags: Iterable[bool | None]) -> float | None:
    """The share that is true among those that are known, or None."""
    return mean(None if flag is None else float(flag) for flag in flags)


def of_rollouts(painted: Painted) -> dict[str, Cell]:
    """The columns that the rollouts alone decide."""
    rollouts = painted.rollouts
    admitted = [rollout for rollout in rollouts if rollout.gate_passed]
    scored = [reward for reward in painted.rewards if reward is not None]
    tokens = sum(rollout.tokens for rollout in rollouts)
    cast = [vote for rollout in rollouts for vote in rollout.votes]
    return {
        "reward": mean(scored),
        "reward_std": pstdev(scored) if scored else None,
        "frac_reward_zero_std": _flat_groups(painted.groups()),
        "completions/mean_length": tokens / len(rollouts),
        "clipped_ratio": share(rollout.truncated for rollout in rollouts),
        "judge_mean": _term(rollouts, "judge"),
        "length_mean": _term(rollouts, "length"),
        "quality_mean": _term(rollouts, "quality"),
        "paint_fraction_mean": mean(rollout.paint_fraction for rollout in rollouts),
        "reward_median": median(scored) if scored else None,
        "reward_best": max(scored, default=None),
        "reward_admitted": mean(rollout.reward for rollout in admitted),
        "reward_adjusted": mean(rollout.reward_adjusted for rollout in rollouts),
        "reward_adjusted_admitted": mean(rollout.reward_adjusted for rollout in admitted),
        "draw_strength_mean": mean(rollout.draw_strength for rollout in rollouts),
        "gate_pass": share(rollout.gate_passed for rollout in rollouts),
        "gate_static": share(map(static_passed, rollouts)),
        "gate_painted": share(r.gate_passed for r in rollouts if static_passed(r)),
        "unscored": share(rollout.reward is None for rollout in rollouts),
        "phantom_zeros": sum(map(phantom_zero, rollouts)),
        "judge_tie_rate": votes.tie_rate(cast),
        "judge_place_bias": votes.place_bias(cast),
        "judge_dropped": votes.dropped(cast),
        "pigment_mean": _term(rollouts, "pigment"),
        "pigment_share": mean(rollout.pigment_share for rollout in admitted),
        "distinct": len({rollout.sketch for rollout in rollouts}) / len(rollouts),
        "shapes": mean(rollout.shapes for rollout in admitted),
        "attempts": painted.attempts,
        "renders": sum("render" in rollout.timings for rollout in rollouts),
        "tokens": tokens,
        "tokens_per_second": painted.tokens / max(painted.seconds_generate, 1e-9),
        "seconds_generate": painted.seconds_generate,
        "seconds_wait": painted.seconds_wait,
        **{f"seconds_{room}": mean(r.timings.get(room) for r in rollouts) for room in ROOMS},
    }


def _term(rollouts: Sequence[Rollout], name: str) -> float | None:
    return mean(rollout.terms.get(name) for rollout in rollouts)


def _flat_groups(groups: Sequence[Sequence[float | None]]) -> float | None:
    """The share of groups without spread among those with a value; TRL counts the others as 0."""
    known = [{reward for reward in group if reward is not None} for group in groups]
    return share(len(values) == 1 for values in known if values)


def phantom_zero(rollout: Rollout) -> bool:
    """A reward of 0 that no violation explains: a failure of ours that was scored."""
    return rollout.reward == 0 and not rollout.violations


def static_passed(rollout: Rollout) -> bool | None:
    """Whether the gate admitted the sketch before it was painted; None where nobody looked."""
    codes = [violation.code for violation in rollout.violations]
    if codes:
        return all(code in RENDERED for code in codes)
    return True if rollout.gate_passed or rollout.sketch is not None else None


#: TRL's names of what only the trainer knows.
LOGGED = (
    "entropy",
    "loss",
    "grad_norm",
    "learning_rate",
    "kl",
    "mismatch_mean",
    "mismatch_max",
)


def row(
    step: int, painted: Painted | None, logged: Mapping[str, Any], own: Mapping[str, Cell]
) -> dict[str, Cell]:
    """A whole row in the order of COLUMNS.

    Args:
        step: from 0.
        painted: the step's rollouts; None if it used those of an earlier step.
        logged: what TRL logged.
        own: further columns.
    """
    found = of_rollouts(painted) if painted else {}
    found |= {name: _number(logged.get(name)) for name in LOGGED}
    found |= {"step": step, **own}
    return {name: found.get(name) for name in COLUMNS}


def _number(value: Any) -> float | None:
    """A finite float, or None."""
    if not isinstance(value, int | float):
        return None
    return float(value) if value == value and abs(value) != float("inf") else None


Column = Callable[[Mapping[str, Cell]], Cell]


def fifths(rows: Sequence[Mapping[str, Cell]], column: str) -> tuple[float | None, float | None]:
    """Means of a column over the first and the last fifth of the steps that have rollouts."""
    painted = [line for line in rows if line.get("unscored") is not None]
    size = max(1, len(painted) // 5)
    return (
        mean(line[column] for line in painted[:size]),
        mean(line[column] for line in painted[-size:]),
    )
