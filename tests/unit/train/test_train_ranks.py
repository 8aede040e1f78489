"""Two processes train as one does: the same rollouts, the same adapter, one set of files."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from tests.unit.train.conftest import SKETCHES, Stage

from watercolour.api import dump
from watercolour.api.spec import Sft, WatercolourRun
from watercolour.train import launch, packing, session
from watercolour.train.progress import Progress
from watercolour.train.ranks import Ranks, joined

Make = Callable[..., WatercolourRun]
ROOT = Path(__file__).parents[3]
DRIVER = (sys.executable, "-m", "tests.unit.train.ranks_driver")
#: A wholly unscored group, a rollout without a value beside others, and two groups over two ranks.
AWAY = [(1, 0, index) for index in range(4)] + [(0, 1, 2)]


def several(
    run: WatercolourRun, out: Path, monkeypatch: pytest.MonkeyPatch, *more: str, **asked: Any
) -> int:
    """Train by the launcher; the exit status."""
    monkeypatch.setenv("ASKED", json.dumps(asked))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]))
    out.mkdir(parents=True, exist_ok=True)
    spec = out / "run.yaml"
    spec.write_text(dump.to_yaml(run, full=True))
    words = ["--spec", str(spec), "--env", "http://127.0.0.1:9", "--out", str(out), *more]
    return launch.run(words, run.spec, out / "words.json", DRIVER)


def rows(out: Path) -> list[dict[str, str]]:
    with (out / "metrics.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def seen(out: Path) -> list[list[list[Any]]]:
    return [json.loads((out / f"seen-{rank}.json").read_text()) for rank in range(2)]


def test_two_processes_one_told_to_go_meanwhile_train_what_one_trains(
    wanted: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings: dict[str, Any] = {"steps": 3, "checkpointEvery": 1, "keepCheckpoints": 9}
    alone, both = tmp_path / "alone", tmp_path / "both"
    stage = Stage(away=lambda *place: place in AWAY)
    one = wanted(**settings)
    session.run(one, alone, stage, Progress("test", 3), lambda: False, resume=False)
    two = wanted(**settings, processes=2)
    # SIGTERM comes to the second alone, in the middle of the third step.
    assert several(two, both, monkeypatch, away=AWAY, terminated=[1, 2]) == 143
    assert json.loads((both / "words.json").read_text())["reason"] == "Interrupted"
    assert sorted(path.name for path in (both / "checkpoints").iterdir())[-1] == "checkpoint-2"
    before = seen(both)
    assert several(two, both, monkeypatch, "--resume", away=AWAY) == 0
    for theirs, ours in zip(rows(alone), rows(both), strict=True):
        for name in ("reward", "reward_std", "unscored", "tokens", "attempts", "distinct"):
            assert ours[name] == theirs[name], name
        for name in ("loss", "grad_norm", "entropy", "mismatch_mean"):
            assert float(ours[name]) == pytest.approx(float(theirs[name]), rel=2e-3, abs=1e-6), name
    # Each rollout was asked for once, and by the process whose row it is.
    asked = [[*(one for one in before[rank] if one[0] < 2), *seen(both)[rank]] for rank in range(2)]
    straight = [[r.step, r.group, r.index, r.reward] for r in stage.seen]
    assert sorted(asked[0] + asked[1], key=str) == sorted(straight, key=str)
    assert [{group for _, group, _, _ in some} for some in asked] == [{0}, {1}]
    for step in (1, 3):
        name = f"checkpoints/checkpoint-{step}/adapter_model.safetensors"
        ours, theirs = load_file(both / name), load_file(alone / name)
        for key, value in theirs.items():
            torch.testing.assert_close(ours[key], value, atol=5e-5, rtol=1e-3)
    files = {path.name for path in (both / "checkpoints" / "checkpoint-3").iterdir()}
    assert {"rng_state_0.pth", "rng_state_1.pth", "manifest.json"} <= files
    assert json.loads((both / "words.json").read_text())["reason"] == "Succeeded"
    assert json.loads((both / "summary.json").read_text())["rollouts"] == 24


#: Stand in for the trainer: the second fails, and the first waits for it or falls over it.
ENDS = """
import json, os, signal, sys, time
words = sys.argv[sys.argv.index("--termination-log") + 1]
if os.environ["RANK"] == "1":
    if "quietly" not in sys.argv:
        open(words, "w").write(json.dumps({"reason": "InvalidModel"}))
    sys.exit(7)
if "falls" in sys.argv:
    open(words, "w").write(json.dumps({"reason": "InternalError"}))
    sys.exit(1)
signal.pause()
"""


@pytest.mark.parametrize("how", [["waits"], ["falls"], ["waits", "quietly"], ["falls", "quietly"]])
def test_a_process_that_fails_takes_the_others_with_it_and_has_the_last_word(
    wanted: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: list[str]
) -> None:
    monkeypatch.setattr(launch, "OTHERS_SECONDS", 0.5)
    log = tmp_path / "words.json"
    assert launch.run(how, wanted(processes=2).spec, log, [sys.executable, "-c", ENDS]) == 7
    assert log.exists() == ("quietly" not in how)
    if log.exists():
        assert json.loads(log.read_text())["reason"] == "InvalidModel"


#: Crashes, as torch's threads sometimes do, while Python is taken apart.
CRASHES = """
import atexit, os
from watercolour.train import launch
atexit.register(os.abort)
launch.program(lambda: 5)
"""


@pytest.mark.parametrize(("rank", "status"), [({"RANK": "1"}, 5), ({}, -6)])
def test_one_of_several_ends_without_taking_python_apart(rank: dict[str, str], status: int) -> None:
    env = {**os.environ, **rank}
    done = subprocess.run([sys.executable, "-c", CRASHES], env=env, check=False)
    assert done.returncode == status


def test_every_place_has_one_owner_and_neighbours_stay_together() -> None:
    for total in (2, 7, 16):
        owners = [
            [rank for rank in range(3) if Ranks(rank, 3).owns(place, total)]
            for place in range(total)
        ]
        assert all(len(one) == 1 for one in owners)
        assert owners == sorted(owners)
    assert [Ranks(1, 2).owns(place, 8) for place in range(8)] == [False] * 4 + [True] * 4


def test_processes_get_equally_many_parts() -> None:
    assert packing.in_parts([[0, 1, 2, 3]], 3) == [[0], [1], [2, 3]]
    assert packing.in_parts([[0], [1]], 5) == [[0], [1]]
    assert packing.in_parts([[0, 1]], 1) == [[0, 1]]


def test_pods_count_their_processes_on(wanted: Make) -> None:
    spec = wanted(processes=2, replicas=2, rolloutsPerStep=8).spec
    ranked = launch.environment(spec, 1, {"JOB_COMPLETION_INDEX": "1", "MASTER_ADDR": "first.pod"})
    assert (ranked["RANK"], ranked["LOCAL_RANK"], ranked["WORLD_SIZE"]) == ("3", "1", "4")
    assert ranked["MASTER_ADDR"] == "first.pod"
    assert launch.needed(spec, {})
    assert not launch.needed(spec, ranked)
    assert not launch.needed(wanted().spec, {})


@pytest.mark.parametrize(
    ("named", "kept"), [(None, "0"), ("3,1", "3"), ("GPU-ab,GPU-cd", "GPU-ab")]
)
def test_one_process_sees_one_gpu(
    named: str | None, kept: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")  # so that it is put back
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    if named:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", named)
    monkeypatch.setattr("torch.cuda.device_count", lambda: 2)
    with joined({}) as alone:
        assert alone.alone
        assert os.environ["CUDA_VISIBLE_DEVICES"] == kept


def test_a_process_of_one_gpu_or_none_is_left_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")  # so that it is put back
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    monkeypatch.setattr("torch.cuda.device_count", lambda: 1)
    with joined({}):
        assert "CUDA_VISIBLE_DEVICES" not in os.environ


def test_two_processes_told_to_go_in_their_first_step_go_on_from_the_cold_start(
    wanted: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus, out = tmp_path / "corpus", tmp_path / "run"
    corpus.mkdir()
    lines = [json.dumps({"subject": "a red poppy", "sketch": one}) for one in SKETCHES[:4]]
    (corpus / "pairs.jsonl").write_text("\n".join(lines))
    run = wanted(steps=1, beta=0.1, processes=2, sampling={"maxCompletionTokens": 80})
    sft = Sft(corpus=str(corpus), batch_size=2, learning_rate=2e-2)
    run = run.model_copy(update={"spec": run.spec.model_copy(update={"sft": sft})})
    assert several(run, out, monkeypatch, terminated=[1, 0]) == 143
    assert json.loads((out / "words.json").read_text())["lastCheckpointStep"] == 0
    outcome = (out / "sft.json").stat().st_mtime_ns
    assert several(run, out, monkeypatch, "--resume") == 0
    assert (out / "sft.json").stat().st_mtime_ns == outcome
    assert float(rows(out)[0]["kl"]) == pytest.approx(0, abs=1e-6)
