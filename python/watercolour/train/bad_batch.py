"""The batch of a step whose loss is no number, kept so that it can be looked at."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from safetensors.torch import save_file
from torch import Tensor

from watercolour.train import parquet
from watercolour.train.files import disk_full_named, write_bytes
from watercolour.train.rollouts import Painted

FOLDER = "bad-steps"


def save(
    run: Path, step: int, inputs: Mapping[str, Any], painted: Painted | None, rank: int = 0
) -> Path:
    """Write what went into the loss, and the rollouts that it came from; the folder.

    Args:
        run: the run's folder.
        step: the step, from 0.
        inputs: TRL's, of the micro-batch at fault.
        painted: the step's rollouts, if it has any of its own.
        rank: of this process among those that share the training; each has its own batch.

    Raises:
        InfrastructureError: the disk is full (DiskFull).
    """
    folder = run / FOLDER / f"{step:05}"
    tensors = {
        name: value.detach().cpu().contiguous()
        for name, value in inputs.items()
        if isinstance(value, Tensor)
    }
    with disk_full_named(f"the batch of step {step}"):
        folder.mkdir(parents=True, exist_ok=True)
        save_file(tensors, folder / (f"batch-{rank}.safetensors" if rank else "batch.safetensors"))
        if painted is not None and not rank:
            places: list[dict[str, str | None]] = [{} for _ in painted.rollouts]
            write_bytes(folder / "rollouts.parquet", parquet.encode(painted.rollouts, places))
    return folder
