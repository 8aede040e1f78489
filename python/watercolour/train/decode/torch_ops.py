"""The step's operations in plain PyTorch: for the CPU, and what the kernels are checked against.

Every function takes ``slots``, the slot of each row of the batch, and rounds where transformers'
modules round, so that the step's log-probabilities are those of training.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from watercolour.train.decode.state import State
from watercolour.train.decode.weights import Attention, Delta, Experts, Sizes, Weights
from watercolour.train.head import product


def norm(x: Tensor, factor: Tensor, eps: float, kind: torch.dtype) -> Tensor:
    """Root-mean-square norm over the last dimension, in float32, rounded to ``kind``."""
    wide = x.float()
    wide = wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + eps)
    return (wide * factor).to(kind)


def add_norm(
    x: Tensor, y: Tensor, factor: Tensor, eps: float, kind: torch.dtype
) -> tuple[Tensor, Tensor]:
    """The new residual x + y in the type of x, and its norm in ``kind``.

    ``y`` of three dimensions is summed over the second and rounded to ``kind``.
    """
    added = y.sum(1).to(kind) if y.dim() == 3 else y
    x = x + added
    return x, norm(x, factor, eps, kind)


def swiglu(gate_up: Tensor) -> Tensor:
    """silu(gate)·up of (rows, 2·width)."""
    gate, up = gate_up.chunk(2, -1)
    return functional.silu(gate) * up


def head(x: Tensor, weight: Tensor) -> Tensor:
    """Logits (rows, vocabulary) in float32."""
    return product(x, weight.t())


def delta(
    projected: Tensor, layer: Delta, state: State, number: int, slots: Tensor, sizes: Sizes
) -> Tensor:
    """One token through convolution, gated delta rule and gated norm; updates the state in place.

    The rule: S ← S·exp(g); S ← S + k ⊗ (v - kᵀS)·β; o = qᵀS (Yang et al., Gated Delta Networks,
    2024, equation 10).

    Args:
        projected: (rows, q, k, v, z, b and a side by side).
        layer: the layer's weights.
        state: the caches.
        number: the layer's place among the delta layers.
        slots: (rows,).
        sizes: the model's.

    Returns:
        (rows, value heads·value size), to be projected out.
    """
    recurrent, inputs = state.recurrent[number], state.inputs[number]
    rows, key_width = len(projected), sizes.key_heads * sizes.key_size
    width = sizes.value_heads * sizes.value_size
    mixed, z, b, a = projected.split(
        [2 * key_width + width, width, sizes.value_heads, sizes.value_heads], -1
    )
    place = state.lengths[slots].long()
    inputs[slots, place % sizes.taps] = mixed
    order = place.unsqueeze(-1) - torch.arange(sizes.taps - 1, -1, -1, device=place.device)
    window = inputs[slots.unsqueeze(-1), order % sizes.taps]
    window = window.masked_fill((order < 0).unsqueeze(-1), 0)
    mixed = (window.float() * layer.conv.float().t()).sum(1).to(mixed.dtype)
    mixed = functional.silu(mixed)
    repeats = sizes.value_heads // sizes.key_heads
    q, k, v = mixed.float().split([key_width, key_width, width], -1)
    q, k = (
        _unit(one.view(rows, sizes.key_heads, -1)).repeat_interleave(repeats, 1) for one in (q, k)
    )
    q = q * sizes.key_size**-0.5
    v = v.view(rows, sizes.value_heads, -1)
    beta = b.sigmoid().float().unsqueeze(-1)
    g = layer.decay * functional.softplus(a.float() + layer.dt_bias)
    s = recurrent[slots] * g.exp()[..., None, None]
    read = torch.einsum("rhkv,rhk->rhv", s, k)
    s = s + torch.einsum("rhk,rhv->rhkv", k, (v - read) * beta)
    recurrent[slots] = s
    out = torch.einsum("rhkv,rhk->rhv", s, q).to(projected.dtype).float()
    out = out * torch.rsqrt(out.square().mean(-1, keepdim=True) + sizes.eps)
    out = layer.norm * out.to(projected.dtype)
    gate = functional.silu(z.float()).view(rows, sizes.value_heads, -1)
    return (out * gate).to(projected.dtype).view(rows, width)


def _unit(x: Tensor) -> Tensor:
    return x * torch.rsqrt(x.square().sum(-1, keepdim=True) + 1e-6)


def attention(
    projected: Tensor, layer: Attention, state: State, number: int, slots: Tensor, weights: Weights
) -> Tensor:
    """One token's attention over all tokens of its row; writes its key and value to the cache.

    Args:
        projected: (rows, queries with their gates, keys and values side by side).
        layer: the layer's weights.
        state: the caches.
        number: the layer's place among the attention layers.
        slots: (rows,).
        weights: of the model, for its rotations and sizes.

    Returns:
        (rows, heads·size), to be projected out.
    """
    keys, values, sizes = state.keys[number], state.values[number], weights.sizes
    rows, size = len(projected), sizes.size
    wide = sizes.heads * size * (2 if layer.gated else 1)
    q, k, v = projected.split([wide, sizes.kv_heads * size, sizes.kv_heads * size], -1)
    q = q.view(rows, sizes.heads, -1)
    q, gate = (q[..., :size], q[..., size:]) if layer.gated else (q, None)
    place = state.lengths[slots].long()
    c, s = weights.cos[place].unsqueeze(1), weights.sin[place].unsqueeze(1)
    q = _rotated(norm(q, layer.q_norm, sizes.eps, q.dtype), c, s)
    k = _rotated(norm(k.view(rows, sizes.kv_heads, size), layer.k_norm, sizes.eps, k.dtype), c, s)
    keys[slots, :, place] = k
    values[slots, :, place] = v.view(rows, sizes.kv_heads, size)
    longest = int(place.max()) + 1
    seen = torch.arange(longest, device=place.device) <= place.unsqueeze(-1)
    mixed = functional.scaled_dot_product_attention(
        q.view(rows, sizes.kv_heads, -1, size),
        keys[slots, :, :longest],
        values[slots, :, :longest],
        attn_mask=seen[:, None, None],
        scale=size**-0.5,
    )
    mixed = mixed.reshape(rows, sizes.heads, size)
    if gate is not None:
        mixed = mixed * gate.sigmoid()
    return mixed.reshape(rows, -1)


def _rotated(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    turned, kept = x[..., : cos.shape[-1]], x[..., cos.shape[-1] :]
    first, second = turned.chunk(2, -1)
    turned = turned * cos + torch.cat([-second, first], -1) * sin
    return torch.cat([turned, kept], -1)


def route(scores: Tensor, chosen: int) -> tuple[Tensor, Tensor]:
    """Experts and their weights, the shared expert as one more.

    Args:
        scores: (rows, experts + 1): the router's logits, then the shared expert's gate.
        chosen: routed experts a token.

    Returns:
        Experts (rows, chosen + 1) int32, the last the number of experts for the shared one, and
        their weights, likewise.
    """
    share = scores[:, :-1].float().softmax(-1)
    weights, experts = share.topk(chosen, -1)
    weights = (weights / weights.sum(-1, keepdim=True)).to(scores.dtype)
    shared = torch.full_like(experts[:, :1], scores.shape[-1] - 1)
    gate = scores[:, -1:].sigmoid()
    return torch.cat([experts, shared], -1).int(), torch.cat([weights, gate], -1)


def experts(x: Tensor, layer: Experts, chosen: Tensor, weights: Tensor) -> Tensor:
    """Each chosen expert's weighted output, (rows, chosen + 1, hidden) float32."""
    rows, many = chosen.shape
    out = x.new_empty((rows, many, x.shape[-1]), dtype=torch.float32)
    for row in range(rows):
        for place, expert in enumerate(chosen[row].tolist()):
            shared = expert == len(layer.gate_up)
            gate_up = layer.shared_gate_up if shared else layer.gate_up[expert]
            down = layer.shared_down if shared else layer.down[expert]
            inner = swiglu(functional.linear(x[row], gate_up))
            out[row, place] = functional.linear(inner, down).float() * weights[row, place].float()
    return out
