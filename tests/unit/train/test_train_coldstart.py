"""The cold start: where pairs come from, and that a policy learns them before GRPO begins."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.unit.train.conftest import SKETCHES, Stage
from trl.trainer.utils import add_fused_lm_head

from watercolour.api.errors import InfrastructureError, InputError
from watercolour.api.reasons import Reason
from watercolour.api.rollout import Rollout
from watercolour.api.spec import Sft, WatercolourRun
from watercolour.train import coldstart, pairs, parquet, session
from watercolour.train import policy as policies
from watercolour.train.pairs import Pair
from watercolour.train.progress import Progress

Make = Callable[..., WatercolourRun]
#: Room for a whole sketch.
LONG = {"maxCompletionTokens": 80, "topP": 1.0, "topK": 0}


def _corpus(folder: Path, sketches: list[str]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps({"subject": "a red poppy", "sketch": sketch}) for sketch in sketches]
    (folder / "pairs.jsonl").write_text("\n".join(lines) + "\n")
    return folder


def test_the_grammar_gives_as_many_pairs_as_asked_for() -> None:
    found = pairs.load(Sft(examples=7), seed=1)
    assert len(found) == 7
    assert found == pairs.load(Sft(examples=7), seed=1)
    assert found != pairs.load(Sft(examples=7), seed=2)


def test_a_folder_of_pairs_is_read_in_an_order_by_the_seed(tmp_path: Path) -> None:
    folder = _corpus(tmp_path / "corpus", SKETCHES[:5])
    found = pairs.load(Sft(corpus=str(folder), examples=3), seed=1)
    assert len(found) == 3
    assert {pair.sketch for pair in found} < set(SKETCHES[:5])


def test_a_broken_line_is_named_by_its_number(tmp_path: Path) -> None:
    folder = _corpus(tmp_path / "corpus", SKETCHES[:2])
    with (folder / "pairs.jsonl").open("a") as file:
        file.write('{"subject": 3, "sketch": "x"}\n')
    with pytest.raises(InputError, match=r"pairs\.jsonl:3: no pair .*Write "):
        pairs.load(Sft(corpus=str(folder)), seed=1)


@pytest.mark.parametrize("line", ['{"subject": "a daisy"}', "[]", '{"subject": "", "sketch": "x"}'])
def test_a_pair_that_lacks_something_is_refused(tmp_path: Path, line: str) -> None:
    folder = _corpus(tmp_path / "corpus", [])
    (folder / "pairs.jsonl").write_text(line)
    with pytest.raises(InputError, match=r"pairs\.jsonl:1: no pair .*Write "):
        pairs.load(Sft(corpus=str(folder)), seed=1)


def test_a_corpus_that_is_no_text_is_refused(tmp_path: Path) -> None:
    folder = _corpus(tmp_path / "corpus", SKETCHES[:1])
    (folder / "pairs.jsonl").write_bytes(b"\xff\xfe{}")
    with pytest.raises(InputError, match=r"cannot be read .*UTF-8") as caught:
        pairs.load(Sft(corpus=str(folder)), seed=1)
    assert caught.value.reason is Reason.INVALID_SPEC


def test_a_line_may_hold_what_other_texts_end_lines_with(tmp_path: Path) -> None:
    folder = _corpus(tmp_path / "corpus", [])
    pair = {"subject": "a daisy", "sketch": "one\u2028two"}
    (folder / "pairs.jsonl").write_text(json.dumps(pair, ensure_ascii=False))
    assert pairs.load(Sft(corpus=str(folder)), seed=1) == [Pair(**pair)]


def test_a_run_gives_the_best_admitted_rollout_of_each_group(tmp_path: Path) -> None:
    def rollout(group: int, index: int, reward: float | None, *, passed: bool = True) -> Rollout:
        return Rollout(
            run="r",
            step=0,
            group=group,
            index=index,
            subject=f"subject {group}",
            seed=1,
            completion="",
            sketch=f"sketch {group} {index}",
            gate_passed=passed,
            reward=reward,
        )

    rollouts = [
        rollout(0, 0, 0.2),
        rollout(0, 1, 0.8),
        rollout(0, 2, None),
        rollout(1, 0, 0.0, passed=False),
        rollout(2, 0, None),
        rollout(3, 0, 0.1),
    ]
    (tmp_path / "rollouts").mkdir()
    (tmp_path / "rollouts" / "000000.parquet").write_bytes(
        parquet.encode(rollouts, [{"painting": None} for _ in rollouts])
    )
    assert pairs.best_of(tmp_path) == [
        Pair("subject 0", "sketch 0 1"),
        Pair("subject 3", "sketch 3 0"),
    ]


@pytest.mark.parametrize("corpus", ["/nowhere", "./nothing", "three/part/name"])
def test_a_corpus_that_is_none_is_refused_with_a_remedy(corpus: str) -> None:
    with pytest.raises(InputError, match=r"spec\.sft\.corpus=.*Name a folder"):
        pairs.load(Sft(corpus=corpus), seed=1)


def test_an_empty_corpus_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no pair"):
        pairs.load(Sft(corpus=str(_corpus(tmp_path / "empty", []))), seed=1)


def test_only_the_reply_is_learnt() -> None:
    tokens, labels, seen = coldstart.padded([([1, 2], [3, 4]), ([5], [6])], torch.device("cpu"))
    assert tokens.tolist() == [[1, 2, 3, 4], [5, 6, 0, 0]]
    assert labels.tolist() == [[-100, -100, 3, 4], [-100, 6, -100, -100]]
    assert seen.tolist() == [[1, 1, 1, 1], [1, 1, 0, 0]]


@pytest.fixture
def policy(wanted: Make) -> policies.Policy:
    return policies.load(wanted().spec.model, wanted().spec.trainer.lora)


EXAMPLES = [([1, 2], [3, 4, 5]), ([6], [7, 8, 9, 10]), ([11, 12, 13], [14])]


def test_it_ends_early_once_enough_pass_the_gate(policy: policies.Policy) -> None:
    told: list[int] = []
    outcome = coldstart.run(
        policy.model,
        EXAMPLES[:1] * 64,
        Sft(batch_size=1, target_gate_pass_rate=0.5, learning_rate=0.1),
        rate=lambda look: look / 64,
        tell=lambda step, *_: told.append(step),
        stop=lambda: None,
    )
    assert outcome.steps == 32 == told[-1]
    assert outcome.gate_pass_rate == 0.5
    assert outcome.loss < 1.0


def _gradients(model: Any) -> dict[str, torch.Tensor]:
    return {name: one.grad.clone() for name, one in model.named_parameters()}


def test_the_gradient_is_that_of_the_replies_whatever_the_head_and_the_parts(
    policy: policies.Policy,
) -> None:
    model, batch = policy.model, EXAMPLES
    total = sum(len(reply) for _, reply in batch)
    tokens, labels, seen = coldstart.padded(batch, torch.device("cpu"))
    logits = model(input_ids=tokens, attention_mask=seen).logits[:, :-1]
    theirs = torch.nn.functional.cross_entropy(
        logits.flatten(0, 1), labels[:, 1:].flatten(), reduction="sum"
    )
    (theirs / total).backward()
    straight = _gradients(model)
    # As in a run: TRL has given the policy a head that divides by the temperature of sampling.
    add_fused_lm_head(model, temperature=0.5)
    tempered = model.forward
    for most in (1000, 7, 1):
        model.zero_grad()
        loss, _ = coldstart._gradients(model, batch, total, most, 0)  # pyright: ignore[reportPrivateUsage]
        assert loss == pytest.approx(theirs.item() / total, rel=1e-5)
        for name, value in _gradients(model).items():
            torch.testing.assert_close(value, straight[name], atol=1e-5, rtol=1e-4)
        assert model.forward == tempered


def _full_above(most: int, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Let the GPU be full in micro-batches of more tokens; the sizes that were tried."""
    real: Any = coldstart._backward  # pyright: ignore[reportPrivateUsage]
    tried: list[int] = []

    def backward(model: Any, batch: Any, total: int, tokens: int) -> float:
        tried.append(tokens)
        loss = real(model, batch, total, tokens)
        if tokens > most:
            # Late: gradients of the failed attempt are there already.
            raise torch.OutOfMemoryError
        return loss

    monkeypatch.setattr(coldstart, "_backward", backward)
    return tried


def test_what_does_not_fit_is_learnt_in_smaller_parts_from_then_on(
    policy: policies.Policy, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(coldstart, "CPU_TOKENS", 64)
    tried = _full_above(20, monkeypatch)
    total = 8
    loss, tokens = coldstart._gradients(policy.model, EXAMPLES, total, 64, 3)  # pyright: ignore[reportPrivateUsage]
    assert (tried, tokens) == ([64, 32, 16], 16)
    said = [record.message for record in caplog.records]
    assert said[-1] == (
        "cold start, step 3: out of GPU memory; micro-batches have 16 tokens from now on"
    )
    after = _gradients(policy.model)
    policy.model.zero_grad()
    assert loss == coldstart._gradients(policy.model, EXAMPLES, total, 16, 3)[0]  # pyright: ignore[reportPrivateUsage]
    for name, value in _gradients(policy.model).items():
        torch.testing.assert_close(after[name], value)
    tried.clear()
    _learn(policy, Sft(batch_size=3, epochs=2))
    assert tried == [64, 32, 16, 16]


def test_a_pair_that_never_fits_is_named_with_a_remedy(
    policy: policies.Policy, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = _full_above(0, monkeypatch)
    with pytest.raises(InfrastructureError, match=r"full while learning .* longest") as caught:
        _learn(policy, Sft(batch_size=3))
    assert caught.value.reason is Reason.GPU_OUT_OF_MEMORY
    # The longest pair has five tokens, and smaller parts than one pair there are none.
    assert tried[-2:] == [8, 5]


def _learn(policy: policies.Policy, sft: Sft) -> coldstart.Outcome:
    return coldstart.run(
        policy.model,
        EXAMPLES,
        sft,
        rate=lambda _look: 0.0,
        tell=lambda *_: None,
        stop=lambda: None,
    )


def test_a_loss_that_is_no_number_ends_it_before_the_update(
    policy: policies.Policy, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = {name: one.clone() for name, one in policy.model.state_dict().items()}
    monkeypatch.setattr(coldstart, "_backward", lambda *_: float("nan"))
    with pytest.raises(InfrastructureError, match=r"step 0 is nan.*learningRate") as caught:
        _learn(policy, Sft())
    assert caught.value.reason is Reason.LOSS_NOT_FINITE
    assert all(torch.equal(before[name], one) for name, one in policy.model.state_dict().items())


def test_a_run_learns_its_corpus_before_the_first_step(
    wanted: Make, tmp_path: Path, stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = _corpus(tmp_path / "corpus", SKETCHES)
    run = wanted(steps=1, sampling=LONG)
    sft = Sft(corpus=str(corpus), examples=40, epochs=6, batch_size=8, learning_rate=2e-2)
    run = run.model_copy(update={"spec": run.spec.model_copy(update={"sft": sft})})
    phases: list[str] = []
    progress = Progress("test", 1)
    enter = progress.enter

    def noted(phase: str, **figures: Any) -> None:
        phases.append(phase)
        enter(phase, **figures)

    monkeypatch.setattr(progress, "enter", noted)
    out = tmp_path / "run"
    session.run(run, out, stage, progress, lambda: False, resume=False)
    outcome = json.loads((out / "sft.json").read_text())
    # The untrained policy's is 6.
    assert outcome["loss"] < 4.0
    assert outcome["steps"] <= 30
    assert phases.index("sft") < phases.index("painting")
    assert (out / "metrics.csv").exists()
