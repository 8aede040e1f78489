"""Importance weights between the sampler and the training, in the four ways that TRL names. Pure.

The sampler's rounding is not the training's. The weight of a token, or of a whole sequence, is the
training's probability of it over the sampler's; beyond its bounds it is cut off, or counts as 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Correction:
    """TRL's ``vllm_importance_sampling_mode`` and its two bounds."""

    mode: str
    least: float | None
    most: float | None


def weights(correction: Correction, training: Tensor, sampled: Tensor, mask: Tensor) -> Tensor:
    """The weights, (rows, tokens) or (rows, 1).

    Args:
        correction: how.
        training: (rows, tokens) log-probabilities at the weights that sampled.
        sampled: the sampler's.
        mask: 1 where a token counts.
    """
    apart = torch.nan_to_num((training - sampled) * mask, nan=0.0)
    if correction.mode.startswith("sequence"):
        apart = apart.sum(-1, keepdim=True)
    ratio = apart.exp()
    if correction.mode.endswith("truncate"):
        return ratio.clamp(correction.least, correction.most)
    least = -math.inf if correction.least is None else correction.least
    most = math.inf if correction.most is None else correction.most
    return ratio.masked_fill((ratio < least) | (ratio > most), 0.0)
