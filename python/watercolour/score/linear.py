"""A utility fitted to rated paintings by penalised pairwise logistic regression.

P(a beats b) = σ(u(a) − u(b)), as Bradley and Terry (1952) have it. The utility is linear in a few
principal components of standardised features, cut so that an outlier gains nothing, and where
asked for in one number more: how strange a picture is, its distance from the good examples. A
policy that climbs the linear part away from anything that was rated pays for it there.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating[Any]]
Ranks = NDArray[np.int64]

COMPONENTS = 40
PENALTY = 0.002
#: Standardised features beyond it are cut.
CLIP = 3.0
#: The kind of spoilt paintings, whose pairs weigh less than the others: they are plain to see, and
#: must not take the place of what a person has rated.
SPOILT, SPOILT_WEIGHT = 2, 0.3
#: Deviations of the strangeness count so much more than those of the first component.
STRANGENESS = 2.0


@dataclass(frozen=True)
class Linear:
    """u(x) = [z · project, strangeness] · weight with z = clip((x − mean)/scale).

    Attributes:
        mean, scale: [d], of the examples.
        project: [d, k].
        centre, spread: [d], of z among the good examples; empty for a head without strangeness.
        usual: [2], the good examples' median strangeness, below which none counts (the average
            flower is no better than another usual one), and the deviation among all examples.
        weight: [k], or [k + 1] with strangeness.
        covariance: of the weight (Laplace), square.
    """

    mean: Array
    scale: Array
    project: Array
    centre: Array
    spread: Array
    usual: Array
    weight: Array
    covariance: Array

    def components(self, x: NDArray[Any]) -> Array:
        """[n, d] features to what ``weight`` multiplies, [n, k] or [n, k + 1]."""
        z = standardised(x, self.mean, self.scale)
        c = z @ self.project
        if not len(self.centre):
            return c
        strange = np.maximum(strangeness(z, self.centre, self.spread) - self.usual[0], 0)
        strange /= self.usual[1]
        return np.concatenate([c, STRANGENESS * strange[:, None]], axis=1)

    def utility(self, x: NDArray[Any]) -> Array:
        """[n, d] features to [n] utilities, in logits."""
        return self.components(x) @ self.weight

    def deviation(self, x: NDArray[Any]) -> Array:
        """[n] standard deviations of the utility under the weight's posterior."""
        c = self.components(x)
        return np.sqrt(np.einsum("nk,kl,nl->n", c, self.covariance, c))


def standardised(x: NDArray[Any], mean: Array, scale: Array) -> Array:
    """(x − mean)/scale, cut at CLIP; [n, d]."""
    return np.clip((np.asarray(x, np.float64) - mean) / scale, -CLIP, CLIP)


def strangeness(z: Array, centre: Array, spread: Array) -> Array:
    """[n], log(1 + mean square of (z − centre)/spread)."""
    return np.log1p(np.mean(((z - centre) / spread) ** 2, axis=1))


def pairs(ranks: Ranks) -> NDArray[np.int64]:
    """[m, 2] indices (better, worse) of all pairs of different rank."""
    better, worse = np.nonzero(ranks[:, None] > ranks[None, :])
    return np.stack([better, worse], axis=1)


def fit_logistic(d: Array, weights: Array, penalty: float) -> tuple[Array, Array]:
    """Minimise Σ weights·log(1 + exp(−d·w)) + penalty/2·|w|² by Newton's method.

    Args:
        d: [m, k] differences, better minus worse.
        weights: [m], sum 1.
        penalty: above 0, so that separable examples have a finite answer.

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


def fit_linear(x: NDArray[Any], ranks: Ranks, apart: NDArray[np.int64], *, strange: bool) -> Linear:
    """A head from examples.

    Args:
        x: [n, d] features.
        ranks: [n], higher is better; 0 is bad.
        apart: [n], the kind of each example, 0 to 2: every pair of kinds weighs the same, but for
            those with SPOILT, so that few counterexamples count as much as many ordinary bad
            paintings.
        strange: whether the distance from the good examples counts.
    """
    x = np.asarray(x, np.float64)
    mean, scale = x.mean(axis=0), x.std(axis=0) + 1e-3
    z = standardised(x, mean, scale)
    _, singular, rows = np.linalg.svd(z, full_matrices=False)
    # The first component gets deviation 1; the others keep their share of it (no whitening), so
    # the penalty trusts wide directions more than narrow ones.
    project = rows[: min(COMPONENTS, len(x) - 1)].T / (singular[0] / np.sqrt(len(x)))
    good = z[ranks > 0]
    none = np.zeros(0)
    centre = good.mean(axis=0) if strange else none
    spread = np.sqrt(good.var(axis=0) + 0.1) if strange else none
    usual = np.zeros(2)
    if strange:
        far = strangeness(z, centre, spread)
        usual = np.array([np.median(far[ranks > 0]), far.std() + 1e-3])
    size = project.shape[1] + strange
    bare = Linear(mean, scale, project, centre, spread, usual, np.zeros(size), np.eye(size))
    c = bare.components(x)
    chosen = pairs(ranks)
    better, worse = chosen[:, 0], chosen[:, 1]
    kind = (ranks[better] * 100 + ranks[worse]) * 9 + apart[better] * 3 + apart[worse]
    _, inverse, counts = np.unique(kind, return_inverse=True, return_counts=True)
    share = 1 / counts[inverse]
    share[(apart[worse] == SPOILT) | (apart[better] == SPOILT)] *= SPOILT_WEIGHT
    share /= share.sum()
    weight, covariance = fit_logistic(c[better] - c[worse], share, PENALTY)
    # The loss is a mean over pairs; as evidence the n paintings count once each.
    return replace(bare, weight=weight, covariance=covariance / len(x))
