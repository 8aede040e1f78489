"""A generation copy of a policy: projections that share an input fused, the adapter merged in.

Only dense layers are copied (3.2 GB of the 65 of Qwen3.5-35B-A3B): the adapter sits on them alone,
and the routed experts are read in place from the model that is being trained. The copy is made anew
from the pristine base plus B·A in float32 before each rollout, so that nothing ever drifts; it is
written in place, so that captured graphs stay valid.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from watercolour.api.engines import ENGINES


@dataclass(frozen=True)
class Attention:
    """Full attention with normed, rotated queries and keys; gated in Qwen3.5."""

    project: Tensor
    """(heads·size·(2 if gated else 1) + 2·kv heads·size, hidden): queries, keys, values."""
    q_norm: Tensor
    """(size,) float32, the factor itself."""
    k_norm: Tensor
    out: Tensor
    """(hidden, heads·size)"""
    gated: bool


@dataclass(frozen=True)
class Delta:
    """A gated delta rule layer, the linear attention of Qwen3.5."""

    project: Tensor
    """(2·key width + 2·value width + 2·value heads, hidden): q, k, v, z, b, a."""
    conv: Tensor
    """(2·key width + value width, taps)"""
    decay: Tensor
    """(value heads,) float32: -exp(A_log)."""
    dt_bias: Tensor
    """(value heads,) float32"""
    norm: Tensor
    """(value head size,)"""
    out: Tensor
    """(hidden, value width)"""


@dataclass(frozen=True)
class Experts:
    """Routed experts and the shared one, which is a further expert with a gate of its own."""

    route: Tensor
    """(experts + 1, hidden): the router, then the shared expert's gate."""
    gate_up: Tensor
    """(experts, 2·width, hidden), the model's own."""
    down: Tensor
    """(experts, hidden, width), the model's own."""
    shared_gate_up: Tensor
    """(2·width, hidden)"""
    shared_down: Tensor
    """(hidden, width)"""
    chosen: int
    """Routed experts a token."""


@dataclass(frozen=True)
class Dense:
    """An ordinary gated feed-forward layer."""

    gate_up: Tensor
    """(2·width, hidden)"""
    down: Tensor
    """(hidden, width)"""


@dataclass(frozen=True)
class Layer:
    """One decoder layer; its norms are the factors themselves, in float32."""

    before: Tensor
    mixer: Attention | Delta
    between: Tensor
    mlp: Experts | Dense


@dataclass(frozen=True)
class Sizes:
    """The numbers that shapes are made of."""

    hidden: int
    heads: int
    kv_heads: int
    size: int
    key_heads: int
    value_heads: int
    key_size: int
    value_size: int
    taps: int
    eps: float


@dataclass(frozen=True)
class Weights:
    """Everything that a step reads."""

    layers: tuple[Layer, ...]
    embed: Tensor
    norm: Tensor
    head: Tensor
    cos: Tensor
    """(positions, rotated dimensions)"""
    sin: Tensor
    sizes: Sizes
    stream: torch.dtype
    """Of the sum that runs through the layers: the policy's own, or float32."""
    #: Each copied slice and the linear layer that it is made from.
    sources: tuple[tuple[Tensor, Any], ...] = field(repr=False, default=())


def causal_lm(model: nn.Module) -> Any:
    """The transformers model inside a PEFT wrapper, or the model itself."""
    inner: Any = model
    return inner.get_base_model() if hasattr(inner, "get_base_model") else inner


#: Where a body says the type of the sum through its layers, if that is not its weights'.
STREAM = "stream_dtype"


def stream_of(body: Any) -> torch.dtype:
    """The type of the sum that runs through a body's layers."""
    return getattr(body, STREAM, body.embed_tokens.weight.dtype)


#: Model types whose step is computed here. The dense ones lack experts, Qwen3 linear attention too.
MODEL_TYPES = ENGINES["static"].models


def unfit(model: nn.Module) -> str:
    """Why this engine cannot compute what the model computes; empty when it can."""
    config = causal_lm(model).config
    if config.model_type not in MODEL_TYPES:
        return f"it knows {', '.join(MODEL_TYPES)} and not {config.model_type}"
    if config.rope_parameters.get("rope_type", "default") != "default":
        return f"rope_type {config.rope_parameters['rope_type']} is not the default"
    kinds = set(config.layer_types) - {"full_attention", "linear_attention"}
    if kinds:
        return f"it has layers of type {', '.join(sorted(kinds))}"
    if config.hidden_act != "silu" or config.attention_bias:
        return "its activation is not silu, or its attention has biases"
    width = getattr(config, "moe_intermediate_size", 0)
    if width != getattr(config, "shared_expert_intermediate_size", width):
        return "its shared expert is not as wide as the routed ones"
    names = [name for name, _ in model.named_parameters()]
    if any("lora_magnitude_vector" in name for name in names):
        return "its adapter is DoRA, which does not merge into a sum"
    if any(".experts." in name and "lora_" in name for name in names):
        return "its adapter is on the routed experts, which are shared with training"
    return ""


class _Copy:
    """Allocates fused copies and remembers what each slice is made from."""

    def __init__(self) -> None:
        self.sources: list[tuple[Tensor, Any]] = []

    def fused(self, *parts: Any) -> Tensor:
        """One matrix over several linear layers or plain weights, rows in their order."""
        weights: list[Tensor] = [_base(part) for part in parts]
        whole = torch.empty(
            sum(len(weight) for weight in weights),
            weights[0].shape[1],
            dtype=weights[0].dtype,
            device=weights[0].device,
        )
        start = 0
        for part, weight in zip(parts, weights, strict=True):
            self.sources.append((whole[start : start + len(weight)], part))
            start += len(weight)
        return whole


def _base(part: Any) -> Tensor:
    if isinstance(part, Tensor):
        return part
    return part.base_layer.weight if hasattr(part, "base_layer") else part.weight


@torch.no_grad()
def build(model: nn.Module, positions: int) -> Weights:
    """Lay the generation copy out, for sequences of up to ``positions`` tokens, and fill it."""
    policy = causal_lm(model)
    config = policy.config
    centred = config.model_type != "qwen3"
    copy = _Copy()
    body = policy.model
    layers = tuple(_layer(block, copy, centred) for block in body.layers)
    place = torch.arange(positions, device=body.embed_tokens.weight.device).unsqueeze(0)
    cos, sin = body.rotary_emb(body.embed_tokens.weight[:1].unsqueeze(0), place)
    weights = Weights(
        layers=layers,
        embed=body.embed_tokens.weight.detach(),
        norm=_factor(body.norm, centred),
        head=_base(policy.lm_head).detach(),
        cos=cos[0].contiguous(),
        sin=sin[0].contiguous(),
        sizes=_sizes(config),
        stream=stream_of(body),
        sources=tuple(copy.sources),
    )
    refresh(weights)
    return weights


@torch.no_grad()
def refresh(weights: Weights) -> None:
    """Write base + B·A into every copied slice, summed in float32."""
    for target, part in weights.sources:
        target.copy_(effective(part))


def effective(part: Any) -> Tensor:
    """A linear layer's weight in its own type, its active adapters added in float32."""
    base = _base(part)
    active: list[str] = getattr(part, "active_adapters", [])
    deltas: list[Tensor] = [part.get_delta_weight(one) for one in active if one in part.lora_A]
    if not deltas:
        return base
    return sum((delta.float() for delta in deltas), base.float()).to(base.dtype)


def _sizes(config: Any) -> Sizes:
    def of(name: str) -> int:
        return int(getattr(config, name, 0) or 0)

    return Sizes(
        hidden=config.hidden_size,
        heads=config.num_attention_heads,
        kv_heads=config.num_key_value_heads,
        size=config.head_dim,
        key_heads=of("linear_num_key_heads"),
        value_heads=of("linear_num_value_heads"),
        key_size=of("linear_key_head_dim"),
        value_size=of("linear_value_head_dim"),
        taps=of("linear_conv_kernel_dim"),
        eps=config.rms_norm_eps,
    )


def _factor(norm: Any, centred: bool) -> Tensor:
    weight: Tensor = norm.weight.detach().float()
    return weight + 1.0 if centred else weight.clone()


def _layer(block: Any, copy: _Copy, centred: bool) -> Layer:
    linear = hasattr(block, "linear_attn")
    return Layer(
        before=_factor(block.input_layernorm, centred),
        mixer=_delta(block.linear_attn, copy) if linear else _attention(block.self_attn, copy),
        between=_factor(block.post_attention_layernorm, centred),
        mlp=_mlp(block.mlp, copy),
    )


def _attention(module: Any, copy: _Copy) -> Attention:
    config = module.config
    centred = config.model_type != "qwen3"
    return Attention(
        project=copy.fused(module.q_proj, module.k_proj, module.v_proj),
        q_norm=_factor(module.q_norm, centred),
        k_norm=_factor(module.k_norm, centred),
        out=copy.fused(module.o_proj),
        gated=len(_base(module.q_proj)) == 2 * config.num_attention_heads * module.head_dim,
    )


def _delta(module: Any, copy: _Copy) -> Delta:
    return Delta(
        project=copy.fused(
            module.in_proj_qkv, module.in_proj_z, module.in_proj_b, module.in_proj_a
        ),
        conv=module.conv1d.weight.detach().squeeze(1).contiguous(),
        decay=-module.A_log.detach().float().exp(),
        dt_bias=module.dt_bias.detach().float(),
        norm=module.norm.weight.detach(),
        out=copy.fused(module.out_proj),
    )


def _mlp(module: Any, copy: _Copy) -> Experts | Dense:
    if not hasattr(module, "experts"):
        return Dense(copy.fused(module.gate_proj, module.up_proj), copy.fused(module.down_proj))
    shared = module.shared_expert
    return Experts(
        route=copy.fused(module.gate.weight, module.shared_expert_gate),
        gate_up=module.experts.gate_up_proj.detach(),
        down=module.experts.down_proj.detach(),
        shared_gate_up=copy.fused(shared.gate_proj, shared.up_proj),
        shared_down=copy.fused(shared.down_proj),
        chosen=module.gate.top_k,
    )
