"""Supervised fine-tuning of the adapter before the first GRPO step, as ``spec.sft`` asks for.

The policy is shown prompts as GRPO asks them, with a sketch as the reply, until enough of its own
sketches pass the static gate or the pairs are used up.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from watercolour import logs
from watercolour.api.spec import Gate, Sft
from watercolour.sketch import gate
from watercolour.train import packing
from watercolour.train.engines import Engine
from watercolour.train.ranks import Ranks
from watercolour.train.sampling import Stop

log = logs.get(__name__)

WARM_UP = 0.05
#: Sketches drawn to see how many pass, and how often over the whole corpus that is done.
PROBES, LOOKS = 16, 8
#: Tokens that go through the policy at once, padding counted.
TOKENS = 8_192

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
    """
    began = time.monotonic()
    weights = [weight for weight in model.parameters() if weight.requires_grad]
    if weights[0].device.type == "cuda":
        # Memory for activations is short beside a large policy, and the trainer does so too.
        checkpointed: Any = model
        settings = {"use_reentrant": False}
        checkpointed.gradient_checkpointing_enable(gradient_checkpointing_kwargs=settings)
    optimizer = torch.optim.AdamW(weights, lr=spec.learning_rate, weight_decay=0.0)
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
        fresh = _backward(model, mine, sum(len(reply) for _, reply in batch))
        ranks.sum_gradients(weights)
        fresh = sum(ranks.gather(fresh))
        torch.nn.utils.clip_grad_norm_(weights, 1.0)
        optimizer.step()
        loss = fresh if step == 0 else 0.9 * loss + 0.1 * fresh
        done = step + 1
        if done % look_every == 0 or done == steps:
            passing = rate(done)
            log.info("cold start: step %d of %d, gate pass rate %.2f", done, steps, passing)
        tell(done, steps, loss, passing)
        if passing is not None and passing >= spec.target_gate_pass_rate:
            break
    optimizer.zero_grad(set_to_none=True)
    model.eval()
    seen = min(len(examples), done * size)
    passing = rate(done) if passing is None else passing
    return Outcome(seen, done, loss, passing, round(time.monotonic() - began, 1))


def schedule(step: int, steps: int, warm_up: float) -> float:
    """Share of the peak rate: a linear rise over ``warm_up`` steps, a cosine to a twentieth."""
    cosine = 0.5 * (1 + math.cos(math.pi * step / steps))
    return min(1.0, (step + 1) / max(1.0, warm_up)) * (0.05 + 0.95 * cosine)


def _backward(model: Any, batch: Sequence[Example], total: int) -> float:
    """Gradients of the negative log-likelihood of the replies' tokens over ``total``; its value."""
    device = next(model.parameters()).device
    mean = 0.0
    for rows in packing.micro_batches([len(a) + len(b) for a, b in batch], TOKENS):
        tokens, labels, seen = padded([batch[row] for row in rows], device)
        with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
            logits: Tensor = model(input_ids=tokens, attention_mask=seen).logits[:, :-1]
        loss = nn.functional.cross_entropy(
            logits.float().flatten(0, 1), labels[:, 1:].flatten(), reduction="sum"
        )
        (loss / total).backward()
        mean += loss.item() / total
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


def gate_pass_rate(
    engine: Engine,
    decode: Callable[[Sequence[int]], str],
    prompts: Sequence[Sequence[int]],
    seeds: Sequence[int],
    limits: Gate,
    stop: Stop,
) -> float:
    """The share of sketches, one a prompt, that the static gate admits."""
    rows = engine(prompts, seeds, lambda _row, _completion: None, stop)
    admitted = [not gate.inspect(decode(row.tokens), limits).violations for row in rows]
    return sum(admitted) / len(admitted)
