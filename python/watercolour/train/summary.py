"""summary.json: what a run came to, from its metrics and its rollouts."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median
from typing import Any

from watercolour.api.rollout import Vote
from watercolour.reward import alarms, bands, gain, votes
from watercolour.train import judgecheck, parquet
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
        "reward_intervals": intervals(rollouts),
        "judge": judging(rollouts),
        "judge_check": _selfcheck(folder),
        "alarms": [
            {**asdict(one.alarm), "first_step": one.first_step, "last_step": one.last_step}
            for one in alarms.history(rows)
        ],
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
    first, last = gain.fifths(sorted({line["step"] for line in rollouts}))
    ends = {"first_fifth": set(first), "last_fifth": set(last)}
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


def intervals(rollouts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Confidence intervals of the first and the last fifth and of the rise, adjusted and raw."""
    first, last = gain.fifths(sorted({line["step"] for line in rollouts}))
    found: dict[str, Any] = {"level": bands.LEVEL}
    for field in ("reward_adjusted", "reward"):
        before, after = (_groups(rollouts, field, steps) for steps in (first, last))
        sure = {
            "first_fifth": bands.of_mean(before),
            "last_fifth": bands.of_mean(after),
            "gain": bands.of_gain(before, after),
        }
        found[field] = {
            end: None if band is None else [band.low, band.high] for end, band in sure.items()
        }
    return found


def _groups(
    rollouts: Sequence[Mapping[str, Any]], field: str, steps: Sequence[int]
) -> list[list[float]]:
    found: dict[tuple[int, int], list[float]] = {}
    for line in rollouts:
        if line["step"] in steps:
            members = found.setdefault((line["step"], line["group"]), [])
            members += [] if line[field] is None else [line[field]]
    return list(found.values())


def judging(rollouts: Sequence[Mapping[str, Any]]) -> dict[str, float | None]:
    """Tie rate, place bias and dropped comparisons of the whole run."""
    cast = [Vote.model_validate(vote) for line in rollouts for vote in line["votes"] or ()]
    return {
        "tie_rate": votes.tie_rate(cast),
        "place_bias": votes.place_bias(cast),
        "dropped": votes.dropped(cast),
    }


def _selfcheck(folder: Path) -> Any:
    path = folder / judgecheck.FILE
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


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
    return {**said, **dict(_installed())}


def _installed() -> Iterator[tuple[str, str]]:
    for name in LIBRARIES:
        # On a path of sources a library works without saying its version: no reason to lose a run.
        with suppress(PackageNotFoundError):
            yield name, version(name)
