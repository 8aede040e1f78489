"""Calibration: whether a pool teaches, and what it says to change."""

from __future__ import annotations

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from watercolour.api.spec import TierShares
from watercolour.reward.calibration import (
    LEAST,
    MOST,
    Bout,
    Calibration,
    better_shares,
    calibrate,
    expected,
)
from watercolour.reward.ratings import Tier

EQUAL = TierShares(love=0.5, okay=0.5, meh=0)


def bouts(love: float, okay: float, meh: float, n: int = 20) -> list[Bout]:
    """n paintings, one comparison with each tier, of which that share is won."""
    rates: dict[Tier, float] = {"love": love, "okay": okay, "meh": meh}
    return [
        Bout(f"painting {k}", tier, float(k < rate * n))
        for tier, rate in rates.items()
        for k in range(n)
    ]


def words(found: Calibration) -> str:
    return " ".join(found.advice)


def test_a_pool_that_fits_is_left_alone() -> None:
    found = calibrate(bouts(0.3, 0.6, 0.9), EQUAL)
    assert found.wins == pytest.approx(0.45)
    assert found.fits
    assert found.better is None
    assert "fits" in words(found)


def test_the_published_uniformly_good_pool_needs_meh() -> None:
    """0 wins of 56 was what a uniformly good pool gave."""
    found = calibrate(bouts(0, 0, 0.8, 28), EQUAL)
    assert found.wins == 0
    assert not found.fits
    assert found.better is not None
    assert found.better.meh >= 0.4
    assert LEAST <= (expected(found.by_tier, found.better) or 0) <= MOST
    assert f"meh: {found.better.meh:g}" in words(found)


def test_a_policy_that_always_wins_is_given_love() -> None:
    found = calibrate(bouts(0.4, 1, 1), TierShares(love=0, okay=0.5, meh=0.5))
    assert found.better is not None
    assert found.better.love >= 0.5


@pytest.mark.parametrize(
    ("rates", "told"),
    [((0, 0, 0.1), "Add weaker paintings"), ((0.9, 0.95, 1), "Add better paintings")],
)
def test_a_pool_that_no_shares_help_is_told_what_to_add(
    rates: tuple[float, float, float], told: str
) -> None:
    found = calibrate(bouts(*rates), EQUAL)
    assert found.better is None
    assert told in words(found)


def test_a_tier_that_the_draw_takes_and_the_pool_lacks_is_named() -> None:
    met = [bout for bout in bouts(0, 0.5, 0.5) if bout.tier != "love"]
    found = calibrate(met, EQUAL)
    assert found.wins is None
    assert not found.fits
    assert "Rate paintings as love" in words(found)


def test_a_pool_of_one_tier_is_judged_by_it_alone() -> None:
    met = [bout for bout in bouts(0, 0.5, 0) if bout.tier == "okay"]
    found = calibrate(met, TierShares(love=0, okay=1, meh=0))
    assert found.fits
    too_good = calibrate([Bout(str(n), "okay", 0.0) for n in range(20)], found.shares)
    assert "The pool has too few meh paintings" in words(too_good)


def test_few_comparisons_are_not_sure() -> None:
    assert not calibrate(bouts(0.5, 0.5, 0.5, 4), EQUAL).sure
    assert calibrate(bouts(0.5, 0.5, 0.5, 200), EQUAL).sure


def test_the_interval_holds_the_figure() -> None:
    found = calibrate(bouts(0.2, 0.6, 0.9, 40), EQUAL)
    assert found.low is not None
    assert found.high is not None
    assert found.wins is not None
    assert found.low < found.wins < found.high


@given(st.tuples(*(st.floats(0, 1) for _ in get_args(Tier))))
def test_advised_shares_always_fit_and_sum_to_one(rates: tuple[float, float, float]) -> None:
    by_tier: dict[Tier, float | None] = dict(zip(get_args(Tier), rates, strict=True))
    counts: dict[Tier, int] = dict.fromkeys(get_args(Tier), 20)
    found = better_shares(by_tier, counts, EQUAL)
    reachable = min(rates) <= MOST and max(rates) >= LEAST
    if found is not None:
        won = expected(by_tier, found)
        assert won is not None
        assert LEAST - 1e-9 <= won <= MOST + 1e-9
        assert found.love + found.okay + found.meh == pytest.approx(1)
    elif reachable:
        # Shares in steps can only miss a target that lies between two of them.
        assert max(rates) - min(rates) > 0
