"""The recipes: published weights, and None on every hop."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from watercolour.api import spec
from watercolour.api.errors import InputError
from watercolour.api.reasons import Reason
from watercolour.reward import catalogue, recipes
from watercolour.reward.adjust import adjust

share = st.floats(min_value=0, max_value=1)
term = st.one_of(st.none(), share)
terms = st.fixed_dictionaries({name: term for name in catalogue.SHIPPED if name != "gate"})
recipe = st.sampled_from(list(recipes.RECIPES.values()))
gated = st.sampled_from([one for one in recipes.RECIPES.values() if one.gated])


def style(value: float) -> dict[str, float]:
    """The parts of the hybrid recipe's style, all worth the same."""
    return dict.fromkeys(("utility", "perceptual", "diversity"), value)


@pytest.mark.parametrize(
    ("name", "judge", "quality"),
    [("hps-only", 0.0, 0.9), ("hps-led", 0.3, 0.6), ("judge-led", 0.6, 0.3)],
)
def test_the_recipes_have_the_published_weights(name: str, judge: float, quality: float) -> None:
    weights = recipes.get(spec.Recipe(name=name)).weights
    published = {"gate": 0.05, "length": 0.05, "quality": quality, "judge": judge}
    assert weights == {name: weight for name, weight in published.items() if weight}


@given(recipe)
def test_weights_sum_to_1_and_are_of_terms_that_exist(one: recipes.Recipe) -> None:
    for weights in one.weightings:
        assert sum(weights.values()) == pytest.approx(1)
        assert weights.keys() <= catalogue.SHIPPED.keys()


def test_the_embedded_recipe_is_hps_led_with_a_share_of_pigment() -> None:
    weights = recipes.get(spec.Recipe()).weights
    assert sum(weights.values()) == pytest.approx(1)
    assert weights["pigment"] > 0
    assert weights["quality"] / weights["judge"] == pytest.approx(0.60 / 0.30)


@given(gated, st.sampled_from(["length", "quality", "judge", "pigment"]), terms)
def test_without_a_term_the_others_keep_their_proportions_and_the_range(
    one: recipes.Recipe, term: str, values: dict[str, float | None]
) -> None:
    less = one.without(term)
    assert less.range == pytest.approx(one.range)
    assert not less.needs(term)
    assert less.combine({**values, term: None}, True) == less.combine({**values, term: 0.3}, True)
    assert less.weight("gate") * (1 - one.weight(term)) == pytest.approx(one.weight("gate"))


@pytest.mark.parametrize(
    ("name", "values", "reward"),
    [
        # The floor of an admitted sketch, and the published ceiling of hps-only's range.
        ("hps-only", {"length": 0.0, "quality": 0.0}, 0.05),
        ("hps-only", {"length": 0.5, "quality": 0.8}, 0.05 + 0.025 + 0.72),
        ("hps-led", {"length": 1.0, "quality": 0.5, "judge": 0.75}, 0.1 + 0.3 + 0.225),
        ("judge-led", {"length": 0.16, "quality": 0.7, "judge": 0.5}, 0.058 + 0.21 + 0.3),
        ("judge-led", {"length": 1.0, "quality": 1.0, "judge": 1.0}, 1.0),
        # 0.1 + 0.5 * r_aes + 0.4 * r_style, both from -1 to 1.
        ("hybrid", {"quality": 0.5, **style(0.5)}, 0.1),
        ("hybrid", {"quality": 0.0, **style(0.0)}, -0.8),
        ("hybrid", {"quality": 0.9, **style(0.75)}, 0.1 + 0.4 + 0.2),
        ("hybrid", {"quality": 1.0, **style(1.0)}, 1.0),
        ("control", {"fills": 0.5}, 0.1 + 0.45),
        ("random", {"chance": 0.3}, 0.3),
    ],
)
def test_an_admitted_sketch_gets_the_weighted_sum(
    name: str, values: dict[str, float | None], reward: float
) -> None:
    combined = recipes.combine(recipes.RECIPES[name], values, gate_passed=True)
    assert combined == pytest.approx(reward)


@given(gated, terms)
def test_a_refused_sketch_gets_what_the_recipe_says_whatever_its_terms(
    one: recipes.Recipe, values: dict[str, float | None]
) -> None:
    assert one.combine(values, gate_passed=False) == one.range[0]
    assert one.range[0] == (-1.0 if one.name == "hybrid" else 0.0)


@given(recipe, terms)
def test_a_missing_term_with_weight_leaves_the_reward_unscored(
    one: recipes.Recipe, values: dict[str, float | None]
) -> None:
    reward = one.combine(values, gate_passed=True)
    weighted = [name for name in values if one.weight(name) > 0]
    if any(values[name] is None for name in weighted):
        assert reward is None
        assert one.missing({**values, "gate": 1.0})
    else:
        whole = one.weight("gate")
        for name in weighted:
            value = values[name] or 0.0
            whole += one.weight(name) * (2 * value - 1 if one.signed else value)
        assert reward == pytest.approx(whole)
        assert reward is not None
        assert one.range[0] <= reward <= one.range[1] + 1e-9


def test_a_term_without_weight_may_be_missing() -> None:
    assert recipes.combine(
        recipes.RECIPES["hps-only"], {"length": 1.0, "quality": 0.5}, gate_passed=True
    ) == pytest.approx(0.55)


def test_the_runs_own_weights_replace_the_recipes() -> None:
    own = {"quality": 0.9, "gate": 0.1, "judge": 0.0}
    found = recipes.get(spec.Recipe(name="judge-led", weights=own))
    assert found.weights == own
    assert not found.needs("judge")


def test_the_judge_moves_a_signed_reward_by_twice_its_weight() -> None:
    assert recipes.RECIPES["hybrid"].slope("utility") == pytest.approx(0.5)
    assert recipes.RECIPES["judge-led"].slope("judge") == pytest.approx(0.6)


def test_an_unknown_recipe_is_named_with_its_nearest() -> None:
    with pytest.raises(InputError) as caught:
        recipes.get(spec.Recipe(name="hps_led"))
    assert caught.value.reason == Reason.UNKNOWN_RECIPE
    assert caught.value.field == "spec.recipe.name"
    assert caught.value.value == "hps_led"
    text = str(caught.value)
    assert "'hps_led'" in text
    assert "Did you mean 'hps-led'?" in text
    assert "hps-only, hps-led, judge-led" in text


@given(share, share, share)
def test_an_average_draw_changes_nothing_and_a_harder_one_raises(
    reward: float, weight: float, strength: float
) -> None:
    def adjusted(mean: float) -> float | None:
        return adjust(
            reward,
            gate_passed=True,
            judge_slope=weight,
            draw_strength=strength,
            mean_draw_strength=mean,
        )

    assert adjusted(strength) == pytest.approx(reward)
    harder = adjusted(1.0)
    assert harder is not None
    assert harder >= reward - 1e-12


def test_refused_and_unscored_rollouts_are_not_adjusted() -> None:
    draw = {"judge_slope": 0.6, "draw_strength": 0.9, "mean_draw_strength": 0.5}
    assert adjust(0.0, gate_passed=False, **draw) == 0.0
    assert adjust(None, gate_passed=True, **draw) is None
    assert adjust(0.8, gate_passed=True, **draw) == pytest.approx(0.8 - 0.6 * 0.4)
    draw["draw_strength"] = None  # pyright: ignore[reportArgumentType]
    assert adjust(0.8, gate_passed=True, **draw) == 0.8
