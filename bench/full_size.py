"""Qwen3.5-35B-A3B in its true shape with random weights, for benchmarks on one large GPU."""

from __future__ import annotations

from typing import Any

import torch
from peft import LoraConfig, get_peft_model
from transformers.models.qwen3_5_moe import modeling_qwen3_5_moe as modeling
from transformers.models.qwen3_5_moe.configuration_qwen3_5_moe import Qwen3_5MoeTextConfig

#: Standard deviation of the router's weights.
ROUTER = 0.1


def policy(*, rank: int = 16, adapter: float = 0.002, device: str = "cuda", **shape: Any) -> Any:
    """The policy with a LoRA adapter on all linear layers, bfloat16, on the GPU.

    The adapter's B is random too, with the standard deviation ``adapter``, so that merging it
    changes something. ``shape`` changes the configuration, for a trial on a small machine.
    """
    adapted: Any = get_peft_model(bare(device=device, **shape), lora(rank))
    for name, parameter in adapted.named_parameters():
        if "lora_B" in name:
            parameter.data.normal_(0, adapter)
    return adapted


def lora(rank: int = 16) -> LoraConfig:
    """The adapter's configuration."""
    return LoraConfig(r=rank, lora_alpha=2 * rank, target_modules="all-linear", bias="none")


def bare(*, device: str = "cuda", **shape: Any) -> Any:
    """The policy without an adapter."""
    torch.manual_seed(0)
    config = Qwen3_5MoeTextConfig(**shape)
    layers = config.num_hidden_layers
    config._attn_implementation = "sdpa"  # pyright: ignore[reportPrivateUsage]
    with torch.device("meta"):
        model: Any = modeling.Qwen3_5MoeForCausalLM(config)
    model = model.to(torch.bfloat16).to_empty(device=device)
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(False)
        if name.endswith("A_log"):
            parameter.data.uniform_(0.01, 16).log_()
        elif name.endswith(("dt_bias", "linear_attn.norm.weight")):
            parameter.data.fill_(1)
        elif name.endswith("mlp.gate.weight"):
            # A trained router is sure of its choice; an even one would let rounding choose.
            parameter.data.normal_(0, ROUTER)
        elif name.endswith(("o_proj.weight", "out_proj.weight", "down_proj.weight", "down_proj")):
            parameter.data.normal_(0, 0.02 / (2 * layers) ** 0.5)
        elif name.endswith("embed_tokens.weight"):
            # In a trained model the residual stream outweighs what one layer adds to it.
            parameter.data.normal_(0, 1)
        elif parameter.dim() > 1:
            parameter.data.normal_(0, 0.02)
        else:
            parameter.data.zero_()
    model.model.rotary_emb = modeling.Qwen3_5MoeTextRotaryEmbedding(config).to(device)
    model.set_experts_implementation("grouped_mm")
    return model
