"""Drawing the next tokens, the same way in every engine and whatever the timing.

A row's random numbers are fixed before its first token: they depend on the run's seed, the
step, the attempt and the row alone. So a row draws the same tokens whether it is alone in the
batch or not, and a run that was interrupted draws what it would have drawn.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor

from watercolour.api.trainer import Decoding


@dataclass(frozen=True)
class Row:
    """One completion, its end token included."""

    tokens: tuple[int, ...]
    log_probabilities: tuple[float, ...]
    """The policy's own, a token each, at the sampling temperature and before truncation."""
    truncated: bool
    """The token limit came before an end token."""


#: Called with the row's number in the very step in which the row ends.
OnRow = Callable[[int, Row], None]
#: Called every step; raises to abandon the generation.
Stop = Callable[[], None]


def derive_seed(*parts: int | str) -> int:
    """A seed below 2**63 from any parts; equal parts give the equal seed on every machine."""
    digest = hashlib.sha256("/".join(map(str, parts)).encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1


def uniforms(seeds: Sequence[int], length: int) -> Tensor:
    """One row of ``length`` uniform numbers in [0, 1) per seed, float64 on the CPU."""
    rows = [
        torch.rand(length, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
        for seed in seeds
    ]
    return torch.stack(rows)


def choose(logits: Tensor, chance: Tensor, sampling: Decoding) -> tuple[Tensor, Tensor]:
    """Draw one token a row by inverting the cumulative distribution.

    The order is bias, temperature, then top-k, then top-p among what top-k left, as transformers
    has it. The log-probabilities are the policy's own, at the sampling temperature and before any
    bias or truncation, so they compare with what the trainer computes.

    Args:
        logits: (rows, vocabulary).
        chance: (rows,) uniform numbers in [0, 1).
        sampling: bias, temperature, top-p and top-k.

    Returns:
        Tokens (rows,) and their natural log-probabilities (rows,).
    """
    own = scaled = logits.float()
    if sampling.bias:
        scaled = own + _bias(sampling.bias, own.shape[-1], own.device)
    if sampling.temperature != 1:
        own, scaled = own / sampling.temperature, scaled / sampling.temperature
    size = scaled.shape[-1]
    kept = min(sampling.top_k, size) if sampling.top_k else size
    values, indices = scaled.topk(kept, sorted=True)
    mass = values.softmax(-1)
    if sampling.top_p < 1:
        before = mass.cumsum(-1) - mass
        mass = mass.masked_fill(before >= sampling.top_p, 0)
    reached = mass.cumsum(-1)
    target = chance.to(reached.dtype).unsqueeze(-1) * reached[:, -1:]
    place = (reached <= target).sum(-1, keepdim=True)
    # Rounding may put the target on the last sum; the last token with mass is then meant.
    last = (mass > 0).sum(-1, keepdim=True) - 1
    place = torch.minimum(place, last)
    tokens = indices.gather(-1, place).squeeze(-1)
    log_probabilities = own.gather(-1, tokens.unsqueeze(-1)).squeeze(-1) - own.logsumexp(-1)
    return tokens, log_probabilities


@lru_cache(4)
def _bias(bias: tuple[tuple[int, float], ...], size: int, device: torch.device) -> Tensor:
    """The bias of every token of the vocabulary; made once, so that a CUDA graph may hold it."""
    whole = torch.zeros(size, device=device)
    for token, value in bias:
        whole[token] += value
    return whole
