"""What the platform costs a training: the tiny run's steps in a cluster and on a laptop.

examples/cluster-tiny.yaml is trained by turns on a whole Kubernetes node of this machine (or the
cluster of KUBECONFIG) and by `watercolour run`, in processes of this machine; the same seed, so the
same work. Compared are the seconds of a step, the first left out. Exits with 1 above 1.3.

    .venv/bin/python bench/cluster_overhead.py [--rounds 2] [--steps 20]
"""

from __future__ import annotations

import argparse
import csv
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[1]
# The node is that of the tests.
sys.path.insert(0, str(ROOT))

from on_node import say
from tests.cluster.node import cluster, host, images, run
from tests.cluster.node.cluster import Cluster

NAMESPACE = "overhead"
MOST = 1.3
PARTS = ("seconds_generate", "seconds_wait", "seconds_update")


def rows(folder: Path) -> list[dict[str, str]]:
    """What a run wrote of its steps, without the first, which loads and compiles."""
    with (folder / "metrics.csv").open(newline="") as file:
        return list(csv.DictReader(file))[1:]


def in_cluster(found: Cluster, file: Path, into: Path) -> list[dict[str, str]]:
    """Train in the cluster; what is there of the run goes with its namespace."""
    run.namespace(found, NAMESPACE)
    try:
        name = run.name(file)
        run.start(found, file, NAMESPACE)
        run.follow(found, NAMESPACE, name, say)
        return rows(run.fetch(found, NAMESPACE, name, into))
    finally:
        run.kubectl(found, "delete", "namespace", NAMESPACE, "--timeout=600s")


def on_laptop(file: Path, name: str) -> list[dict[str, str]]:
    """Train without a cluster; the run's folder comes beside the file."""
    words = [sys.executable, "-m", "watercolour.cli", "run", str(file), "--name", name, "--no-open"]
    done = subprocess.run(words, cwd=file.parent, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"watercolour run ended with {done.returncode}: {done.stderr[-2000:]}")
    return rows(file.parent / "runs" / name)


def seconds(found: list[dict[str, str]], column: str = "step_time") -> float:
    """The median step's."""
    return round(median(float(row[column]) for row in found), 3)


def main() -> int:
    """Measure, and print a table and a line of JSON."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--steps", type=int, default=20)
    options = parser.parse_args()
    spec: dict[str, Any] = yaml.safe_load((ROOT / "examples" / "cluster-tiny.yaml").read_text())
    spec["spec"]["trainer"]["steps"] = options.steps
    ours, theirs = list[dict[str, str]](), list[dict[str, str]]()
    was_up = cluster.there()
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch) / "tiny.yaml"
        file.write_text(yaml.safe_dump(spec))
        try:
            found = cluster.up(say)
            if found.place:
                images.bring(found.place, say)
            run.install(found, say)
            for number in range(options.rounds):
                theirs += on_laptop(file, f"laptop-{number}")
                say(f"on the laptop: {seconds(theirs)} s a step")
                ours += in_cluster(found, file, Path(scratch) / f"cluster-{number}")
                say(f"in the cluster: {seconds(ours)} s a step")
        finally:
            if not was_up:
                host.end()
    same = [row["reward"] for row in ours] == [row["reward"] for row in theirs]
    print(f"{'':10}" + " ".join(f"{name:>17}" for name in ("step_time", *PARTS)))
    for name, side in (("cluster", ours), ("laptop", theirs)):
        columns = (seconds(side, column) for column in ("step_time", *PARTS))
        print(f"{name:10}" + " ".join(f"{value:17.3f}" for value in columns))
    ratio = round(seconds(ours) / seconds(theirs), 2)
    print(
        json.dumps(
            {
                "bench": "cluster_overhead",
                "ours": seconds(ours),
                "theirs": seconds(theirs),
                "ratio": ratio,
                "unit": "s a step",
                "n": len(ours),
                "conditions": {"rounds": options.rounds, "same_rewards": same},
            }
        )
    )
    return int(ratio > MOST)


if __name__ == "__main__":
    sys.exit(main())
