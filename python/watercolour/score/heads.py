"""The two heads: quality on HPSv3's scale and the judge's Bradley–Terry margin.

Both are linear in a few principal components of standardised features, fitted by penalised
logistic regression on pairs of paintings from different tiers (Bradley and Terry 1952:
P(a beats b) = σ(u(a) − u(b))). A picture with nothing in common with the pool leaves the
components' span and gains nothing by it, and clipped inputs bound what any picture can gain.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from watercolour.api.errors import InfrastructureError, InputError
from watercolour.api.reasons import Reason
from watercolour.score import features

Array = NDArray[np.floating[Any]]

#: Changes whenever the meaning of the arrays in heads.npz does.
VERSION = "heads/1"
SHIPPED = Path(__file__).parent / "data" / "heads.npz"

#: Tiers in rising order, with the mean that HPSv3 gave to paintings of that tier.
TIER_MU = {"meh": -7.0, "okay": 2.5, "love": 3.5}
#: No painting that HPSv3 was shown scored outside it.
MU_RANGE = (-12.0, 10.0)
COMPONENTS = 24
PENALTY = 0.01
#: Standardised features beyond it are cut, so that an outlier gains nothing.
CLIP = 4.0
#: Share of comparisons among good paintings that the judge leaves undecided; a vision-language
#: judge was seen to tie on 0.22 of its comparisons.
TIE_SHARE = 0.20


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


@dataclass(frozen=True)
class Heads:
    """What heads.npz holds.

    Attributes:
        quality, judge: the linear parts.
        knots: [3], utilities of the mean meh, okay and love painting of an unseen subject.
        tie: the judge has no preference below this margin, in logits.
        provenance: pool, its checksum, versions, and figures of the fit.
    """

    quality: Linear
    judge: Linear
    knots: Array
    tie: float
    provenance: dict[str, Any]

    def mu(self, quality: NDArray[Any]) -> tuple[Array, Array]:
        """[n, 768] features to HPSv3-like means [n] and deviations [n]."""
        u = self.quality.utility(quality)
        sigma = self.quality.deviation(quality) * slope(u, self.knots)
        return to_mu(u, self.knots), sigma

    def margin(self, a: NDArray[Any], b: NDArray[Any]) -> float:
        """Logit of "A beats B" from two judge vectors [1536]; antisymmetric to the bit."""
        ua, ub = (float(self.judge.utility(x[None])[0]) for x in (a, b))
        return ua - ub


def _targets() -> Array:
    return np.array([TIER_MU["meh"], TIER_MU["okay"], TIER_MU["love"]])


def to_mu(u: Array, knots: Array) -> Array:
    """Utilities to mu: straight between the tiers' means, and on beyond them, within MU_RANGE."""
    t = _targets()
    inner = np.interp(u, knots, t)
    below = t[0] + (u - knots[0]) * (t[1] - t[0]) / (knots[1] - knots[0])
    above = t[2] + (u - knots[2]) * (t[2] - t[1]) / (knots[2] - knots[1])
    return np.clip(np.where(u < knots[0], below, np.where(u > knots[2], above, inner)), *MU_RANGE)


def slope(u: Array, knots: Array) -> Array:
    """dmu/du, by which a deviation of the utility becomes one of mu."""
    t = _targets()
    steps = np.diff(t) / np.diff(knots)
    return np.where(u < knots[1], steps[0], steps[1])


def pairs(ranks: NDArray[np.int64]) -> NDArray[np.int64]:
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


def fit_linear(x: NDArray[Any], ranks: NDArray[np.int64]) -> Linear:
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


def rank(tiers: Sequence[str]) -> NDArray[np.int64]:
    """Tier names to 0, 1, 2.

    Raises:
        InputError: a tier that does not exist.
    """
    order = list(TIER_MU)
    for tier in tiers:
        if tier not in order:
            raise InputError(
                Reason.INVALID_POOL,
                f"tier {tier!r} does not exist.",
                remedy=f"Use one of {', '.join(order)}.",
                field="tier",
                value=tier,
            )
    return np.array([order.index(tier) for tier in tiers], np.int64)


def stack(found: Sequence[features.Features]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Quality features [n, 768] and judge features [n, 1536]."""
    return np.stack([f.quality for f in found]), np.stack([f.judge for f in found])


def held_out(x: NDArray[Any], ranks: NDArray[np.int64], subjects: Sequence[str]) -> Array:
    """[n] utilities, each from a head that never saw a painting of that subject."""
    names = np.array(subjects)
    u = np.zeros(len(names))
    for subject in sorted(set(subjects)):
        out = names == subject
        u[out] = fit_linear(x[~out], ranks[~out]).utility(x[out])
    return u


def fit(found: Sequence[features.Features], tiers: Sequence[str], subjects: Sequence[str]) -> Heads:
    """Both heads from the features, tiers and subjects of a pool's paintings.

    The knots come from utilities of held-out subjects: a painting that the fit has seen looks
    more extreme than an equal one that it has not.

    Raises:
        InputError: fewer than two subjects, a tier that is unknown or missing, or tiers that the
            features cannot order.
    """
    ranks = rank(tiers)
    if len(set(subjects)) < 2 or len(set(ranks.tolist())) < len(TIER_MU):
        raise InputError(
            Reason.INVALID_POOL,
            f"the pool has {len(set(subjects))} subjects and the tiers {sorted(set(tiers))}.",
            remedy=f"Give it at least two subjects and all of {', '.join(TIER_MU)}.",
            field="pool",
        )
    quality, judge = stack(found)
    u = held_out(quality, ranks, subjects)
    knots = np.array([u[ranks == r].mean() for r in range(len(TIER_MU))])
    if not (np.diff(knots) > 0.05).all():
        raise InputError(
            Reason.INVALID_POOL,
            f"the tiers' mean utilities {knots.round(2).tolist()} do not rise from meh to love.",
            remedy="Look at the pool's tiers: paintings of two tiers look alike.",
            field="pool",
        )
    head = fit_linear(judge, ranks)
    good = head.utility(judge[ranks > 0])
    margins = np.abs(good[:, None] - good[None, :])[np.triu_indices(len(good), 1)]
    tie = float(np.quantile(margins, TIE_SHARE))
    return Heads(fit_linear(quality, ranks), head, knots, tie, {})


_PARTS = ("mean", "scale", "project", "weight", "covariance")


def save(heads: Heads, path: Path) -> None:
    """Write heads.npz, whole or not at all."""
    arrays = {
        f"{name}_{part}": getattr(getattr(heads, name), part).astype(np.float32)
        for name in ("quality", "judge")
        for part in _PARTS
    }
    provenance = {**heads.provenance, "heads": VERSION, "features": features.VERSION}
    part = path.with_name(f".{path.name}.part")
    path.parent.mkdir(parents=True, exist_ok=True)
    with part.open("wb") as file:
        np.savez_compressed(
            file,
            knots=heads.knots,
            tie=np.float64(heads.tie),
            provenance=np.array(json.dumps(provenance, sort_keys=True)),
            **arrays,
        )
    part.replace(path)


def load(path: Path = SHIPPED) -> Heads:
    """Read heads.npz.

    Raises:
        InfrastructureError: it is missing or damaged, or was fitted for other features.
    """
    refit = "Fit the heads anew: python -m watercolour.score.fit"
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {key: np.asarray(file[key]) for key in file.files}
        provenance: dict[str, Any] = json.loads(str(arrays["provenance"]))
        found = (provenance["heads"], provenance["features"])
        if found != (VERSION, features.VERSION):
            raise InfrastructureError(
                Reason.SCORER_UNAVAILABLE,
                f"{path.name} is for {' and '.join(found)}, this program computes {VERSION} and "
                f"{features.VERSION}.",
                remedy=refit,
            )
        quality, judge = (
            Linear(*(arrays[f"{name}_{part}"].astype(np.float64) for part in _PARTS))
            for name in ("quality", "judge")
        )
        return Heads(quality, judge, arrays["knots"], float(arrays["tie"]), provenance)
    # numpy answers a damaged archive with any of these.
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise InfrastructureError(
            Reason.SCORER_UNAVAILABLE, f"the heads {path} cannot be read: {error}.", remedy=refit
        ) from error
