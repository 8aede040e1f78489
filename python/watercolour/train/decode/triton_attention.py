"""The attention of a decode step over true lengths, split over a row's keys, as Triton kernels."""

# Triton's own language has no types that a checker could read.
# pyright: basic, reportArgumentType=false, reportIndexIssue=false, reportOperatorIssue=false
# pyright: reportGeneralTypeIssues=false, reportAttributeAccessIssue=false, reportCallIssue=false

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from watercolour.train.decode.state import State
from watercolour.train.decode.triton_math import rounded, sigmoid
from watercolour.train.decode.weights import Attention, Weights

#: Parts into which a row's keys are split, so that few rows still fill the processor.
SPLITS = 16
#: Keys that one program of the attention takes at a time.
KEYS = 64


@triton.jit
def _normed(x, factor, at, partner, sign, cos, sin, inside, eps, SIZE: tl.constexpr):
    """A head's vector, normed and rotated: both halves of each rotated pair are read."""
    v, w = tl.load(x + at).to(tl.float32), tl.load(x + partner).to(tl.float32)
    scale = tl.rsqrt(tl.sum(v * v, 0) / SIZE + eps)
    v, w = v * scale * tl.load(factor + at), w * scale * tl.load(factor + partner)
    turned = v * tl.load(cos + at, mask=inside, other=0.0).to(tl.float32)
    turned += sign * w * tl.load(sin + at, mask=inside, other=0.0).to(tl.float32)
    return tl.where(inside, turned, v)


@triton.jit
def _rotate_kernel(
    projected,
    width,
    q_factor,
    k_factor,
    queries,
    keys,
    values,
    lengths,
    slots,
    cos,
    sin,
    capacity,
    eps,
    HEADS: tl.constexpr,
    KV: tl.constexpr,
    SIZE: tl.constexpr,
    ROTATED: tl.constexpr,
    GATED: tl.constexpr,
):
    row, head = tl.program_id(0), tl.program_id(1)
    slot = tl.load(slots + row).to(tl.int64)
    place = tl.load(lengths + slot)
    at = tl.arange(0, SIZE)
    inside = at < ROTATED
    half: tl.constexpr = ROTATED // 2
    partner = tl.where(inside, tl.where(at < half, at + half, at - half), at)
    sign = tl.where(at < half, -1.0, 1.0)
    step: tl.constexpr = 2 * SIZE if GATED else SIZE
    mine = projected + row * width
    c, s = cos + place * ROTATED, sin + place * ROTATED
    if head < HEADS:
        x = _normed(mine + head * step, q_factor, at, partner, sign, c, s, inside, eps, SIZE)
        tl.store(queries + (row * HEADS + head) * SIZE + at, x.to(queries.dtype.element_ty))
    else:
        key_head = head - HEADS
        source = mine + HEADS * step + key_head * SIZE
        x = _normed(source, k_factor, at, partner, sign, c, s, inside, eps, SIZE)
        to = ((slot * KV + key_head) * capacity + place) * SIZE + at
        tl.store(keys + to, x.to(keys.dtype.element_ty))
        tl.store(values + to, tl.load(source + KV * SIZE + at))


@triton.jit
def _attend_kernel(
    queries,
    keys,
    values,
    lengths,
    slots,
    sums,
    peaks,
    totals,
    capacity,
    scale,
    KV: tl.constexpr,
    GROUP: tl.constexpr,
    PADDED: tl.constexpr,
    SIZE: tl.constexpr,
    SPLITS: tl.constexpr,
    BLOCK: tl.constexpr,
    EXACT: tl.constexpr,
):
    row, head, split = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    slot = tl.load(slots + row).to(tl.int64)
    seen = tl.load(lengths + slot) + 1
    share = tl.cdiv(tl.cdiv(seen, SPLITS), BLOCK) * BLOCK
    start = split * share
    end = tl.minimum(start + share, seen)
    of = tl.arange(0, PADDED)
    at = tl.arange(0, SIZE)
    real = of < GROUP
    from_query = queries + ((row * KV + head) * GROUP + of[:, None]) * SIZE + at[None, :]
    q = tl.load(from_query, mask=real[:, None], other=0.0)
    total = tl.zeros([PADDED], tl.float32)
    peak = tl.full([PADDED], float("-inf"), tl.float32)
    mixed = tl.zeros([PADDED, SIZE], tl.float32)
    base = (slot * KV + head) * capacity * SIZE
    for first in range(start, end, BLOCK):
        n = first + tl.arange(0, BLOCK)
        there = n < end
        place = base + n[:, None] * SIZE + at[None, :]
        k = tl.load(keys + place, mask=there[:, None], other=0.0)
        if EXACT:
            scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        else:
            scores = tl.dot(q, tl.trans(k)) * scale
        scores = tl.where(there[None, :], scores, float("-inf"))
        higher = tl.maximum(peak, tl.max(scores, 1))
        p = tl.exp(scores - higher[:, None])
        fade = tl.exp(peak - higher)
        total = total * fade + tl.sum(p, 1)
        v = tl.load(values + place, mask=there[:, None], other=0.0)
        if EXACT:
            mixed = mixed * fade[:, None] + tl.dot(p.to(v.dtype), v, input_precision="ieee")
        else:
            mixed = mixed * fade[:, None] + tl.dot(p.to(v.dtype), v)
        peak = higher
    to = ((row * KV + head) * GROUP + of) * SPLITS + split
    tl.store(peaks + to, peak, mask=real)
    tl.store(totals + to, total, mask=real)
    tl.store(sums + to[:, None] * SIZE + at[None, :], mixed, mask=real[:, None])


@triton.jit
def _combine_kernel(
    sums,
    peaks,
    totals,
    projected,
    width,
    out,
    HEADS: tl.constexpr,
    SIZE: tl.constexpr,
    SPLITS: tl.constexpr,
    GATED: tl.constexpr,
):
    row, head = tl.program_id(0), tl.program_id(1)
    at, split = tl.arange(0, SIZE), tl.arange(0, SPLITS)
    mine = (row * HEADS + head) * SPLITS + split
    peak = tl.load(peaks + mine)
    share = tl.exp(peak - tl.max(peak, 0))
    total = tl.sum(tl.load(totals + mine) * share, 0)
    parts = tl.load(sums + mine[:, None] * SIZE + at[None, :])
    mixed = tl.sum(parts * share[:, None], 0) / total
    if GATED:
        gate = tl.load(projected + row * width + head * 2 * SIZE + SIZE + at)
        mixed = rounded(mixed, gate) * rounded(sigmoid(gate.to(tl.float32)), gate)
    tl.store(out + (row * HEADS + head) * SIZE + at, mixed.to(out.dtype.element_ty))


def attention(
    projected: Tensor, layer: Attention, state: State, number: int, slots: Tensor, weights: Weights
) -> Tensor:
    """One token's attention over all tokens of its row; writes its key and value to the cache."""
    keys, values, sizes = state.keys[number], state.values[number], weights.sizes
    rows, width = projected.shape
    heads, kv, size, capacity = sizes.heads, sizes.kv_heads, sizes.size, keys.shape[2]
    group = heads // kv
    queries = projected.new_empty(rows, heads, size)
    _rotate_kernel[(rows, heads + kv)](
        projected,
        width,
        layer.q_norm,
        layer.k_norm,
        queries,
        keys,
        values,
        state.lengths,
        slots,
        weights.cos,
        weights.sin,
        capacity,
        sizes.eps,
        heads,
        kv,
        size,
        weights.cos.shape[1],
        layer.gated,
        num_warps=2,
    )
    sums = projected.new_empty(rows, heads, SPLITS, size, dtype=torch.float32)
    peaks = projected.new_empty(rows, heads, SPLITS, dtype=torch.float32)
    totals = torch.empty_like(peaks)
    _attend_kernel[(rows, kv, SPLITS)](
        queries,
        keys,
        values,
        state.lengths,
        slots,
        sums,
        peaks,
        totals,
        capacity,
        size**-0.5,
        kv,
        group,
        max(16, triton.next_power_of_2(group)),
        size,
        SPLITS,
        KEYS if projected.dtype != torch.float32 else 16,
        projected.dtype == torch.float32,
        num_warps=4,
        num_stages=2,
    )
    out = projected.new_empty(rows, heads * size)
    _combine_kernel[(rows, heads)](
        sums, peaks, totals, projected, width, out, heads, size, SPLITS, layer.gated, num_warps=4
    )
    return out
