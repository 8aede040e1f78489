"""A gain, split into fewer bad and better good paintings."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from watercolour.reward import gain
from watercolour.reward.gain import Decomposition

REWARDS = st.lists(st.floats(-1, 1), min_size=1, max_size=30)


def split(first: list[float], last: list[float], bad: float = 0.3) -> Decomposition | None:
    return gain.decompose(gain.by_reward(first, bad), gain.by_reward(last, bad))


@given(REWARDS, REWARDS, st.floats(-1, 1))
def test_the_parts_of_a_gain_add_up(first: list[float], last: list[float], bad: float) -> None:
    found = split(first, last, bad)
    assert found is not None
    parts = found.fewer_bad + found.better_good + found.better_bad
    assert parts == pytest.approx(found.after.reward - found.before.reward, abs=1e-9)


def test_a_gain_by_fewer_failures_alone_is_told_as_that() -> None:
    found = split([0.1, 0.1, 0.7, 0.7], [0.1, 0.7, 0.7, 0.7])
    assert found is not None
    assert found.fewer_bad == pytest.approx(0.15)
    assert (found.better_good, found.better_bad) == pytest.approx((0.0, 0.0))


def test_a_gain_among_the_good_alone_is_told_as_that() -> None:
    found = split([0.1, 0.6], [0.1, 0.8])
    assert found is not None
    assert found.better_good == pytest.approx(0.1)
    assert found.fewer_bad == found.better_bad == 0.0


def test_nothing_to_compare_is_none_and_not_zero() -> None:
    assert split([], [0.5]) is None
    assert split([0.5], []) is None


def test_fifths_are_of_the_steps_and_hold_one_at_least() -> None:
    assert gain.fifths([0, 2]) == ([0], [2])
    assert gain.fifths(list(range(10))) == ([0, 1], [8, 9])
