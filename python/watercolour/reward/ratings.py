"""From ratings to strengths: a small regularised Bradley-Terry fit.

Under Bradley and Terry's model (Biometrika 39, 1952) the painting i beats j with the probability
1 / (1 + exp(s_j - s_i)); s is the strength in log-odds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Tier = Literal["love", "okay", "meh"]
Standing = Literal["upper", "middle", "lower"]

#: Strongest first.
TIERS: tuple[Tier, ...] = ("love", "okay", "meh")
STANDINGS: tuple[Standing, ...] = ("upper", "middle", "lower")

#: Share of comparisons that the better of two ranks wins, by how many ranks lie between them.
TIER_SHARES: tuple[float, ...] = (0.5, 0.85, 0.97)
STANDING_SHARES: tuple[float, ...] = (0.5, 0.65, 0.8)

#: How many comparisons one pair's rating counts for. A single vote of a judge weighs 1.
RATING_WEIGHT = 0.2
#: Standard deviation of the strengths' normal prior, in log-odds.
PRIOR_SD = 3.0

Matrix = NDArray[np.float64]


def bradley_terry(names: Sequence[str], wins: Matrix) -> dict[str, float]:
    """Strengths that make the wins most likely, under a normal prior; their mean is 0.

    Newton's method on the penalised log-likelihood, which is strictly concave, so the fit is
    unique; the prior keeps a painting finite that always or never wins.

    Args:
        names: n paintings.
        wins: n x n; ``wins[i, j]`` is how often i beat j, a tie counting 0.5 for both.

    Raises:
        ValueError: the shape is not n x n, or an entry is negative or not finite.
    """
    n = len(names)
    if wins.shape != (n, n):
        raise ValueError(f"wins has the shape {wins.shape}, {n} names need {(n, n)}")
    if not np.isfinite(wins).all() or (wins < 0).any():
        raise ValueError("wins must be finite and not negative")
    games = wins + wins.T
    np.fill_diagonal(games, 0)
    won = np.where(np.eye(n, dtype=bool), 0, wins).sum(axis=1)
    precision = 1 / PRIOR_SD**2
    s = np.zeros(n)
    for _ in range(100):
        p = 1 / (1 + np.exp(np.clip(s[None, :] - s[:, None], -50, 50)))
        gradient = won - (games * p).sum(axis=1) - precision * s
        curvature = games * p * (1 - p)
        hessian = np.diag(curvature.sum(axis=1) + precision) - curvature
        step = np.linalg.solve(hessian, gradient)
        # A damped step cannot overshoot where the likelihood is nearly flat.
        s += step / max(1.0, float(np.abs(step).max()))
        if np.abs(step).max() < 1e-9:
            break
    s -= s.mean()
    return {name: float(value) for name, value in zip(names, s, strict=True)}


def rated_wins(tiers: Sequence[Tier], standings: Sequence[Standing]) -> Matrix:
    """Comparisons that a person's ratings stand for, n x n.

    Paintings of different tiers are compared by tier, those of one tier by their standing in it.
    """
    rank = np.array([TIERS.index(tier) for tier in tiers])
    place = np.array([STANDINGS.index(standing) for standing in standings])
    by_tier, by_place = rank[None, :] - rank[:, None], place[None, :] - place[:, None]
    share = np.where(by_tier != 0, _share(by_tier, TIER_SHARES), _share(by_place, STANDING_SHARES))
    np.fill_diagonal(share, 0)
    return RATING_WEIGHT * share


def _share(lead: NDArray[np.int64], shares: tuple[float, ...]) -> Matrix:
    won = np.array(shares)[np.abs(lead)]
    return np.where(lead >= 0, won, 1 - won)


def strengths(
    names: Sequence[str],
    tiers: Sequence[Tier],
    standings: Sequence[Standing],
    votes: Matrix | None = None,
) -> dict[str, float]:
    """Strengths from ratings and, if there are any, votes; the okay tier's mean is 0.

    Args:
        names: n paintings.
        tiers: their tiers.
        standings: their places within their tiers.
        votes: n x n, ``votes[i, j]`` comparisons that i won against j; NaN where none was made.
    """
    wins = rated_wins(tiers, standings)
    if votes is not None:
        wins = wins + np.nan_to_num(votes)
    fitted = bradley_terry(names, wins)
    okay = [fitted[name] for name, tier in zip(names, tiers, strict=True) if tier == "okay"]
    zero = sum(okay) / len(okay) if okay else 0.0
    return {name: value - zero for name, value in fitted.items()}
