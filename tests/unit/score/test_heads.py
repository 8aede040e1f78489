"""The heads: antisymmetric, monotone, calibrated, and refused when they do not belong."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from watercolour.api.errors import InfrastructureError, InputError
from watercolour.score import heads, linear
from watercolour.score.examples import Examples
from watercolour.score.linear import fit_linear

DIMENSIONS = 12


def made(seed: int = 0, n: int = 90) -> Examples:
    """Examples whose tier is the third of a hidden direction that they lie in, with noise."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, DIMENSIONS)).astype(np.float32)
    hidden = x[:, 0] + 0.5 * x[:, 1] + rng.normal(0, 0.2, n)
    ranks = np.searchsorted(np.quantile(hidden, [1 / 3, 2 / 3]), hidden).astype(np.int64)
    subjects = np.array(["iris", "poppy", "daisy"])[np.arange(n) % 3]
    return Examples(
        x, x[:, ::-1].copy(), ranks, subjects, np.ones(n, bool), np.zeros(n, bool), np.full(n, "")
    )


@given(st.integers(0, 89), st.integers(0, 89))
def test_the_margin_is_antisymmetric_to_the_bit(i: int, j: int) -> None:
    fitted, x = FITTED, EXAMPLES.judge
    assert fitted.margin(x[i], x[j]) == -fitted.margin(x[j], x[i])


def test_a_hidden_direction_is_found() -> None:
    train, test = made(0), made(1)
    u = heads.fit_quality(train, train.own).utility(test.quality)
    better, worse = u[test.ranks == 2], u[test.ranks == 0]
    assert (better[:, None] > worse[None, :]).mean() > 0.97


def test_the_fit_is_the_minimum_of_its_loss() -> None:
    rng = np.random.default_rng(0)
    d = rng.normal(0.3, 1, (200, 4))
    weights = np.full(200, 1 / 200)

    def loss(w: linear.Array) -> float:
        return float((weights * np.log1p(np.exp(-d @ w))).sum() + 0.05 * (w @ w))

    w, _ = linear.fit_logistic(d, weights, 0.1)
    assert all(loss(w) < loss(w + step) for step in 0.01 * np.vstack([np.eye(4), -np.eye(4)]))


def test_separable_tiers_have_a_finite_answer() -> None:
    x = np.vstack([np.full((5, 3), 1.0), np.full((5, 3), -1.0)])
    fitted = fit_linear(x, np.array([2] * 5 + [0] * 5), np.zeros(10, np.int64), strange=True)
    assert np.isfinite(fitted.utility(x)).all()


def test_an_outlier_gains_no_more_than_the_clip_allows() -> None:
    x = EXAMPLES.quality[:1]
    far, farther = (FITTED.quality.utility(x * k) for k in (1e3, 1e6))
    assert far == pytest.approx(farther)


def test_a_picture_unlike_all_good_ones_is_strange_and_loses_by_it() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(120, DIMENSIONS))
    good = np.abs(x).max(axis=1) < 1.8
    head = fit_linear(x, good.astype(np.int64), np.zeros(120, np.int64), strange=True)
    plain = fit_linear(x, good.astype(np.int64), np.zeros(120, np.int64), strange=False)
    far = rng.choice((-2.5, 2.5), size=(50, DIMENSIONS))
    assert (head.utility(far) < np.quantile(head.utility(x[good]), 0.05)).all()
    assert (plain.utility(far) > np.median(plain.utility(x[good]))).any()


def test_few_counterexamples_weigh_as_much_as_many_bad_paintings() -> None:
    rng = np.random.default_rng(1)
    groups = ((60, (1, 1)), (60, (-1, 0)), (3, (1, -1)))
    x = np.vstack([rng.normal(at, 0.3, (n, 2)) for n, at in groups])
    ranks = np.array([1] * 60 + [0] * 63)
    apart = (np.arange(123) >= 120).astype(np.int64)
    together = fit_linear(x, ranks, np.zeros(123, np.int64), strange=False)
    alone = fit_linear(x, ranks, apart, strange=False)

    def gap(head: linear.Linear) -> float:
        u = head.utility(x)
        return float((u[:60].mean() - u[120:].mean()) / (u[:60].mean() - u[60:120].mean()))

    assert gap(alone) > 1.2 * gap(together)


def test_mu_rises_with_the_utility_and_meets_the_tiers_means() -> None:
    knots = np.array([-2.0, 1.0, 1.5])
    assert heads.to_mu(knots, knots) == pytest.approx([-7, 2.5, 3.5])
    mu = heads.to_mu(np.linspace(-3.5, 4, 200), knots)
    assert (np.diff(mu) > 0).all()
    assert heads.to_mu(np.array([-99.0, 99.0]), knots).tolist() == [-12, 10]


def test_sigma_is_positive_and_grows_away_from_the_examples() -> None:
    _, near = FITTED.mu(EXAMPLES.quality[:1] * 0.1)
    _, far = FITTED.mu(EXAMPLES.quality[:1] * 3)
    assert 0 < near[0] < far[0]


def test_heads_come_back_from_the_disk_as_they_were(tmp_path: Path) -> None:
    path = tmp_path / "heads.npz"
    heads.save(FITTED, path)
    again = heads.load(path)
    assert again.mu(EXAMPLES.quality)[0] == pytest.approx(FITTED.mu(EXAMPLES.quality)[0], abs=1e-4)
    assert again.tie == FITTED.tie
    assert again.provenance["pool"] == "made"


def test_heads_of_other_features_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "heads.npz"
    heads.save(FITTED, path)
    with np.load(path) as file:
        arrays = dict(file)
    provenance = {**json.loads(str(arrays["provenance"])), "features": "older/1"}
    arrays["provenance"] = np.array(json.dumps(provenance))
    np.savez(path, **arrays)  # pyright: ignore[reportArgumentType]
    with pytest.raises(InfrastructureError, match=r"older/1.*watercolour\.score\.fit"):
        heads.load(path)


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 not an archive", b"\x93NUMPY"])
def test_damaged_heads_are_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "heads.npz"
    path.write_bytes(content)
    with pytest.raises(InfrastructureError, match=r"watercolour\.score\.fit"):
        heads.load(path)


def test_one_subject_is_not_enough() -> None:
    same = replace(EXAMPLES, subjects=np.array(["iris"] * len(EXAMPLES.ranks)))
    with pytest.raises(InputError, match="1 subjects"):
        heads.fit(same)


def test_tiers_that_look_alike_are_refused() -> None:
    rng = np.random.default_rng(0)
    with pytest.raises(InputError, match="do not rise"):
        heads.fit(replace(EXAMPLES, ranks=2 - EXAMPLES.ranks, quality=shuffled(rng)))


def shuffled(rng: np.random.Generator) -> np.ndarray:
    """Features in which the sign of every direction differs by subject: nothing transfers."""
    x = EXAMPLES.quality.copy()
    for k, subject in enumerate(np.unique(EXAMPLES.subjects)):
        x[EXAMPLES.subjects == subject] *= (1, -1, -1)[k]
    return x


EXAMPLES = made()
FITTED = replace(heads.fit(EXAMPLES), provenance={"pool": "made"})
