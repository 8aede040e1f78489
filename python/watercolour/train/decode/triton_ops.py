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

from watercolour.train.decode.triton_attention import attention
from watercolour.train.decode.triton_delta import delta
from watercolour.train.decode.triton_experts import experts, route
from watercolour.train.decode.triton_math import rounded, sigmoid
from watercolour.train.head import product

__all__ = ["add_norm", "attention", "delta", "experts", "head", "norm", "route", "swiglu"]


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
        added = added.to(out_h.dtype.element_ty).to(tl.float32)
        v = (v.to(tl.float32) + added).to(v.dtype)
        tl.store(out_x + row * width + at, v, mask=inside)
    wide = v.to(tl.float32)
    scale = tl.rsqrt(tl.sum(wide * wide, 0) / width + eps)
    f = tl.load(factor + at, mask=inside, other=0.0)
    tl.store(out_h + row * width + at, (wide * scale * f).to(out_h.dtype.element_ty), mask=inside)


def norm(x: Tensor, factor: Tensor, eps: float, kind: torch.dtype) -> Tensor:
    """Root-mean-square norm over the last dimension, in float32, rounded to ``kind``."""
    rows, width = x.shape
    out = torch.empty_like(x, dtype=kind)
    block = triton.next_power_of_2(width)
    _add_norm_kernel[(rows,)](x, x, factor, x, out, width, eps, 0, block, num_warps=8)
    return out


def add_norm(
    x: Tensor, y: Tensor, factor: Tensor, eps: float, kind: torch.dtype
) -> tuple[Tensor, Tensor]:
    """The new residual x + y in the type of x, and its norm in ``kind``.

    ``y`` of three dimensions is summed over the second and rounded to ``kind``.
    """
    rows, width = x.shape
    many = y.shape[1] if y.dim() == 3 else 1
    added, out = torch.empty_like(x), torch.empty_like(x, dtype=kind)
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
    wide = rounded(wide * sigmoid(wide), gate) * up.to(tl.float32)
    tl.store(out + row * width + at, wide.to(gate.dtype), mask=inside)


def swiglu(gate_up: Tensor) -> Tensor:
    """silu(gate)·up of (rows, 2·width)."""
    rows, width = gate_up.shape[0], gate_up.shape[1] // 2
    out = gate_up.new_empty(rows, width)
    _swiglu_kernel[(rows, triton.cdiv(width, 1024))](gate_up, out, width, 1024)
    return out


def head(x: Tensor, weight: Tensor) -> Tensor:
    """Logits (rows, vocabulary) in float32: rounded to bfloat16 they would be off by up to 0.03."""
    return product(x, weight.t())
