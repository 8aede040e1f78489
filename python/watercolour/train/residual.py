"""The sum that runs through a policy's layers, in float32 where the weights are bfloat16.

Every layer adds something small to it. Rounded to bfloat16 after each of the eighty additions of
Qwen3.5-35B-A3B, it turns the last bits in which two orders of summation differ into whole steps of
its own, one in some hundreds of its value, and that is most of what parts sampler and training.
What the layers compute stays bfloat16: they read the sum through its norm.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from watercolour.train.decode.weights import MODEL_TYPES, STREAM, causal_lm, stream_of


def widen(model: nn.Module) -> bool:
    """Have the policy keep that sum in float32 from now on, in training and generation alike.

    Returns:
        Whether it does. It does not where its parts are not known, or its weights are float32.
    """
    policy = causal_lm(model)
    if policy.config.model_type not in MODEL_TYPES or stream_of(policy.model) == torch.float32:
        return False
    body = policy.model
    kind: torch.dtype = body.embed_tokens.weight.dtype

    def narrow(_module: nn.Module, _args: Any, out: Tensor) -> Tensor:
        return out.to(kind)

    def narrow_both(_module: nn.Module, _args: Any, out: tuple[Tensor, Tensor]) -> Any:
        return out[0].to(kind), out[1].to(kind)

    def wide(_module: nn.Module, _args: Any, out: Tensor) -> Tensor:
        return out.float()

    body.embed_tokens.register_forward_hook(wide)
    body.norm.register_forward_hook(narrow)
    # The rotations take the type of what they are shown, which is the sum.
    body.rotary_emb.register_forward_hook(narrow_both)
    for block in body.layers:
        block.input_layernorm.register_forward_hook(narrow)
        block.post_attention_layernorm.register_forward_hook(narrow)
    setattr(body, STREAM, torch.float32)
    return True
