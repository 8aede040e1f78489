"""Two processes that hold the base model together train what one trains that has it whole."""

from __future__ import annotations

import csv
import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from tests.unit.train.conftest import Stage
from tests.unit.train.vllm_server import Vllm
from transformers import AutoModelForCausalLM

from watercolour.api import dump
from watercolour.api.spec import WatercolourRun
from watercolour.train import checkpoint, launch, policy, session
from watercolour.train.progress import Progress

Make = Callable[..., WatercolourRun]
ROOT = Path(__file__).parents[3]
DRIVER = (sys.executable, "-m", "tests.unit.train.ranks_driver")
STEPS = 3


@pytest.fixture
def parted(
    wanted: Make, vllm: Vllm, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[int, str]]:
    """Train by two processes that hold the base together; the exit status and the reason."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]))

    def train(out: Path, *more: str, **asked: Any) -> tuple[int, str]:
        monkeypatch.setenv("ASKED", json.dumps(asked))
        run = wanted(**_settings(vllm), processes=2, fsdp=True)
        out.mkdir(parents=True, exist_ok=True)
        (out / "run.yaml").write_text(dump.to_yaml(run, full=True))
        words = ["--spec", str(out / "run.yaml"), "--env", "http://127.0.0.1:9", "--out", str(out)]
        status = launch.run([*words, *more], run.spec, out / "words.json", DRIVER)
        return status, json.loads((out / "words.json").read_text())["reason"]

    return train


def _settings(vllm: Vllm) -> dict[str, Any]:
    server = {"engine": "vllm", "vllm": {"endpoint": vllm.url}}
    return {"steps": STEPS, "checkpointEvery": 1, "keepCheckpoints": 9, **server}


def _alone(run: WatercolourRun, out: Path, stage: Stage, *, resume: bool = False) -> None:
    session.run(run, out, stage, Progress("test", STEPS), lambda: False, resume=resume)


def _rows(out: Path) -> list[dict[str, str]]:
    with (out / "metrics.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def _base(run: WatercolourRun) -> torch.nn.Module:
    return AutoModelForCausalLM.from_pretrained(run.spec.model.id)


def _adapter(out: Path, step: int) -> dict[str, torch.Tensor]:
    folder = out / checkpoint.FOLDER / f"{checkpoint.PREFIX}{step}"
    return load_file(folder / policy.ADAPTER_FILE)


def _moments(out: Path, step: int) -> list[torch.Tensor]:
    folder = out / checkpoint.FOLDER / f"{checkpoint.PREFIX}{step}"
    state = torch.load(folder / "optimizer.pt", weights_only=True)["state"]
    return [state[number]["exp_avg"] for number in sorted(state)]


def _same(ours: Path, theirs: Path, step: int) -> None:
    mine, other = _adapter(ours, step), _adapter(theirs, step)
    assert mine.keys() == other.keys()
    for name, value in other.items():
        torch.testing.assert_close(mine[name], value, atol=1e-5, rtol=0.0)


def _begun(run: Path, out: Path, step: int) -> Path:
    """A copy of a run as it was after so many steps."""
    shutil.copytree(run, out)
    for found in (out / checkpoint.FOLDER).iterdir():
        if checkpoint.step_of(found) > step:
            shutil.rmtree(found)
    return out


def test_the_base_in_two_parts_trains_the_adapter_of_the_whole_one_and_either_goes_on(
    wanted: Make, vllm: Vllm, tmp_path: Path, parted: Callable[..., tuple[int, str]]
) -> None:
    whole, both = tmp_path / "whole", tmp_path / "both"
    # A group without a value is drawn once more, by the process alone whose rows these are.
    away = [(1, 0, index) for index in range(4)]
    stage = Stage(away=lambda *place: place in away)
    one = wanted(**_settings(vllm))
    _alone(one, whole, stage)
    # SIGTERM comes to the second alone, in the middle of the third step.
    assert parted(both, away=away, terminated=[1, 2]) == (143, "Interrupted")
    names = sorted(path.name for path in (both / checkpoint.FOLDER).iterdir())
    assert names == ["checkpoint-1", "checkpoint-2"]
    # The base was in parts, and no part in both.
    held = [json.loads((both / f"held-{rank}.json").read_text()) for rank in range(2)]
    all_of_it = sum(weight.numel() for weight in _base(one).parameters())
    assert sum(held) == all_of_it
    assert max(held) < 0.6 * all_of_it
    _same(both, whole, 2)
    for mine, other in zip(_moments(both, 2), _moments(whole, 2), strict=True):
        torch.testing.assert_close(mine, other, atol=1e-6, rtol=2e-3)

    # What two saved, two go on from, and so does one.
    by_one = _begun(both, tmp_path / "by-one", 2)
    assert parted(both, "--resume", away=away) == (0, "Succeeded")
    _same(both, whole, STEPS)
    _alone(one, by_one, Stage(), resume=True)
    _same(by_one, whole, STEPS)
    # And two from what one saved.
    by_two = _begun(whole, tmp_path / "by-two", 2)
    assert parted(by_two, "--resume") == (0, "Succeeded")
    _same(by_two, whole, STEPS)

    for mine, other in zip(_rows(both), _rows(whole), strict=True):
        for name in ("reward", "tokens", "attempts", "unscored"):
            assert mine[name] == other[name], name
        for name in ("loss", "grad_norm"):
            assert float(mine[name]) == pytest.approx(float(other[name]), rel=2e-3, abs=1e-6), name
        assert float(mine["mismatch_max"]) < 1e-3
