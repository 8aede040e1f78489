"""A decode loop of our own for small Qwen3 policies on the CPU.

transformers' ``generate`` spends most of a small model's step outside the matrix products. Here
keys and values are allocated once, projections that share an input are one product, grouped
queries need no repeated keys, and rows that have ended leave the batch. The LoRA adapter is
merged into a copy made from the pristine base and B·A before each rollout, so nothing drifts.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from watercolour.api.trainer import Decoding
from watercolour.train.decode.weights import causal_lm, effective
from watercolour.train.sampling import OnRow, Row, Stop, choose, uniforms

#: Below this width one thread decodes faster than two: the products are so small that threads
#: spend their time waiting for one another, the more so while the renderers use the cores.
WIDE = 512
#: Ended rows leave the batch once they are this share of it: moving the cache has a price too.
RETIRE_SHARE = 0.2


@dataclass(frozen=True)
class Layer:
    """One decoder layer's weights, transposed for ``x @ w`` and with the norms folded in."""

    qkv: Tensor
    """(hidden, (heads + 2·kv heads)·head size)"""
    qk_norm: Tensor
    """(heads + kv heads, head size)"""
    out: Tensor
    """(heads·head size, hidden)"""
    gate_up: Tensor
    """(hidden, 2·intermediate)"""
    down: Tensor
    """(intermediate, hidden)"""


@dataclass(frozen=True)
class Weights:
    """A generation copy of a Qwen3 policy with its adapter merged."""

    layers: tuple[Layer, ...]
    embed: Tensor
    head: Tensor
    cos: Tensor
    sin: Tensor
    heads: int
    kv_heads: int
    head_size: int
    eps: float


def supports(model: nn.Module) -> bool:
    """Whether this loop computes what the model computes: a plain dense Qwen3 on the CPU."""
    policy = causal_lm(model)
    config = policy.config
    if config.model_type != "qwen3" or policy.device.type != "cpu":
        return False
    plain_rope = config.rope_parameters.get("rope_type", "default") == "default"
    full = all(kind == "full_attention" for kind in config.layer_types)
    plain = config.hidden_act == "silu" and not config.attention_bias
    dora = any("lora_magnitude_vector" in name for name, _ in model.named_parameters())
    return plain_rope and full and plain and not dora


def _layer(block: Any) -> Layer:
    attention, mlp = block.self_attn, block.mlp
    before, between = block.input_layernorm.weight, block.post_attention_layernorm.weight
    kv_heads = attention.config.num_key_value_heads
    heads = attention.config.num_attention_heads
    # The query's norm carries the attention's scale, so that scores need no further product.
    q_norm = (attention.q_norm.weight * attention.scaling).expand(heads, -1)
    k_norm = attention.k_norm.weight.expand(kv_heads, -1)
    qkv = [effective(p) for p in (attention.q_proj, attention.k_proj, attention.v_proj)]
    gate_up = [effective(p) for p in (mlp.gate_proj, mlp.up_proj)]
    return Layer(
        qkv=(torch.cat(qkv) * before).t().contiguous(),
        qk_norm=torch.cat([q_norm, k_norm]).contiguous(),
        out=effective(attention.o_proj).t().contiguous(),
        gate_up=(torch.cat(gate_up) * between).t().contiguous(),
        down=effective(mlp.down_proj).t().contiguous(),
    )


@torch.no_grad()
def merged(model: nn.Module, positions: int) -> Weights:
    """Copy the policy for generation, its adapter merged, with rotations for ``positions``."""
    policy = causal_lm(model)
    config = policy.config
    size = config.head_dim
    theta = config.rope_parameters["rope_theta"]
    frequency = 1.0 / theta ** (torch.arange(0, size, 2, dtype=torch.float) / size)
    angle = torch.outer(torch.arange(positions).float(), frequency)
    sine = angle.sin()
    return Weights(
        layers=tuple(_layer(block) for block in policy.model.layers),
        embed=policy.model.embed_tokens.weight,
        head=(policy.lm_head.weight * policy.model.norm.weight).t().contiguous(),
        cos=torch.cat([angle.cos(), angle.cos()], -1),
        # rotate_half swaps the halves and negates the first: here the sine carries the sign.
        sin=torch.cat([-sine, sine], -1),
        heads=config.num_attention_heads,
        kv_heads=config.num_key_value_heads,
        head_size=size,
        eps=config.rms_norm_eps,
    )


def _normed(x: Tensor, eps: float) -> Tensor:
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps)


def _rotated(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    first, second = x.chunk(2, -1)
    return x * cos + torch.cat([second, first], -1) * sin


def forward(
    weights: Weights,
    tokens: Tensor,
    positions: Tensor,
    cache: Tensor,
    start: int,
    hidden: Tensor | None,
) -> Tensor:
    """Logits after the last of the given tokens; writes their keys and values to the cache.

    Args:
        weights: the generation copy.
        tokens: (rows, length).
        positions: (rows, length) rotary positions; negative means padding, which is hidden.
        cache: (layers, 2, rows, kv heads, capacity, head size).
        start: first cache slot to write.
        hidden: (rows, capacity) added to the scores of a slot: 0, or -inf for padding; None if
            no row is padded.

    Returns:
        (rows, vocabulary).
    """
    rows, length = tokens.shape
    heads, kv_heads, size = weights.heads, weights.kv_heads, weights.head_size
    groups, end = heads // kv_heads, start + length
    place = positions.clamp(min=0)
    cos, sin = weights.cos[place].unsqueeze(2), weights.sin[place].unsqueeze(2)
    mask = _mask(hidden, length, start, groups, cache.dtype)
    x = weights.embed[tokens]
    for layer, (keys, values) in zip(weights.layers, cache, strict=True):
        qkv = (_normed(x, weights.eps) @ layer.qkv).view(rows, length, heads + 2 * kv_heads, size)
        qk = _normed(qkv[:, :, : heads + kv_heads], weights.eps) * layer.qk_norm
        qk = _rotated(qk, cos, sin)
        keys[:, :, start:end] = qk[:, :, heads:].transpose(1, 2)
        values[:, :, start:end] = qkv[:, :, heads + kv_heads :].transpose(1, 2)
        # Queries that share a key head stand in one block, so keys are never repeated.
        query = qk[:, :, :heads].view(rows, length, kv_heads, groups, size)
        query = query.permute(0, 2, 3, 1, 4).reshape(rows, kv_heads, groups * length, size)
        mixed = functional.scaled_dot_product_attention(
            query, keys[:, :, :end], values[:, :, :end], attn_mask=mask, scale=1.0
        )
        mixed = mixed.view(rows, kv_heads, groups, length, size).permute(0, 3, 1, 2, 4)
        x = x + mixed.reshape(rows, length, heads * size) @ layer.out
        gate, up = (_normed(x, weights.eps) @ layer.gate_up).chunk(2, -1)
        x = x + (functional.silu(gate) * up) @ layer.down
    return _normed(x[:, -1], weights.eps) @ weights.head


def _mask(
    hidden: Tensor | None, length: int, start: int, groups: int, dtype: torch.dtype
) -> Tensor | None:
    """What each query may not see: (rows or 1, 1, groups·length, start+length), or None."""
    if length == 1:
        return None if hidden is None else hidden[:, None, None, : start + 1]
    future = torch.full((length, start + length), float("-inf"), dtype=dtype).triu(start + 1)
    mask = future.repeat(groups, 1)[None, None]
    if hidden is None:
        return mask
    # A padded query sees nothing at all; a finite floor keeps its softmax free of NaN.
    return (mask + hidden[:, None, None, : start + length]).clamp(min=torch.finfo(dtype).min)


@dataclass
class _Batch:
    """The rows still in the batch; every tensor's first dimension is the batch."""

    rows: Tensor
    """(batch,) each slot's row among the prompts"""
    live: Tensor
    """(batch,) false once the row has ended"""
    chance: Tensor
    shift: Tensor
    hidden: Tensor | None
    cache: Tensor
    """(layers, 2, batch, kv heads, capacity, head size)"""

    def retire(self) -> Tensor | None:
        """Drop ended rows if they are many; the kept slots, or None if nothing moved."""
        if int(self.live.sum()) > (1 - RETIRE_SHARE) * len(self.live):
            return None
        keep = self.live.nonzero().squeeze(-1)
        self.rows, self.live = self.rows[keep], self.live[keep]
        self.chance, self.shift = self.chance[keep], self.shift[keep]
        self.hidden = None if self.hidden is None else self.hidden[keep]
        self.cache = self.cache[:, :, keep]
        return keep


def _start(
    weights: Weights, prompts: Sequence[Sequence[int]], chance: Tensor
) -> tuple[_Batch, Tensor, int]:
    """Read the prompts, left-padded to one width; the batch, the first logits and the width."""
    widths = torch.tensor([len(prompt) for prompt in prompts])
    width = int(widths.max())
    capacity = width + chance.shape[1]
    tokens = torch.zeros(len(prompts), width, dtype=torch.long)
    for row, prompt in enumerate(prompts):
        tokens[row, width - len(prompt) :] = torch.tensor(prompt)
    shift = (width - widths).unsqueeze(-1)
    dtype = weights.embed.dtype
    hidden = None
    if int(shift.max()):
        hidden = torch.zeros(len(prompts), capacity, dtype=dtype)
        hidden.masked_fill_(torch.arange(capacity) < shift, float("-inf"))
    shape = (len(weights.layers), 2, len(prompts), weights.kv_heads, capacity, weights.head_size)
    everyone = torch.arange(len(prompts))
    live = torch.ones(len(prompts), dtype=torch.bool)
    batch = _Batch(everyone, live, chance, shift, hidden, torch.zeros(shape, dtype=dtype))
    logits = forward(weights, tokens, torch.arange(width) - shift, batch.cache, 0, hidden)
    return batch, logits, width


@contextmanager
def decoding_threads(width: int) -> Generator[None]:
    """As many threads as a model of that hidden size decodes fastest with."""
    before = torch.get_num_threads()
    torch.set_num_threads(1 if width < WIDE else before)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@torch.inference_mode()
def generate(
    weights: Weights,
    prompts: Sequence[Sequence[int]],
    seeds: Sequence[int],
    sampling: Decoding,
    ends: frozenset[int],
    on_row: OnRow,
    stop: Stop,
) -> list[Row]:
    """Complete every prompt; ``on_row`` hears of a row in the step in which it ends."""
    limit = sampling.max_completion_tokens
    tokens = torch.zeros(len(prompts), limit, dtype=torch.long)
    logs = torch.zeros(len(prompts), limit)
    done: dict[int, Row] = {}

    def finish(row: int, length: int, truncated: bool) -> None:
        ids, log_probabilities = tokens[row, :length].tolist(), logs[row, :length].tolist()
        done[row] = Row(tuple(ids), tuple(log_probabilities), truncated)
        on_row(row, done[row])

    end_tokens = torch.tensor(sorted(ends))
    chance = uniforms(seeds, limit)
    with decoding_threads(weights.embed.shape[-1]):
        batch, logits, width = _start(weights, prompts, chance)
        for index in range(limit):
            stop()
            drawn, drawn_logs = choose(logits, batch.chance[:, index], sampling)
            tokens[batch.rows, index], logs[batch.rows, index] = drawn, drawn_logs
            ended = torch.isin(drawn, end_tokens) & batch.live
            if bool(ended.any()):
                for row in batch.rows[ended].tolist():
                    finish(row, index + 1, truncated=False)
                batch.live &= ~ended
                if not bool(batch.live.any()):
                    break
                kept = batch.retire()
                drawn = drawn if kept is None else drawn[kept]
            if index + 1 < limit:
                place = width + index
                column = drawn.unsqueeze(-1)
                logits = forward(
                    weights, column, place - batch.shift, batch.cache, place, batch.hidden
                )
    for row in range(len(prompts)):
        if row not in done:
            finish(row, limit, truncated=True)
    return [done[row] for row in range(len(prompts))]
