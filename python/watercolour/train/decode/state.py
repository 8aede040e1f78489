"""What a row carries from token to token: keys, values, delta rule states, convolution inputs.

Rows live in slots. A batch names the slots that it computes, so that rows that have ended leave the
batch without anything being moved. One slot more than there are rows takes what padding writes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from watercolour.train.decode.weights import Delta, Weights, causal_lm


@dataclass(frozen=True)
class State:
    """The caches; slot ``rows`` is the one for padding."""

    keys: Tensor
    """(attention layers, slots, kv heads, capacity, size)"""
    values: Tensor
    recurrent: Tensor
    """(delta layers, slots, value heads, key size, value size) float32"""
    inputs: Tensor
    """(delta layers, slots, taps, channels): the convolution's newest inputs; position p at p mod
    taps, so that a step writes one place and reads the others."""
    lengths: Tensor
    """(slots,) int32: tokens read so far."""

    @property
    def capacity(self) -> int:
        """Tokens that a slot has room for."""
        return self.keys.shape[3]

    @property
    def rows(self) -> int:
        """Slots for rows."""
        return len(self.lengths) - 1


def allocate(weights: Weights, rows: int, capacity: int) -> State:
    """Caches for ``rows`` rows of up to ``capacity`` tokens, all empty."""
    sizes, like = weights.sizes, weights.embed
    delta = sum(isinstance(layer.mixer, Delta) for layer in weights.layers)
    full, slots = len(weights.layers) - delta, rows + 1
    channels = 2 * sizes.key_heads * sizes.key_size + sizes.value_heads * sizes.value_size
    cache = (full, slots, sizes.kv_heads, capacity, sizes.size)
    recurrent = (delta, slots, sizes.value_heads, sizes.key_size, sizes.value_size)
    return State(
        keys=like.new_zeros(cache),
        values=like.new_zeros(cache),
        recurrent=like.new_zeros(recurrent, dtype=torch.float32),
        inputs=like.new_zeros((delta, slots, sizes.taps, channels)),
        lengths=torch.zeros(slots, dtype=torch.int32, device=like.device),
    )


@torch.no_grad()
def fill(state: State, model: nn.Module, prompt: Sequence[int], slots: Sequence[int]) -> None:
    """Read a prompt once, through the model itself, and give its state to every slot named."""
    where = torch.tensor(list(slots), device=state.lengths.device)
    state.lengths[where] = len(prompt)
    state.recurrent[:, where] = 0
    state.inputs[:, where] = 0
    if not prompt:
        return
    ids = torch.tensor([list(prompt)], device=state.lengths.device)
    read: Any = causal_lm(model).model(input_ids=ids, use_cache=True)
    cache = read.cache if "cache" in read else read.past_key_values
    full = delta = 0
    for layer in cache.layers:
        if hasattr(layer, "recurrent_states"):
            state.recurrent[delta, where] = layer.recurrent_states[0][0].float()
            newest = layer.conv_states[0][0]
            taps = state.inputs.shape[2]
            for back in range(1, min(taps, len(prompt)) + 1):
                place = (len(prompt) - back) % taps
                state.inputs[delta, where, place] = newest[:, -back]
            delta += 1
        else:
            state.keys[full, where, :, : len(prompt)] = layer.keys[0]
            state.values[full, where, :, : len(prompt)] = layer.values[0]
            full += 1
