"""The static engine computes what the models compute, token by token, whatever its rows do."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from peft import LoraConfig, get_peft_model
from transformers import Qwen3Config, Qwen3ForCausalLM
from transformers.models.qwen3_5.configuration_qwen3_5 import Qwen3_5TextConfig
from transformers.models.qwen3_5.modeling_qwen3_5 import Qwen3_5ForCausalLM
from transformers.models.qwen3_5_moe.configuration_qwen3_5_moe import Qwen3_5MoeTextConfig
from transformers.models.qwen3_5_moe.modeling_qwen3_5_moe import Qwen3_5MoeForCausalLM

from watercolour.api.trainer import Decoding
from watercolour.train.decode import weights
from watercolour.train.decode.loop import Decoder, batch_sizes
from watercolour.train.sampling import Row

END = 59
SHAPE: dict[str, Any] = {
    "vocab_size": 60,
    "hidden_size": 32,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "tie_word_embeddings": False,
}
LINEAR: dict[str, Any] = {
    "num_hidden_layers": 4,
    "linear_key_head_dim": 8,
    "linear_value_head_dim": 8,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
}


def _qwen3() -> Any:
    return Qwen3ForCausalLM(Qwen3Config(**SHAPE, num_hidden_layers=2, intermediate_size=48))


def _dense() -> Any:
    return Qwen3_5ForCausalLM(Qwen3_5TextConfig(**SHAPE, **LINEAR, intermediate_size=48))


def _experts() -> Any:
    sizes: dict[str, Any] = {"moe_intermediate_size": 16, "shared_expert_intermediate_size": 16}
    config = Qwen3_5MoeTextConfig(**SHAPE, **LINEAR, **sizes, num_experts=8, num_experts_per_tok=2)
    return Qwen3_5MoeForCausalLM(config)


@pytest.fixture(params=[_qwen3, _dense, _experts], ids=["qwen3", "qwen3_5", "qwen3_5_moe"])
def adapted(request: pytest.FixtureRequest) -> Any:
    torch.manual_seed(0)
    model = request.param()
    with torch.no_grad():
        for parameter in model.parameters():
            noise = torch.randn_like(parameter) * 0.15
            parameter.copy_(noise if parameter.dim() > 1 else parameter + noise)
    lora = LoraConfig(r=4, lora_alpha=8, target_modules="all-linear")
    wrapped: Any = get_peft_model(model, lora)
    with torch.no_grad():
        for name, parameter in wrapped.named_parameters():
            if "lora_B" in name:
                parameter.normal_(0, 0.1)
    return wrapped.eval()


PROMPTS = [[5, 6, 7, 8, 9, 10], [5, 6, 7, 8, 9, 10], [3], [40, 41]]


def _greedy(model: Any, tokens: int, ends: frozenset[int]) -> list[Row]:
    decoder = Decoder(model, Decoding(tokens, top_k=1), ends)
    return decoder.generate(PROMPTS, [1, 2, 3, 4], lambda *_: None, lambda: None)


def test_greedy_tokens_are_those_of_generate(adapted: Any) -> None:
    rows = _greedy(adapted, 48, frozenset({END}))
    for prompt, row in zip(PROMPTS, rows, strict=True):
        whole = adapted.generate(
            torch.tensor([prompt]),
            max_new_tokens=48,
            do_sample=False,
            eos_token_id=END,
            pad_token_id=0,
        )
        assert list(row.tokens) == whole[0, len(prompt) :].tolist()


def test_greedy_tokens_are_those_of_generate_over_512(adapted: Any) -> None:
    """Far beyond the prompt, where an error of a position or of a state would have grown."""
    whole = adapted.generate(
        torch.tensor([PROMPTS[0]]),
        max_new_tokens=512,
        do_sample=False,
        eos_token_id=None,
        pad_token_id=0,
    )
    row = _greedy(adapted, 512, frozenset())[0]
    assert list(row.tokens) == whole[0, len(PROMPTS[0]) :].tolist()


def test_log_probabilities_are_the_models_own(adapted: Any) -> None:
    for prompt, row in zip(PROMPTS, _greedy(adapted, 24, frozenset()), strict=True):
        with torch.no_grad():
            logits = adapted(torch.tensor([[*prompt, *row.tokens]])).logits[0, len(prompt) - 1 : -1]
        theirs = logits.log_softmax(-1).gather(1, torch.tensor(row.tokens).unsqueeze(1))
        torch.testing.assert_close(
            torch.tensor(row.log_probabilities), theirs.squeeze(1), atol=2e-4, rtol=0
        )


def test_a_row_is_the_same_whether_others_end_early_or_not(adapted: Any) -> None:
    free = _greedy(adapted, 40, frozenset())
    # A token that some rows reach early and others never.
    end = free[2].tokens[3]
    rows = _greedy(adapted, 40, frozenset({end}))
    for whole, row in zip(free, rows, strict=True):
        cut = whole.tokens.index(end) + 1 if end in whole.tokens else 40
        assert row.tokens == whole.tokens[:cut]
        assert row.truncated == (end not in whole.tokens)


def test_a_second_call_sees_the_adapter_as_it_is_then(adapted: Any) -> None:
    decoder = Decoder(adapted, Decoding(16, top_k=1), frozenset())

    def tokens() -> list[tuple[int, ...]]:
        rows = decoder.generate(PROMPTS, [1, 2, 3, 4], lambda *_: None, lambda: None)
        return [row.tokens for row in rows]

    first = tokens()
    assert tokens() == first
    with torch.no_grad():
        for name, parameter in adapted.named_parameters():
            if "lora_B" in name:
                parameter.normal_(0, 1)
    assert tokens() != first


def test_fewer_rows_need_nothing_anew_and_more_do(adapted: Any) -> None:
    """As of a retry of one group, or of probes before a smaller step."""
    decoder = Decoder(adapted, Decoding(16, top_k=1), frozenset())

    def tokens(*rows: int) -> list[tuple[int, ...]]:
        prompts, seeds = [PROMPTS[row] for row in rows], list(rows)
        found = decoder.generate(prompts, seeds, lambda *_: None, lambda: None)
        return [row.tokens for row in found]

    several = tokens(0, 2, 3)
    caches = decoder.state
    assert tokens(3, 0) == [several[2], several[0]]
    assert tokens(0, 2, 3) == several
    assert decoder.state is caches
    assert tokens(0, 1, 2, 3)[2:] == several[1:]
    assert decoder.state is not caches


def test_generation_leaves_the_base_as_it_was(adapted: Any) -> None:
    before = {name: value.clone() for name, value in adapted.state_dict().items()}
    _greedy(adapted, 8, frozenset())
    after = adapted.state_dict()
    assert all(torch.equal(before[name], after[name]) for name in before)


def test_a_row_is_told_of_before_the_last_has_ended(adapted: Any) -> None:
    free = _greedy(adapted, 40, frozenset())
    end = next(token for token in free[2].tokens if token not in free[0].tokens)
    told: list[int] = []
    steps = [0]

    def stop() -> None:
        steps[0] += 1

    decoder = Decoder(adapted, Decoding(40, top_k=1), frozenset({end}))
    decoder.generate(PROMPTS, [1, 2, 3, 4], lambda row, _: told.append(row * 100 + steps[0]), stop)
    assert told[0] // 100 == 2
    assert told[0] % 100 < 40
    assert len(told) == len(PROMPTS)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"hidden_act": "gelu"}, "silu"),
        ({"attention_bias": True}, "biases"),
        ({"model_type": "llama"}, "knows qwen3"),
    ],
)
def test_what_it_cannot_compute_it_names(change: dict[str, Any], why: str) -> None:
    model = _qwen3()
    for name, value in change.items():
        object.__setattr__(model.config, name, value)
    assert why in weights.unfit(model)


def test_an_adapter_on_routed_experts_is_named() -> None:
    lora = LoraConfig(r=2, target_parameters=["mlp.experts.down_proj"], lora_dropout=0.0)
    model: Any = get_peft_model(_experts(), lora)
    assert "routed experts" in weights.unfit(model)


def test_batch_sizes_fall_to_one() -> None:
    assert batch_sizes(8) == (8, 6, 4, 3, 2, 1)
    assert batch_sizes(1) == (1,)
