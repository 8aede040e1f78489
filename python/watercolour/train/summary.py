"""summary.json: what a run came to, from its metrics and its rollouts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any

from watercolour.train import parquet
from watercolour.train.artifacts import rollout_files
from watercolour.train.metrics import Cell, fifths, mean

LIBRARIES = ("watercolour", "torch", "transformers", "trl", "peft", "accelerate", "openenv")
#: Columns that the summary gives for the first and the last fifth of the steps.
FIFTHS = {
    "reward": "reward",
    "reward_adjusted": "reward_adjusted",
    "reward_adjusted_admitted": "reward_adjusted_admitted",
    "gate_pass": "gate_pass",
    "pigment_share": "pigment_share",
}


def summarise(
    folder: Path, rows: Sequence[Mapping[str, Cell]], own: Mapping[str, Any]
) -> dict[str, Any]:
    """The summary of a run's folder.

    Args:
        folder: the run's folder, whose rollout files are read.
        rows: metrics.csv.
        own: what only the trainer knows, such as seconds and collapsed; wins over the rest.
    """
    rollouts = [line for file in rollout_files(folder) for line in parquet.read(file)]
    times = [line["timings"]["render"] for line in rollouts if "render" in line["timings"]]
    steps = [row["step_time"] for row in rows if row["step_time"] is not None]
    summary: dict[str, Any] = {
        "steps": len(rows),
        "step_seconds_median": median(steps) if steps else None,
        **_fifths(rows),
        "pigment_share_by_subject": by_subject(rollouts, "pigment_share"),
        "unscored_rate": _share(line["reward"] is None for line in rollouts),
        "rollouts": len(rollouts),
        "phantom_zeros": sum(line["reward"] == 0 and not line["violations"] for line in rollouts),
        "skipped_steps": sum(bool(row["skipped"]) for row in rows),
        "renders": len(times),
        "render_seconds_median": median(times) if times else None,
        "peak_memory_mib": None,
        "best_rollout": _best(rollouts),
        "versions": _versions(rollouts),
    }
    return {**summary, **own}


def _fifths(rows: Sequence[Mapping[str, Cell]]) -> dict[str, float | None]:
    found: dict[str, float | None] = {}
    for name, column in FIFTHS.items():
        found[f"{name}_first_fifth"], found[f"{name}_last_fifth"] = fifths(rows, column)
    return found


def by_subject(
    rollouts: Sequence[Mapping[str, Any]], field: str
) -> dict[str, dict[str, float | None]]:
    """Means of a field over the admitted rollouts of the first and the last fifth, by subject."""
    steps = sorted({line["step"] for line in rollouts})
    size = max(1, len(steps) // 5)
    ends = {"first_fifth": set(steps[:size]), "last_fifth": set(steps[-size:])}
    return {
        subject: {
            end: mean(
                line.get(field)
                for line in rollouts
                if line["subject"] == subject and line["gate_passed"] and line["step"] in within
            )
            for end, within in ends.items()
        }
        for subject in sorted({line["subject"] for line in rollouts})
    }


def _share(flags: Iterable[bool]) -> float | None:
    known = list(flags)
    return sum(known) / len(known) if known else None


def _best(rollouts: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """The rollout of the greatest reward, adjusted for its draw."""
    scored = [line for line in rollouts if line["reward_adjusted"] is not None]
    if not scored:
        return None
    best = max(scored, key=lambda line: line["reward_adjusted"])
    names = ("step", "group", "index", "subject", "reward", "reward_adjusted", "painting_file")
    return {name: best[name] for name in names}


def _versions(rollouts: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Libraries of this process, and what the rooms of the corridor said of themselves."""
    said: dict[str, str] = {}
    for line in rollouts:
        said |= line["versions"]
    return {**said, **{name: version(name) for name in LIBRARIES}}
