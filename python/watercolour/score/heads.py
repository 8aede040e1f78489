"""The two heads: quality on HPSv3's scale and the judge's Bradley–Terry margin."""

from __future__ import annotations

import json
import zipfile
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from watercolour.api.errors import InfrastructureError, InputError
from watercolour.api.reasons import Reason
from watercolour.score import features
from watercolour.score.examples import TIER_MU, Examples
from watercolour.score.linear import Array, Linear, fit_linear

#: Changes whenever the meaning of the arrays in heads.npz does.
VERSION = "heads/3"
SHIPPED = Path(__file__).parent / "data" / "heads.npz"

#: No painting that HPSv3 was shown scored outside it.
MU_RANGE = (-12.0, 10.0)
#: Least step of the mean utility from one tier to the next, in logits.
LEAST_STEP = 0.05
#: Share of comparisons among good paintings that the judge leaves undecided; a vision-language
#: judge was seen to tie on 0.22 of its comparisons.
TIE_SHARE = 0.20


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


def fit_quality(e: Examples, which: NDArray[np.bool_]) -> Linear:
    """Quality asks whether a picture is like the pool's good ones, hence its strangeness."""
    which = which & (e.kinds == "")
    return fit_linear(e.quality[which], e.ranks[which], apart(e)[which], strange=True)


def fit_judge(e: Examples, which: NDArray[np.bool_]) -> Linear:
    """The judge asks how its parts are painted."""
    return fit_linear(e.judge[which], e.ranks[which], apart(e)[which], strange=False)


def apart(e: Examples) -> NDArray[np.int64]:
    """[n]: 0 for the pool's own paintings, 1 for attempts to cheat, 2 for spoilt paintings."""
    return e.counter.astype(np.int64) + (e.kinds != "")


def held_out(examples: Examples) -> tuple[Array, Array]:
    """Utilities of the pool's own paintings, each from heads that never saw its subject.

    Returns:
        Quality's [m] and the judge's [m], in the order of ``examples.own``.
    """
    quality, judge = np.zeros(len(examples.ranks)), np.zeros(len(examples.ranks))
    for subject in np.unique(examples.subjects):
        out = examples.subjects == subject
        quality[out] = fit_quality(examples, ~out).utility(examples.quality[out])
        judge[out] = fit_judge(examples, ~out).utility(examples.judge[out])
    return quality[examples.own], judge[examples.own]


def fit(examples: Examples) -> Heads:
    """Both heads; a pure function of the examples.

    The knots come from utilities of held-out subjects: a painting that the fit has seen looks
    more extreme than an equal one that it has not.

    Raises:
        InputError: fewer than two subjects, a tier is missing, or the features cannot order the
            tiers (InvalidPool).
    """
    ranks = examples.ranks[examples.own]
    subjects, present = np.unique(examples.subjects[examples.own]), np.unique(ranks)
    if len(subjects) < 2 or len(present) < len(TIER_MU):
        raise InputError(
            Reason.INVALID_POOL,
            f"the pool has {len(subjects)} subjects and {len(present)} tiers.",
            remedy=f"Give it at least two subjects and all of {', '.join(TIER_MU)}.",
            field="pool",
        )
    u, _ = held_out(examples)
    knots = np.array([u[ranks == r].mean() for r in range(len(TIER_MU))])
    if not (np.diff(knots) > LEAST_STEP).all():
        raise InputError(
            Reason.INVALID_POOL,
            f"the tiers' mean utilities {knots.round(2).tolist()} do not rise from meh to love.",
            remedy="Look at the pool's tiers: paintings of two tiers look alike.",
            field="pool",
        )
    everything = np.ones(len(examples.ranks), bool)
    judge = fit_judge(examples, everything)
    good = judge.utility(examples.judge[examples.own][ranks > 0])
    margins = np.abs(good[:, None] - good[None, :])[np.triu_indices(len(good), 1)]
    tie = float(np.quantile(margins, TIE_SHARE))
    return Heads(fit_quality(examples, everything), judge, knots, tie, {})


_PARTS = tuple(field.name for field in fields(Linear))


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
