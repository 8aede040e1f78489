"""Runs the Triton kernels in Triton's interpreter, on the CPU, and compares; prints JSON.

A process of its own, because the interpreter is chosen before Triton is imported.
"""

from __future__ import annotations

import json
import os

os.environ["TRITON_INTERPRET"] = "1"

import torch
from torch import Tensor
from transformers.models.qwen3_5_moe import modeling_qwen3_5_moe as modeling

from watercolour.train import delta
from watercolour.train.decode import torch_ops, triton_ops
from watercolour.train.decode.state import State
from watercolour.train.decode.weights import Attention, Delta, Experts, Sizes, Weights

SIZES = Sizes(64, 4, 2, 32, 2, 4, 16, 16, 4, 1e-6)
CHANNELS = 2 * 2 * 16 + 4 * 16
SLOTS = torch.tensor([2, 0, 3])
NONE = torch.empty(0)


def apart(ours: Tensor, theirs: Tensor) -> float:
    """The greatest difference."""
    return float((ours.float() - theirs.float()).abs().max())


def step_operations() -> dict[str, float]:
    """Every operation of a decode step, state included, on random values."""
    found: dict[str, float] = {}
    x, y, many = torch.randn(3, 64), torch.randn(3, 64), torch.randn(3, 5, 64)
    factor = torch.rand(64) + 0.5
    found["norm"] = apart(
        triton_ops.norm(x, factor, 1e-6, x.dtype), torch_ops.norm(x, factor, 1e-6, x.dtype)
    )
    for name, added in (("add_norm", y), ("add_norm of many", many)):
        pairs = zip(
            triton_ops.add_norm(x, added, factor, 1e-6, x.dtype),
            torch_ops.add_norm(x, added, factor, 1e-6, x.dtype),
            strict=True,
        )
        found[name] = max(apart(*pair) for pair in pairs)
    gate_up = torch.randn(3, 96)
    found["swiglu"] = apart(triton_ops.swiglu(gate_up), torch_ops.swiglu(gate_up))
    found["head"] = apart(triton_ops.head(x, gate_up[:, :64]), torch_ops.head(x, gate_up[:, :64]))
    found["delta"] = _delta()
    found["attention"] = _attention(gated=False)
    found["gated attention"] = _attention(gated=True)
    scores = torch.randn(3, 9)
    (chosen, shares), (chosen2, shares2) = triton_ops.route(scores, 2), torch_ops.route(scores, 2)
    found["route"] = apart(shares, shares2) + apart(chosen, chosen2)
    layer = Experts(
        NONE,
        torch.randn(8, 64, 64) * 0.1,
        torch.randn(8, 64, 32) * 0.1,
        torch.randn(64, 64) * 0.1,
        torch.randn(64, 32) * 0.1,
        2,
    )
    found["experts"] = apart(
        triton_ops.experts(x, layer, chosen, shares), torch_ops.experts(x, layer, chosen, shares)
    )
    return found


def _delta() -> float:
    layer = Delta(
        NONE, torch.randn(CHANNELS, 4), -torch.rand(4), torch.randn(4), torch.rand(16), NONE
    )
    lengths = torch.tensor([0, 2, 7, 1, 3], dtype=torch.int32)
    projected = torch.randn(3, CHANNELS + 64 + 8)
    recurrent, inputs = torch.randn(5, 4, 16, 16) * 0.3, torch.randn(5, 4, CHANNELS)
    results = []
    for ops in (triton_ops, torch_ops):
        state = State(NONE, NONE, recurrent.clone()[None], inputs.clone()[None], lengths)
        out = ops.delta(projected, layer, state, 0, SLOTS, SIZES)
        results.append((out, state.recurrent, state.inputs))
    return max(apart(*pair) for pair in zip(*results, strict=True))


def _attention(*, gated: bool) -> float:
    factor = torch.rand(32) + 0.5
    layer = Attention(NONE, factor, factor.flip(0), NONE, gated)
    rotated = 8 if gated else 32
    cos, sin = torch.randn(300, rotated), torch.randn(300, rotated)
    keys = torch.randn(5, 2, 256, 32)
    lengths = torch.tensor([200, 5, 0, 33, 7], dtype=torch.int32)
    projected = torch.randn(3, (8 if gated else 4) * 32 + 4 * 32)
    weights = Weights((), NONE, NONE, NONE, cos, sin, SIZES, torch.float32)
    results = []
    for ops in (triton_ops, torch_ops):
        state = State(keys.clone()[None], keys.flip(-1).clone()[None], NONE, NONE, lengths)
        out = ops.attention(projected, layer, state, 0, SLOTS, weights)
        results.append((out, state.keys, state.values))
    return max(apart(*pair) for pair in zip(*results, strict=True))


def delta_rule() -> dict[str, float]:
    """The chunked rule against transformers' reference: outputs, state and gradients."""
    shapes = ((1, 130, 1, 16), (1, 130, 1, 16), (1, 130, 2, 16))
    values = [torch.randn(shape) for shape in shapes]
    values += [-torch.rand(1, 130, 2) * 0.3, torch.rand(1, 130, 2)]
    results: list[list[Tensor]] = []
    for ours in (True, False):
        given = [value.clone().requires_grad_() for value in values]
        q, k, v, g, beta = given
        if ours:
            # As in training, where everything around it is computed in bfloat16.
            with torch.autocast("cpu", dtype=torch.bfloat16):
                out, state = delta.chunked(q, k, v, g, beta, final=True)
        else:
            out, state = modeling.torch_chunk_gated_delta_rule(
                q, k, v, g=g, beta=beta, use_qk_l2norm_in_kernel=True, output_final_state=True
            )
        assert state is not None
        (out * torch.linspace(-9, 9, out.numel()).view_as(out).sin()).sum().backward()
        gradients = [one.grad for one in given if one.grad is not None]
        results.append([out.detach(), state.detach(), *gradients])
    names = ("out", "state", "dq", "dk", "dv", "dg", "dbeta")
    return {
        f"delta rule {name}": apart(a, b) / float(b.abs().max())
        for name, a, b in zip(names, *results, strict=True)
    }


if __name__ == "__main__":
    torch.manual_seed(0)
    torch.set_num_threads(1)
    print(json.dumps(step_operations() | delta_rule()))
