"""The step's operations as Triton kernels: same names, arguments and results as ``torch_ops``.

Each reads its weights and state once and fuses what stands around them, so that a step is about
four hundred kernels instead of the thirteen hundred of a compiled model. The experts' products
read the chosen experts' weights in place; nothing is gathered. Attention reads a row's true length.
"""

# Triton's own language has no types that a checker could read.
# pyright: basic, reportArgumentType=false, reportIndexIssue=false, reportOperatorIssue=false
# pyright: reportGeneralTypeIssues=false, reportAttributeAccessIssue=false, reportCallIssue=false

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from watercolour.train.decode.weights import Attention, Delta, Experts, Sizes

#: Parts into which a row's keys are split, so that few rows still fill the processor.
SPLITS = 16
#: Keys that one program of the attention takes at a time.
KEYS = 64


@triton.jit
def _sigmoid(x):
    return 1.0 / (1.0 + tl.exp(-x))


@triton.jit
def _rounded(x, like):
    """float32 values as they are after a pass through the type of ``like``."""
    return x.to(like.dtype).to(tl.float32)


@triton.jit
def _add_norm_kernel(
    x, y, factor, out_x, out_h, width, eps, MANY: tl.constexpr, BLOCK: tl.constexpr
):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    inside = at < width
    v = tl.load(x + row * width + at, mask=inside, other=0.0)
    if MANY > 0:
        added = tl.zeros([BLOCK], tl.float32)
        for n in tl.static_range(MANY):
            added += tl.load(y + (row * MANY + n) * width + at, mask=inside, other=0.0).to(
                tl.float32
            )
        v = (v.to(tl.float32) + _rounded(added, v)).to(v.dtype)
        tl.store(out_x + row * width + at, v, mask=inside)
    wide = v.to(tl.float32)
    scale = tl.rsqrt(tl.sum(wide * wide, 0) / width + eps)
    f = tl.load(factor + at, mask=inside, other=0.0)
    tl.store(out_h + row * width + at, (wide * scale * f).to(v.dtype), mask=inside)


def norm(x: Tensor, factor: Tensor, eps: float) -> Tensor:
    """Root-mean-square norm over the last dimension, in float32."""
    rows, width = x.shape
    out = torch.empty_like(x)
    block = triton.next_power_of_2(width)
    _add_norm_kernel[(rows,)](x, x, factor, x, out, width, eps, 0, block, num_warps=8)
    return out


def add_norm(x: Tensor, y: Tensor, factor: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    """The new residual x + y and its norm; ``y`` of three dimensions is summed over the second."""
    rows, width = x.shape
    many = y.shape[1] if y.dim() == 3 else 1
    added, out = torch.empty_like(x), torch.empty_like(x)
    block = triton.next_power_of_2(width)
    _add_norm_kernel[(rows,)](x, y, factor, added, out, width, eps, many, block, num_warps=8)
    return added, out


@triton.jit
def _swiglu_kernel(gate_up, out, width, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = at < width
    gate = tl.load(gate_up + row * 2 * width + at, mask=inside, other=0.0)
    up = tl.load(gate_up + row * 2 * width + width + at, mask=inside, other=0.0)
    wide = gate.to(tl.float32)
    wide = _rounded(wide * _sigmoid(wide), gate) * up.to(tl.float32)
    tl.store(out + row * width + at, wide.to(gate.dtype), mask=inside)


def swiglu(gate_up: Tensor) -> Tensor:
    """silu(gate)·up of (rows, 2·width)."""
    rows, width = gate_up.shape[0], gate_up.shape[1] // 2
    out = gate_up.new_empty(rows, width)
    _swiglu_kernel[(rows, triton.cdiv(width, 1024))](gate_up, out, width, 1024)
    return out


def head(x: Tensor, weight: Tensor) -> Tensor:
    """Logits (rows, vocabulary) in float32: rounded to bfloat16 they would be off by up to 0.03."""
    if x.dtype == torch.float32:
        return torch.mm(x, weight.t())
    return torch.mm(x, weight.t(), out_dtype=torch.float32)


@triton.jit
def _convolved(mixed, conv, ring, channel, place, CHANNELS: tl.constexpr, TAPS: tl.constexpr):
    """One token's causal convolution and silu; writes the newest input into its ring."""
    newest = tl.load(mixed + channel)
    total = newest.to(tl.float32) * tl.load(conv + channel * TAPS + TAPS - 1).to(tl.float32)
    for back in tl.static_range(1, TAPS):
        at = (place + TAPS - back) % TAPS
        there = (channel >= 0) & (place >= back)
        old = tl.load(ring + at * CHANNELS + channel, mask=there, other=0.0)
        weight = tl.load(conv + channel * TAPS + TAPS - 1 - back)
        total += old.to(tl.float32) * weight.to(tl.float32)
    tl.store(ring + (place % TAPS) * CHANNELS + channel, newest)
    total = _rounded(total, newest)
    return _rounded(total * _sigmoid(total), newest)


@triton.jit
def _delta_kernel(
    projected,
    width,
    conv,
    ring,
    decay,
    dt_bias,
    factor,
    recurrent,
    lengths,
    slots,
    out,
    eps,
    KEY_HEADS: tl.constexpr,
    HEADS: tl.constexpr,
    K: tl.constexpr,
    V: tl.constexpr,
    TAPS: tl.constexpr,
):
    row, head = tl.program_id(0), tl.program_id(1)
    slot = tl.load(slots + row).to(tl.int64)
    place = tl.load(lengths + slot)
    channels: tl.constexpr = 2 * KEY_HEADS * K + HEADS * V
    key_head = head // (HEADS // KEY_HEADS)
    kk, vv = tl.arange(0, K), tl.arange(0, V)
    mixed = projected + row * width
    mine = ring + slot * TAPS * channels
    # Two value heads may share a key head: both then write the same input to the same place, and
    # neither reads that place in this step.
    q = _convolved(mixed, conv, mine, key_head * K + kk, place, channels, TAPS)
    k = _convolved(mixed, conv, mine, (KEY_HEADS + key_head) * K + kk, place, channels, TAPS)
    v = _convolved(mixed, conv, mine, 2 * KEY_HEADS * K + head * V + vv, place, channels, TAPS)
    q = q * tl.rsqrt(tl.sum(q * q, 0) + 1e-6) * (K**-0.5)
    k = k * tl.rsqrt(tl.sum(k * k, 0) + 1e-6)
    rest = mixed + channels
    z = tl.load(rest + head * V + vv)
    b = tl.load(rest + HEADS * V + head)
    a = tl.load(rest + HEADS * V + HEADS + head).to(tl.float32) + tl.load(dt_bias + head)
    beta = _rounded(_sigmoid(b.to(tl.float32)), b)
    soft = tl.where(a > 20.0, a, tl.log(1.0 + tl.exp(tl.minimum(a, 20.0))))
    g = tl.exp(tl.load(decay + head) * soft)
    at = recurrent + (slot * HEADS + head) * K * V + kk[:, None] * V + vv[None, :]
    s = tl.load(at) * g
    change = (v - tl.sum(s * k[:, None], 0)) * beta
    s += k[:, None] * change[None, :]
    tl.store(at, s)
    o = _rounded(tl.sum(s * q[:, None], 0), z)
    o = _rounded(o * tl.rsqrt(tl.sum(o * o, 0) / V + eps), z)
    o = _rounded(tl.load(factor + vv).to(tl.float32) * o, z)
    gate = z.to(tl.float32)
    o = o * gate * _sigmoid(gate)
    tl.store(out + (row * HEADS + head) * V + vv, o.to(z.dtype))


def delta(
    projected: Tensor,
    layer: Delta,
    recurrent: Tensor,
    inputs: Tensor,
    lengths: Tensor,
    slots: Tensor,
    sizes: Sizes,
) -> Tensor:
    """One token through convolution, gated delta rule and gated norm; updates the state."""
    rows = len(projected)
    out = projected.new_empty(rows, sizes.value_heads * sizes.value_size)
    _delta_kernel[(rows, sizes.value_heads)](
        projected,
        projected.shape[1],
        layer.conv,
        inputs,
        layer.decay,
        layer.dt_bias,
        layer.norm,
        recurrent,
        lengths,
        slots,
        out,
        sizes.eps,
        sizes.key_heads,
        sizes.value_heads,
        sizes.key_size,
        sizes.value_size,
        sizes.taps,
        num_warps=8,
    )
    return out


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
        mixed = _rounded(mixed, gate) * _rounded(_sigmoid(gate.to(tl.float32)), gate)
    tl.store(out + (row * HEADS + head) * SIZE + at, mixed.to(out.dtype.element_ty))


def attention(
    projected: Tensor,
    layer: Attention,
    keys: Tensor,
    values: Tensor,
    lengths: Tensor,
    slots: Tensor,
    cos: Tensor,
    sin: Tensor,
    sizes: Sizes,
) -> Tensor:
    """One token's attention over all tokens of its row; writes its key and value to the cache."""
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
        lengths,
        slots,
        cos,
        sin,
        capacity,
        sizes.eps,
        heads,
        kv,
        size,
        cos.shape[1],
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
        lengths,
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


@triton.jit
def _route_kernel(
    scores, chosen, shares, EXPERTS: tl.constexpr, CHOSEN: tl.constexpr, BLOCK: tl.constexpr
):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    inside = at < EXPERTS
    mine = scores + row * (EXPERTS + 1)
    raw = tl.load(mine + at, mask=inside, other=float("-inf"))
    share = raw.to(tl.float32)
    share = tl.exp(share - tl.max(share, 0))
    share = share / tl.sum(share, 0)
    share = tl.where(inside, share, -1.0)
    place = tl.arange(0, triton.next_power_of_2(CHOSEN))
    picked = tl.zeros([triton.next_power_of_2(CHOSEN)], tl.float32)
    to = row * (CHOSEN + 1)
    for n in tl.static_range(CHOSEN):
        best = tl.argmax(share, 0)
        picked = tl.where(place == n, tl.max(share, 0), picked)
        share = tl.where(at == best, -1.0, share)
        tl.store(chosen + to + n, best.to(tl.int32))
    picked = picked / tl.sum(picked, 0)
    tl.store(shares + to + place, picked.to(raw.dtype), mask=place < CHOSEN)
    gate = tl.load(mine + EXPERTS)
    tl.store(chosen + to + CHOSEN, EXPERTS)
    tl.store(shares + to + CHOSEN, _sigmoid(gate.to(tl.float32)).to(gate.dtype))


def route(scores: Tensor, chosen: int) -> tuple[Tensor, Tensor]:
    """Experts and their weights, the shared expert as one more."""
    rows, experts = scores.shape[0], scores.shape[1] - 1
    picked = torch.empty(rows, chosen + 1, dtype=torch.int32, device=scores.device)
    shares = scores.new_empty(rows, chosen + 1)
    block = triton.next_power_of_2(experts)
    _route_kernel[(rows,)](scores, picked, shares, experts, chosen, block, num_warps=1)
    return picked, shares


@triton.jit
def _gate_up_kernel(
    x,
    gate_up,
    shared,
    chosen,
    out,
    WIDTH: tl.constexpr,
    INNER: tl.constexpr,
    EXPERTS: tl.constexpr,
    MANY: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    pair = tl.program_id(0)
    expert = tl.load(chosen + pair).to(tl.int64)
    n = tl.program_id(1) * ROWS + tl.arange(0, ROWS)
    if expert < EXPERTS:
        base = gate_up + expert * (2 * INNER * WIDTH)
    else:
        base = shared
    gates = tl.zeros([ROWS, COLUMNS], tl.float32)
    ups = tl.zeros([ROWS, COLUMNS], tl.float32)
    token = pair // MANY
    for first in tl.static_range(0, WIDTH, COLUMNS):
        k = first + tl.arange(0, COLUMNS)
        v = tl.load(x + token * WIDTH + k).to(tl.float32)
        gates += tl.load(base + n[:, None] * WIDTH + k[None, :]).to(tl.float32) * v[None, :]
        below = (n + INNER)[:, None] * WIDTH + k[None, :]
        ups += tl.load(base + below).to(tl.float32) * v[None, :]
    gate, up = tl.sum(gates, 1), tl.sum(ups, 1)
    tl.store(out + pair * INNER + n, (gate * _sigmoid(gate) * up).to(out.dtype.element_ty))


@triton.jit
def _down_kernel(
    h,
    down,
    shared,
    chosen,
    shares,
    out,
    WIDTH: tl.constexpr,
    INNER: tl.constexpr,
    EXPERTS: tl.constexpr,
    ROWS: tl.constexpr,
):
    pair = tl.program_id(0)
    expert = tl.load(chosen + pair).to(tl.int64)
    n = tl.program_id(1) * ROWS + tl.arange(0, ROWS)
    k = tl.arange(0, INNER)
    if expert < EXPERTS:
        base = down + expert * (WIDTH * INNER)
    else:
        base = shared
    v = tl.load(h + pair * INNER + k).to(tl.float32)
    w = tl.load(base + n[:, None] * INNER + k[None, :]).to(tl.float32)
    total = tl.sum(w * v[None, :], 1) * tl.load(shares + pair).to(tl.float32)
    tl.store(out + pair * WIDTH + n, total)


def experts(x: Tensor, layer: Experts, chosen: Tensor, weights: Tensor) -> Tensor:
    """Each chosen expert's weighted output, (rows, chosen + 1, hidden) float32.

    One program a token-expert pair and block of rows. At 8 tokens this moves 4.1 TB/s on an H200,
    whose memory gives 4.3; gathering the experts first, as transformers does, takes 3.4 times that.
    """
    rows, many = chosen.shape
    width, inner, count = x.shape[1], layer.down.shape[-1], len(layer.down)
    h = x.new_empty(rows * many, inner)
    out = x.new_empty(rows, many, width, dtype=torch.float32)
    _gate_up_kernel[(rows * many, inner // 16)](
        x,
        layer.gate_up,
        layer.shared_gate_up,
        chosen,
        h,
        width,
        inner,
        count,
        many,
        16,
        min(256, width),
        num_warps=4,
    )
    _down_kernel[(rows * many, width // 32)](
        h, layer.down, layer.shared_down, chosen, weights, out, width, inner, count, 32, num_warps=4
    )
    return out
