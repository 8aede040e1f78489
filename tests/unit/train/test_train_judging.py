"""What the trainer asks of the judge before it trusts it, and of scorer and judge later on."""

from __future__ import annotations

import json
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from watercolour.api.errors import InputError
from watercolour.api.reasons import Reason
from watercolour.api.rollout import Rollout, Vote
from watercolour.api.scoring import Judge
from watercolour.train import drift, fair, judgecheck
from watercolour.train.progress import Progress
from watercolour.train.rollouts import again

UNFIT = {"passed": False, "message": "love wins only 50% of its comparisons with meh"}


def test_an_unfit_judge_ends_the_run_before_it_begins(tmp_path: Path) -> None:
    progress = Progress("run", 10)
    with pytest.raises(InputError, match="love wins only 50%") as refused:
        judgecheck.require(UNFIT, Judge(), tmp_path, progress)
    assert refused.value.reason is Reason.JUDGE_UNFIT
    assert json.loads((tmp_path / "selfcheck.json").read_text()) == UNFIT
    assert progress.reply()["selfcheck"] == UNFIT


@pytest.mark.parametrize(
    ("found", "policy"),
    [
        (UNFIT, "Warn"),
        ({"passed": None, "message": "the judge did not answer"}, "Refuse"),
        ({"passed": True, "message": "fine"}, "Refuse"),
        (None, "Refuse"),
    ],
)
def test_a_run_goes_on_with_a_sound_a_silent_or_a_tolerated_judge(
    found: dict[str, Any] | None, policy: Any, tmp_path: Path
) -> None:
    judgecheck.require(found, Judge(self_check=policy), tmp_path, Progress("run", 10))


def scores(quality: float, wins: float | None) -> list[dict[str, Any]]:
    return [
        {"name": "a", "quality": quality, "wins": wins},
        {"name": "b", "quality": None, "wins": 0.5},
    ]


def test_drift_is_the_mean_difference_of_what_both_scorings_know() -> None:
    found = drift.apart(scores(0.5, 0.5), scores(0.4, 1.0))
    assert found == {"drift_quality": pytest.approx(0.1), "drift_judge": pytest.approx(0.25)}
    assert drift.apart(scores(0.5, None), [])["drift_judge"] is None


class Desk:
    """Answers when it is told to."""

    def __init__(self) -> None:
        self.asked: list[Future[dict[str, Any] | None]] = []

    def __call__(self) -> Future[dict[str, Any] | None]:
        self.asked.append(Future())
        return self.asked[-1]


def test_probes_are_asked_every_so_many_steps_and_told_when_they_arrive(tmp_path: Path) -> None:
    desk = Desk()
    probes = drift.Probes(desk, tmp_path, every=2)
    probes.begin(0)
    assert probes.collect() == {}
    probes.begin(1)
    desk.asked[0].set_result({"paintings": scores(0.5, 0.5)})
    assert probes.collect() == {"drift_quality": 0.0, "drift_judge": 0.0}
    probes.begin(2)
    desk.asked[1].set_result(None)
    assert probes.collect() == {}
    # A resumed attempt measures from the first answer of all.
    resumed = drift.Probes(desk, tmp_path, every=2)
    resumed.begin(4)
    desk.asked[2].set_result({"paintings": scores(0.8, 0.5)})
    assert resumed.collect()["drift_quality"] == pytest.approx(0.3)
    assert [answer["step"] for answer in resumed.answers] == [0, 4]


def judged(by: str, reward: float | None = 0.5) -> Rollout:
    vote = Vote(reference="r", first="A", second="A", value=0.5)
    return Rollout(reward=reward, reward_adjusted=reward, votes=(vote,), versions={"judge": by})


def test_members_that_another_judge_has_judged_than_most_are_unscored() -> None:
    refused = Rollout(reward=0.0, gate_passed=False)
    group = [judged("vlm"), judged("embedded"), judged("vlm"), refused]
    found = fair.of_one_judge(group)
    assert [one.reward for one in found] == [0.5, None, 0.5, 0.0]
    assert found[1].unscored_reason is Reason.JUDGE_UNAVAILABLE
    assert "judged by embedded, most of its group by vlm" in found[1].unscored_detail
    assert fair.of_one_judge([judged("vlm"), judged("vlm")]) == [judged("vlm"), judged("vlm")]


def test_a_group_that_no_budget_pays_for_is_not_tried_again() -> None:
    away = Rollout(unscored_reason=Reason.JUDGE_UNAVAILABLE)
    spent = Rollout(unscored_reason=Reason.JUDGE_BUDGET_SPENT)
    assert again([away, away])
    assert not again([spent, spent])
    assert not again([away, judged("vlm")])
