"""What a run is given that cannot work: each has an end of its own, with a remedy."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from peft import get_peft_model
from safetensors.torch import load_file
from tests.unit.train.conftest import Stage
from transformers import AutoModelForCausalLM
from transformers.models.qwen3_5_moe.configuration_qwen3_5_moe import Qwen3_5MoeTextConfig
from transformers.models.qwen3_5_moe.modeling_qwen3_5_moe import Qwen3_5MoeForCausalLM

from watercolour.api.errors import InfrastructureError, InputError
from watercolour.api.reasons import Reason
from watercolour.api.spec import Lora, WatercolourRun
from watercolour.api.trainer import Decoding
from watercolour.train import (
    artifacts,
    checkpoint,
    engines,
    grpo,
    parquet,
    reload,
    session,
    targets,
    thinking,
    trainer,
)
from watercolour.train import policy as policies
from watercolour.train.progress import Progress
from watercolour.train.sampling import Row

Make = Callable[..., WatercolourRun]


def train(
    run: WatercolourRun, out: Path, stage: Stage | None = None, *, resume: bool = False
) -> None:
    shown = Progress("test", run.spec.trainer.steps)
    session.run(run, out, stage or Stage(), shown, lambda: False, resume=resume)


@pytest.fixture(scope="module")
def dense(policy_folder: Path) -> Any:
    return AutoModelForCausalLM.from_pretrained(policy_folder)


def mixture() -> Any:
    torch.manual_seed(0)
    return Qwen3_5MoeForCausalLM(
        Qwen3_5MoeTextConfig(
            vocab_size=60,
            hidden_size=32,
            num_attention_heads=4,
            num_key_value_heads=2,
            head_dim=16,
            num_hidden_layers=4,
            linear_key_head_dim=8,
            linear_value_head_dim=8,
            linear_num_key_heads=2,
            linear_num_value_heads=4,
            moe_intermediate_size=16,
            shared_expert_intermediate_size=16,
            num_experts=4,
            num_experts_per_tok=2,
        )
    )


def test_a_target_that_matches_nothing_is_refused_with_the_nearest_names(dense: Any) -> None:
    with pytest.raises(InputError, match=r"targets=q_porj: no linear layer .* Use q_proj, ") as got:
        targets.find(dense, ("v_proj", "q_porj"))
    assert got.value.reason is Reason.INVALID_SPEC
    with pytest.raises(InputError, match="targets=lm_head: no linear layer"):
        targets.find(dense, ("lm_head",))


def test_names_and_ends_of_names_are_targets(dense: Any) -> None:
    words = ("q_proj", "layers.1.mlp.up_proj")
    assert targets.find(dense, words).modules == list(words)
    assert targets.find(dense, ("all-linear",)).modules == "all-linear"


def test_experts_of_a_model_without_any_are_refused(dense: Any) -> None:
    with pytest.raises(InputError, match=r"targets=experts: the model has no routed experts"):
        targets.find(dense, ("all-linear", "experts"))


def test_the_word_experts_adapts_both_tensors_of_every_layer() -> None:
    model = mixture()
    lora = policies.lora_of(model, Lora(r=2, targets=("all-linear", "experts")))
    names = [name for name, _ in get_peft_model(model, lora).named_parameters() if "lora_" in name]
    assert sum("experts" in name and "shared" not in name for name in names) == 4 * 2 * 2
    assert any("in_proj_qkv" in name for name in names)


def test_a_loss_that_is_no_number_stops_the_run_and_keeps_its_batch(
    wanted: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real: Any = trainer.GRPOTrainer._compute_loss  # pyright: ignore[reportPrivateUsage]

    def broken(self: Any, model: Any, inputs: Any) -> Any:
        loss = real(self, model, inputs)
        return loss * float("nan") if self.state.global_step == 1 else loss

    monkeypatch.setattr(trainer.GRPOTrainer, "_compute_loss", broken)
    with pytest.raises(InfrastructureError, match="the loss of step 1 is nan") as caught:
        train(wanted(steps=3), tmp_path)
    assert caught.value.reason is Reason.LOSS_NOT_FINITE
    kept = tmp_path / "bad-steps" / "00001"
    assert load_file(kept / "batch.safetensors")["completion_ids"].shape[0] == 8
    assert {line["step"] for line in parquet.read(kept / "rollouts.parquet")} == {1}
    # The step before is safe, and no NaN has reached the adapter.
    whole = checkpoint.latest(tmp_path)
    assert checkpoint.step_of(whole) == 1
    adapter = load_file(whole / "adapter_model.safetensors")
    assert all(bool(torch.isfinite(value).all()) for value in adapter.values())


def test_a_gpu_that_is_full_in_the_smallest_parts_too_is_named(
    wanted: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> Any:
        raise torch.OutOfMemoryError

    monkeypatch.setattr(grpo, "micro_batch_tokens", lambda *_: 50)
    monkeypatch.setattr(trainer.Trainer, "_observed_loss", full)
    with pytest.raises(InfrastructureError, match="full while updating in step 0") as caught:
        train(wanted(steps=1), tmp_path)
    assert caught.value.reason is Reason.GPU_OUT_OF_MEMORY


def test_a_completion_without_a_token_is_scored_and_teaches_nothing(
    wanted: Make, stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = engines.build

    def build(*args: Any, **kwargs: Any) -> Any:
        name, engine = real(*args, **kwargs)

        def generate(prompts: Any, seeds: Any, on_row: Any, stop: Any) -> list[Row]:
            def emptied(number: int, row: Row) -> None:
                on_row(number, Row((), (), False) if number == 0 else row)

            return engine(prompts, seeds, emptied, stop)

        return name, generate

    monkeypatch.setattr(engines, "build", build)
    train(wanted(steps=2), tmp_path, stage)
    assert stage.seen[0].completion == ""
    lines = parquet.read(tmp_path / "rollouts" / "00000.parquet")
    assert lines[0]["tokens"] == 0
    assert lines[0]["advantage"] is not None
    assert (tmp_path / "checkpoints" / "checkpoint-2" / reload.FILE).exists()
    # The token that stands in for it was never sampled.
    figures = artifacts.read_metrics(tmp_path / "metrics.csv")
    assert all((figure["mismatch_max"] or 0) < 1e-3 for figure in figures)
    train(wanted(steps=3), tmp_path, Stage(), resume=True)
    assert len(artifacts.read_metrics(tmp_path / "metrics.csv")) == 3


def test_a_template_that_begins_a_thought_all_the_same_is_refused(
    wanted: Make, policy_folder: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "thinker"
    shutil.copytree(policy_folder, folder)
    template = folder / "chat_template.jinja"
    begun = template.read_text().replace("assistant\n", "assistant\n<think>\n")
    assert begun != template.read_text()
    template.write_text(begun)
    run = wanted(steps=1)
    model = run.spec.model.model_copy(update={"id": str(folder)})
    run = run.model_copy(update={"spec": run.spec.model_copy(update={"model": model})})
    with pytest.raises(InputError, match=r"thinking=false: the chat template begins a thought"):
        train(run, tmp_path / "out")


def test_a_thought_that_is_shut_is_none() -> None:
    thinking.require_shut("<|im_start|>assistant\n<think>\n\n</think>\n\n")
    with pytest.raises(InputError):
        thinking.require_shut("<think>\n\n</think>\n\n<think>\n")


def test_probes_that_think_are_refused_and_a_few_are_not() -> None:
    thoughts = ["<think>Let me see", "function setup() {}", "\n<think>x</think> function"]
    share = thinking.share_of(thoughts)
    with pytest.raises(InputError, match="67% of 3 probes begin with a thought"):
        thinking.require_rare(share, 3)
    thinking.require_rare(thinking.share_of(["function"] * 3 + thoughts[:1]), 4)
    thinking.require_rare(thinking.share_of([]), 0)


def test_a_static_cache_for_a_model_without_one_is_refused(
    dense: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    engines.build("transformers", dense, Decoding(4), frozenset(), pad=0, cache="static")
    monkeypatch.setattr(type(dense), "_can_compile_fullgraph", False)
    with pytest.raises(InputError, match="cache_implementation=static: Qwen3ForCausalLM has no"):
        engines.build("transformers", dense, Decoding(4), frozenset(), pad=0, cache="static")
