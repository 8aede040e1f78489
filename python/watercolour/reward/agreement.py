"""How far raters agree: Krippendorff's alpha for ordered tiers, and where they do not.

Krippendorff, Content Analysis (4th ed.), chapter 12; "Computing Krippendorff's Alpha-Reliability"
(2011). Alpha is 1 for raters who always agree and 0 for raters who might as well draw lots; below
0.667 conclusions from the ratings are not safe, by his own rule of thumb.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from watercolour.reward.rating_log import Said
from watercolour.reward.ratings import TIERS

#: Krippendorff's own limit for tentative conclusions.
TENTATIVE = 0.667


@dataclass(frozen=True)
class Agreement:
    """How far raters agree.

    Attributes:
        alpha: Krippendorff's, for ordered values; None where nothing can be said: fewer than two
            paintings were rated twice, or every one of those has the same tier.
        shared: paintings that at least two have rated.
        disputed: those of them on which love meets meh, or most tiers meet; the widest first.
    """

    alpha: float | None
    shared: int
    disputed: tuple[str, ...]


def of(said: Mapping[str, Mapping[str, Said]]) -> Agreement:
    """The raters' agreement.

    Args:
        said: ratings by the painting's name, then by the rater's. Who set a painting aside has
            not rated it.
    """
    ranks = {
        name: [TIERS.index(each) for each in theirs.values() if each != "aside"]
        for name, theirs in said.items()
    }
    shared = {name: found for name, found in ranks.items() if len(found) > 1}
    width = {name: max(found) - min(found) for name, found in shared.items()}
    disputed = sorted((name for name in shared if width[name]), key=lambda n: (-width[n], n))
    return Agreement(ordinal_alpha(list(shared.values()), len(TIERS)), len(shared), tuple(disputed))


def ordinal_alpha(units: Sequence[Sequence[int]], values: int) -> float | None:
    """Krippendorff's alpha for ordered values 0 ... values - 1.

    Args:
        units: for each unit the values that it was given, in any order; units with a single value
            say nothing and are passed over.
        values: how many values there are.

    Returns:
        At most 1; None with fewer than two units of two values, or where all values are equal.
    """
    coincidences = np.zeros((values, values))
    counted = 0
    for unit in units:
        if len(unit) < 2:
            continue
        counted += 1
        counts = np.bincount(unit, minlength=values).astype(float)
        pairs = np.outer(counts, counts) - np.diag(counts)
        coincidences += pairs / (len(unit) - 1)
    if counted < 2:
        return None
    totals = coincidences.sum(axis=1)
    n = totals.sum()
    distance = _ordinal_distance(totals)
    expected = float((np.outer(totals, totals) * distance).sum()) / (n - 1)
    if expected == 0:
        return None
    return 1 - float((coincidences * distance).sum()) / expected


def _ordinal_distance(totals: NDArray[np.float64]) -> NDArray[np.float64]:
    """Squared number of values between two, each end counted half."""
    size = len(totals)
    distance = np.zeros((size, size))
    for low in range(size):
        for high in range(low + 1, size):
            between = totals[low : high + 1].sum() - (totals[low] + totals[high]) / 2
            distance[low, high] = distance[high, low] = between**2
    return distance
