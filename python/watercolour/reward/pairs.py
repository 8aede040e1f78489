"""Which two paintings to show next, and how sure their order is already.

The fit of strengths is Gaussian around its mode: the inverse curvature there is the covariance. A
comparison tells the more, the less sure its outcome is and the less sure the two strengths are
against each other (Chen, Bennett, Collins-Thompson & Horvitz, WSDM 2013, use the same two parts).
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from math import erf, sqrt

import numpy as np

from watercolour.reward.ratings import PRIOR_SD, Matrix, bradley_terry

#: Pairs among which chance decides: the most informative ones, so that raters who start at the
#: same time are not all shown the same.
BEST = 5


@dataclass(frozen=True)
class Fit:
    """Strengths and how sure they are.

    Attributes:
        names: n paintings.
        strengths: [n], Bradley-Terry log-odds with the mean 0.
        covariance: [n, n], of the strengths.
    """

    names: tuple[str, ...]
    strengths: Matrix
    covariance: Matrix

    def chances(self) -> Matrix:
        """[n, n]: how likely i wins a comparison with j."""
        s = self.strengths
        return 1 / (1 + np.exp(np.clip(s[None, :] - s[:, None], -50, 50)))

    def spread(self) -> Matrix:
        """[n, n]: variance of the difference of two strengths."""
        variance = np.diag(self.covariance)
        spread = variance[:, None] + variance[None, :] - 2 * self.covariance
        return np.maximum(spread, 0)

    def order_sureness(self) -> float:
        """How sure the order of two paintings is, on average: 0 not at all, 1 entirely."""
        n = len(self.names)
        if n < 2:
            return 1.0
        away = self.strengths[:, None] - self.strengths[None, :]
        with np.errstate(divide="ignore", invalid="ignore"):
            z = np.where(self.spread() > 0, np.abs(away) / np.sqrt(self.spread()), np.inf)
        upper = z[np.triu_indices(n, 1)]
        return float(np.mean([_within(value) for value in upper]))


def _within(z: float) -> float:
    """Probability that a normal deviate lies within z of its mean."""
    return 1.0 if z == float("inf") else erf(z / sqrt(2))


def fit(names: Sequence[str], wins: Matrix) -> Fit:
    """Strengths and their covariance.

    Args:
        names: n paintings.
        wins: n x n; ``wins[i, j]`` is how often i beat j, a tie counting 0.5 for both.

    Raises:
        ValueError: see :func:`watercolour.reward.ratings.bradley_terry`.
    """
    found = bradley_terry(names, wins)
    s = np.array([found[name] for name in names])
    games = wins + wins.T
    np.fill_diagonal(games, 0)
    p = 1 / (1 + np.exp(np.clip(s[None, :] - s[:, None], -50, 50)))
    curvature = games * p * (1 - p)
    hessian = np.diag(curvature.sum(axis=1) + 1 / PRIOR_SD**2) - curvature
    return Fit(tuple(names), s, np.linalg.inv(hessian).astype(np.float64))


def information(found: Fit) -> Matrix:
    """[n, n]: nats that one comparison is expected to tell of a pair's difference; diagonal 0.

    Half the logarithm of how much the variance of the difference shrinks.
    """
    p = found.chances()
    told = 0.5 * np.log1p(p * (1 - p) * found.spread())
    np.fill_diagonal(told, 0)
    return told


def choose(
    found: Fit, rng: random.Random, *, without: frozenset[tuple[str, str]] = frozenset()
) -> tuple[str, str] | None:
    """The next two paintings, left and right; None when no pair is left.

    One of the :data:`BEST` most informative pairs, on sides that are drawn by lot, since whoever
    looks may prefer a side.

    Args:
        found: the fit so far.
        rng: decides among the best and which comes left.
        without: pairs not to show, each in the order of its names.
    """
    told = information(found)
    rows, columns = np.triu_indices(len(found.names), 1)
    order = np.argsort(-told[rows, columns], kind="stable")
    best: list[tuple[str, str]] = []
    for at in order:
        one, other = found.names[rows[at]], found.names[columns[at]]
        if ((one, other) if one < other else (other, one)) not in without:
            best.append((one, other))
        if len(best) == BEST:
            break
    if not best:
        return None
    pair = rng.choice(best)
    return pair if rng.random() < 0.5 else (pair[1], pair[0])
