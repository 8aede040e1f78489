from __future__ import annotations

from typing import Any

import pytest

from watercolour.api.reasons import Reason, ViolationCode
from watercolour.api.rollout import Rollout, Violation, Vote
from watercolour.reward import explain, recipes

EMBEDDED = recipes.RECIPES["embedded"]


def admitted(**fields: Any) -> Rollout:
    values: dict[str, float | None] = {
        "length": 0.5,
        "quality": 0.8,
        "judge": 0.25,
        "pigment": 1.0,
    }
    return Rollout(
        subject="a red poppy", sketch="x" * 1200, gate_passed=True, mu=5.5, terms=values
    ).model_copy(update=fields)


def test_the_parts_add_up_to_the_reward() -> None:
    rollout = admitted()
    parts = {part.term: part for part in explain.parts(EMBEDDED, rollout)}
    assert list(parts) == ["gate", "length", "quality", "judge", "pigment"]
    assert parts["gate"].adds == 0.05
    assert parts["judge"].adds == pytest.approx(0.2 * 0.25)
    whole = sum(part.adds or 0.0 for part in parts.values())
    assert whole == pytest.approx(explain.reward(EMBEDDED, rollout))
    assert parts["quality"].words == "mu +5.50"
    assert parts["length"].words == "1,200 characters"


def test_a_term_that_failed_is_told_from_one_that_weighs_nothing() -> None:
    rollout = admitted(terms={"length": 0.5, "quality": 0.8, "judge": None, "pigment": 1.0})
    parts = {part.term: part for part in explain.parts(EMBEDDED, rollout)}
    assert (parts["judge"].value, parts["judge"].adds) == (None, None)
    assert explain.reward(EMBEDDED, rollout) is None
    hps_only = recipes.RECIPES["hps-only"]
    assert {part.term: part.adds for part in explain.parts(hps_only, rollout)}["judge"] == 0.0
    assert explain.reward(hps_only, rollout) == pytest.approx(0.05 + 0.05 * 0.5 + 0.9 * 0.8)


def test_in_a_signed_recipe_a_poor_term_takes_away() -> None:
    style = {"utility": 0.25, "perceptual": 0.9, "diversity": 0.5}
    rollout = admitted(terms={"quality": 0.8, **style})
    hybrid = recipes.RECIPES["hybrid"]
    parts = {part.term: part.adds for part in explain.parts(hybrid, rollout)}
    assert parts["utility"] == pytest.approx(0.25 * (2 * 0.25 - 1))
    assert parts["quality"] == pytest.approx(0.5 * (2 * 0.8 - 1))
    whole = sum(adds or 0.0 for adds in parts.values())
    assert whole == pytest.approx(explain.reward(hybrid, rollout))


def test_a_white_flower_is_not_asked_for_pigment() -> None:
    rollout = admitted(subject="a white hibiscus", terms={"length": 1, "quality": 1, "judge": 1})
    parts = {part.term: part for part in explain.parts(EMBEDDED, rollout)}
    assert parts["pigment"].weight == 0
    assert explain.reward(EMBEDDED, rollout) == pytest.approx(1.0)


def test_a_group_term_is_left_out_only_where_the_run_itself_left_it_out() -> None:
    hybrid = recipes.RECIPES["hybrid"]
    lone = hybrid.without("diversity").weights
    for weights, left_out in ((lone, True), (EMBEDDED.weights, False), ({}, False)):
        own = explain.of_rollout(hybrid, admitted(weights=dict(weights)))
        assert (own.weight("diversity") == 0) is left_out


def test_a_refused_sketch_is_told_with_its_violation() -> None:
    fault = Violation(code=ViolationCode.BLANK_CANVAS, message="nothing is painted")
    rollout = Rollout(gate_passed=False, terms={"gate": 0.0}, violations=(fault,))
    assert explain.parts(EMBEDDED, rollout)[0].words == "blank_canvas: nothing is painted"
    assert explain.reward(EMBEDDED, rollout) == 0.0


def test_a_rollout_on_which_the_gate_never_decided_has_no_reward() -> None:
    assert explain.reward(EMBEDDED, Rollout(unscored_reason=Reason.BROWSER_CRASHED)) is None


def test_votes_are_told_as_won_tied_lost_and_unanswered() -> None:
    votes = tuple(
        Vote(reference=f"love_{number}", first=None, second=None, value=value)
        for number, value in enumerate((1.0, 0.5, 0.0, None))
    )
    words = explain.parts(EMBEDDED, admitted(votes=votes))[3].words
    assert words == "love_0 won, love_1 tied, love_2 lost, love_3 no answer"
