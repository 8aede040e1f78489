"""The gated delta rule of a decode step, with convolution and gated norm, as one Triton kernel."""

# Triton's own language has no types that a checker could read.
# pyright: basic, reportArgumentType=false, reportIndexIssue=false, reportOperatorIssue=false
# pyright: reportGeneralTypeIssues=false, reportAttributeAccessIssue=false, reportCallIssue=false

from __future__ import annotations

import triton
import triton.language as tl
from torch import Tensor

from watercolour.train.decode.state import State
from watercolour.train.decode.triton_math import rounded, sigmoid
from watercolour.train.decode.weights import Delta, Sizes


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
    total = rounded(total, newest)
    return rounded(total * sigmoid(total), newest)


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
    beta = rounded(sigmoid(b.to(tl.float32)), b)
    soft = tl.where(a > 20.0, a, tl.log(1.0 + tl.exp(tl.minimum(a, 20.0))))
    g = tl.exp(tl.load(decay + head) * soft)
    at = recurrent + (slot * HEADS + head) * K * V + kk[:, None] * V + vv[None, :]
    s = tl.load(at) * g
    change = (v - tl.sum(s * k[:, None], 0)) * beta
    s += k[:, None] * change[None, :]
    tl.store(at, s)
    o = rounded(tl.sum(s * q[:, None], 0), z)
    o = rounded(o * tl.rsqrt(tl.sum(o * o, 0) / V + eps), z)
    o = rounded(tl.load(factor + vv).to(tl.float32) * o, z)
    gate = z.to(tl.float32)
    o = o * gate * sigmoid(gate)
    tl.store(out + (row * HEADS + head) * V + vv, o.to(z.dtype))


def delta(
    projected: Tensor, layer: Delta, state: State, number: int, slots: Tensor, sizes: Sizes
) -> Tensor:
    """One token through convolution, gated delta rule and gated norm; updates the state."""
    rows = len(projected)
    out = projected.new_empty(rows, sizes.value_heads * sizes.value_size)
    _delta_kernel[(rows, sizes.value_heads)](
        projected,
        projected.shape[1],
        layer.conv,
        state.inputs[number],
        layer.decay,
        layer.dt_bias,
        layer.norm,
        state.recurrent[number],
        state.lengths,
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
