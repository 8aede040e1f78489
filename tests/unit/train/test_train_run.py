from __future__ import annotations

import json
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from watercolour.api.status import Progress as Shape
from watercolour.train import progress, run
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
        shown.step_done(row(1, step_time=2, unscored=0.0, reward=0.4, reward_best=0.5), 8)
        shown.enter("painting")
        reply = json.loads(get(f"{url}/progress"))
        exposed = get(f"{url}/metrics")
    shape = Shape.model_validate(reply)
    assert (shape.step, shape.steps, shape.eta_seconds) == (2, 10, 24)
    assert (shape.reward.mean, shape.reward.best, shape.unscored_rate) == (0.4, 0.6, 0.25)
    assert (reply["phase"], reply["lastStepSeconds"]) == ("painting", 2)
    assert 'watercolour_trainer_reward_mean{run="test"} 0.4' in exposed
    assert "watercolour_trainer_kl{" not in exposed


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
    process = start(tmp_path)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 1
    assert "RunExists" in said
    assert "--resume" in said


def test_sigterm_before_the_first_step_ends_with_143(tmp_path: Path) -> None:
    announce = tmp_path / "announce"
    process = start(tmp_path, "--announce", str(announce))
    while not announce.exists():
        assert process.poll() is None
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=240)
    assert process.returncode == 143


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_the_exit_code_tells_the_signal(number: signal.Signals, code: int) -> None:
    stopping = run.Stopping()
    assert not stopping()
    stopping.handle(number, None)
    assert stopping()
    assert stopping.exit_code == code
