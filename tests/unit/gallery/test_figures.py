from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from watercolour.api import Reason, Rollout, Violation, ViolationCode
from watercolour.gallery import figures
from watercolour.gallery.figures import split, step_figures
from watercolour.reward import gain
from watercolour.reward.gain import decompose

BROKEN = Violation(code=ViolationCode.SYNTAX_ERROR, message="x")


def good(reward: float, adjusted: float | None = None) -> Rollout:
    return Rollout(gate_passed=True, reward=reward, reward_adjusted=adjusted)


def refused(reward: float = 0.0) -> Rollout:
    return Rollout(gate_passed=False, reward=reward, violations=(BROKEN, BROKEN))


UNSCORED = Rollout(unscored_reason=Reason.RENDERER_UNAVAILABLE)
ADMITTED_UNSCORED = Rollout(gate_passed=True, unscored_reason=Reason.SCORER_UNAVAILABLE)


def test_unscored_rollouts_are_left_out_of_every_mean() -> None:
    one = step_figures(3, [good(0.4, 0.5), refused(), UNSCORED, UNSCORED])
    assert one.reward == pytest.approx(0.2)
    assert one.adjusted == pytest.approx(0.25)
    assert one.admitted == 0.5
    assert one.gate_pass_rate == 0.5
    assert one.unscored_rate == 0.5


def test_a_step_without_a_score_has_none_and_not_zero() -> None:
    one = step_figures(3, [UNSCORED])
    assert (one.reward, one.adjusted, one.low, one.high, one.admitted) == (None,) * 5
    assert one.gate_pass_rate is None
    assert one.unscored_rate == 1


def test_an_admitted_rollout_without_a_score_counts_for_the_gate_alone() -> None:
    one = step_figures(0, [ADMITTED_UNSCORED, good(0.6)])
    assert one.gate_pass_rate == 1
    assert one.admitted == 0.6


@pytest.mark.parametrize(
    ("count", "first", "last"),
    [(1, [0], [0]), (4, [0], [3]), (5, [0], [4]), (10, [0, 1], [8, 9]), (14, [0, 1], [12, 13])],
)
def test_fifths_are_whole_steps_and_at_least_one(
    count: int, first: list[int], last: list[int]
) -> None:
    assert gain.fifths(range(count)) == (first, last)


def parts(before: list[Rollout], after: list[Rollout]) -> gain.Decomposition:
    found = decompose(split(before, figures.admitted), split(after, figures.admitted))
    assert found is not None
    return found


def test_a_gain_by_the_gate_alone_is_all_fewer_bad() -> None:
    found = parts([good(0.5), refused()], [good(0.5), good(0.5)])
    assert found.gain == pytest.approx(0.25)
    assert found.fewer_bad == pytest.approx(0.25)
    assert found.better_good == pytest.approx(0)


def test_a_gain_by_quality_alone_is_all_better_good() -> None:
    found = parts([good(0.4), refused()], [good(0.8), refused()])
    assert found.gain == pytest.approx(0.2)
    assert found.better_good == pytest.approx(0.2)
    assert found.fewer_bad == pytest.approx(0)


def test_unscored_rollouts_take_no_part_in_the_decomposition() -> None:
    pure = parts([good(0.4), refused()], [good(0.8)])
    assert parts([good(0.4), UNSCORED, refused()], [UNSCORED, good(0.8)]) == pure


def test_nothing_scored_on_one_side_is_no_decomposition() -> None:
    assert (
        decompose(split([UNSCORED], figures.admitted), split([good(1)], figures.admitted)) is None
    )


rollouts = st.lists(
    st.one_of(
        st.floats(0.05, 1).map(good),
        st.floats(-1, 0).map(refused),
        st.just(UNSCORED),
    ),
    min_size=1,
    max_size=12,
)


@given(rollouts, rollouts)
def test_the_parts_sum_to_the_gain(before: list[Rollout], after: list[Rollout]) -> None:
    for rule in (figures.admitted, figures.above_bad):
        found = decompose(split(before, rule), split(after, rule))
        if found is None:
            continue
        means = [figures.mean(r.reward for r in side) for side in (before, after)]
        assert means[0] is not None
        assert means[1] is not None
        assert found.gain == pytest.approx(means[1] - means[0])
        total = found.fewer_bad + found.better_good + found.better_bad
        assert total == pytest.approx(found.gain)


@given(rollouts, rollouts)
def test_the_decomposition_turned_round_changes_every_sign(
    before: list[Rollout], after: list[Rollout]
) -> None:
    there = decompose(split(before, figures.admitted), split(after, figures.admitted))
    back = decompose(split(after, figures.admitted), split(before, figures.admitted))
    if there is not None and back is not None:
        assert there.fewer_bad == pytest.approx(-back.fewer_bad)
        assert there.better_good == pytest.approx(-back.better_good)


def test_a_code_counts_once_a_rollout() -> None:
    assert figures.violation_counts([refused(), refused()]) == [("syntax_error", 2)]


def test_unscored_are_counted_by_reason() -> None:
    counted = figures.unscored_counts([UNSCORED, UNSCORED, ADMITTED_UNSCORED, good(1)])
    assert counted == [("RendererUnavailable", 2), ("ScorerUnavailable", 1)]


def test_timings_are_summed_by_room_the_greatest_first() -> None:
    rollouts = [
        Rollout(timings={"render": 2.0, "score": 0.1}),
        Rollout(timings={"render": 4.0}),
    ]
    found = figures.timings(rollouts)
    assert [(t.room, t.median, t.total, t.rollouts) for t in found] == [
        ("render", 3.0, 6.0, 2),
        ("score", 0.1, 0.1, 1),
    ]
