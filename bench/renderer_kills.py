"""A run whose renderer is killed ten times, against the same run left alone.

The renderer's service is ended by SIGKILL while it paints. Ours is the share of rollouts with the
very reward of the undisturbed run; theirs is what would be left of them if a lost render counted
as 0, as it once did in the published experiment: the rollouts that needed no second attempt.
Exits with 1 if a rollout got a reward of 0 that no violation explains.

    python bench/renderer_kills.py [--kills 10] [--steps 16]
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import httpx

ROOT = Path(__file__).resolve().parents[1]
# Processes are found as in the browser tests' storm.
sys.path.insert(0, str(ROOT))

from tests.browser.storm import find

from watercolour.api.rollout import Rollout
from watercolour.gallery import record

#: Seconds between two looks at the renderer's load.
LOOK_SECONDS = 0.02

Key = tuple[int, int, int]


def specification(name: str, folder: Path, steps: int) -> Path:
    """The file of a run of the tiny policy; JSON is YAML."""
    path = folder / f"{name}.yaml"
    path.write_text(
        json.dumps(
            {
                "apiVersion": "watercolour.dev/v1alpha1",
                "kind": "WatercolourRun",
                "metadata": {"name": name},
                "spec": {
                    "trainer": {"steps": steps, "guards": {"probes": 0}},
                    "artifacts": {"path": str(folder / "runs")},
                },
            }
        )
    )
    return path


def painting(supervisor: int) -> int | None:
    """The process id of the renderer's service if it has a sketch in a slot, else None."""
    renderer = find(supervisor, b"watercolour.render.service")
    env = find(supervisor, b"watercolour.env.server")
    if renderer is None or env is None:
        return None
    url = env[1][env[1].index(b"--renderer") + 1].decode()
    try:
        load = httpx.get(f"{url}/v1/load", timeout=2).json()
    except (ValueError, httpx.HTTPError):
        return None
    return renderer[0] if load["busy"] > 0 else None


def run(spec: Path, folder: Path, kills: int) -> tuple[int, dict[Key, Rollout]]:
    """Run it, killing the renderer so many times; the kills made and the rollouts by place."""
    name, done, last = spec.stem, 0, None
    command = [sys.executable, "-m", "watercolour.cli", "run", str(spec), "--json", "--no-open"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as running:
        metrics = folder / "runs" / name / "metrics.csv"
        while running.poll() is None:
            time.sleep(LOOK_SECONDS)
            if done >= kills or not metrics.exists():
                continue
            pid = painting(running.pid)
            if pid is not None and pid != last:
                os.kill(pid, signal.SIGKILL)
                done, last = done + 1, pid
    if running.returncode:
        raise SystemExit(f"the run {name} ended with {running.returncode}")
    entries = record.read(folder / "runs" / name).entries
    rollouts = [entry.rollout for entry in entries]
    return done, {(one.step, one.group, one.index): one for one in rollouts}


def compare(calm: dict[Key, Rollout], killed: dict[Key, Rollout]) -> dict[str, Any]:
    """Counts over the rollouts of both runs."""
    pairs = [(calm[key], killed[key]) for key in calm]
    return {
        "rollouts": len(pairs),
        "identical": sum(
            (a.completion, a.reward, a.votes) == (b.completion, b.reward, b.votes) for a, b in pairs
        ),
        "retried": sum(b.attempts > 1 for _, b in pairs),
        "unscored": sum(b.reward is None for _, b in pairs),
        "phantom_zeros": sum(b.reward == 0 and not b.violations for _, b in pairs),
    }


def main() -> int:
    """Run twice, compare, print the table and the line of JSON."""
    parser = argparse.ArgumentParser(description="Kill a run's renderer again and again.")
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--steps", type=int, default=16)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="watercolour-kills-") as place:
        folder = Path(place)
        _, calm = run(specification("calm", folder, options.steps), folder, 0)
        made, killed = run(specification("killed", folder, options.steps), folder, options.kills)
    counts = compare(calm, killed)
    for name, value in {"kills": made, **counts}.items():
        print(f"{name:>14}  {value}")
    total = counts["rollouts"]
    ours = counts["identical"] / total
    theirs = (total - counts["retried"] - counts["unscored"]) / total
    print(
        json.dumps(
            {
                "bench": "renderer_kills",
                "ours": round(ours, 4),
                "theirs": round(theirs, 4),
                "ratio": round(ours / theirs, 4),
                "unit": "share of rollouts with their true reward",
                "n": total,
                "conditions": {
                    "kills": made,
                    **counts,
                    "cores": os.cpu_count(),
                    "python": platform.python_version(),
                },
            }
        )
    )
    return 1 if counts["phantom_zeros"] or made < options.kills else 0


if __name__ == "__main__":
    sys.exit(main())
