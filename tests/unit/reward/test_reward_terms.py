"""The terms against the published figures."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from watercolour.api.rollout import Vote
from watercolour.reward import terms


@pytest.mark.parametrize(
    ("tokens", "value"),
    [
        (0, 0.0),
        (149, 0.0),
        (150, 0.0),
        (600, 0.16),
        (1_575, 0.5),
        (3_000, 1.0),
        (4_500, 1.0),
        (6_000, 1.0),
        (6_001, 0.0),
        (13_500, 0.0),
    ],
)
def test_the_length_ramp_has_the_published_values(tokens: int, value: float) -> None:
    assert terms.length(4 * tokens) == pytest.approx(value, abs=0.005)


@given(st.integers(min_value=0, max_value=100_000))
def test_length_stays_between_0_and_1(characters: int) -> None:
    assert 0 <= terms.length(characters) <= 1


@pytest.mark.parametrize(
    ("mu", "value"),
    [(0.0, 0.5), (-7.5, 0.133), (3.5, 0.706), (5.2, 0.786), (7.59, 0.870), (-9.2, 0.091)],
)
def test_quality_is_the_logistic_of_a_quarter_of_mu(mu: float, value: float) -> None:
    assert terms.quality(mu) == pytest.approx(value, abs=0.001)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_quality_overflows_nowhere(mu: float) -> None:
    assert 0 <= terms.quality(mu) <= 1
    assert terms.quality(mu) + terms.quality(-mu) == pytest.approx(1)


@pytest.mark.parametrize("mu", [float("nan"), float("inf"), float("-inf")])
def test_a_mu_that_is_no_number_has_no_quality(mu: float) -> None:
    with pytest.raises(ValueError, match="not finite"):
        terms.quality(mu)


@pytest.mark.parametrize(
    ("first", "second", "value"),
    [
        ("A", "B", 1.0),
        ("B", "A", 0.0),
        ("A", "A", 0.5),
        ("B", "B", 0.5),
        (None, "B", None),
        ("A", None, None),
        (None, None, None),
    ],
)
def test_a_vote_counts_only_when_both_orders_answered(
    first: str | None, second: str | None, value: float | None
) -> None:
    assert terms.vote_value(first, second) == value


def vote(value: float | None) -> Vote:
    return Vote(reference="love_1", first=None, second=None, value=value)


def test_the_judge_term_is_the_mean_over_resolved_references() -> None:
    assert terms.judge([vote(1.0), vote(None), vote(0.5), vote(0.0)]) == 0.5


def test_no_resolved_reference_is_no_value() -> None:
    assert terms.judge([vote(None), vote(None)]) is None
    assert terms.judge([]) is None
