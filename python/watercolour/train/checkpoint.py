"""Checkpoints that are whole or not there, and all that an exact resume needs.

A checkpoint is what transformers saves (adapter, optimizer, scheduler, random states, trainer
state) and what is ours: the guard's memory and its best adapter. It is written aside and renamed;
a manifest with every file's size tells a whole one from a damaged one.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, overload

from safetensors.torch import load_file, save_file
from torch import Tensor

from watercolour import logs
from watercolour.api.errors import InputError
from watercolour.api.reasons import Reason
from watercolour.train.files import disk_full_named, write_text
from watercolour.train.guard import Health

log = logs.get(__name__)

FOLDER = "checkpoints"
PREFIX = "checkpoint-"
#: Before the name of one that cannot be gone on from.
DAMAGED = "damaged-"
#: Beside the folder and not in it: whatever stands there is whole.
PART = ".checkpoint-part"
MANIFEST = "manifest.json"
MEMORY = "watercolour.json"
BEST = "best_adapter.safetensors"


@dataclass(frozen=True)
class Memory:
    """What the trainer remembers between steps besides weights and optimizer."""

    health: Health = field(default_factory=Health)
    best: Mapping[str, Tensor] | None = None
    unscored_steps: int = 0
    """Wholly unscored steps in a row."""
    seconds: float = 0.0
    """Spent in training, over all attempts."""
    recipe: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """All that decided the rewards, flat; empty in checkpoints that do not say."""
    sft: Mapping[str, Any] | None = None
    """The cold start that the adapter has behind it; None for none."""


def write(run: Path, step: int, keep: int, fill: Callable[[Path], None], memory: Memory) -> Path:
    """Write the checkpoint of ``step`` done steps, then delete all whole ones but ``keep``.

    The one just written is always kept, beside it the newest of those before it.

    Args:
        run: the run's folder.
        step: optimizer steps done.
        keep: whole checkpoints to keep, 1 or more; damaged ones are neither counted nor deleted.
        fill: writes the trainer's part into the folder that it is given.
        memory: our part.

    Raises:
        InfrastructureError: the disk is full (DiskFull); what was there before is kept.
    """
    part = run / PART
    shutil.rmtree(part, ignore_errors=True)
    target = run / FOLDER / f"{PREFIX}{step}"
    try:
        with disk_full_named(f"the checkpoint of step {step}"):
            part.mkdir(parents=True)
            fill(part)
            _write_memory(part, memory)
            write_text(part / MANIFEST, json.dumps(_sizes(part), indent=1))
            target.parent.mkdir(exist_ok=True)
            shutil.rmtree(target, ignore_errors=True)
            part.rename(target)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    before = [one for one in _all(run) if step_of(one) < step and is_whole(one)]
    for old in before[keep - 1 :]:
        shutil.rmtree(old)
    return target


def _write_memory(folder: Path, memory: Memory) -> None:
    plain: dict[str, Any] = {
        "health": asdict(memory.health),
        "best": memory.best is not None,
        "unscored_steps": memory.unscored_steps,
        "seconds": memory.seconds,
        "recipe": dict(memory.recipe),
        "sft": None if memory.sft is None else dict(memory.sft),
    }
    write_text(folder / MEMORY, json.dumps(plain, indent=1))
    if memory.best is not None:
        save_file(dict(memory.best), folder / BEST)


def read_memory(folder: Path) -> Memory:
    """Our part of a whole checkpoint."""
    plain: dict[str, Any] = json.loads((folder / MEMORY).read_text(encoding="utf-8"))
    return Memory(
        health=Health(**plain["health"]),
        best=load_file(folder / BEST) if plain["best"] else None,
        unscored_steps=plain["unscored_steps"],
        seconds=plain["seconds"],
        recipe=plain.get("recipe", {}),
        sft=plain.get("sft"),
    )


def _sizes(folder: Path) -> dict[str, int]:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.stat().st_size for path in files}


def _all(run: Path) -> list[Path]:
    """The run's checkpoints, newest first."""
    found = [path for path in (run / FOLDER).glob(f"{PREFIX}[0-9]*") if path.is_dir()]
    return sorted(found, key=step_of, reverse=True)


def step_of(checkpoint: Path) -> int:
    """Optimizer steps done when the checkpoint was written."""
    return int(checkpoint.name.removeprefix(PREFIX))


def is_whole(checkpoint: Path) -> bool:
    """Whether every file of the manifest is there in its full size."""
    try:
        manifest: dict[str, int] = json.loads((checkpoint / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    present = _sizes(checkpoint)
    return all(present.get(name) == size for name, size in manifest.items())


@overload
def latest(run: Path) -> Path: ...


@overload
def latest(run: Path, *, missing_ok: bool) -> Path | None: ...


def latest(run: Path, *, missing_ok: bool = False) -> Path | None:
    """The newest whole checkpoint; None if there is none and that may be.

    Raises:
        InputError: there is none (CheckpointMissing).
    """
    for checkpoint in _all(run):
        if is_whole(checkpoint):
            return checkpoint
        log.warning("%s: %s is not whole and is passed over.", Reason.ARTIFACTS_DAMAGED, checkpoint)
    if missing_ok:
        return None
    raise InputError(
        Reason.CHECKPOINT_MISSING,
        f"--resume: {run / FOLDER} holds no whole checkpoint.",
        remedy="Start the run anew without --resume, under another name.",
        field="resume",
        value=str(run),
    )


def put_aside(run: Path) -> None:
    """Rename every checkpoint that is not whole: a person may still want what is left of it."""
    for checkpoint in _all(run):
        if is_whole(checkpoint):
            continue
        aside = checkpoint.with_name(DAMAGED + checkpoint.name)
        shutil.rmtree(aside, ignore_errors=True)
        checkpoint.rename(aside)
        log.warning(
            "%s: %s is not whole and is put aside as %s.",
            Reason.ARTIFACTS_DAMAGED,
            checkpoint,
            aside.name,
        )
