"""What the kernels of a decode step have in common."""

# Triton's own language has no types that a checker could read.
# pyright: basic, reportArgumentType=false, reportIndexIssue=false, reportOperatorIssue=false
# pyright: reportGeneralTypeIssues=false, reportAttributeAccessIssue=false, reportCallIssue=false

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def sigmoid(x):
    """1 / (1 + e^-x)."""
    return 1.0 / (1.0 + tl.exp(-x))


@triton.jit
def rounded(x, like):
    """float32 values as they are after a pass through the type of ``like``."""
    return x.to(like.dtype).to(tl.float32)
