"""The Triton kernels of :mod:`watercolour.train.delta`."""

# Triton's own language has no types that a checker could read.
# pyright: basic, reportArgumentType=false, reportIndexIssue=false, reportOperatorIssue=false
# pyright: reportGeneralTypeIssues=false, reportAttributeAccessIssue=false, reportCallIssue=false

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

#: Columns of the state that one program carries.
COLUMNS = 32


@triton.jit
def _invert_kernel(lower, out, SIZE: tl.constexpr):
    base = tl.program_id(0).to(tl.int64) * SIZE * SIZE
    rows, columns = tl.arange(0, SIZE), tl.arange(0, SIZE)
    inverse = tl.where(rows[:, None] == columns[None, :], 1.0, 0.0)
    for row in range(1, SIZE):
        known = tl.load(lower + base + row * SIZE + rows)
        # Rows from this one on hold the identity, and L has zeros there.
        change = tl.sum(known[:, None] * inverse, 0)
        inverse = tl.where(rows[:, None] == row, inverse - change[None, :], inverse)
    tl.store(out + base + rows[:, None] * SIZE + columns[None, :], inverse)


def invert(lower: Tensor) -> Tensor:
    """(I + L)⁻¹ of strictly lower triangular (…, n, n) float32 matrices, n a power of two."""
    out = torch.empty_like(lower)
    size = lower.shape[-1]
    _invert_kernel[(lower.numel() // size**2,)](lower, out, size, num_warps=4)
    return out


@triton.jit
def _scan_kernel(
    q,
    w,
    u,
    k,
    fade,
    out,
    new,
    states,
    state,
    chunks,
    C: tl.constexpr,
    K: tl.constexpr,
    V: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    head = tl.program_id(0).to(tl.int64)
    c, kk = tl.arange(0, C), tl.arange(0, K)
    vv = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    s = tl.zeros([K, COLUMNS], tl.float32)
    for chunk in range(chunks):
        at = head * chunks + chunk
        keyed = at * C * K + c[:, None] * K + kk[None, :]
        valued = at * C * V + c[:, None] * V + vv[None, :]
        tl.store(states + at * K * V + kk[:, None] * V + vv[None, :], s)
        n = tl.load(u + valued) - tl.dot(tl.load(w + keyed), s)
        tl.store(new + valued, n)
        tl.store(out + valued, tl.dot(tl.load(q + keyed), s))
        turned = at * C * K + c[None, :] * K + kk[:, None]
        s = s * tl.load(fade + at) + tl.dot(tl.load(k + turned), n)
    tl.store(state + head * K * V + kk[:, None] * V + vv[None, :], s)


def scan(
    q: Tensor, w: Tensor, u: Tensor, k: Tensor, fade: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Walk forward.

    Args:
        q: (rows, heads, chunks, tokens, key size) float32, contiguous; so are all.
        w: likewise.
        u: (rows, heads, chunks, tokens, value size).
        k: as ``q``.
        fade: (rows, heads, chunks).

    Returns:
        q S and n, as ``u``; the states before each chunk (rows, heads, chunks, key size, value
        size), and the one after the last.
    """
    rows, heads, chunks, tokens, key_size = q.shape
    size = u.shape[-1]
    out, new = torch.empty_like(u), torch.empty_like(u)
    states = u.new_empty(rows, heads, chunks, key_size, size)
    state = u.new_empty(rows, heads, key_size, size)
    columns = min(COLUMNS, size)
    _scan_kernel[(rows * heads, size // columns)](
        q, w, u, k, fade, out, new, states, state, chunks, tokens, key_size, size, columns,
        num_warps=4, num_stages=1,
    )  # fmt: skip
    return out, new, states, state


@triton.jit
def _scan_backward_kernel(
    q,
    w,
    k,
    fade,
    d_out,
    d_new,
    d_u,
    after,
    chunks,
    C: tl.constexpr,
    K: tl.constexpr,
    V: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    head = tl.program_id(0).to(tl.int64)
    c, kk = tl.arange(0, C), tl.arange(0, K)
    vv = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    ds = tl.zeros([K, COLUMNS], tl.float32)
    for back in range(chunks):
        at = head * chunks + chunks - 1 - back
        keyed = at * C * K + c[:, None] * K + kk[None, :]
        turned = at * C * K + c[None, :] * K + kk[:, None]
        valued = at * C * V + c[:, None] * V + vv[None, :]
        tl.store(after + at * K * V + kk[:, None] * V + vv[None, :], ds)
        dn = tl.load(d_new + valued) + tl.dot(tl.load(k + keyed), ds)
        tl.store(d_u + valued, dn)
        do = tl.load(d_out + valued)
        ds = ds * tl.load(fade + at) + tl.dot(tl.load(q + turned), do)
        ds -= tl.dot(tl.load(w + turned), dn)


def scan_backward(
    q: Tensor, w: Tensor, k: Tensor, fade: Tensor, d_out: Tensor, d_new: Tensor
) -> tuple[Tensor, Tensor]:
    """Walk backward: the gradient of u, and that of the state after each chunk."""
    rows, heads, chunks, tokens, key_size = q.shape
    size = d_out.shape[-1]
    d_u = torch.empty_like(d_out)
    after = q.new_empty(rows, heads, chunks, key_size, size)
    columns = min(COLUMNS, size)
    _scan_backward_kernel[(rows * heads, size // columns)](
        q, w, k, fade, d_out, d_new, d_u, after, chunks, tokens, key_size, size, columns,
        num_warps=4, num_stages=1,
    )  # fmt: skip
    return d_u, after
