"""The cold start at full size: optimizer steps over whole sketches, and a look at what it draws.

Qwen3.5-35B-A3B in its true shape with random weights, LoRA on all linear layers, 16 pairs a step as
``spec.sft`` has it by default: a prompt of 512 tokens and a reply of 2,500, sketches of the grammar
end to end. It is what a run and ``watercolour sft`` do, without the corpus's I/O. A random model
knows nothing, so the loss says only that the adapter learns. Needs a GPU with 100 GiB.

    python bench/cold_start_h200.py [--steps 6] [--tiny]
"""

from __future__ import annotations

import argparse
import json
import random
import time
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import full_size
import torch
from peft import get_peft_model
from step_h200 import NEVER, TINY
from transformers import AutoTokenizer

from watercolour.api.spec import Gate, Sampling, Sft
from watercolour.api.trainer import decoding
from watercolour.sketch import grammar
from watercolour.train import coldstart, delta, engines, head, policy, residual

PROMPT, REPLY, LOOK = 512, 2_500, 512
#: Ten times the default: there are but a few steps to learn in.
LEARNING_RATE = 1e-3


@dataclass
class Steps:
    """Writes down when each step ended, and says so at once: what is cut off is not lost."""

    losses: list[float] = field(default_factory=list[float])
    seconds: list[float] = field(default_factory=list[float])
    began: float = field(default_factory=time.perf_counter)

    def tell(self, step: int, steps: int, loss: float, _passing: float | None) -> None:
        """A step has ended, with the running mean of the loss."""
        now = time.perf_counter()
        self.seconds.append(now - self.began)
        self.losses.append(loss)
        memory = torch.cuda.max_memory_allocated() / 2**30 if torch.cuda.is_available() else 0.0
        print(
            f"step {step}/{steps}  {self.seconds[-1]:6.2f} s  loss {loss:7.4f}  "
            f"peak {memory:.1f} GiB",
            flush=True,
        )
        self.began = time.perf_counter()


def main() -> None:
    """Measure, and print the steps and a line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--tiny", action="store_true", help="try it out on the CPU")
    args = parser.parse_args()
    if args.steps < 2:
        parser.error("--steps: at least 2, because the first one compiles")
    spec = Sft(learning_rate=LEARNING_RATE, target_gate_pass_rate=1.0)
    prompt, reply, look = (16, 64, 12) if args.tiny else (PROMPT, REPLY, LOOK)
    tokenizer: Any = AutoTokenizer.from_pretrained(policy.POLICIES / "tiny", padding_side="left")
    shape: dict[str, Any] = TINY | {"vocab_size": len(tokenizer)} if args.tiny else {}
    model = full_size.bare(**shape)
    head.install()
    if model.device.type != "cpu":
        delta.install()
        residual.widen(model)
    adapted: Any = get_peft_model(model, full_size.lora())
    examples = corpus(tokenizer, args.steps * spec.batch_size, prompt, reply)
    print("the policy is there", flush=True)
    steps = Steps()
    # Looks are measured apart, so each asks nothing: none of them passes.
    outcome = coldstart.run(
        adapted, examples, spec, lambda _look: 0.0, steps.tell, stop=lambda: None
    )
    tokens = spec.batch_size * (prompt + reply)
    peak = torch.cuda.max_memory_allocated() / 2**30 if torch.cuda.is_available() else 0.0
    ours = median(steps.seconds[1:])
    result = {
        "bench": "cold_start_h200",
        "ours": round(ours, 2),
        "unit": "s a step",
        "tokens_per_second": round(tokens / ours),
        "pairs_per_step": spec.batch_size,
        "tokens_per_pair": prompt + reply,
        "first_step": round(steps.seconds[0], 1),
        "peak_gib": round(peak, 1),
        "loss": [round(steps.losses[0], 4), round(outcome.loss, 4)],
        "n": args.steps - 1,
    }
    # Before the look, so that one that fails costs nothing of this.
    print(json.dumps(result), flush=True)
    sampling = Sampling(temperature=1.0, top_p=1.0, top_k=0, max_completion_tokens=look)
    engine = engines.build("static", adapted, decoding(sampling, builtin=False), NEVER, pad=0)[1]
    for name in ("first look, with every compilation", "second look"):
        began = time.perf_counter()
        found = looked(engine, tokenizer, examples)
        spent = time.perf_counter() - began
        print(f"{name}: {coldstart.PROBES} sketches of {look} tokens in {spent:.1f} s", flush=True)
        assert found == 0, "no sketch of a random policy passes the gate"
    if outcome.loss >= steps.losses[0] and not args.tiny:
        raise SystemExit("the loss did not fall")


def corpus(tokenizer: Any, pairs: int, prompt: int, reply: int) -> list[coldstart.Example]:
    """Prompts by chance, and sketches of the grammar end to end, so many tokens each."""
    sketches = [sample.sketch for sample in grammar.corpus(400, 1)]
    encoded: list[list[int]] = tokenizer(sketches, add_special_tokens=False)["input_ids"]
    order = random.Random(1)
    examples: list[coldstart.Example] = []
    for _ in range(pairs):
        tokens: list[int] = []
        while len(tokens) < reply:
            tokens += order.choice(encoded)
        examples.append(([order.randrange(100, 500) for _ in range(prompt)], tokens[:reply]))
    return examples


def looked(engine: engines.Engine, tokenizer: Any, examples: list[coldstart.Example]) -> int:
    """Draw as many sketches as a look of the cold start does; how many pass the gate."""
    prompts = [asked for asked, _ in examples[: coldstart.PROBES]]
    seeds = list(range(len(prompts)))
    vocabulary = len(tokenizer)

    def decode(row: Any) -> str:
        return tokenizer.decode([token for token in row if token < vocabulary])

    return coldstart.admitted(engine, decode, prompts, seeds, Gate(), stop=lambda: None)


if __name__ == "__main__":
    main()
