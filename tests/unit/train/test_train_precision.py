"""What bfloat16 may not round away: the logits of training, and the sum through the layers."""

from __future__ import annotations

from collections.abc import Generator
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import Qwen3Config, Qwen3ForCausalLM
from transformers.models.qwen3_5_moe.configuration_qwen3_5_moe import Qwen3_5MoeTextConfig
from transformers.models.qwen3_5_moe.modeling_qwen3_5_moe import Qwen3_5MoeForCausalLM
from trl.kernels import ChunkedLogProbFunction
from trl.trainer import utils

from watercolour.api.trainer import Decoding
from watercolour.train import head, residual
from watercolour.train.decode.loop import Decoder
from watercolour.train.decode.weights import stream_of

TOKENS, WIDTH, WORDS = head.TOKENS + 40, 64, 900
ALL = ("log_probs", "entropy")
NEVER = frozenset({10**6})


def _asked(kind: torch.dtype) -> tuple[Tensor, Tensor, Tensor]:
    """Hidden states, a head whose logits reach 8, and targets among each token's likeliest."""
    torch.manual_seed(0)
    hidden, weight = torch.randn(TOKENS, WIDTH), torch.randn(WORDS, WIDTH) * 0.3
    hidden, weight = hidden.to(kind), weight.to(kind)
    return hidden, weight, (hidden.float() @ weight.float().t()).topk(5).indices[:, 4]


def _reference(
    hidden: Tensor, weight: Tensor, targets: Tensor, temperature: float
) -> tuple[Tensor, Tensor]:
    logs = (hidden @ weight.t() / temperature).log_softmax(-1)
    return logs.gather(-1, targets.unsqueeze(-1)).squeeze(-1), -(logs.exp() * logs).sum(-1)


@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float32])
@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_scores_are_those_of_float64(kind: torch.dtype, temperature: float) -> None:
    hidden, weight, targets = _asked(kind)
    with torch.autocast("cpu", torch.bfloat16):
        found = head.scores(hidden, weight, targets, temperature)
    true = _reference(hidden.double(), weight.double(), targets, temperature)
    for ours, exact in zip(found, true, strict=True):
        assert float((ours - exact).abs().max()) < 2e-5


def test_the_stock_head_rounds_its_logits() -> None:
    # Without this the module would have no purpose any more.
    hidden, weight, targets = _asked(torch.bfloat16)
    stock: Any = ChunkedLogProbFunction
    found = stock.apply(hidden, weight, None, targets, 1.0, 512, None, 1.0, ALL)[0]
    true = _reference(hidden.double(), weight.double(), targets, 1.0)[0]
    assert float((found - true).abs().mean()) > 4e-3


@pytest.mark.parametrize("asks", [(True, False), (False, True), (True, True)])
@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float32])
def test_gradients_are_those_of_float64(kind: torch.dtype, asks: tuple[bool, bool]) -> None:
    hidden, weight, targets = _asked(kind)
    pull = [torch.randn(TOKENS, dtype=torch.float64) * use for use in asks]

    def gradients(score: Any, *inputs: Tensor) -> tuple[Tensor, ...]:
        leaves = [one.clone().requires_grad_() for one in inputs]
        outputs = score(*leaves, targets, 0.7)
        terms = [(o * p).sum() for o, p, use in zip(outputs, pull, asks, strict=True) if use]
        return torch.autograd.grad(terms, leaves)

    found = gradients(head.scores, hidden, weight)
    true = gradients(_reference, hidden.double(), weight.double())
    share = 1e-5 if kind == torch.float32 else 5e-3
    for ours, exact in zip(found, true, strict=True):
        assert ours.dtype == kind
        assert float((ours - exact).norm() / exact.norm()) < share


def test_a_frozen_head_gets_no_gradient() -> None:
    hidden, weight, targets = _asked(torch.bfloat16)
    leaf = hidden.clone().requires_grad_()
    head.scores(leaf, weight, targets)[0].sum().backward()
    assert leaf.grad is not None
    assert weight.grad is None


@pytest.fixture
def installed() -> Generator[None]:
    names: Any = utils
    before = names._ChunkedLogProbFunction
    names._ChunkedLogProbFunction = ChunkedLogProbFunction
    head.install()
    head.install()
    yield
    names._ChunkedLogProbFunction = before


def _qwen3(kind: torch.dtype) -> Any:
    torch.manual_seed(0)
    config = Qwen3Config(
        vocab_size=WORDS,
        hidden_size=WIDTH,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=16,
        intermediate_size=96,
        tie_word_embeddings=False,
    )
    made: Any = Qwen3ForCausalLM(config)
    model: Any = made.to(kind).requires_grad_(False)
    torch.nn.init.normal_(model.lm_head.weight, std=0.3)
    return model.eval()


@pytest.mark.usefixtures("installed")
def test_trl_scores_by_it_and_at_its_temperature() -> None:
    model = _qwen3(torch.bfloat16)
    utils.add_fused_lm_head(model, temperature=0.7, outputs=ALL)
    ids = torch.randint(0, WORDS, (2, 40))
    hidden = model.model(input_ids=ids).last_hidden_state[:, :-1].double().flatten(0, 1)
    found = model(input_ids=ids, labels=ids, fused_lm_head=True)
    true = _reference(hidden, model.lm_head.weight.double(), ids[:, 1:].flatten(), 0.7)
    assert float((found.log_probs.flatten() - true[0]).abs().max()) < 2e-5
    assert float((found.entropy.flatten() - true[1]).abs().max()) < 2e-5


@pytest.mark.usefixtures("installed")
def test_a_head_with_a_cap_stays_trls() -> None:
    names: Any = utils
    asked = (torch.randn(5, 8), torch.randn(20, 8), None, torch.arange(5), 1.0, 512, 3.0, 1.0, ALL)
    stock: Any = ChunkedLogProbFunction
    found = names._ChunkedLogProbFunction.apply(*asked)
    for ours, theirs in zip(found[:2], stock.apply(*asked)[:2], strict=True):
        assert torch.equal(ours, theirs)


def _deep(kind: torch.dtype) -> Any:
    """A policy whose layers add little to their sum, as trained ones do."""
    torch.manual_seed(0)
    config = Qwen3_5MoeTextConfig(
        vocab_size=600,
        hidden_size=128,
        num_hidden_layers=12,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=32,
        linear_key_head_dim=16,
        linear_value_head_dim=16,
        linear_num_key_heads=2,
        linear_num_value_heads=4,
        moe_intermediate_size=32,
        shared_expert_intermediate_size=32,
        num_experts=8,
        num_experts_per_tok=2,
        tie_word_embeddings=False,
    )
    model: Any = Qwen3_5MoeForCausalLM(config)
    for name, weight in model.named_parameters():
        if name.endswith("embed_tokens.weight"):
            weight.data.normal_(0, 1)
        elif name.endswith("mlp.gate.weight"):
            weight.data.normal_(0, 0.5)
        elif weight.dim() > 1:
            small = name.endswith(("o_proj.weight", "out_proj.weight", "down_proj"))
            weight.data.normal_(0, 0.01 if small else 0.09)
    return model.to(kind).requires_grad_(False).eval()


def _apart(model: Any) -> tuple[float, float]:
    """Mean |Δ log p|: sampler against one forward pass, and that pass against float32."""
    prompt = list(range(5, 17))
    decoder = Decoder(model, Decoding(24, top_k=20), NEVER)
    rows = decoder.generate([prompt] * 3, [1, 2, 3], lambda *_: None, lambda: None)
    ids = torch.tensor([[*prompt, *row.tokens] for row in rows])
    drawn = torch.tensor([row.log_probabilities for row in rows])

    def logs(policy: Any) -> Tensor:
        hidden = policy.model(input_ids=ids).last_hidden_state[:, len(prompt) - 1 : -1]
        logits = hidden.float() @ policy.lm_head.weight.float().t()
        chosen = ids[:, len(prompt) :].unsqueeze(-1)
        return logits.log_softmax(-1).gather(-1, chosen).squeeze(-1)

    exact = _deep(torch.float32)
    exact.load_state_dict(model.state_dict())
    training = logs(model)
    return float((drawn - training).abs().mean()), float((training - logs(exact)).abs().mean())


def test_a_wide_sum_brings_sampler_training_and_float32_together() -> None:
    model = _deep(torch.bfloat16)
    before = _apart(model)
    assert residual.widen(model)
    after = _apart(model)
    assert after[0] < 0.6 * before[0]
    assert after[1] < 0.8 * before[1]


def test_a_wide_sum_is_float32_between_the_layers_and_nowhere_else() -> None:
    model = _deep(torch.bfloat16)
    assert residual.widen(model)
    assert not residual.widen(model)
    seen: dict[str, set[torch.dtype]] = {"layers": set(), "within": set()}
    for block in model.model.layers:
        block.register_forward_hook(lambda _m, _a, out: seen["layers"].add(out.dtype))
        for inner in (block.mlp, getattr(block, "linear_attn", None)):
            if inner is not None:
                inner.register_forward_hook(lambda _m, _a, out: seen["within"].add(out.dtype))
    logits = model(input_ids=torch.arange(8).unsqueeze(0)).logits
    assert seen == {"layers": {torch.float32}, "within": {torch.bfloat16}}
    assert logits.dtype == torch.bfloat16


def test_what_is_float32_already_or_unknown_stays() -> None:
    assert not residual.widen(_deep(torch.float32))
    strange: Any = torch.nn.Linear(2, 2)
    strange.config = SimpleNamespace(model_type="gpt2")
    assert not residual.widen(strange)
    known = _qwen3(torch.bfloat16)
    assert stream_of(known.model) == torch.bfloat16
    assert residual.widen(known)
    assert stream_of(known.model) == torch.float32
