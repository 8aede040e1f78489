"""The cold start: a very small policy learns the grammar's sketches by heart, flaws and all.

    python -m watercolour.train.sft --out FOLDER

The corpus is mediocre on purpose, so the policy that comes out is too: what it could paint and
what it usually paints lie far apart, and reinforcement learning has something to shift.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from transformers import Qwen3Config, Qwen3ForCausalLM

from watercolour.api.spec import Gate
from watercolour.api.trainer import Decoding
from watercolour.sketch import grammar, palettes, prompt
from watercolour.train import coldstart, engines, tokenizer
from watercolour.train.sampling import derive_seed

#: Positions of the policy, in tokens; a sketch of the grammar takes 60 on average.
POSITIONS = 1024
PEAK_LEARNING_RATE = 3e-3
WARM_UP_STEPS = 30
PROBES = 128


@dataclass(frozen=True)
class Plan:
    """All that decides what the policy becomes; equal plans give equal policies."""

    samples: int = 6000
    corpus_seed: int = 1
    epochs: int = 3
    batch: int = 32
    seed: int = 0
    layers: int = 4
    hidden: int = 128
    intermediate: int = 384
    heads: int = 4
    kv_heads: int = 2


@dataclass(frozen=True)
class Card:
    """What is known of a policy made here; ``card.json`` in its folder."""

    plan: Plan
    parameters: int
    vocabulary: int
    tokens_mean: float
    steps: int
    loss: float
    gate_pass_rate: float
    """Share of ``probes`` sketches, drawn without truncation, that pass the static gate."""
    probes: int
    seconds: float


#: Told of step, steps, loss and seconds left.
Progress = Callable[[int, int, float, float], None]


def train(
    out: Path, plan: Plan, progress: Progress, *, threads: int = 2, probes: int = PROBES
) -> Card:
    """Make a policy folder (model, tokenizer, card) from nothing but the plan."""
    began = time.monotonic()
    torch.set_num_threads(threads)
    samples = grammar.corpus(plan.samples, plan.corpus_seed)
    words = _prompt_texts(tuple(palettes.SUBJECTS))
    reader: Any = tokenizer.train(words, [sample.sketch for sample in samples], POSITIONS)
    examples = [encode(reader, sample.subject, sample.sketch) for sample in samples]
    torch.manual_seed(plan.seed)
    model = Qwen3ForCausalLM(_config(plan, reader))
    steps, loss = _fit(model, examples, plan, progress)
    model.save_pretrained(out)
    reader.save_pretrained(out)
    card = Card(
        plan=plan,
        parameters=sum(weight.numel() for weight in model.parameters()),
        vocabulary=len(reader),
        tokens_mean=sum(len(answer) for _, answer in examples) / len(examples),
        steps=steps,
        loss=loss,
        gate_pass_rate=gate_pass_rate(model, reader, probes, plan.seed),
        probes=probes,
        seconds=round(time.monotonic() - began, 1),
    )
    (out / "card.json").write_text(json.dumps(asdict(card), indent=2) + "\n", encoding="utf-8")
    return card


def _prompt_texts(subjects: Sequence[str]) -> list[str]:
    return [
        message["content"] for subject in subjects for message in prompt.messages(subject, "tiny")
    ]


def prompt_tokens(reader: Any, subject: str) -> list[int]:
    """The prompt that asks a builtin policy for ``subject``."""
    messages = prompt.messages(subject, "tiny")
    tokens: Any = reader.apply_chat_template(
        messages, add_generation_prompt=True, tokenize=True, return_dict=False
    )
    return list(tokens)


def encode(reader: Any, subject: str, sketch: str) -> tuple[list[int], list[int]]:
    """Prompt and answer as tokens; the answer ends in the end token."""
    answer = reader(sketch.rstrip("\n"), add_special_tokens=False)["input_ids"]
    return prompt_tokens(reader, subject), [*answer, reader.eos_token_id]


def _config(plan: Plan, reader: Any) -> Qwen3Config:
    return Qwen3Config(
        vocab_size=len(reader),
        hidden_size=plan.hidden,
        intermediate_size=plan.intermediate,
        num_hidden_layers=plan.layers,
        num_attention_heads=plan.heads,
        num_key_value_heads=plan.kv_heads,
        head_dim=32,
        max_position_embeddings=POSITIONS,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=reader.eos_token_id,
        pad_token_id=reader.pad_token_id,
    )


def _fit(
    model: Any,
    examples: Sequence[tuple[list[int], list[int]]],
    plan: Plan,
    progress: Progress,
) -> tuple[int, float]:
    """Next-token training on the answers; the number of steps and the last mean loss."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=PEAK_LEARNING_RATE, weight_decay=0.01)
    order = random.Random(plan.seed)
    batches = [batch for _ in range(plan.epochs) for batch in _epoch(examples, plan.batch, order)]
    model.train()
    mean, began = 0.0, time.monotonic()
    for step, batch in enumerate(batches):
        for group in optimizer.param_groups:
            group["lr"] = PEAK_LEARNING_RATE * coldstart.schedule(step, len(batches), WARM_UP_STEPS)
        some = [examples[index] for index in batch]
        pad = model.config.pad_token_id
        tokens, labels, seen = coldstart.padded(some, torch.device("cpu"), pad)
        loss = model(input_ids=tokens, attention_mask=seen, labels=labels).loss
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        mean = loss.item() if step == 0 else 0.95 * mean + 0.05 * loss.item()
        spent = time.monotonic() - began
        progress(step + 1, len(batches), mean, spent / (step + 1) * (len(batches) - step - 1))
    model.eval()
    return len(batches), mean


def _epoch(
    examples: Sequence[tuple[list[int], list[int]]], size: int, order: random.Random
) -> list[list[int]]:
    """Batches of similar length in random order: padding is work for nothing."""
    indices = list(range(len(examples)))
    order.shuffle(indices)
    indices.sort(key=lambda index: len(examples[index][1]) // 8)
    batches = [indices[start : start + size] for start in range(0, len(indices), size)]
    order.shuffle(batches)
    return batches


def gate_pass_rate(model: Any, reader: Any, probes: int, seed: int) -> float:
    """Share of sampled sketches that pass the static gate; subjects in turn.

    Nothing is truncated: top-p cuts off just the rare mistakes that there are to unlearn.
    """
    subjects = tuple(palettes.SUBJECTS)
    prompts = [prompt_tokens(reader, subjects[index % len(subjects)]) for index in range(probes)]
    ends = frozenset([int(model.config.eos_token_id)])
    drawn = Decoding(max_completion_tokens=320)
    found = coldstart.admitted(
        engines.build("static", model, drawn, ends, pad=model.config.pad_token_id)[1],
        partial(reader.decode, skip_special_tokens=True),
        prompts,
        [derive_seed(seed, "sft", index) for index in range(probes)],
        Gate(),
        stop=lambda: None,
    )
    return found / probes


def _show(step: int, steps: int, loss: float, left: float) -> None:
    if step % 20 == 0 or step == steps:
        sys.stderr.write(f"sft  step {step}/{steps}  loss {loss:.3f}  left {left:.0f} s\n")
        sys.stderr.flush()


def main(arguments: Sequence[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description="Make the tiny policy from the sketch grammar.")
    parser.add_argument("--out", type=Path, required=True, help="folder that gets the policy")
    for name, default in asdict(Plan()).items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=int, default=default)
    options = vars(parser.parse_args(arguments))
    out = options.pop("out")
    out.mkdir(parents=True, exist_ok=True)
    card = train(out, Plan(**options), _show)
    sys.stdout.write(json.dumps(asdict(card)) + "\n")


if __name__ == "__main__":
    main()
