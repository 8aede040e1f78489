from __future__ import annotations

import errno
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from tests.disk import largest_file

from watercolour.api.errors import InfrastructureError, InputError
from watercolour.api.reasons import Reason
from watercolour.train import checkpoint, files
from watercolour.train.checkpoint import Memory
from watercolour.train.guard import Health

MEMORY = Memory(
    health=Health(mean=0.4, best=0.5, flat=1, seen=9, rollbacks=2),
    best={"lora_A": torch.arange(3.0)},
    unscored_steps=2,
    seconds=12.5,
)


def fill(folder: Path) -> None:
    (folder / "inner").mkdir()
    (folder / "inner" / "adapter").write_bytes(b"x" * 1000)


def write(run: Path, step: int, keep: int = 2) -> Path:
    return checkpoint.write(run, step, keep, fill, MEMORY)


def names(run: Path) -> list[str]:
    return sorted(path.name for path in (run / "checkpoints").iterdir())


def test_a_checkpoint_brings_the_guards_memory_back(tmp_path: Path) -> None:
    found = checkpoint.read_memory(write(tmp_path, 10))
    assert found.health == MEMORY.health
    assert found.best is not None
    assert torch.equal(found.best["lora_A"], torch.arange(3.0))
    assert (found.unscored_steps, found.seconds) == (2, 12.5)


def test_the_newest_checkpoints_are_kept(tmp_path: Path) -> None:
    for step in (5, 10, 15):
        write(tmp_path, step)
    assert checkpoint.step_of(checkpoint.latest(tmp_path)) == 15
    assert names(tmp_path) == ["checkpoint-10", "checkpoint-15"]


def test_a_damaged_checkpoint_is_passed_over(tmp_path: Path) -> None:
    write(tmp_path, 5)
    newer = write(tmp_path, 10)
    (newer / "inner" / "adapter").write_bytes(b"x" * 999)
    assert checkpoint.step_of(checkpoint.latest(tmp_path)) == 5
    (newer / "manifest.json").unlink()
    assert checkpoint.step_of(checkpoint.latest(tmp_path)) == 5


def test_damaged_checkpoints_do_not_count_and_the_one_just_written_is_kept(tmp_path: Path) -> None:
    for step in (80, 90, 100):
        (write(tmp_path, step, keep=9) / "manifest.json").unlink()
    write(tmp_path, 70)
    write(tmp_path, 85, keep=1)
    kept = ["checkpoint-100", "checkpoint-80", "checkpoint-85", "checkpoint-90"]
    assert names(tmp_path) == kept
    checkpoint.put_aside(tmp_path)
    put_aside = [f"damaged-{name}" for name in kept if name != "checkpoint-85"]
    assert names(tmp_path) == ["checkpoint-85", *put_aside]
    # Damaged once more under the same number, and again for a person to look at.
    (write(tmp_path, 90, keep=1) / "manifest.json").unlink()
    checkpoint.put_aside(tmp_path)
    assert names(tmp_path) == put_aside


def test_a_resume_without_a_whole_checkpoint_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no whole checkpoint") as caught:
        checkpoint.latest(tmp_path)
    assert caught.value.reason == Reason.CHECKPOINT_MISSING


def test_a_full_disk_keeps_the_checkpoint_before(tmp_path: Path) -> None:
    write(tmp_path, 5)
    with largest_file(500), pytest.raises(InfrastructureError) as caught:
        write(tmp_path, 10)
    assert caught.value.reason == Reason.DISK_FULL
    assert checkpoint.step_of(checkpoint.latest(tmp_path)) == 5
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoints"]


def test_a_full_disk_is_recognised_through_the_libraries(tmp_path: Path) -> None:
    with largest_file(500):
        for save in (
            lambda: torch.save(torch.zeros(1000), tmp_path / "optimizer.pt"),
            lambda: save_file({"a": torch.zeros(1000)}, tmp_path / "adapter.safetensors"),
        ):
            with pytest.raises(InfrastructureError), files.disk_full_named("it"):
                save()
    assert files.is_full(OSError(errno.ENOSPC, "No space left on device"))
    assert not files.is_full(OSError(errno.EACCES, "Permission denied"))


def test_another_fault_than_a_full_disk_passes_through(tmp_path: Path) -> None:
    def broken(folder: Path) -> None:
        (folder / "a" / "b").write_text("")

    with pytest.raises(FileNotFoundError):
        checkpoint.write(tmp_path, 1, 2, broken, MEMORY)


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "metrics.csv"
    files.write_text(path, "old")
    with largest_file(100), pytest.raises(OSError, match="large"):
        files.write_text(path, "new" * 100)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
