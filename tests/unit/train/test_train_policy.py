from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from peft import LoraConfig, get_peft_model
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM

from watercolour.api.errors import InputError
from watercolour.api.reasons import Reason
from watercolour.api.spec import Lora, Model
from watercolour.sketch import grammar
from watercolour.train import policy, sft, tokenizer


def refusal(model: Model) -> str:
    with pytest.raises(InputError) as caught:
        policy.load(model, Lora())
    assert caught.value.reason == Reason.INVALID_MODEL
    return str(caught.value)


def test_the_builtin_policy_is_small_and_loads_with_its_card() -> None:
    folder = policy.POLICIES / "tiny"
    assert sum(path.stat().st_size for path in folder.iterdir()) < 8 * 2**20
    loaded = policy.load(Model(), Lora())
    card = json.loads((folder / "card.json").read_text())
    assert sum(weight.numel() for weight in loaded.model.parameters()) == card["parameters"]
    assert loaded.small
    assert loaded.ends == {loaded.tokenizer.eos_token_id}
    assert 0.4 < card["gate_pass_rate"] < 0.9


def test_the_type_is_the_checkpoints_and_not_float32_by_accident(
    policy_folder: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "half"
    shutil.copytree(policy_folder, folder)
    model: Any = AutoModelForCausalLM.from_pretrained(policy_folder, dtype=torch.bfloat16)
    model.save_pretrained(folder)
    assert policy.load(Model(id=str(folder)), Lora()).model.dtype == torch.bfloat16
    exact = policy.load(Model(id=str(folder), dtype="float32"), Lora())
    assert exact.model.dtype == torch.float32


def test_what_cannot_be_loaded_is_named_with_a_remedy(policy_folder: Path, tmp_path: Path) -> None:
    assert "Use builtin:tiny" in refusal(Model(id="builtin:large"))
    assert refusal(Model(id=str(tmp_path))).startswith(f"spec.model.id={tmp_path}")
    bare = tmp_path / "bare"
    shutil.copytree(policy_folder, bare)
    (bare / "chat_template.jinja").unlink()
    assert "no chat template" in refusal(Model(id=str(bare)))
    broken = tmp_path / "broken"
    shutil.copytree(policy_folder, broken)
    weights = broken / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    assert "spec.model.id" in refusal(Model(id=str(broken)))


def test_a_checkpoint_that_lacks_weights_is_refused(policy_folder: Path, tmp_path: Path) -> None:
    folder = tmp_path / "partial"
    shutil.copytree(policy_folder, folder)
    tensors = load_file(folder / "model.safetensors")
    lost = tensors.pop("model.layers.1.mlp.up_proj.weight")
    assert lost.numel()
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    assert "1 weights are not in the checkpoint" in refusal(Model(id=str(folder)))


def test_an_adapter_is_continued_with_every_tensor(policy_folder: Path, tmp_path: Path) -> None:
    model: Any = AutoModelForCausalLM.from_pretrained(policy_folder, dtype="auto")
    adapted: Any = get_peft_model(model, LoraConfig(r=2, target_modules="all-linear"))
    for weight in adapted.parameters():
        if weight.requires_grad:
            torch.nn.init.normal_(weight)
    adapted.save_pretrained(tmp_path)
    wanted = Model(id=str(policy_folder), adapter=str(tmp_path))
    loaded = policy.load(wanted, Lora())
    assert loaded.lora is None
    tokens = torch.tensor([[5, 6, 7]])
    with torch.no_grad():
        torch.testing.assert_close(loaded.model(tokens).logits, adapted.eval()(tokens).logits)
    file = tmp_path / "adapter_model.safetensors"
    tensors = load_file(file)
    tensors.pop(next(iter(tensors)))
    save_file(tensors, file)
    assert "1 of 28 tensors have no counterpart" in refusal(wanted)


def test_the_tokenizer_reads_back_every_sketch_and_any_other_text() -> None:
    samples = grammar.corpus(200, 5)
    reader: Any = tokenizer.train(["Paint it."], [sample.sketch for sample in samples], 512)
    unseen = [sample.sketch for sample in grammar.corpus(60, 6)]
    for text in [*unseen, 'const é = "☕ #12";\n\t// 1234.5\n', "<b>"]:
        assert reader.decode(reader(text, add_special_tokens=False)["input_ids"]) == text


def test_fixed_helpers_numbers_and_colours_are_single_tokens() -> None:
    samples = grammar.corpus(200, 5)
    reader: Any = tokenizer.train(["Paint it."], [sample.sketch for sample in samples], 512)
    good = next(sample.sketch for sample in samples if sample.intent == "good")
    tokens = [reader.decode([token]) for token in reader(good)["input_ids"]]
    assert any(token.startswith("function setup()") and token.endswith("}\n") for token in tokens)
    assert any(token.startswith('"#') and token.endswith('", ') for token in tokens)
    assert len(tokens) < len(good) / 10


def test_equal_plans_make_equal_policies(tmp_path: Path) -> None:
    plan = sft.Plan(samples=24, epochs=1, batch=8, layers=1, hidden=32, intermediate=32, heads=2)
    seen = list[tuple[int, int]]()
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        card = sft.train(
            tmp_path / name, plan, lambda step, steps, *_: seen.append((step, steps)), probes=4
        )
        assert card.steps == 3
    one, two = (load_file(tmp_path / name / "model.safetensors") for name in ("one", "two"))
    assert all(torch.equal(one[name], two[name]) for name in one)
    assert seen == [(1, 3), (2, 3), (3, 3)] * 2
    assert policy.load(Model(id=str(tmp_path / "one")), Lora()).small


def test_the_builtin_policy_paints_what_the_gate_admits_about_as_often_as_its_card_says() -> None:
    loaded = policy.load(Model(), Lora())
    rate = sft.gate_pass_rate(loaded.model, loaded.tokenizer, 24, seed=3)
    assert 0.3 < rate < 0.95
