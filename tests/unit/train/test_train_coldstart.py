"""The cold start: where pairs come from, and that a policy learns them before GRPO begins."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.unit.train.conftest import SKETCHES, Stage

from watercolour.api.errors import InputError
from watercolour.api.rollout import Rollout
from watercolour.api.spec import Sft, WatercolourRun
from watercolour.train import coldstart, pairs, parquet, session
from watercolour.train.pairs import Pair
from watercolour.train.progress import Progress

Make = Callable[..., WatercolourRun]


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


def test_it_ends_early_once_enough_pass_the_gate() -> None:
    torch.manual_seed(0)
    model: Any = torch.nn.Module()
    model.weight = torch.nn.Parameter(torch.zeros(9, 9))
    model.forward = lambda input_ids, attention_mask: type(
        "Out", (), {"logits": model.weight[input_ids]}
    )
    told: list[int] = []
    outcome = coldstart.run(
        model,
        [([1], [2, 3])] * 64,
        Sft(batch_size=1, target_gate_pass_rate=0.5, learning_rate=0.1),
        rate=lambda look: look / 64,
        tell=lambda step, *_: told.append(step),
        stop=lambda: None,
    )
    assert outcome.steps == 32 == told[-1]
    assert outcome.gate_pass_rate == 0.5
    assert outcome.loss < 1.0


def test_a_run_learns_its_corpus_before_the_first_step(
    wanted: Make, tmp_path: Path, stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = _corpus(tmp_path / "corpus", SKETCHES)
    run = wanted(steps=1)
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
