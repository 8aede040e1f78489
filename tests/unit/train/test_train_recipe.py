"""What a recipe does to a training: its KL term, its groups, its steps, and a resume."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.unit.train.conftest import Stage, worth
from tests.unit.train.test_train_steps import rows, train

from watercolour.api import load
from watercolour.api.errors import InputError
from watercolour.api.reasons import Reason
from watercolour.api.rollout import Rollout
from watercolour.api.spec import WatercolourRun
from watercolour.api.trainer import Decoding
from watercolour.reward import pool, recipes, reckon
from watercolour.train import logit_bias, reckoning, settings
from watercolour.train.sampling import choose

Make = Callable[..., WatercolourRun]
PAINTINGS = [one.painting for one in pool.load("builtin:flowers").references]


def under(wanted: WatercolourRun, **recipe: Any) -> WatercolourRun:
    plain = wanted.model_dump(mode="json", by_alias=True, exclude_none=True, exclude_defaults=True)
    return load.from_dict({**plain, "spec": {**plain["spec"], "recipe": recipe}})


def test_the_kl_terms_weight_rises_by_the_step_and_reaches_the_loss(
    wanted: Make, stage: Stage, tmp_path: Path
) -> None:
    kl = {"start": 0.0, "end": 8.0, "steps": 3, "shape": "linear"}
    mild = under(wanted(steps=4), name="hps-only")
    strict = under(wanted(steps=4), name="hps-only", kl=kl)
    assert (settings.beta(mild.spec), settings.beta(strict.spec)) == (0.0, 8.0)
    train(mild, tmp_path / "mild", stage)
    train(strict, tmp_path / "strict", Stage())
    pulled = rows(tmp_path / "strict")
    assert all(row["kl"] for row in pulled)
    assert not any(row["kl"] for row in rows(tmp_path / "mild"))
    # With the weight at 0 the first step is the same, and later ones are not.
    assert pulled[0]["grad_norm"] == rows(tmp_path / "mild")[0]["grad_norm"]
    assert pulled[3]["grad_norm"] != rows(tmp_path / "mild")[3]["grad_norm"]


def test_trainers_beta_is_heeded_instead_of_a_shipped_recipes(wanted: Make) -> None:
    spec = under(wanted(beta=0.1), name="hybrid").spec
    assert (settings.kl(spec), settings.beta(spec)) == (None, 0.1)
    spec = under(wanted(), name="hybrid").spec
    assert settings.beta(spec) == 0.04


def test_a_resume_under_other_weights_is_refused_with_each_of_them(
    wanted: Make, stage: Stage, tmp_path: Path
) -> None:
    own = {"gate": 0.4, "quality": 0.6}
    train(under(wanted(steps=1, checkpointEvery=1), name="mine", weights=own), tmp_path, stage)
    other = {"gate": 0.4, "quality": 0.5, "length": 0.1}
    with pytest.raises(InputError) as caught:
        train(under(wanted(steps=2), name="mine", weights=other), tmp_path, stage, resume=True)
    assert "weights.quality: 0.6 → 0.5" in str(caught.value)
    assert "weights.length: absent → 0.1" in str(caught.value)
    train(under(wanted(steps=2), name="mine", weights=own), tmp_path, stage, resume=True)


class Gallery(Stage):
    """An environment that knows no groups: every rollout comes back with a painting, pending."""

    def submit(self, completion: str, **ids: Any) -> Future[Rollout]:
        done = super().submit(completion, **ids).result()
        recipe = recipes.RECIPES["hybrid"].at(done.step).of(done)
        values = {"quality": worth(completion) / 2, "utility": 0.5, "perceptual": 0.5}
        ready = done.model_copy(
            update={
                "gate_passed": True,
                "painting": PAINTINGS[len(completion) % len(PAINTINGS)],
                "terms": {"gate": 1.0, **values},
                "reward": None,
                "reward_adjusted": None,
                "unscored_reason": None,
            }
        )
        future: Future[Rollout] = Future()
        future.set_result(reckon.pending(recipe, ready))
        return future


def test_the_trainer_adds_what_only_a_group_tells(wanted: Make, tmp_path: Path) -> None:
    train(under(wanted(steps=2), name="hybrid"), tmp_path, Gallery())
    found = rows(tmp_path)
    assert [float(row["unscored"]) for row in found] == [0.0, 0.0]
    assert all(row["attempts"] == "1" for row in found)
    assert all(-1 <= float(row["reward"]) <= 1 for row in found)


def test_an_environment_that_weighs_otherwise_is_refused() -> None:
    recipe = recipes.RECIPES["hps-led"]
    told = Rollout(subject="a red poppy", weights={"gate": 0.05, "length": 0.05, "quality": 0.9})
    with pytest.raises(InputError, match=r"in step 7 the environment weighs quality 0\.9 instead"):
        reckoning.completed(recipe, 7, [told])
    same = told.model_copy(update={"weights": dict(recipe.weights)})
    assert reckoning.completed(recipe, 7, [same, Rollout(subject="a red poppy")])[0] is same


def test_a_groups_colours_are_those_that_any_member_was_told() -> None:
    recipe = recipes.RECIPES["embedded"]
    hues = ((200.0, 300.0),)
    told = Rollout(subject="a jellyfish", hues=hues, weights=dict(recipe.weights))
    lost = Rollout(subject="a jellyfish", unscored_reason=Reason.ENV_UNAVAILABLE)
    assert reckoning.completed(recipe, 7, [lost, told]) == [lost, told]
    # Without them the environment would have left pigment out, and that is what it must say.
    with pytest.raises(InputError, match=r"pigment 0\.3 instead of 0"):
        reckoning.completed(recipe, 7, [told.model_copy(update={"hues": ()})])


# Logit bias.


def test_a_biased_token_is_never_drawn_and_probabilities_stay_the_policys_own() -> None:
    torch.manual_seed(1)
    logits, chance = torch.randn(64, 9), torch.rand(64)
    free, own = choose(logits, chance, Decoding(8))
    assert 3 in free.tolist()
    drawn, logs = choose(logits, chance, Decoding(8, bias=((3, -100.0),)))
    assert 3 not in drawn.tolist()
    expected = logits.log_softmax(-1).gather(-1, drawn.unsqueeze(-1)).squeeze(-1)
    assert torch.allclose(logs, expected, atol=1e-6)
    kept = free != 3
    assert torch.allclose(own, logits.log_softmax(-1).gather(-1, free[:, None])[:, 0], atol=1e-6)
    assert torch.equal(choose(logits, chance, Decoding(8, bias=((3, 0.0),)))[0][kept], free[kept])


def test_a_text_is_biased_if_it_is_one_token(reader: Any) -> None:
    token: int = reader(";", add_special_tokens=False)["input_ids"][0]
    assert logit_bias.of_tokens(reader, {";": -5.0}) == ((token, -5.0),)
    with pytest.raises(InputError, match="the policy has no token of that text") as caught:
        logit_bias.of_tokens(reader, {"zzqx": -5.0})
    assert caught.value.reason == Reason.INVALID_SPEC
