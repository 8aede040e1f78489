"""Packed micro-batches: the same gradient, less padding, and a way on when memory runs out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file
from tests.unit.train.conftest import Stage

from watercolour.api.spec import WatercolourRun
from watercolour.train import grpo, packing, session, trainer
from watercolour.train.progress import Progress

Make = Callable[..., WatercolourRun]


@given(st.lists(st.integers(1, 500), min_size=1, max_size=30), st.integers(1, 2000))
def test_every_row_is_in_one_part_and_no_part_is_too_large(lengths: list[int], tokens: int) -> None:
    parts = packing.micro_batches(lengths, tokens)
    assert sorted(row for part in parts for row in part) == list(range(len(lengths)))
    for part in parts:
        assert len(part) == 1 or max(lengths[row] for row in part) * len(part) <= tokens


def test_rows_of_like_length_go_together() -> None:
    assert packing.micro_batches([10, 90, 12, 100], 200) == [[3, 1], [2, 0]]


def test_shared_padding_is_cut_on_its_own_side() -> None:
    inputs = {
        "prompt_ids": torch.tensor([[0, 0, 1, 2], [1, 2, 3, 4]]),
        "prompt_mask": torch.tensor([[0, 0, 1, 1], [1, 1, 1, 1]]),
        "completion_ids": torch.tensor([[5, 6, 0], [7, 8, 9]]),
        "completion_mask": torch.tensor([[1, 1, 0], [1, 1, 1]]),
        "advantages": torch.tensor([0.5, -0.5]),
        "num_items_in_batch": torch.tensor(5),
    }
    part = packing.taken(inputs, [0])
    assert part["prompt_ids"].tolist() == [[1, 2]]
    assert part["completion_ids"].tolist() == [[5, 6]]
    assert part["completion_mask"].tolist() == [[1, 1]]
    assert part["advantages"].tolist() == [0.5]
    assert part["num_items_in_batch"] == 5


def _trained(
    run: WatercolourRun, out: Path, tokens: int | None, monkeypatch: pytest.MonkeyPatch
) -> dict[str, torch.Tensor]:
    monkeypatch.setattr(grpo, "micro_batch_tokens", lambda *_: tokens)
    session.run(run, out, Stage(), Progress("test", 2), lambda: False, resume=False)
    return load_file(out / "checkpoints" / "checkpoint-2" / "adapter_model.safetensors")


def test_packed_micro_batches_train_the_same_adapter(
    wanted: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = wanted(steps=2)
    whole = _trained(run, tmp_path / "whole", None, monkeypatch)
    parts = _trained(run, tmp_path / "parts", 60, monkeypatch)
    for name, value in whole.items():
        torch.testing.assert_close(parts[name], value, atol=2e-5, rtol=1e-3)


def test_a_step_that_runs_out_of_memory_begins_again_with_smaller_parts(
    wanted: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = wanted(steps=2)
    whole = _trained(run, tmp_path / "whole", 10_000, monkeypatch)
    real: Any = trainer.Trainer._observed_loss  # pyright: ignore[reportPrivateUsage]
    calls = [0]

    def full_once(self: Any, model: Any, inputs: Any) -> Any:
        calls[0] += 1
        loss = real(self, model, inputs)
        if calls[0] == 1:
            # As it happens: in the middle of the way back, with some gradients already there.
            loss[0].backward()
            raise torch.OutOfMemoryError
        return loss

    monkeypatch.setattr(trainer.Trainer, "_observed_loss", full_once)
    again = _trained(run, tmp_path / "again", 10_000, monkeypatch)
    assert calls[0] > 2
    for name, value in whole.items():
        torch.testing.assert_close(again[name], value, atol=2e-5, rtol=1e-3)
