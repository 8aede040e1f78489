"""The log-probabilities that training compares, from logits in float32 as the sampler's are.

TRL scores tokens by tiles of logits in the policy's own type. In bfloat16 a logit around 4 is off
by up to 0.016 then, which is more than all else that parts sampler and training. Here the product
keeps the sums of its float32 accumulation; what enters it is as before. Some tokens at a time have
their logits, over the whole vocabulary, and they are computed again for the gradient.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

#: Tokens that have their logits at a time: 0.5 GB over Qwen3.5's 248,320 words.
TOKENS = 512

#: Log-probabilities, entropies, and three more that only other trainers of TRL's ask for.
Scores = tuple[Tensor, Tensor | None, None, None, None]


def install() -> None:
    """Let TRL's chunked head use :func:`scores` from now on.

    Heads with a bias, a cap or a scale stay TRL's.
    """
    from trl.trainer import utils

    names: Any = utils
    stock = names._ChunkedLogProbFunction
    if stock is not _Head:
        _Head.stock = stock
        names._ChunkedLogProbFunction = _Head


class _Head:
    """Stands where TRL has its function, and is called as that is."""

    stock: Any

    @classmethod
    def apply(
        cls,
        hidden: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        targets: Tensor,
        temperature: float,
        size: int,
        cap: float | None,
        scale: float,
        outputs: tuple[str, ...],
    ) -> Any:
        ours = (
            bias is None and cap is None and scale == 1 and {*outputs} <= {"log_probs", "entropy"}
        )
        if not ours:
            rest = (bias, targets, temperature, size, cap, scale, outputs)
            return cls.stock.apply(hidden, weight, *rest)
        logs, entropy = scores(hidden, weight, targets, temperature)
        return logs, entropy if "entropy" in outputs else None, None, None, None


def scores(
    hidden: Tensor, weight: Tensor, targets: Tensor, temperature: float = 1.0
) -> tuple[Tensor, Tensor]:
    """Natural log-probabilities of the targets, and the entropies of what they were drawn from.

    Args:
        hidden: (tokens, hidden), cast to the type of ``weight``.
        weight: (vocabulary, hidden).
        targets: (tokens,)
        temperature: the logits are divided by it.

    Returns:
        (tokens,) and (tokens,), float32.
    """
    found: tuple[Tensor, Tensor] = _Scores.apply(hidden, weight, targets, temperature)
    return found


def product(a: Tensor, b: Tensor) -> Tensor:
    """The matrix product in float32, never rounded to the type of its factors."""
    if a.dtype == torch.float32:
        return torch.mm(a, b)
    if a.device.type == "cuda":
        return torch.mm(a, b, out_dtype=torch.float32)
    return torch.mm(a.float(), b.float())


class _Scores(torch.autograd.Function):
    """:func:`scores`."""

    @staticmethod
    def forward(
        ctx: Any, hidden: Tensor, weight: Tensor, targets: Tensor, temperature: float
    ) -> tuple[Tensor, Tensor]:
        # Entropies are mostly told and not learnt from: then no gradient of zeros comes back.
        ctx.set_materialize_grads(False)
        sums = hidden.new_empty(len(hidden), dtype=torch.float32)
        logs, entropy = torch.empty_like(sums), torch.empty_like(sums)
        with torch.autocast(hidden.device.type, enabled=False):
            for some in _parts(len(hidden)):
                logits = _logits(hidden[some], weight, temperature)
                sums[some] = logits.logsumexp(-1)
                logs[some] = logits.gather(-1, targets[some].unsqueeze(-1)).squeeze(-1) - sums[some]
                shares = (logits - sums[some].unsqueeze(-1)).exp_()
                entropy[some] = sums[some] - shares.mul_(logits).sum(-1)
        ctx.save_for_backward(hidden, weight, targets, sums, entropy)
        ctx.temperature = temperature
        return logs, entropy

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        hidden, weight, targets, sums, entropy = ctx.saved_tensors
        of_logs, of_entropy = gradients
        into_hidden, into_weight = ctx.needs_input_grad[:2]
        found = torch.empty_like(hidden) if into_hidden else None
        whole = torch.zeros_like(weight, dtype=torch.float32) if into_weight else None
        with torch.autocast(hidden.device.type, enabled=False):
            for some in _parts(len(hidden)):
                own = _logits(hidden[some], weight, ctx.temperature).sub_(sums[some].unsqueeze(-1))
                shares = own.exp()
                if of_entropy is None:
                    moved = torch.zeros_like(shares)
                else:
                    # dH/dz = -p·(log p + H)
                    moved = own.add_(entropy[some].unsqueeze(-1)).mul_(shares)
                    moved.mul_(-of_entropy[some].float().unsqueeze(-1))
                if of_logs is not None:
                    # d log p/dz = 1 at the target, less p everywhere
                    each = of_logs[some].float().unsqueeze(-1)
                    moved.sub_(shares.mul_(each))
                    moved.scatter_add_(-1, targets[some].unsqueeze(-1), each)
                narrow = moved.div_(ctx.temperature).to(weight.dtype)
                if found is not None:
                    found[some] = product(narrow, weight).to(found.dtype)
                if whole is not None:
                    whole += product(narrow.t(), hidden[some].to(weight.dtype))
        return found, None if whole is None else whole.to(weight.dtype), None, None


def _logits(hidden: Tensor, weight: Tensor, temperature: float) -> Tensor:
    return product(hidden.to(weight.dtype), weight.t()).div_(temperature)


def _parts(count: int) -> list[slice]:
    return [slice(start, start + TOKENS) for start in range(0, count, TOKENS)]
