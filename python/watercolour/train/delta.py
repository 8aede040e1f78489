"""The gated delta rule over whole sequences, forward and backward, for training on a GPU.

transformers' reference solves the chunks' triangular systems by batched substitution and walks the
chunks in Python, forty steps a layer and pass for 2,500 tokens; flash-linear-attention's backward
refuses the Triton of today's PyTorch on Hopper. Here the systems are inverted by one kernel, and
the walk is one kernel forward and one backward; all else is batched products that autograd knows.

The rule and its chunked form: Yang, Kautz, Hatamizadeh, Gated Delta Networks (2024), §3.3.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

#: Tokens a chunk; the width of the triangular systems.
CHUNK = 64
#: Modules of transformers that call :func:`chunked` already.
_installed: set[str] = set()


def install() -> None:
    """Let transformers' Qwen3.5 layers on a GPU use :func:`chunked` from now on.

    On other devices its own reference computes as before.
    """
    from transformers.models.qwen3_5 import modeling_qwen3_5
    from transformers.models.qwen3_5_moe import modeling_qwen3_5_moe

    modules: tuple[Any, ...] = (modeling_qwen3_5, modeling_qwen3_5_moe)
    for module in modules:
        if module.__name__ not in _installed:
            module.torch_chunk_gated_delta_rule = _dispatch(module.torch_chunk_gated_delta_rule)
            _installed.add(module.__name__)


def _dispatch(reference: Any) -> Any:
    def rule(query: Tensor, key: Tensor, value: Tensor, **rest: Any) -> Any:
        if query.device.type != "cuda" or rest.get("initial_state") is not None:
            return reference(query, key, value, **rest)
        unit, final = rest.get("use_qk_l2norm_in_kernel"), rest.get("output_final_state")
        g, beta = rest["g"], rest["beta"]
        return chunked(query, key, value, g, beta, unit=bool(unit), final=bool(final))

    return rule


def chunked(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    g: Tensor,
    beta: Tensor,
    *,
    unit: bool = True,
    final: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """The delta rule from an empty state.

    Args:
        query: (rows, tokens, key heads, key size).
        key: likewise.
        value: (rows, tokens, value heads, value size).
        g: (rows, tokens, value heads) logarithms of the decays, at most 0.
        beta: (rows, tokens, value heads) strengths of the updates, 0 to 1.
        unit: give queries and keys unit length first.
        final: return the state after the last token too.

    Returns:
        (rows, tokens, value heads, value size) in the type of ``query``, and the state (rows, value
        heads, key size, value size) in float32 or None. The state carries no gradient.
    """
    # Products of float32 stay so, whatever surrounds them: decays multiply over a whole sequence.
    with torch.autocast(query.device.type, enabled=False):
        return _chunked(query, key, value, g, beta, unit, final)


def _chunked(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    g: Tensor,
    beta: Tensor,
    unit: bool,
    final: bool,
) -> tuple[Tensor, Tensor | None]:
    _, tokens, key_heads, key_size = key.shape
    heads = value.shape[2]
    pad = -tokens % CHUNK
    q, k = (_chunks(one, pad, unit) for one in (query, key))
    v = _chunks(value, pad, False)
    if key_heads != heads:
        q, k = (one.repeat_interleave(heads // key_heads, dim=1) for one in (q, k))
    q = q * key_size**-0.5
    strength, decay = (
        functional.pad(one.float().transpose(1, 2), (0, pad)).unflatten(-1, (-1, CHUNK))
        for one in (beta, g)
    )
    total = decay.cumsum(-1)
    between = total.unsqueeze(-1) - total.unsqueeze(-2)
    lower = torch.ones(CHUNK, CHUNK, dtype=torch.bool, device=g.device).tril()
    between = between.masked_fill(~lower, float("-inf")).exp()
    weighted = k * strength.unsqueeze(-1)
    own = (weighted @ k.transpose(-1, -2) * between).tril(-1)
    solved = _Inverse.apply(own)
    u = solved @ (v * strength.unsqueeze(-1))
    w = solved @ (weighted * total.exp().unsqueeze(-1))
    within = q @ k.transpose(-1, -2) * between
    last = total[..., -1:]
    seen, new, state = _Scan.apply(
        q * total.exp().unsqueeze(-1),
        w,
        u,
        k * (last - total).exp().unsqueeze(-1),
        last.squeeze(-1).exp(),
    )
    out = seen + within @ new
    out = out.flatten(2, 3)[:, :, :tokens].transpose(1, 2).to(query.dtype)
    return out.contiguous(), state if final else None


def _chunks(x: Tensor, pad: int, unit: bool) -> Tensor:
    """(rows, heads, chunks, CHUNK, size) in float32."""
    x = x.transpose(1, 2).float()
    if unit:
        x = x * torch.rsqrt(x.square().sum(-1, keepdim=True) + 1e-6)
    return functional.pad(x, (0, 0, 0, pad)).unflatten(2, (-1, CHUNK))


class _Inverse(torch.autograd.Function):
    """(I + L)⁻¹ of strictly lower triangular matrices, by forward substitution."""

    @staticmethod
    def forward(ctx: Any, lower: Tensor) -> Tensor:
        from watercolour.train.delta_kernels import invert

        inverse = invert(lower.contiguous())
        ctx.save_for_backward(inverse)
        return inverse

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        # d(I + L)⁻¹ = -(I + L)⁻¹ dL (I + L)⁻¹
        (inverse,) = ctx.saved_tensors
        turned = inverse.transpose(-1, -2)
        return -(turned @ gradients[0] @ turned).tril(-1)


class _Scan(torch.autograd.Function):
    """The walk over the chunks, in which the state S (key size, value size) is handed on.

    n = u - w S;  o = q S;  S ← S·fade + kᵀ n.
    """

    @staticmethod
    def forward(
        ctx: Any, q: Tensor, w: Tensor, u: Tensor, k: Tensor, fade: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        from watercolour.train.delta_kernels import scan

        q, w, u, k = (one.contiguous() for one in (q, w, u, k))
        out, new, states, state = scan(q, w, u, k, fade.contiguous())
        ctx.save_for_backward(q, w, k, fade, new, states)
        ctx.mark_non_differentiable(state)
        return out, new, state

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, ...]:
        from watercolour.train.delta_kernels import scan_backward

        q, w, k, fade, new, states = ctx.saved_tensors
        out = gradients[0].contiguous()
        du, after = scan_backward(q, w, k, fade.contiguous(), out, gradients[1].contiguous())
        turned = states.transpose(-1, -2)
        dq, dw = out @ turned, -(du @ turned)
        dk = new @ after.transpose(-1, -2)
        return dq, dw, du, dk, (states * after).sum((-1, -2))
