from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from watercolour.reward.ratings import (
    STANDINGS,
    TIERS,
    Standing,
    Tier,
    bradley_terry,
    rated_wins,
    strengths,
)


def played(known: list[float], games: int, seed: int) -> np.ndarray:
    """Wins in ``games`` games of every pair, drawn from the model itself."""
    rng = np.random.default_rng(seed)
    s = np.array(known)
    p = 1 / (1 + np.exp(s[None, :] - s[:, None]))
    upper = np.triu(rng.binomial(games, p), 1).astype(float)
    return upper + np.tril(games - upper.T, -1)


def test_a_known_order_and_its_distances_come_back() -> None:
    known = [2.0, 1.0, 0.0, -0.5, -2.5]
    found = bradley_terry(list("abcde"), played(known, 400, 1))
    assert list(found) == sorted(found, key=lambda name: -found[name])
    assert list(found.values()) == pytest.approx([k - np.mean(known) for k in known], abs=0.3)


@given(st.lists(st.floats(-2, 2), min_size=3, max_size=8), st.integers(0, 1_000))
def test_strengths_have_mean_zero_and_do_not_depend_on_the_names_order(
    known: list[float], seed: int
) -> None:
    names = [f"p{i}" for i in range(len(known))]
    wins = played(known, 20, seed)
    found = bradley_terry(names, wins)
    assert sum(found.values()) == pytest.approx(0, abs=1e-6)
    turned = bradley_terry(names[::-1], wins[::-1, ::-1])
    assert turned == pytest.approx(found, abs=1e-6)


def test_one_that_always_wins_stays_finite() -> None:
    found = bradley_terry(["best", "worst"], np.array([[0.0, 1_000.0], [0.0, 0.0]]))
    # Where the gradient vanishes: 1000 / (1 + exp(2 s)) = s / 9.
    assert found["best"] == pytest.approx(3.875, abs=0.001)


def test_ties_only_make_equals() -> None:
    found = bradley_terry(["a", "b"], np.array([[0.0, 3.5], [3.5, 0.0]]))
    assert found == pytest.approx({"a": 0, "b": 0})


@pytest.mark.parametrize(
    "wins", [np.zeros((2, 3)), np.array([[0, -1], [0, 0]]), np.array([[0, np.nan], [0, 0]])]
)
def test_wins_that_are_no_wins_are_refused(wins: np.ndarray) -> None:
    with pytest.raises(ValueError, match="wins"):
        bradley_terry(["a", "b"], wins)


def test_ratings_order_by_tier_first_and_by_standing_within_it() -> None:
    tiers: list[Tier] = [tier for tier in TIERS for _ in STANDINGS]
    standings: list[Standing] = [place for _ in TIERS for place in STANDINGS]
    names = [f"{t}-{s}" for t, s in zip(tiers, standings, strict=True)]
    found = strengths(names, tiers, standings)
    assert list(found) == sorted(found, key=lambda name: -found[name])
    okay = [found[name] for name in names if name.startswith("okay")]
    assert sum(okay) == pytest.approx(0, abs=1e-9)


def test_a_pair_of_ratings_shares_one_comparison() -> None:
    wins = rated_wins(["love", "meh", "okay"], ["middle", "upper", "lower"])
    games = wins + wins.T
    off = games[~np.eye(3, dtype=bool)]
    assert off == pytest.approx([off[0]] * 6)
    assert wins[0, 1] > wins[0, 2] > wins[2, 0] > wins[1, 0]


def test_votes_can_overrule_a_rating() -> None:
    names = ["a", "b"]
    votes = np.array([[np.nan, 0.0], [20.0, np.nan]])
    rated = strengths(names, ["love", "okay"], ["middle", "middle"])
    voted = strengths(names, ["love", "okay"], ["middle", "middle"], votes)
    assert rated["a"] > rated["b"]
    assert voted["a"] < voted["b"]
