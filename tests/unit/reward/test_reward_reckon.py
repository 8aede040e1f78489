"""Weights by step, and rewards of whole groups."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from watercolour.api import spec
from watercolour.api.errors import InputError
from watercolour.api.reasons import Reason
from watercolour.api.rollout import Rollout
from watercolour.reward import likeness, pool, recipes, reckon, terms
from watercolour.reward.facts import described
from watercolour.reward.recipe import Recipe, Schedule, differences, kl_at, plain

LOVED = [one.painting for one in pool.load("builtin:flowers").references if one.tier == "love"]
HYBRID = recipes.RECIPES["hybrid"]
FOUND = {"gate": 1.0, "quality": 0.75, "utility": 0.5, "perceptual": 0.5}

STAGES = ((10, {"gate": 0.5, "judge": 0.5}), (20, {"quality": 1.0}))
FIRST = {"gate": 0.1, "length": 0.9}


def own(**fields: Any) -> Recipe:
    return recipes.get(spec.Recipe.model_validate({"name": "mine", **fields}))


def member(painting: bytes | None = LOVED[0], **fields: Any) -> Rollout:
    whole: dict[str, Any] = {"gate_passed": True, "painting": painting, "terms": FOUND, **fields}
    return Rollout.model_validate(whole)


@given(st.integers(0, 60), st.sampled_from(["hold", "linear"]))
def test_weights_sum_to_1_at_every_step(step: int, between: Any) -> None:
    recipe = Recipe("mine", FIRST, schedule=Schedule(STAGES, between))
    assert sum(recipe.at(step).weights.values()) == pytest.approx(1)


def test_weights_hold_or_move_evenly_between_the_stages() -> None:
    held = Recipe("mine", FIRST, schedule=Schedule(STAGES))
    assert [held.at(step).weight("judge") for step in (-1, 0, 9, 10, 19, 20, 99)] == [
        *(0, 0, 0, 0.5, 0.5, 0, 0),
    ]
    moved = Recipe("mine", FIRST, schedule=Schedule(STAGES, "linear"))
    found = [moved.at(step).weight("quality") for step in (10, 15, 20, 30)]
    assert found == pytest.approx([0, 0.5, 1, 1])
    assert moved.at(5).weight("length") == pytest.approx(0.45)


def test_a_term_of_a_later_stage_is_needed_from_the_start() -> None:
    recipe = Recipe("mine", FIRST, schedule=Schedule(STAGES))
    assert recipe.asks("judge") == ("judge",)
    assert recipe.at(0).asks("judge") == ()


def test_tier_shares_follow_the_curriculum_up_to_love_alone() -> None:
    recipe = recipes.RECIPES["judge-led-curriculum"]
    shares = [recipe.tier_shares(step, spec.TierShares()).love for step in (-1, 29, 30, 60, 500)]
    assert shares == [0.25, 0.25, 0.5, 0.75, 1.0]
    assert HYBRID.tier_shares(50, spec.TierShares()) == spec.TierShares()
    off = recipes.get(spec.Recipe(name="judge-led-curriculum", curriculum=()))
    assert off.tier_shares(500, spec.TierShares()) == spec.TierShares()


def test_the_kl_term_rises_along_half_a_wave() -> None:
    assert HYBRID.kl is not None
    weights = [kl_at(HYBRID.kl, step) for step in (0, 10, 50, 100, 900)]
    assert weights == pytest.approx([0.02, 0.0205, 0.03, 0.04, 0.04], abs=1e-4)


# A recipe of one's own.


def test_ones_own_weights_make_a_recipe_of_any_name() -> None:
    found = own(weights={"gate": 0.2, "area": 0.8}, failed_gate=-0.5, paints=True)
    assert (found.name, found.range) == ("mine", (-0.5, 1.0))
    with pytest.raises(InputError, match=r"no such recipe\..*or give spec\.recipe\.weights"):
        recipes.get(spec.Recipe(name="mine"))


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"weights": {"qality": 1}}, "spec.recipe.weights.qality: no such term. Did you mean qual"),
        (
            {
                "weights": {"gate": 1},
                "schedule": {"stages": [{"step": 1, "weights": {"juge": 1}}]},
            },
            "spec.recipe.schedule.stages[0].weights.juge: no such term. Did you mean judge",
        ),
        (
            {"weights": {"pigment": 1}, "paints": False},
            "spec.recipe.paints=false: pigment has weight and needs a painting.",
        ),
        (
            {"weights": {"gate": 0.1, "quality": 0.9}, "signed": True},
            "spec.recipe.failedGate=0: an admitted sketch may earn -0.8, less than a refused one. "
            "Set it to -0.8 or less.",
        ),
    ],
)
def test_a_recipe_whose_parts_do_not_agree_is_refused(fields: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError) as caught:
        own(**fields)
    assert says in str(caught.value)


def test_what_changed_is_named_weight_by_weight() -> None:
    before = plain(own(weights={"gate": 0.4, "quality": 0.6}))
    now = plain(own(weights={"gate": 0.4, "quality": 0.5, "judge": 0.1}, failed_gate=-1.0))
    assert differences(before, now) == [
        "failedGate: 0 → -1",
        "weights.quality: 0.6 → 0.5",
        "weights.judge: absent → 0.1",
    ]
    assert differences(before, before) == []


# Groups.


def test_alone_a_rollout_waits_for_its_group_and_is_no_zero() -> None:
    alone = reckon.pending(HYBRID, member())
    assert alone.reward is None
    assert alone.unscored_reason == Reason.GROUP_PENDING
    assert reckon.pending(
        recipes.RECIPES["hps-only"], member(terms={"length": 1, "quality": 1})
    ).reward == pytest.approx(1.0)


def test_a_group_is_rewarded_for_what_sets_its_members_apart() -> None:
    group = [reckon.pending(HYBRID, member(one)) for one in (LOVED[0], LOVED[0], LOVED[40])]
    first, second, other = reckon.completed(HYBRID, group)
    assert first.terms["diversity"] == second.terms["diversity"]
    apart = likeness.look_distance(described(LOVED[0]), described(LOVED[40]))
    # With the others, and not with itself.
    assert other.terms["diversity"] == pytest.approx(terms.diversity([apart, apart]))
    assert (other.terms["diversity"] or 0) > (first.terms["diversity"] or 1)
    assert other.reward is not None
    assert first.reward is not None
    apart = (other.terms["diversity"] or 0) - (first.terms["diversity"] or 0)
    assert other.reward - first.reward == pytest.approx(0.05 * 2 * apart)
    assert {one.unscored_reason for one in (first, second, other)} == {None}


def test_one_painting_alone_in_its_group_is_not_asked_for_diversity() -> None:
    refused = reckon.pending(HYBRID, member(None, gate_passed=False, terms={"gate": 0.0}))
    whole = reckon.completed(HYBRID, [reckon.pending(HYBRID, member()), refused])
    assert "diversity" not in whole[0].weights
    assert sum(whole[0].weights.values()) == pytest.approx(1)
    assert whole[0].reward is not None
    assert whole[1].reward == -1.0


def test_an_unscored_member_stays_unscored_and_costs_the_others_nothing() -> None:
    lost = member(None, gate_passed=None, terms={}, unscored_reason=Reason.BROWSER_CRASHED)
    no_score = member(LOVED[20], terms=FOUND | {"quality": None}).model_copy(
        update={"unscored_reason": Reason.SCORER_UNAVAILABLE}
    )
    group = [reckon.pending(HYBRID, one) for one in (member(), member(LOVED[40]), lost, no_score)]
    whole = reckon.completed(HYBRID, group)
    assert [one.reward is None for one in whole] == [False, False, True, True]
    assert [one.unscored_reason for one in whole[2:]] == ["BrowserCrashed", "ScorerUnavailable"]
