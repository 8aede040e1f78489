"""One decode step: the newest token of every row in, the logits of the next one out."""

from __future__ import annotations

from types import ModuleType

from torch import Tensor
from torch.nn.functional import linear

from watercolour.train.decode import torch_ops
from watercolour.train.decode.state import State
from watercolour.train.decode.weights import Attention, Experts, Weights


def ops_for(weights: Weights) -> ModuleType:
    """The operations that suit the weights' device."""
    if weights.embed.device.type != "cuda":
        return torch_ops
    from watercolour.train.decode import triton_ops

    return triton_ops


def forward(
    weights: Weights, state: State, tokens: Tensor, slots: Tensor, ops: ModuleType
) -> Tensor:
    """Logits after one more token a row; the state takes the token up, its lengths do not.

    Args:
        weights: the generation copy.
        state: the caches.
        tokens: (rows,) the newest token of each row.
        slots: (rows,) the slot of each row.
        ops: :mod:`torch_ops` or :mod:`triton_ops`.

    Returns:
        (rows, vocabulary).
    """
    sizes, eps = weights.sizes, weights.sizes.eps
    x = weights.embed[tokens]
    kind = x.dtype
    x = x.to(weights.stream)
    h = ops.norm(x, weights.layers[0].before, eps, kind)
    full = delta = 0
    for number, layer in enumerate(weights.layers):
        mixer, mlp = layer.mixer, layer.mlp
        projected = linear(h, mixer.project)
        if isinstance(mixer, Attention):
            mixed = ops.attention(projected, mixer, state, full, slots, weights)
            full += 1
        else:
            mixed = ops.delta(projected, mixer, state, delta, slots, sizes)
            delta += 1
        x, h = ops.add_norm(x, linear(mixed, mixer.out), layer.between, eps, kind)
        if isinstance(mlp, Experts):
            chosen, shares = ops.route(linear(h, mlp.route), mlp.chosen)
            y = ops.experts(h, mlp, chosen, shares)
        else:
            y = linear(ops.swiglu(linear(h, mlp.gate_up)), mlp.down)
        last = number + 1 == len(weights.layers)
        factor = weights.norm if last else weights.layers[number + 1].before
        x, h = ops.add_norm(x, y, factor, eps, kind)
    return ops.head(h, weights.head)
