"""How sure a mean is: confidence intervals by bootstrap over groups. Pure.

Members of a group share their prompt and their draw of references, so they are no independent
observations; groups are. A resample draws as many groups as there are, with repetition, and takes
the mean over all their members (Efron's percentile interval, clustered). The draws are seeded: the
same rollouts always give the same interval.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

LEVEL = 0.95
RESAMPLES = 2_000
#: Steps on either side whose groups count for a step's interval: a step alone has two groups.
NEIGHBOURS = 2

#: Scored rewards of the members of one group.
Group = Sequence[float]


@dataclass(frozen=True)
class Band:
    """An interval that holds the mean with a probability of LEVEL."""

    low: float
    high: float


def of_mean(groups: Sequence[Group], seed: int = 0) -> Band | None:
    """The interval of the mean over all members; None with fewer than two groups that have any."""
    means = _resampled(groups, np.random.default_rng(seed))
    return None if means is None else _band(means)


def of_gain(before: Sequence[Group], after: Sequence[Group], seed: int = 0) -> Band | None:
    """The interval of the rise of the mean; None where either has no interval of its own."""
    rng = np.random.default_rng(seed)
    first, last = _resampled(before, rng), _resampled(after, rng)
    return None if first is None or last is None else _band(last - first)


def windows(groups: Mapping[int, Sequence[Group]]) -> dict[int, list[Group]]:
    """For each step the groups from NEIGHBOURS steps before it to as many after it."""
    steps = sorted(groups)
    return {
        step: [
            group
            for near in steps[max(0, place - NEIGHBOURS) : place + NEIGHBOURS + 1]
            for group in groups[near]
        ]
        for place, step in enumerate(steps)
    }


def _resampled(groups: Sequence[Group], rng: np.random.Generator) -> NDArray[np.float64] | None:
    """[RESAMPLES] means."""
    scored = [group for group in groups if len(group)]
    if len(scored) < 2:
        return None
    sums = np.array([sum(group) for group in scored])
    sizes = np.array([len(group) for group in scored], np.float64)
    drawn: NDArray[Any] = rng.integers(len(scored), size=(RESAMPLES, len(scored)))
    return sums[drawn].sum(axis=1) / sizes[drawn].sum(axis=1)


def _band(means: NDArray[np.float64]) -> Band:
    low, high = np.quantile(means, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Band(float(low), float(high))
