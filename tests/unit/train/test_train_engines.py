from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM

from watercolour.api.errors import InputError, InterruptedRun
from watercolour.api.reasons import Reason
from watercolour.api.trainer import Decoding
from watercolour.train import engines, static
from watercolour.train.sampling import Row, choose, derive_seed, uniforms

END = frozenset([2])
PROMPTS = [[5, 6, 7, 8, 9, 10], [11, 12, 13], [5, 6, 7, 8, 9, 10], [14]]
SEEDS = [1, 2, 3, 4]


def silent(_row: int, _completion: Row) -> None:
    pass


def on() -> None:
    pass


@pytest.fixture(scope="module")
def adapted(policy_folder: Path) -> Any:
    """A policy whose adapter changes every linear layer."""
    model: Any = AutoModelForCausalLM.from_pretrained(policy_folder, dtype="auto")
    model = get_peft_model(model, LoraConfig(r=4, target_modules="all-linear"))
    torch.manual_seed(1)
    for name, weight in model.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(weight, std=0.2)
    return model.eval()


def test_static_logits_equal_the_models_at_every_position(adapted: Any) -> None:
    tokens = torch.randint(3, 300, (3, 14), generator=torch.Generator().manual_seed(0))
    shift = torch.tensor([[0], [5], [1]])
    seen = (torch.arange(14) >= shift).long()
    with torch.no_grad():
        positions = (seen.cumsum(-1) - 1).clamp(min=0)
        theirs = adapted(tokens, attention_mask=seen, position_ids=positions).logits
        weights = static.merged(adapted, 14)
        cache = torch.zeros(2, 2, 3, weights.kv_heads, 14, weights.head_size)
        hidden = torch.zeros(3, 14).masked_fill(torch.arange(14) < shift, float("-inf"))
        prompt = torch.arange(8) - shift
        ours = [static.forward(weights, tokens[:, :8], prompt, cache, 0, hidden)]
        ours += [
            static.forward(weights, tokens[:, i : i + 1], i - shift, cache, i, hidden)
            for i in range(8, 14)
        ]
    torch.testing.assert_close(torch.stack(ours, 1), theirs[:, 7:], atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize(
    "sampling",
    [
        Decoding(max_completion_tokens=24, top_k=1),
        Decoding(max_completion_tokens=24, temperature=0.7, top_p=0.9, top_k=15),
        Decoding(max_completion_tokens=24, temperature=0.7, bias=((40, 4.0), (7, -100.0))),
    ],
)
def test_engines_write_the_same_rows(adapted: Any, sampling: Decoding) -> None:
    rows = {}
    for name in ("static", "transformers"):
        _, engine = engines.build(name, adapted, sampling, END, pad=0)
        rows[name] = engine(PROMPTS, SEEDS, silent, on)
    assert [row.tokens for row in rows["static"]] == [row.tokens for row in rows["transformers"]]
    for ours, theirs in zip(rows["static"], rows["transformers"], strict=True):
        assert ours.log_probabilities == pytest.approx(theirs.log_probabilities, abs=1e-4)


@pytest.mark.parametrize("name", ["static", "transformers"])
@pytest.mark.parametrize("bias", [-100.0, -1.5, 3.0])
def test_a_biased_token_is_drawn_as_often_as_its_bias_says(
    adapted: Any, name: str, bias: float
) -> None:
    """And the log-probabilities are the policy's own, so that a correction's weights are 1."""
    with torch.no_grad():
        logits = adapted(torch.tensor([PROMPTS[0]])).logits[0, -1].float()
    # A cool policy has tokens that are drawn neither nearly always nor nearly never.
    logits, warmth = logits / 0.4, 0.4
    token = int(logits.argmax())
    moved = logits.clone()
    moved[token] += bias / warmth
    expected = float(moved.softmax(-1)[token])
    sampling = Decoding(max_completion_tokens=1, temperature=warmth, bias=((token, bias),))
    _, engine = engines.build(name, adapted, sampling, END, pad=0)
    rows = engine([PROMPTS[0]] * 400, list(range(400)), silent, on)
    share = sum(row.tokens == (token,) for row in rows) / len(rows)
    assert abs(expected - float(logits.softmax(-1)[token])) > 0.15
    assert share == pytest.approx(expected, abs=4 * (0.25 / len(rows)) ** 0.5)
    own = logits.log_softmax(-1)
    assert [row.log_probabilities[0] for row in rows] == pytest.approx(
        [float(own[row.tokens[0]]) for row in rows], abs=1e-3
    )


def test_greedy_rows_are_those_of_plain_generate(adapted: Any) -> None:
    _, engine = engines.build(
        "static", adapted, Decoding(max_completion_tokens=20, top_k=1), END, pad=0
    )
    ours = engine([PROMPTS[0]], [1], silent, on)[0]
    theirs = adapted.generate(
        torch.tensor([PROMPTS[0]]), max_new_tokens=20, do_sample=False, eos_token_id=[2]
    )
    assert list(ours.tokens) == theirs[0, len(PROMPTS[0]) :].tolist()


@pytest.mark.parametrize("name", ["static", "transformers"])
def test_a_row_draws_the_same_tokens_whoever_its_neighbours_are(adapted: Any, name: str) -> None:
    _, engine = engines.build(name, adapted, Decoding(max_completion_tokens=16), END, pad=0)
    together = engine(PROMPTS, SEEDS, silent, on)
    alone = engine([PROMPTS[2]], [SEEDS[2]], silent, on)
    assert alone[0].tokens == together[2].tokens
    assert together[0].tokens != together[2].tokens


@pytest.mark.parametrize("name", ["static", "transformers"])
def test_a_row_is_announced_before_longer_ones_end(adapted: Any, name: str) -> None:
    sampling = Decoding(max_completion_tokens=40)
    # So many tokens end a row that rows end at different lengths.
    ends = frozenset(range(2, 30))
    _, engine = engines.build(name, adapted, sampling, ends, pad=0)
    steps, heard = 0, dict[int, int]()

    def count() -> None:
        nonlocal steps
        steps += 1

    def note(row: int, _: Row) -> None:
        heard[row] = steps

    rows = engine(PROMPTS * 4, list(range(16)), note, count)
    lengths = {row: len(completion.tokens) for row, completion in enumerate(rows)}
    assert len(set(lengths.values())) > 3
    assert all(heard[row] == length for row, length in lengths.items() if length < 40)
    assert all(row.truncated == (row.tokens[-1] not in ends) for row in rows)


@pytest.mark.parametrize("name", ["static", "transformers"])
def test_stopping_abandons_the_generation(adapted: Any, name: str) -> None:
    def stop() -> None:
        raise InterruptedRun(Reason.INTERRUPTED, "stopped.")

    _, engine = engines.build(name, adapted, Decoding(max_completion_tokens=8), END, pad=0)
    with pytest.raises(InterruptedRun):
        engine(PROMPTS, SEEDS, silent, stop)


def test_an_unfit_engine_is_refused_with_a_remedy(adapted: Any) -> None:
    with pytest.raises(InputError, match=r"spec.trainer.engine=vllm.*Set it to auto"):
        engines.build("vllm", adapted, Decoding(8), END, pad=0)


def test_choose_keeps_to_top_k_and_top_p() -> None:
    logits = torch.log(torch.tensor([[0.5, 0.3, 0.15, 0.05]]))
    chances = torch.linspace(0, 0.999, 50, dtype=torch.float64)

    def drawn(sampling: Decoding) -> set[int]:
        return {int(choose(logits, c[None], sampling)[0]) for c in chances}

    assert drawn(Decoding(1)) == {0, 1, 2, 3}
    assert drawn(Decoding(1, top_k=2)) == {0, 1}
    assert drawn(Decoding(1, top_p=0.8)) == {0, 1}
    assert drawn(Decoding(1, top_p=0.81)) == {0, 1, 2}


def test_choose_draws_in_proportion_and_reports_the_policys_own_log_probability() -> None:
    probabilities = torch.tensor([0.5, 0.3, 0.15, 0.05])
    chance = uniforms([7], 4000)[0]
    logits = probabilities.log().expand(4000, -1)
    tokens, logs = choose(logits, chance, Decoding(1))
    shares = torch.bincount(tokens, minlength=4) / 4000
    torch.testing.assert_close(shares, probabilities, atol=0.02, rtol=0)
    torch.testing.assert_close(logs, probabilities.log()[tokens])


def test_seeds_depend_on_every_part_and_on_nothing_else() -> None:
    parts = [(1, 2, 3), (1, 2, 4), (2, 2, 3), (12, 3, 0)]
    assert len({derive_seed(*p) for p in parts}) == len(parts)
    assert derive_seed(1, 2, 3) == derive_seed(1, 2, 3)
    assert all(0 <= derive_seed(*p) < 2**63 for p in parts)
