"""The cold start by itself: adapters from every kind of corpus, and runs that begin with them."""

from __future__ import annotations

import errno
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from peft import PeftModel
from safetensors.torch import load_file
from tests.unit.train.conftest import SKETCHES, Stage

from watercolour import cli
from watercolour.api import dump
from watercolour.api.errors import InfrastructureError, InputError
from watercolour.api.reasons import Reason
from watercolour.api.rollout import Rollout
from watercolour.api.spec import Sft, WatercolourRun
from watercolour.train import coldrun, parquet, session, teaching
from watercolour.train import policy as policies
from watercolour.train.progress import Progress

Make = Callable[..., WatercolourRun]
LONG = {"maxCompletionTokens": 80, "topP": 1.0, "topK": 0}


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """A folder with as many pairs as there are sketches."""
    folder = tmp_path / "corpus"
    folder.mkdir()
    lines = [json.dumps({"subject": "a red poppy", "sketch": sketch}) for sketch in SKETCHES]
    (folder / "pairs.jsonl").write_text("\n".join(lines))
    return folder


def _asked(run: WatercolourRun, **sft: Any) -> WatercolourRun:
    # No share of probes passes as many as all, so it learns to the end.
    wanted = Sft(target_gate_pass_rate=1.0, learning_rate=2e-2, **sft)
    return run.model_copy(update={"spec": run.spec.model_copy(update={"sft": wanted})})


def _quiet(*_: Any) -> None:
    """Tell nobody."""


def _moved(folder: Path) -> float:
    adapter = load_file(folder / policies.ADAPTER_FILE)
    return min(float(value.abs().max()) for name, value in adapter.items() if "lora_B" in name)


def test_an_adapter_is_made_from_the_best_of_a_run_and_a_run_begins_with_it(
    wanted: Make, tmp_path: Path, stage: Stage
) -> None:
    rollouts = tmp_path / "first" / "rollouts"
    rollouts.mkdir(parents=True)
    # Of each group the better half is the one sketch, so that is what there is to learn.
    both = [
        Rollout(
            step=step,
            index=index,
            subject="a red poppy",
            sketch=SKETCHES[index],
            gate_passed=True,
            reward=1.0 - index,
        )
        for step in range(4)
        for index in range(2)
    ]
    (rollouts / "00000.parquet").write_bytes(parquet.encode(both, [{}] * len(both)))
    run = _asked(wanted(steps=1, sampling=LONG), corpus=str(tmp_path / "first"), epochs=30)
    told: list[float] = []
    out = tmp_path / "warm"
    outcome = coldrun.adapter(run.spec, out, lambda _step, _steps, loss, _rate: told.append(loss))
    assert (outcome.examples, outcome.steps) == (1, len(told)) == (1, 30)
    assert told[-1] < told[0] / 2
    assert json.loads((out / teaching.FILE).read_text())["loss"] == outcome.loss
    assert not (out / ".part").exists()
    model = run.spec.model.model_copy(update={"adapter": str(out)})
    begun = run.model_copy(update={"spec": run.spec.model_copy(update={"model": model})})
    begun = begun.model_copy(update={"spec": begun.spec.model_copy(update={"sft": None})})
    progress = Progress("test", 1)
    session.run(begun, tmp_path / "run", stage, progress, lambda: False, resume=False)
    # One step of AdamW moves a weight by the learning rate, 0.01.
    after = load_file(tmp_path / "run" / "checkpoints" / "checkpoint-1" / policies.ADAPTER_FILE)
    for name, value in load_file(out / policies.ADAPTER_FILE).items():
        torch.testing.assert_close(after[name], value, atol=0.011, rtol=0)


def test_an_adapter_can_learn_on(wanted: Make, tmp_path: Path, corpus: Path) -> None:
    run = _asked(wanted(sampling=LONG), corpus=str(corpus), batch_size=20)
    coldrun.adapter(run.spec, tmp_path / "one", _quiet)
    model = run.spec.model.model_copy(update={"adapter": str(tmp_path / "one")})
    spec = run.spec.model_copy(update={"model": model})
    coldrun.adapter(spec, tmp_path / "two", _quiet)
    one, two = (load_file(tmp_path / name / policies.ADAPTER_FILE) for name in ("one", "two"))
    assert one.keys() == two.keys()
    assert any(not torch.equal(one[name], two[name]) for name in one)


def test_two_processes_make_the_adapter_that_one_makes(
    wanted: Make, tmp_path: Path, corpus: Path
) -> None:
    asked = {"corpus": str(corpus), "examples": 20, "batch_size": 5, "epochs": 2}
    one = coldrun.adapter(_asked(wanted(sampling=LONG), **asked).spec, tmp_path / "one", _quiet)
    several = _asked(wanted(sampling=LONG, processes=2), **asked)
    two = coldrun.by_several(several, tmp_path / "two")
    assert (one.examples, one.steps) == (two.examples, two.steps) == (20, 8)
    assert (two.loss, two.gate_pass_rate) == pytest.approx((one.loss, one.gate_pass_rate), rel=1e-3)
    ours, theirs = (load_file(tmp_path / name / policies.ADAPTER_FILE) for name in ("two", "one"))
    for name, value in theirs.items():
        torch.testing.assert_close(ours[name], value, atol=5e-5, rtol=1e-3)
    assert _moved(tmp_path / "two") > 0
    with pytest.raises(InputError, match="it holds an adapter") as caught:
        coldrun.by_several(several, tmp_path / "two")
    assert caught.value.reason is Reason.INVALID_INPUT


def test_a_process_that_is_killed_is_said(
    wanted: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed = "import os; os.kill(os.getpid(), 9)"
    monkeypatch.setattr(coldrun, "PROGRAM", (coldrun.PROGRAM[0], "-c", killed))
    with pytest.raises(InfrastructureError, match="ended with status 137") as caught:
        coldrun.by_several(_asked(wanted(processes=2)), tmp_path / "out")
    assert caught.value.reason is Reason.COMPONENT_DIED


def test_nothing_is_written_over(wanted: Make, tmp_path: Path) -> None:
    taken, file = tmp_path / "taken", tmp_path / "file"
    taken.mkdir()
    (taken / "notes.txt").write_text("mine")
    file.write_text("mine")
    for out, fault in ((taken, "not empty"), (file, "no folder can be made")):
        with pytest.raises(InputError, match=rf"--out=.*{fault}.*Name another folder"):
            coldrun.adapter(_asked(wanted()).spec, out, _quiet)
    assert (taken / "notes.txt").read_text() == file.read_text() == "mine"


def test_a_full_disk_leaves_no_half_of_an_adapter(
    wanted: Make, tmp_path: Path, corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real: Any = PeftModel.save_pretrained

    def full(self: Any, folder: Path) -> None:
        real(self, folder)
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(PeftModel, "save_pretrained", full)
    run = _asked(wanted(sampling=LONG), corpus=str(corpus), examples=2)
    with pytest.raises(InfrastructureError) as caught:
        coldrun.adapter(run.spec, tmp_path / "out", _quiet)
    assert caught.value.reason is Reason.DISK_FULL
    assert list((tmp_path / "out").iterdir()) == []


def test_a_sketch_that_no_rollout_could_hold_is_not_learnt(
    wanted: Make, tmp_path: Path, corpus: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with (corpus / "pairs.jsonl").open("a") as file:
        file.write("\n" + json.dumps({"subject": "a daisy", "sketch": SKETCHES[0] * 10}))
    run = _asked(wanted(sampling=LONG), corpus=str(corpus), batch_size=20)
    outcome = coldrun.adapter(run.spec, tmp_path / "out", _quiet)
    assert outcome.examples == len(SKETCHES)
    assert "1 of 41 sketches are longer than maxCompletionTokens=80" in caplog.text
    short = _asked(wanted(sampling={"maxCompletionTokens": 5}), corpus=str(corpus))
    with pytest.raises(InputError, match=r"shortest sketch has \d+ .*=5.*Raise that") as caught:
        coldrun.adapter(short.spec, tmp_path / "none", _quiet)
    assert caught.value.field == "spec.sft.corpus"


def test_a_server_is_not_asked_for_what_no_run_has_made(wanted: Make) -> None:
    run = wanted(engine="vllm", vllm={"endpoint": "http://127.0.0.1:9"})
    alone: Any = coldrun._alone(run.spec)  # pyright: ignore[reportPrivateUsage]
    assert (alone.trainer.engine, alone.trainer.vllm) == ("auto", None)


def test_how_far_it_is_is_said_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(coldrun.time, "monotonic", lambda: now[0])
    said: list[str] = []
    tell = coldrun.shown(said.append)
    for step in range(1, 5):
        tell(step, 4, 2.5, None if step < 3 else 0.25)
        now[0] += 3
    assert said == [
        "step 1/4  loss 2.500  at most 0 s left",
        "step 3/4  loss 2.500  gate 25%  at most 3 s left",
        "step 4/4  loss 2.500  gate 25%  at most 0 s left",
    ]


def test_the_command_makes_an_adapter_of_the_grammar(
    wanted: Make, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    run = wanted(sampling={**LONG, "maxCompletionTokens": 300})
    spec, out = tmp_path / "run.yaml", tmp_path / "warm"
    spec.write_text(dump.to_yaml(run, full=True))
    words = ["sft", "-f", str(spec), "--out", str(out), "--samples", "12", "--epochs", "2"]
    sets = ("spec.model.id=builtin:tiny", "spec.sft.batchSize=6", "spec.sft.targetGatePassRate=1")
    words += [word for one in sets for word in ("--set", one)] + ["--json"]
    assert cli.status(words) == 0
    said = capfd.readouterr()
    outcome = json.loads(said.out)
    assert (outcome["examples"], outcome["steps"], outcome["out"]) == (12, 4, str(out))
    assert "step 4/4" in said.err
    assert _moved(out) > 0
    assert cli.status(words) == 1
    refused = json.loads(capfd.readouterr().out)["error"]
    assert refused["reason"] == "InvalidInput"
    assert "it holds an adapter" in refused["message"]


def test_the_command_refuses_what_it_cannot_learn(
    wanted: Make, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    spec = tmp_path / "run.yaml"
    spec.write_text(dump.to_yaml(wanted(), full=True))
    out = str(tmp_path / "out")
    words = ["sft", "-f", str(spec), "--out", out, "--corpus", str(tmp_path / "nowhere"), "--json"]
    assert cli.status(words) == 1
    error = json.loads(capfd.readouterr().out)["error"]
    assert error["field"] == "spec.sft.corpus"
    assert "no pairs.jsonl and no rollouts there" in error["message"]
    for more in (["--corpus", "x"], ["--set", "spec.seed=2"], ["--samples", "20"]):
        assert cli.status(["sft", "--out", out, *more]) == 2
