from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from tests.unit.train.conftest import Stage
from trl.trainer.grpo_config import GRPOConfig

from watercolour.api.errors import InputError
from watercolour.api.reasons import Reason
from watercolour.api.rules import OWNED_BY_SPEC
from watercolour.api.spec import Model, RunSpec, Sampling, Trainer, WatercolourRun
from watercolour.train import asking, batches, session, settings
from watercolour.train.batches import Batches
from watercolour.train.progress import Progress

Make = Callable[..., WatercolourRun]


def plan(**trainer: Any) -> Batches:
    return batches.plan(RunSpec(trainer=Trainer(**trainer)), whole=True)


def test_the_four_published_changes_reach_trl(tmp_path: Path) -> None:
    spec = RunSpec()
    config = settings.config(spec, batches.plan(spec, whole=True), tmp_path, on_cpu=True)
    # Unset, the rate of a small policy.
    assert config.learning_rate == 1e-3
    assert (config.lr_scheduler_type, config.warmup_steps) == ("constant_with_warmup", 5)
    assert config.scale_rewards == "none"
    assert config.beta == spec.trainer.beta
    assert (config.num_generations, config.generation_batch_size) == (8, 16)
    assert not config.bf16


@pytest.mark.parametrize(
    ("model", "given", "drawn"),
    [
        ("builtin:tiny", {}, (0.7, 1.0, 0)),
        ("owner/name", {}, (1.0, 0.95, 20)),
        ("owner/name", {"temperature": 0.5}, (0.5, 0.95, 20)),
        ("builtin:tiny", {"top_p": 0.9, "top_k": 5}, (0.7, 0.9, 5)),
        # 0 is given, not unset.
        ("owner/name", {"top_p": 1.0, "top_k": 0}, (1.0, 1.0, 0)),
    ],
)
def test_unset_sampling_suits_the_policy(
    tmp_path: Path, model: str, given: dict[str, float], drawn: tuple[float, float, int]
) -> None:
    spec = RunSpec(model=Model(id=model), trainer=Trainer(sampling=Sampling.model_validate(given)))
    config = settings.config(spec, batches.plan(spec, whole=True), tmp_path, on_cpu=True)
    assert (config.temperature, config.top_p, config.top_k) == drawn


def test_pass_through_fields_reach_trl(tmp_path: Path) -> None:
    spec = RunSpec(trainer=Trainer(grpo={"epsilon": 0.3, "loss_type": "dr_grpo"}))
    config = settings.config(spec, batches.plan(spec, whole=True), tmp_path, on_cpu=True)
    assert (config.epsilon, config.loss_type) == (0.3, "dr_grpo")


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        ("epsilom", 0.2, "Did you mean epsilon?"),
        ("max_prompt_length", 512, "has no such field"),
        ("steps_per_generation", 4, "Set spec.trainer.rolloutsPerStep instead"),
        ("min_p", 0.1, "Set spec.trainer.sampling instead"),
        ("vllm_server_base_url", "http://vllm:8000", "Set spec.trainer.vllm instead"),
        ("epsilon", "wide", "valid number"),
        ("mask_truncated_completions", "perhaps", "valid boolean"),
    ],
)
def test_a_wrong_pass_through_field_is_named(field: str, value: Any, says: str) -> None:
    with pytest.raises(InputError) as caught:
        settings.check({field: value})
    assert caught.value.reason == Reason.INVALID_SPEC
    assert str(caught.value).startswith(f"spec.trainer.grpo.{field}=")
    assert says in str(caught.value)


def test_what_only_trls_own_sampler_would_read_is_set_nowhere() -> None:
    """Ours draws: a field that it does not read would be taken and change nothing."""
    fields = {field.name for field in dataclasses.fields(GRPOConfig)}
    read = {"vllm_importance_sampling_" + end for end in ("correction", "mode")}
    read |= {"vllm_importance_sampling_clip_" + end for end in ("min", "max")}
    # TRL's old name of clip_max, which it still takes.
    read.add("vllm_importance_sampling_cap")
    assert {name for name in fields if name.startswith("vllm_")} - read <= OWNED_BY_SPEC.keys()


@pytest.mark.parametrize("reuse", ["two", 0, -1, 1.5, True, None])
def test_steps_of_one_generation_are_a_whole_number(reuse: Any) -> None:
    with pytest.raises(ValidationError, match="not a whole number of 1 or more"):
        RunSpec(trainer=Trainer(grpo={"num_iterations": reuse}))


def test_a_checkpoint_between_the_steps_of_one_generation_is_refused() -> None:
    with pytest.raises(ValidationError, match=r"no multiple of .*num_iterations=3") as caught:
        RunSpec(trainer=Trainer(grpo={"num_iterations": 3}, checkpoint_every=10))
    assert "Set it to 12." in str(caught.value)
    RunSpec(trainer=Trainer(grpo={"num_iterations": 3}, checkpoint_every=12))


def test_settings_are_checked_before_the_model_is_loaded(
    wanted: Make, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(session.policies, "load", lambda *_: pytest.fail("it was loaded"))
    run = wanted(grpo={"epsilom": 0.2})
    with pytest.raises(InputError, match="Did you mean epsilon"):
        session.run(run, tmp_path, Stage(), Progress("test", 1), lambda: False, resume=False)


@pytest.mark.parametrize(
    ("grpo", "packed"),
    [
        ({}, True),
        ({"loss_type": "cispo"}, True),
        ({"loss_type": "grpo"}, False),
        ({"entropy_coef": 0.01}, False),
        ({"use_adaptive_entropy": True}, False),
    ],
)
def test_only_a_loss_that_adds_up_is_packed(grpo: dict[str, Any], packed: bool) -> None:
    assert settings.packs(grpo) is packed


def test_a_value_that_trl_itself_refuses_is_an_input_error(tmp_path: Path) -> None:
    spec = RunSpec(trainer=Trainer(grpo={"loss_type": "none of these", "delta": -1.0}))
    spec = spec.model_copy(
        update={"trainer": spec.trainer.model_copy(update={"lr_scheduler": "?"})}
    )
    with pytest.raises(InputError, match=r"spec\.trainer: TRL refuses"):
        settings.config(spec, batches.plan(spec, whole=True), tmp_path, on_cpu=True)


def test_a_small_policy_takes_all_rollouts_at_once_and_a_large_one_one_by_one() -> None:
    assert plan(rollouts_per_step=16, group_size=8, steps=9) == Batches(2, 8, 16, 1, 1, 9)
    spec = RunSpec(trainer=Trainer(rollouts_per_step=16, group_size=8))
    large = batches.plan(spec, whole=False)
    assert (large.per_device, large.accumulation) == (1, 16)
    split = plan(grpo={"per_device_train_batch_size": 4})
    assert (split.per_device, split.accumulation) == (4, 4)


def test_a_micro_batch_that_does_not_divide_the_batch_is_refused() -> None:
    with pytest.raises(InputError, match=r"per_device_train_batch_size=3.*divisor of 16"):
        plan(grpo={"per_device_train_batch_size": 3})


def test_subjects_go_in_turn_and_each_group_has_its_own_draw() -> None:
    halves = plan(rollouts_per_step=16, group_size=8)
    subjects = ("a", "b", "c")
    order = [batches.subject(subjects, halves, step, g) for step in range(3) for g in range(2)]
    assert order == ["a", "b", "c", "a", "b", "c"]
    seeds = {batches.draw_seed(1, step, group) for step in range(50) for group in range(2)}
    assert len(seeds) == 100
    assert all(seed < 2**31 for seed in seeds)
    assert batches.row_seed(1, 0, 0, 0) != batches.row_seed(1, 0, 1, 0)


def test_a_generation_that_serves_two_steps_keeps_its_subjects() -> None:
    twice = plan(rollouts_per_step=8, group_size=8, grpo={"num_iterations": 2}, steps=5)
    assert [batches.subject(("a", "b"), twice, step, 0) for step in range(5)] == [*"aabba"]
    assert twice.rounds == 3


def test_trl_is_given_the_prompts_of_the_groups_that_are_painted(wanted: Make) -> None:
    spec = wanted(steps=3).spec
    halves = batches.plan(spec, whole=True)
    prompts: Any = session.dataset(spec, halves)["prompt"]
    groups = [
        group
        for step in range(3)
        for group in session.groups_of(spec, halves, lambda _: (1,), step)
    ]
    assert list(prompts) == [asking.messages_of(spec, group.subject) for group in groups]
