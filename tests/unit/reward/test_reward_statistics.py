"""What is said of a judge, of a run and of the sureness of its mean."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from watercolour.api.reasons import Reason
from watercolour.api.rollout import Vote
from watercolour.reward import alarms, bands, pool, selfcheck, votes
from watercolour.reward.alarms import Row

WON, TIE_A, TIE_B, LOST = ("A", "B"), ("A", "A"), ("B", "B"), ("B", "A")
VALUES: dict[tuple[str | None, str | None], float] = {WON: 1.0, TIE_A: 0.5, TIE_B: 0.5, LOST: 0.0}


def cast(*answers: tuple[str | None, str | None]) -> list[Vote]:
    return [
        Vote(reference=f"r{n}", first=first, second=second, value=VALUES.get((first, second)))
        for n, (first, second) in enumerate(answers)
    ]


# Votes.


def test_a_fair_judge_has_no_place_bias_however_many_it_lets_win() -> None:
    assert votes.place_bias(cast(WON, WON, LOST, WON)) == 0.0
    assert votes.tie_rate(cast(WON, WON, LOST, WON)) == 0.0


def test_a_judge_that_always_says_a_ties_always_and_is_biased_by_a_half() -> None:
    assert votes.tie_rate(cast(TIE_A, TIE_A)) == 1.0
    assert votes.place_bias(cast(TIE_A, TIE_A)) == 0.5
    assert votes.place_bias(cast(TIE_A, TIE_B)) == 0.0


def test_a_dropped_comparison_says_nothing_of_the_judge() -> None:
    some = cast(WON, ("A", None), (None, None))
    assert votes.dropped(some) == pytest.approx(2 / 3)
    assert votes.tie_rate(some) == 0.0
    assert votes.tie_rate(cast(("A", None))) is None
    assert votes.place_bias([]) is None


# Bands.


def test_an_interval_holds_the_true_mean_about_as_often_as_it_says() -> None:
    rng = np.random.default_rng(5)
    held = 0
    for _ in range(200):
        draws = rng.normal(0.0, 0.2, 30)
        groups = [list(0.5 + draw + rng.normal(0, 0.1, 8)) for draw in draws]
        band = bands.of_mean(groups)
        assert band is not None
        held += band.low <= 0.5 <= band.high
    assert 0.88 <= held / 200 <= 0.99


def test_members_of_one_group_are_not_taken_for_independent() -> None:
    # What differs is the group's draw: eight equal members are one observation.
    groups = [[0.2] * 8, [0.8] * 8, [0.4] * 8, [0.6] * 8]
    alone = [[value] for group in groups for value in group]
    together, apart = bands.of_mean(groups), bands.of_mean(alone)
    assert together is not None
    assert apart is not None
    assert together.high - together.low > 2 * (apart.high - apart.low)


def test_the_same_rollouts_give_the_same_interval_and_few_give_none() -> None:
    groups = [[0.1, 0.2], [0.4], [0.3, 0.5]]
    assert bands.of_mean(groups) == bands.of_mean(groups)
    assert bands.of_mean([[0.1, 0.2], []]) is None
    assert bands.of_gain([[0.1], [0.2]], [[0.3]]) is None


def test_a_clear_gain_excludes_zero_and_no_gain_does_not() -> None:
    low, high = [[0.1, 0.2], [0.15, 0.2], [0.1, 0.1]], [[0.8, 0.9], [0.7, 0.8], [0.9, 0.9]]
    gain, none = bands.of_gain(low, high), bands.of_gain(low, low)
    assert gain is not None
    assert none is not None
    assert gain.low > 0.4
    assert none.low < 0 < none.high


def test_a_step_alone_borrows_from_its_neighbours() -> None:
    near = bands.windows({2 * step: [[0.1 * step], []] for step in range(6)})
    assert list(near) == [0, 2, 4, 6, 8, 10]
    assert near[0] == [[0.0], [], [0.1], [], [0.2], []]
    assert [group for group in near[6] if group] == [[0.1 * n] for n in range(1, 6)]
    assert all(bands.of_mean(groups) is not None for groups in near.values())
    assert bands.of_mean(bands.windows({0: [[0.5]]})[0]) is None


# Alarms.


def run(length: int, **columns: float | Sequence[float | None]) -> list[Row]:
    """Rows of metrics.csv; a column is one value for all steps, or a value each."""
    return [
        {"step": n}
        | {
            name: values if isinstance(values, int | float) else values[n]
            for name, values in columns.items()
        }
        for n in range(length)
    ]


def ramp(first: float, last: float, length: int = 40) -> list[float | None]:
    return [first + (last - first) * n / (length - 1) for n in range(length)]


CALM = {
    "unscored": 0.02,
    "judge_dropped": 0.02,
    "judge_tie_rate": 0.22,
    "judge_place_bias": 0.08,
    "frac_reward_zero_std": 0.0,
    "pigment_share": 0.7,
    "paint_fraction_mean": 0.3,
    "shapes": 8.0,
    "distinct": 0.9,
    "drift_quality": 0.0,
    "drift_judge": 0.02,
}


def test_a_run_like_the_published_ones_raises_nothing() -> None:
    rows = run(40, **CALM, reward=ramp(0.57, 0.82), entropy=ramp(0.35, 0.16))
    assert alarms.raised(rows) == ()
    assert alarms.history(rows) == []


@pytest.mark.parametrize(
    ("name", "columns"),
    [
        ("unscored_rate", {"unscored": 0.15}),
        ("judge_calls_failing", {"judge_dropped": 0.2}),
        ("tie_rate", {"judge_tie_rate": 0.6}),
        ("position_bias", {"judge_place_bias": 0.3}),
        ("position_bias", {"judge_place_bias": -0.3}),
        ("no_spread", {"frac_reward_zero_std": 0.6}),
        ("entropy_collapse", {"entropy": ramp(0.4, 0.02)}),
        ("hack_off_subject", {"reward": ramp(0.3, 0.6), "pigment_share": ramp(0.8, 0.4)}),
        ("hack_flooded_sheet", {"paint_fraction_mean": 0.9}),
        ("hack_one_blob", {"shapes": 1.5, "paint_fraction_mean": 0.5}),
        ("hack_same_sketch", {"distinct": 0.2}),
        ("score_drift", {"drift_quality": 0.1}),
        ("score_drift", {"drift_judge": 0.25}),
    ],
)
def test_each_trouble_raises_its_own_alarm_and_no_other(
    name: str, columns: dict[str, float | Sequence[float | None]]
) -> None:
    found = alarms.raised(run(40, **{**CALM, **columns}))
    assert [alarm.name for alarm in found] == [name]
    assert found[0].advice
    assert name in alarms.NAMES


def test_what_does_not_exist_raises_nothing() -> None:
    assert alarms.raised([]) == ()
    assert alarms.raised(run(40, unscored=[None] * 40, judge_tie_rate=[None] * 40)) == ()
    assert alarms.raised(run(2, unscored=0.9)) == ()


def test_a_drift_stands_until_it_is_measured_again() -> None:
    measured: list[float | None] = [None] * 40
    measured[35] = 0.2
    assert [one.name for one in alarms.raised(run(40, drift_quality=measured))] == ["score_drift"]
    measured[38] = 0.0
    assert alarms.raised(run(40, drift_quality=measured)) == ()


def test_the_history_tells_from_when_to_when_an_alarm_stood() -> None:
    trouble = [0.0] * 10 + [0.5] * 10 + [0.0] * 20
    (one,) = alarms.history(run(40, unscored=trouble))
    assert one.alarm.name == "unscored_rate"
    assert 10 < one.first_step < 15
    assert 25 < one.last_step < 30


# The judge's self-check.


def test_a_sound_judge_passes() -> None:
    found = selfcheck.judged(cast(TIE_A, TIE_A, TIE_B, TIE_A), cast(WON, WON, WON, TIE_A))
    assert found.passed is True
    assert (found.ties, found.wins, found.reason) == (1.0, 0.875, None)


def test_a_judge_that_prefers_one_of_two_equal_pictures_is_unfit() -> None:
    found = selfcheck.judged(cast(WON, LOST, TIE_A, TIE_A), cast(WON, WON, WON, WON))
    assert (found.passed, found.reason) == (False, Reason.JUDGE_UNFIT)
    assert "50% of the references tie" in found.message


def test_a_judge_to_whom_love_is_no_better_than_meh_is_unfit() -> None:
    found = selfcheck.judged(cast(TIE_A, TIE_A, TIE_A, TIE_A), cast(TIE_A, TIE_A, TIE_A, TIE_A))
    assert (found.passed, found.reason) == (False, Reason.JUDGE_UNFIT)
    assert "love wins only 50%" in found.message


def test_a_judge_that_does_not_answer_is_not_called_unfit() -> None:
    nothing = (None, None)
    found = selfcheck.judged(
        cast(nothing, nothing), cast(nothing), ("HTTP 503",), Reason.JUDGE_UNAVAILABLE
    )
    assert (found.passed, found.reason) == (None, Reason.JUDGE_UNAVAILABLE)
    assert "HTTP 503" in found.message


def test_pairs_are_of_one_subject_and_of_different_tiers() -> None:
    chosen = selfcheck.pairs(pool.load("builtin:flowers"))
    assert len(chosen) == selfcheck.PAIRS
    assert all((a.tier, b.tier, a.subject) == ("love", "meh", b.subject) for a, b in chosen)
