"""What a tracker hears of a run: the real trackio, in files and at a server of its own."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from watercolour.api import load
from watercolour.train import companions, track
from watercolour.train.artifacts import table
from watercolour.train.metrics import COLUMNS, Cell

DRIVER = Path(__file__).parent / "tracker_driver.py"
Told = list[tuple[int, dict[str, Any]]]


def write(out: Path, *rewards: float | None) -> None:
    """A metrics.csv of so many steps."""
    lines: list[dict[str, Cell]] = [
        {**dict.fromkeys(COLUMNS), "step": step, "reward": reward, "tokens": 7}
        for step, reward in enumerate(rewards)
    ]
    out.mkdir(exist_ok=True)
    (out / "metrics.csv").write_text(table(lines))


def spec(folder: Path, **trackio: Any) -> Path:
    run = {"metadata": {"name": "poppies"}, "spec": {"tracking": {"trackio": trackio}}}
    path = folder / "run.yaml"
    path.write_text(json.dumps(run))
    return path


def tell(folder: Path, out: Path, *more: str, **env: str) -> str:
    """Run the process to its end, as after a run; what it said."""
    words = ["--spec", str(folder / "run.yaml"), "--out", str(out), *more]
    found = subprocess.run(
        [sys.executable, "-m", companions.TRACKER.module, *words],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env={**os.environ, **env},
        timeout=300,
    )
    assert (found.returncode, found.stdout) == (0, "")
    return found.stderr


def told(folder: Path) -> dict[str, Told]:
    """What a tracker's folder holds: by run, the figures of each step in their order."""
    found: dict[str, Told] = {}
    with closing(sqlite3.connect(folder / "watercolour.db")) as base:
        query = "SELECT run_id, step, metrics FROM metrics ORDER BY id"
        for run, step, figures in base.execute(query):
            found.setdefault(run, []).append((step, json.loads(figures)))
    return found


@contextmanager
def server(folder: Path) -> Generator[str]:
    env = {**os.environ, "TRACKIO_DIR": str(folder), "TRACKIO_WRITE_TOKEN": "sesame"}
    process = subprocess.Popen(
        [sys.executable, str(DRIVER)],
        env={**env, "HF_HUB_OFFLINE": "1"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        address = ""
        while not address.startswith("http"):
            address = process.stdout.readline().strip()
            assert process.poll() is None
        yield address
        # It writes what it was told within two seconds.
        until = time.monotonic() + 60
        while not (folder / "watercolour.db").exists() and time.monotonic() < until:
            time.sleep(0.1)
        time.sleep(3)
    finally:
        process.stdin.close()
        process.kill()
        process.wait()


def test_a_value_that_does_not_exist_is_not_told(tmp_path: Path) -> None:
    write(tmp_path, 0.5, None)
    assert track.rows(tmp_path / "metrics.csv") == [
        {"step": 0, "reward": 0.5, "tokens": 7},
        {"step": 1, "tokens": 7},
    ]
    assert track.rows(tmp_path / "none.csv") == []


def test_a_run_without_a_tracker_starts_no_process(
    tmp_path: Path,
) -> None:
    assert companions.wanted(load.from_dict({"metadata": {"name": "plain"}}).spec) == []
    assert companions.wanted(load.run(spec(tmp_path)).spec) == [companions.TRACKER]


def test_without_a_server_the_figures_lie_in_the_runs_folder(tmp_path: Path) -> None:
    path, out = spec(tmp_path), tmp_path / "out"
    write(out, 0.25)
    with companions.beside(load.run(path).spec, path, out, anew=True):
        write(out, 0.25, None)
    first = {"reward": 0.25, "tokens": 7}
    assert list(told(out / "trackio").values()) == [[(0, first), (1, {"tokens": 7})]]
    # A further attempt repeats a step and adds one: one curve, no step twice.
    write(out, 0.25, None, 0.75)
    # What is set for other runs sends nothing of this one elsewhere.
    assert tell(tmp_path, out, TRACKIO_SPACE_ID="owner/space") == ""
    (curve,) = told(out / "trackio").values()
    assert [step for step, _ in curve] == [0, 1, 2]
    assert curve[2][1] == {"reward": 0.75, "tokens": 7}
    # A run that begins anew is another curve. Without a token no server is asked.
    write(out, 0.1)
    spec(tmp_path, endpoint="http://127.0.0.1:9")
    said = tell(tmp_path, out, "--anew", TRACKIO_WRITE_TOKEN="")
    assert "no write token" in said
    assert "spec.tracking.trackio.secretRef" in said
    assert [[step for step, _ in one] for one in told(out / "trackio").values()] == [[0, 1, 2], [0]]


def test_a_server_that_is_away_is_said_once_and_told_everything_later(tmp_path: Path) -> None:
    out, there = tmp_path / "out", tmp_path / "there"
    write(out, 0.25, None)
    spec(tmp_path, endpoint="http://127.0.0.1:9")
    said = tell(tmp_path, out, TRACKIO_WRITE_TOKEN="sesame").splitlines()
    assert [json.loads(line)["level"] for line in said] == ["warning"]
    assert "http://127.0.0.1:9 does not answer" in said[0]
    with server(there) as address:
        spec(tmp_path, endpoint=address)
        assert tell(tmp_path, out, TRACKIO_WRITE_TOKEN="sesame") == ""
        # A wrong token is said, and stops nothing.
        write(out, 0.25, None, 0.75)
        said = tell(tmp_path, out, TRACKIO_WRITE_TOKEN="mistaken").splitlines()
        assert [json.loads(line)["level"] for line in said] == ["warning"]
        assert "mistaken" not in said[0]
    assert list(told(there).values()) == [
        [(0, {"reward": 0.25, "tokens": 7}), (1, {"tokens": 7})],
    ]
    # Beside a server nothing is kept here.
    assert not (out / "trackio").exists()


def test_a_tracker_that_breaks_is_no_fault_of_the_run(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "metrics.csv").write_text("step,reward\n0,not a number\n")
    spec(tmp_path)
    assert "no more figures go to trackio: ValueError" in tell(tmp_path, out)
