"""A training with the real parts, end to end through the command line: minutes, not seconds."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from watercolour.gallery import record
from watercolour.local.guard import descendants
from watercolour.train import parquet

STEPS = 3
COMMAND = (sys.executable, "-m", "watercolour.cli")


def command(spec: Path, *words: str) -> list[str]:
    return [*COMMAND, "run", str(spec), "--json", *words]


def metrics(folder: Path) -> list[dict[str, str]]:
    with (folder / "metrics.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def spec(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("three")
    path = folder / "run.yaml"
    whole = {
        "apiVersion": "watercolour.dev/v1alpha1",
        "kind": "WatercolourRun",
        "metadata": {"name": "three"},
        "spec": {
            "trainer": {
                "steps": STEPS,
                "rolloutsPerStep": 8,
                "groupSize": 4,
                "guards": {"probes": 4},
            },
            "artifacts": {"path": str(folder / "runs")},
        },
    }
    path.write_text(yaml.safe_dump(whole))
    return path


@pytest.fixture(scope="module")
def summary(spec: Path) -> dict[str, Any]:
    """Of a run whose renderer is killed once, as soon as there is a first step."""
    pipe = subprocess.PIPE
    with subprocess.Popen(command(spec), stdout=pipe, stderr=pipe, text=True) as running:
        try:
            assert running.stderr is not None
            said = list[str]()
            for line in iter(running.stderr.readline, ""):
                said.append(line)
                if f"step 1/{STEPS}" in line:
                    break
            else:
                pytest.fail("no first step:\n" + "".join(said))
            kill_renderer(running.pid)
            out, err = running.communicate(timeout=900)
        finally:
            # Its guards take everything below it along.
            running.kill()
    assert running.returncode == 0, err
    return json.loads(out)


def kill_renderer(supervisor: int) -> None:
    """SIGKILL the renderer's service, not its guard."""
    for pid in descendants(supervisor):
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        if b"watercolour.render.service" in words and not any(b"guard.py" in w for w in words):
            os.kill(pid, signal.SIGKILL)


def test_every_step_is_in_the_artifacts(summary: dict[str, Any]) -> None:
    folder = Path(summary["folder"])
    assert summary["steps"] == STEPS
    assert [int(row["step"]) for row in metrics(folder)] == list(range(STEPS))
    rows = [row for file in (folder / "rollouts").glob("*.parquet") for row in parquet.read(file)]
    assert len(rows) == STEPS * 8
    for row in rows:
        assert row["sketch_file"] is None or (folder / row["sketch_file"]).is_file()
        assert row["painting_file"] is None or (folder / row["painting_file"]).is_file()
    assert any(row["painting_file"] for row in rows), "nothing was painted"
    assert (folder / "run.yaml").is_file()


def test_a_killed_renderer_is_restarted_and_leaves_no_phantom_zero(summary: dict[str, Any]) -> None:
    assert summary["restarts"] == {"renderer": 1}
    assert summary["phantom_zeros"] == 0
    for entry in record.read(Path(summary["folder"])).entries:
        rollout = entry.rollout
        if rollout.unscored_reason is not None:
            assert rollout.reward is None
        elif rollout.reward == 0:
            assert rollout.violations


def test_members_of_a_group_met_the_same_references(summary: dict[str, Any]) -> None:
    draws: dict[tuple[int, int], set[tuple[str, ...]]] = {}
    for entry in record.read(Path(summary["folder"])).entries:
        if entry.rollout.references:
            key = (entry.rollout.step, entry.rollout.group)
            draws.setdefault(key, set()).add(entry.rollout.references)
    assert draws
    assert all(len(of_group) == 1 for of_group in draws.values())


def test_the_summary_holds_what_tools_rely_on(summary: dict[str, Any]) -> None:
    wanted = (
        "steps seconds step_seconds_median reward_first_fifth reward_last_fifth "
        "reward_adjusted_first_fifth reward_adjusted_last_fifth gate_pass_first_fifth "
        "gate_pass_last_fifth unscored_rate phantom_zeros renders render_seconds_median "
        "peak_memory_mib collapsed resumed best_rollout versions"
    )
    assert not set(wanted.split()) - set(summary)
    assert 200 < summary["peak_memory_mib"] < 6 * 1024
    assert {"p5", "p5.brush", "torch"} <= set(summary["versions"])


def test_the_report_is_self_contained(summary: dict[str, Any]) -> None:
    text = Path(summary["report"]).read_text(encoding="utf-8")
    assert "data:image/webp;base64," in text
    assert "https://" not in text
    assert text.count('<article class="step"') == STEPS


def test_a_resume_goes_on_and_counts_no_step_twice(spec: Path, summary: dict[str, Any]) -> None:
    folder = Path(summary["folder"])
    before = metrics(folder)
    ran = subprocess.run(
        command(spec, "--resume", "--steps", str(STEPS + 1)),
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    after = metrics(folder)
    assert [int(row["step"]) for row in after] == list(range(STEPS + 1))
    assert after[:STEPS] == before
    assert json.loads(ran.stdout)["resumed"] is True


def test_the_run_is_not_started_a_second_time(spec: Path, summary: dict[str, Any]) -> None:
    ran = subprocess.run(command(spec), capture_output=True, text=True, check=False)
    assert summary["steps"] == STEPS
    assert ran.returncode == 1
    assert json.loads(ran.stdout)["error"]["reason"] == "RunExists"
