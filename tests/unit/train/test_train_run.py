from __future__ import annotations

import json
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from watercolour.api import load
from watercolour.api.errors import InfrastructureError
from watercolour.api.reasons import Reason
from watercolour.api.status import Progress as Shape
from watercolour.train import last_words, progress, run
from watercolour.train.metrics import COLUMNS
from watercolour.train.progress import Progress


def row(step: int, **cells: float) -> dict[str, float | None]:
    return {**dict.fromkeys(COLUMNS), "step": step, **cells}


def get(url: str) -> str:
    with urllib.request.urlopen(url, timeout=10) as reply:
        return reply.read().decode()


def test_progress_serves_the_shape_of_the_status(tmp_path: Path) -> None:
    shown = Progress("test", 10)
    with progress.served(shown, "127.0.0.1", 0, tmp_path / "announce") as url:
        assert json.loads((tmp_path / "announce").read_text())["url"] == url
        assert json.loads(get(f"{url}/progress"))["etaSeconds"] is None
        shown.step_done(row(0, step_time=4, unscored=0.5, reward=0.3, reward_best=0.6), 8)
        more = {"mismatch_mean": 0.004, "seconds_generate": 1.5}
        shown.step_done(row(1, step_time=2, unscored=0.0, reward=0.4, reward_best=0.5, **more), 8)
        shown.enter("painting")
        reply = json.loads(get(f"{url}/progress"))
        exposed = get(f"{url}/metrics")
    shape = Shape.model_validate(reply)
    assert (shape.step, shape.steps, shape.eta_seconds) == (2, 10, 24)
    assert (shape.reward.mean, shape.reward.best, shape.unscored_rate) == (0.4, 0.6, 0.25)
    assert (reply["phase"], reply["lastStepSeconds"]) == ("painting", 2)
    assert 'watercolour_trainer_reward_mean{run="test"} 0.4' in exposed
    assert 'watercolour_trainer_mismatch_mean{run="test"} 0.004' in exposed
    assert 'watercolour_trainer_seconds_generate{run="test"} 1.5' in exposed
    assert "watercolour_trainer_kl{" not in exposed
    assert "watercolour_trainer_gpu_memory_bytes{" not in exposed


def test_every_figure_of_a_step_is_served() -> None:
    shown = Progress("test", 10)
    named = {column for column, _ in progress.OF_STEP.values()}
    assert named <= set(COLUMNS)
    shown.step_done({**dict.fromkeys(COLUMNS, 0.5), "step": 0}, 8)
    reply = shown.reply()
    assert {reply[name] for name in progress.OF_STEP} == {0.5}
    exposed = progress.exposition(reply)
    for name in ("gate_static_rate", "seconds_render", "gpu_memory_bytes", "mismatch_max"):
        assert f'watercolour_trainer_{name}{{run="test"}} 0.5' in exposed


def start(folder: Path, *more: str) -> subprocess.Popen[str]:
    spec = folder / "run.yaml"
    spec.write_text(
        "apiVersion: watercolour.dev/v1alpha1\nkind: WatercolourRun\nmetadata: {name: test}\n"
    )
    command = [sys.executable, "-m", "watercolour.train.run", "--spec", str(spec)]
    command += ["--env", "http://127.0.0.1:9", "--out", str(folder / "out"), *more]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True)


def test_a_run_is_never_written_over(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "metrics.csv").touch()
    log = tmp_path / "termination-log"
    process = start(tmp_path, "--termination-log", str(log))
    _, said = process.communicate(timeout=120)
    assert process.returncode == 1
    assert "RunExists" in said
    assert "--resume" in said
    words = json.loads(log.read_text())
    assert (words["reason"], words["step"]) == ("RunExists", 0)
    assert words["steps"] > 0
    assert "holds a run already" in words["message"]


def test_a_run_that_begins_anew_forgets_the_checkpoints_of_the_attempt_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec, out = tmp_path / "run.yaml", tmp_path / "out"
    spec.write_text(
        "apiVersion: watercolour.dev/v1alpha1\nkind: WatercolourRun\nmetadata: {name: test}\n"
    )
    (out / "checkpoints" / "checkpoint-5").mkdir(parents=True)
    (out / "metrics.csv").touch()
    began: list[set[Path]] = []
    monkeypatch.setattr(run, "train", lambda *_: began.append(set(out.iterdir())))
    words = ["--spec", str(spec), "--env", "http://127.0.0.1:9", "--out", str(out), "--anew"]
    args = run._parser().parse_args(words)  # pyright: ignore[reportPrivateUsage]
    run.attempt(load.run(spec), args, Progress("", 0), run.Stopping())
    assert began == [{out / "metrics.csv", out / "run.yaml"}]


def test_the_folder_holds_the_specification_that_came_from_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a cluster the trainer reads it from a ConfigMap, and the claim is all that is left."""
    mounted, out = tmp_path / "config" / "run.yaml", tmp_path / "out"
    mounted.parent.mkdir()
    mounted.write_text(
        "apiVersion: watercolour.dev/v1alpha1\nkind: WatercolourRun\nmetadata: {name: test}\n"
    )
    monkeypatch.setattr(run, "train", lambda *_: None)
    words = ["--spec", str(mounted), "--env", "http://127.0.0.1:9", "--out", str(out)]
    args = run._parser().parse_args(words)  # pyright: ignore[reportPrivateUsage]
    run.attempt(load.run(mounted), args, Progress("", 0), run.Stopping())
    assert load.run(out / "run.yaml") == load.run(mounted)


def test_sigterm_before_the_first_step_ends_with_143(tmp_path: Path) -> None:
    announce = tmp_path / "announce"
    log = tmp_path / "termination-log"
    process = start(tmp_path, "--announce", str(announce), "--termination-log", str(log))
    while not announce.exists():
        assert process.poll() is None
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=240)
    assert process.returncode == 143
    words = json.loads(log.read_text())
    assert (words["reason"], words["lastCheckpointStep"]) == ("Interrupted", None)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_the_exit_code_tells_the_signal(number: signal.Signals, code: int) -> None:
    stopping = run.Stopping()
    assert not stopping()
    stopping.handle(number, None)
    assert stopping()
    assert stopping.exit_code == code


def test_the_last_words_of_a_success_tell_what_it_came_to(tmp_path: Path) -> None:
    best = {"step": 7, "reward": 0.6, "painting": "paintings/00007/03.png"}
    (tmp_path / "summary.json").write_text(
        json.dumps({"reward_first_fifth": 0.31, "reward_last_fifth": 0.52, "best_rollout": best})
    )
    shown = Progress("test", 10, step=10)
    shown.saved(10, tmp_path / "checkpoints" / "checkpoint-10")
    last_words.write(tmp_path / "log", last_words.of_success(tmp_path, shown))
    words = json.loads((tmp_path / "log").read_text())
    assert words["reason"] == "Succeeded"
    assert words["message"] == "10 steps, reward 0.31 → 0.52."
    assert (words["step"], words["steps"], words["lastCheckpointStep"]) == (10, 10, 10)
    assert words["best_rollout"] == best


@pytest.mark.parametrize(
    ("error", "reason", "message"),
    [
        (InfrastructureError(Reason.DISK_FULL, "No space.", remedy="Make room."), "DiskFull", "No"),
        (ValueError("seven"), "InternalError", "ValueError: seven"),
    ],
)
def test_the_last_words_of_a_failure_name_its_reason(
    tmp_path: Path, error: Exception, reason: str, message: str
) -> None:
    last_words.write(tmp_path / "log", last_words.of_failure(error, Progress("test", 10, step=4)))
    words = json.loads((tmp_path / "log").read_text())
    assert (words["reason"], words["step"]) == (reason, 4)
    assert words["message"].startswith(message)


def test_last_words_fit_into_the_termination_log(tmp_path: Path) -> None:
    error = ValueError("€" * 100_000)
    last_words.write(tmp_path / "log", last_words.of_failure(error, Progress("test", 1)))
    assert len((tmp_path / "log").read_bytes()) <= last_words.LONGEST
    assert json.loads((tmp_path / "log").read_text())["reason"] == "InternalError"


def test_a_termination_log_that_cannot_be_written_changes_nothing(tmp_path: Path) -> None:
    last_words.write(tmp_path, last_words.of_failure(ValueError(), Progress("test", 1)))
