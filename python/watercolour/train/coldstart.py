"""Supervised fine-tuning of the adapter before the first GRPO step, as ``spec.sft`` asks for.

The policy is shown prompts as GRPO asks them, with a sketch as the reply, until enough of its own
sketches pass the static gate or the pairs are used up.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from watercolour import logs
from watercolour.api.errors import InfrastructureError
from watercolour.api.reasons import Reason
from watercolour.api.spec import Gate, Sft
from watercolour.sketch import gate
from watercolour.train import gpu_memory, packing
from watercolour.train.decode import weights
from watercolour.train.engines import Engine
from watercolour.train.ranks import Ranks
from watercolour.train.sampling import Stop

log = logs.get(__name__)

WARM_UP = 0.05
#: Sketches drawn to see how many pass, and how often over the whole corpus that is done.
PROBES, LOOKS = 16, 8
#: Tokens that go through the policy at once on the CPU, padding counted.
CPU_TOKENS = 8_192

TOO_LONG = "Leave the longest sketches out of spec.sft.corpus, or use a larger GPU."

ALONE = Ranks()

#: Prompt and reply, as tokens; the reply ends in an end token.
Example = tuple[Sequence[int], Sequence[int]]
#: Told of step, steps, loss and the last known share that passes the gate.
Tell = Callable[[int, int, float, float | None], None]


@dataclass(frozen=True)
class Outcome:
    """What became of the cold start."""

    examples: int
    steps: int
    loss: float
    gate_pass_rate: float
    seconds: float


def run(
    model: nn.Module,
    examples: Sequence[Example],
    spec: Sft,
    rate: Callable[[int], float],
    tell: Tell,
    stop: Stop,
    ranks: Ranks = ALONE,
) -> Outcome:
    """Fit the trainable weights to the replies.

    Args:
        model: the policy with its adapter.
        examples: in the order in which they are shown; every epoch shows the same order.
        spec: sizes, learning rate, target.
        rate: the share of the policy's sketches that passes the gate; given the look's number.
        tell: hears of each step.
        stop: called every step; raises to abandon the cold start.
        ranks: those that share the training; each takes its part of every batch.

    Raises:
        InfrastructureError: the loss is no number (LossNotFinite), or one pair alone is too much
            for the GPU (GpuOutOfMemory).
    """
    began = time.monotonic()
    learning = [weight for weight in model.parameters() if weight.requires_grad]
    tokens = CPU_TOKENS
    if learning[0].device.type == "cuda":
        tokens = packing.GPU_TOKENS
        # Memory for activations is short beside a large policy, and the trainer does so too.
        checkpointed: Any = model
        settings = {"use_reentrant": False}
        checkpointed.gradient_checkpointing_enable(gradient_checkpointing_kwargs=settings)
    optimizer = torch.optim.AdamW(learning, lr=spec.learning_rate, weight_decay=0.0)
    size = spec.batch_size
    batches = [examples[start : start + size] for start in range(0, len(examples), size)]
    steps = len(batches) * spec.epochs
    look_every = max(1, steps // LOOKS)
    loss, passing, done = 0.0, None, 0
    for step in range(steps):
        stop()
        for group in optimizer.param_groups:
            group["lr"] = spec.learning_rate * schedule(step, steps, WARM_UP * steps)
        model.train()
        optimizer.zero_grad(set_to_none=True)
        batch = batches[step % len(batches)]
        mine = [one for place, one in enumerate(batch) if ranks.owns(place, len(batch))]
        # Before anything is exchanged, so that one process may begin its part again.
        with ranks.agreed():
            fresh, tokens = _gradients(model, mine, _learnt(batch), tokens, step)
        ranks.sum_gradients(learning)
        fresh = _finite(sum(ranks.gather(fresh)), step)
        if math.isfinite(torch.nn.utils.clip_grad_norm_(learning, 1.0)):
            optimizer.step()
        else:
            log.warning("cold start, step %d: no update, a gradient is not a number", step)
        loss = fresh if step == 0 else 0.9 * loss + 0.1 * fresh
        done = step + 1
        if done % look_every == 0 or done == steps:
            passing = rate(done)
            if ranks.first:
                log.info("cold start: step %d of %d, gate pass rate %.2f", done, steps, passing)
        tell(done, steps, loss, passing)
        if passing is not None and passing >= spec.target_gate_pass_rate:
            break
    optimizer.zero_grad(set_to_none=True)
    model.eval()
    seen = min(len(examples), done * size)
    passing = rate(done) if passing is None else passing
    return Outcome(seen, done, loss, passing, round(time.monotonic() - began, 1))


def _finite(loss: float, step: int) -> float:
    if not math.isfinite(loss):
        raise InfrastructureError(
            Reason.LOSS_NOT_FINITE,
            f"the loss of the cold start's step {step} is {loss}.",
            remedy="Lower spec.sft.learningRate.",
        )
    return loss


def schedule(step: int, steps: int, warm_up: float) -> float:
    """Share of the peak rate: a linear rise over ``warm_up`` steps, a cosine to a twentieth."""
    cosine = 0.5 * (1 + math.cos(math.pi * step / steps))
    return min(1.0, (step + 1) / max(1.0, warm_up)) * (0.05 + 0.95 * cosine)


def _learnt(batch: Sequence[Example]) -> int:
    """Tokens that a batch teaches."""
    return sum(len(reply) for _, reply in batch)


def _gradients(
    model: nn.Module, batch: Sequence[Example], total: int, tokens: int, step: int
) -> tuple[float, int]:
    """The loss, whose gradients are in the model then, and the size of micro-batches that fits."""
    longest = max((len(asked) + len(reply) for asked, reply in batch), default=0)
    with gpu_memory.full_named(lambda: ("learning a sketch", TOO_LONG)), _chunked_head(model):
        return gpu_memory.in_smaller_parts(
            partial(_backward, model, batch, total),
            partial(model.zero_grad, set_to_none=True),
            tokens,
            longest,
            f"cold start, step {step}",
        )


@contextmanager
def _chunked_head(model: nn.Module) -> Generator[None]:
    """Have the policy score replies itself, a chunk at a time, as it does for TRL's trainer.

    All logits of 30,000 tokens over 250,000 words would be 30 GB. The trainer's own head is put
    back afterwards: it divides by the temperature of sampling.
    """
    # Imported here: it takes seconds, and what else this module has does without.
    from trl.trainer.utils import add_fused_lm_head

    policy = weights.causal_lm(model)
    before = policy.forward
    add_fused_lm_head(policy)
    try:
        yield
    finally:
        policy.forward = before


def _backward(model: Any, batch: Sequence[Example], total: int, tokens: int) -> float:
    """Gradients of the negative log-likelihood of the replies' tokens over ``total``; its value."""
    device = next(model.parameters()).device
    mean = 0.0
    for rows in packing.micro_batches([len(a) + len(b) for a, b in batch], tokens):
        shown, labels, seen = padded([batch[row] for row in rows], device)
        with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
            found = model(input_ids=shown, attention_mask=seen, labels=labels, fused_lm_head=True)
        loss = -found.log_probs.sum() / total
        loss.backward()
        mean += loss.item()
    return mean


def padded(
    batch: Sequence[Example], device: torch.device, pad: int = 0
) -> tuple[Tensor, Tensor, Tensor]:
    """Tokens, labels (-100 where nothing is to be learnt) and mask, each (rows, length)."""
    length = max(len(asked) + len(reply) for asked, reply in batch)
    tokens = torch.full((len(batch), length), pad)
    labels = torch.full((len(batch), length), -100)
    seen = torch.zeros(len(batch), length, dtype=torch.long)
    for row, (asked, reply) in enumerate(batch):
        end = len(asked) + len(reply)
        tokens[row, :end] = torch.tensor([*asked, *reply])
        labels[row, len(asked) : end] = torch.tensor(list(reply))
        seen[row, :end] = 1
    return tokens.to(device), labels.to(device), seen.to(device)


def admitted(
    engine: Engine,
    decode: Callable[[Sequence[int]], str],
    prompts: Sequence[Sequence[int]],
    seeds: Sequence[int],
    limits: Gate,
    stop: Stop,
) -> int:
    """How many sketches, one a prompt, the static gate admits."""
    rows = engine(prompts, seeds, lambda _row, _completion: None, stop) if prompts else []
    return sum(not gate.inspect(decode(row.tokens), limits).violations for row in rows)
