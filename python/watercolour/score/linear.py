"""A linear utility fitted to rated paintings by penalised pairwise logistic regression.

P(a beats b) = σ(u(a) − u(b)), as Bradley and Terry (1952) have it. The utility is linear in a few
principal components of standardised features. A picture with nothing in common with the examples
leaves the components' span and gains nothing by it, and clipped inputs bound what any can gain.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating[Any]]
Ranks = NDArray[np.int64]

COMPONENTS = 24
PENALTY = 0.01
#: Standardised features beyond it are cut, so that an outlier gains nothing.
CLIP = 4.0


@dataclass(frozen=True)
class Linear:
    """u(x) = clip((x − mean)/scale) · project · weight, with the weight's covariance.

    Attributes:
        mean, scale: [d]. project: [d, k]. weight: [k]. covariance: [k, k].
    """

    mean: Array
    scale: Array
    project: Array
    weight: Array
    covariance: Array

    def components(self, x: NDArray[Any]) -> Array:
        """[n, d] features to [n, k] components."""
        z = np.clip((np.asarray(x, np.float64) - self.mean) / self.scale, -CLIP, CLIP)
        return z @ self.project

    def utility(self, x: NDArray[Any]) -> Array:
        """[n, d] features to [n] utilities, in logits."""
        return self.components(x) @ self.weight

    def deviation(self, x: NDArray[Any]) -> Array:
        """[n] standard deviations of the utility under the weight's Laplace posterior."""
        c = self.components(x)
        return np.sqrt(np.einsum("nk,kl,nl->n", c, self.covariance, c))


def pairs(ranks: Ranks) -> NDArray[np.int64]:
    """[m, 2] indices (better, worse) of all pairs from different tiers."""
    better, worse = np.nonzero(ranks[:, None] > ranks[None, :])
    return np.stack([better, worse], axis=1)


def fit_logistic(d: Array, weights: Array, penalty: float) -> tuple[Array, Array]:
    """Minimise Σ weights·log(1 + exp(−d·w)) + penalty/2·|w|² by Newton's method.

    Args:
        d: [m, k] differences, better minus worse.
        weights: [m], sum 1.
        penalty: above 0, so that separable tiers have a finite answer.

    Returns:
        w [k] and the inverse Hessian [k, k].
    """
    k = d.shape[1]
    w = np.zeros(k)
    hessian = np.eye(k)
    for _ in range(100):
        lose = 1 / (1 + np.exp(np.clip(d @ w, -500, 500)))
        gradient = penalty * w - d.T @ (weights * lose)
        hessian = (d * (weights * lose * (1 - lose))[:, None]).T @ d + penalty * np.eye(k)
        step = np.linalg.solve(hessian, gradient)
        w = w - step
        if float(np.abs(step).max()) < 1e-9:
            break
    return w, np.linalg.inv(hessian)


def fit_linear(x: NDArray[Any], ranks: Ranks) -> Linear:
    """A linear head from [n, d] features and [n] ranks; every pair of tiers weighs the same."""
    x = np.asarray(x, np.float64)
    mean, scale = x.mean(axis=0), x.std(axis=0) + 1e-3
    z = np.clip((x - mean) / scale, -CLIP, CLIP)
    _, singular, rows = np.linalg.svd(z, full_matrices=False)
    k = min(COMPONENTS, len(x) - 1)
    # The first component gets deviation 1; the others keep their share of it (no whitening), so
    # the penalty trusts wide directions more than narrow ones.
    project = rows[:k].T / (singular[0] / np.sqrt(len(x)))
    chosen = pairs(ranks)
    kind = ranks[chosen[:, 0]] * 10 + ranks[chosen[:, 1]]
    _, inverse, counts = np.unique(kind, return_inverse=True, return_counts=True)
    share = 1 / (counts[inverse] * len(counts))
    c = z @ project
    weight, covariance = fit_logistic(c[chosen[:, 0]] - c[chosen[:, 1]], share, PENALTY)
    # The loss is a mean over pairs; as evidence the n paintings count once each.
    return Linear(mean, scale, project, weight, covariance / len(x))
