"""Micro-batches without padding waste: rows of like length together, trimmed to their own longest.

Only losses that are sums over tokens divided by a number fixed beforehand can be split so; for them
the gradients of the parts add up to the gradient of the whole.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

#: TRL's losses that divide a sum over tokens by the tokens of the whole generation batch.
ADDITIVE = frozenset({"dapo", "cispo", "vespo"})
#: Tokens that go through the model at once on a GPU, until it says that they are too many. Of
#: Qwen3.5-35B-A3B with checkpointing they take 23 GiB besides the weights.
GPU_TOKENS = 32_768


def micro_batches(lengths: Sequence[int], tokens: int) -> list[list[int]]:
    """Rows in parts of at most ``tokens`` tokens, padding counted, the longest rows first.

    A row longer than that is a part of its own.
    """
    parts: list[list[int]] = []
    for row in sorted(range(len(lengths)), key=lambda row: (-lengths[row], row)):
        longest = lengths[parts[-1][0]] if parts else 0
        if parts and longest * (len(parts[-1]) + 1) <= tokens:
            parts[-1].append(row)
        else:
            parts.append([row])
    return parts


def in_parts(parts: Sequence[Sequence[int]], count: int) -> list[list[int]]:
    """The same rows in at least ``count`` parts, or one a row, the largest parts split first.

    Processes that share a step meet in each part, so all need equally many.
    """
    found = [list(part) for part in parts]
    while len(found) < count and (largest := max(found, key=len)) and len(largest) > 1:
        place, half = found.index(largest), len(largest) // 2
        found[place : place + 1] = [largest[:half], largest[half:]]
    return found


def lengths_of(inputs: Mapping[str, Any]) -> list[int]:
    """Tokens of each row, prompt and completion, without padding."""
    return (inputs["prompt_mask"].sum(1) + inputs["completion_mask"].sum(1)).tolist()


def taken(inputs: Mapping[str, Any], rows: Sequence[int]) -> dict[str, Any]:
    """Some rows of TRL's inputs, padding that all of them share cut away.

    Prompts are padded on the left and completions on the right, and so is what goes with them.
    """
    whole, width = inputs["completion_ids"].shape
    where = torch.tensor(list(rows), device=inputs["completion_ids"].device)
    prompt = int(inputs["prompt_mask"][where].sum(1).max())
    completion = int(inputs["completion_mask"][where].sum(1).max())

    def part(name: str, value: Any) -> Any:
        if not isinstance(value, Tensor) or value.dim() == 0 or len(value) != whole:
            return value
        value = value[where]
        if name.startswith("prompt_"):
            return value[:, value.shape[1] - prompt :]
        return value[:, :completion] if value.dim() > 1 and value.shape[1] == width else value

    return {name: part(name, value) for name, value in inputs.items()}
