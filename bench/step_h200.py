"""Whole steps at full size, by the trainer itself: generate, paint, score, update.

Qwen3.5-35B-A3B in its true shape with random weights, 8 rollouts of exactly 2,500 tokens, by
TRL with all that a run of ours adds. Renderer and scorer are an environment that answers each
rollout two seconds after it came, as the real ones do. The published experiment took 15 to 18
minutes a step. Needs a GPU with 100 GiB, or one for each process: these share the rollouts of a
step between them and average their gradients.

    python bench/step_h200.py [--steps 4] [--processes 2] [--warm] [--tiny]

It fails if a weight of the base has changed by the end.

With ``--warm`` the run begins from an adapter: a cold start of two steps teaches and writes it, and
it is read as ``spec.model.adapter`` is.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import full_size
import torch
from datasets import Dataset
from peft import get_peft_model
from transformers import AutoTokenizer

from watercolour.api.rollout import Rollout
from watercolour.api.spec import RunSpec, Sampling, Sft, Trainer
from watercolour.api.trainer import decoding
from watercolour.train import (
    artifacts,
    batches,
    coldrun,
    coldstart,
    delta,
    engines,
    grpo,
    head,
    launch,
    policy,
    ranks,
    residual,
    settings,
    trainer,
)
from watercolour.train.progress import Progress
from watercolour.train.ranks import Ranks
from watercolour.train.rollouts import Group, Painter

GROUP, TOKENS, PROMPT, ANSWER_SECONDS = 8, 2_500, 512, 2.0
WARM_STEPS = 2
#: The published experiment's, the better end.
PUBLISHED_SECONDS = 15 * 60
NEVER = frozenset({10**6})
TINY: dict[str, Any] = {
    "device": "cpu",
    "vocab_size": 600,
    "hidden_size": 64,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "head_dim": 32,
    "linear_key_head_dim": 16,
    "linear_value_head_dim": 16,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "moe_intermediate_size": 32,
    "shared_expert_intermediate_size": 32,
    "num_experts": 8,
}


@dataclass
class Answers:
    """An environment that answers each rollout after two seconds, with a value by chance."""

    seconds: float = ANSWER_SECONDS

    def submit(self, completion: str, *, index: int, step: int, **ids: Any) -> Future[Rollout]:
        """The rollout, later."""
        future: Future[Rollout] = Future()
        value = (index * 37 + step * 11) % 17 / 17
        ids.pop("truncated")
        rollout = Rollout(
            **ids, index=index, step=step, reward=value, reward_adjusted=value, gate_passed=True
        )
        timer = threading.Timer(self.seconds, future.set_result, [rollout])
        timer.daemon = True
        timer.start()
        return future

    def submit_announcement(
        self, rollouts: int, until: float, due_seconds: float = 0.0
    ) -> Future[bool]:
        """Heard."""
        future: Future[bool] = Future()
        future.set_result(True)
        return future


def main() -> None:
    """Measure, and print a table and a line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--processes", type=int, default=1, help="one a GPU")
    parser.add_argument("--warm", action="store_true", help="begin from a cold start's adapter")
    parser.add_argument("--tiny", action="store_true", help="try it out on the CPU")
    args = parser.parse_args()
    if args.steps < 2:
        parser.error("--steps: at least 2, because the first one compiles")
    if args.processes > 1 and "RANK" not in os.environ:
        sys.exit(start(args.processes))
    with tempfile.TemporaryDirectory() as folder, ranks.joined() as own:
        rows, first = train(args.steps, Path(folder), own, warm=args.warm, tiny=args.tiny)
    if not own.first:
        return
    columns = ("step_time", "seconds_generate", "seconds_wait", "seconds_update", "mismatch_mean")
    print(f"until the first step has ended, with every compilation: {first:.0f} s")
    print("step " + " ".join(f"{name:>17}" for name in columns))
    for row in rows:
        print(f"{row['step']:4} " + " ".join(f"{float(row[name]):17.4f}" for name in columns))
    ours = median(float(row["step_time"]) for row in rows[1:])
    memory = 0 if args.tiny else torch.cuda.max_memory_allocated() / 2**30
    print(f"peak memory {memory:.1f} GiB")
    result = {
        "bench": "step_h200",
        "processes": own.size,
        "ours": round(ours, 2),
        "theirs": PUBLISHED_SECONDS,
        "ratio": round(PUBLISHED_SECONDS / ours, 1),
        "unit": "s",
        "n": len(rows) - 1,
        "conditions": "theirs is the published 15 minutes, not measured here",
    }
    print(json.dumps(result))


def start(processes: int) -> int:
    """Run this program once a GPU, as a trainer's launcher does; the first failure, or 0."""
    spec = RunSpec(trainer=Trainer(processes=processes))
    children = [
        subprocess.Popen(
            [sys.executable, *sys.argv],
            env={**os.environ, **launch.environment(spec, local, os.environ)},
        )
        for local in range(processes)
    ]
    return next((code for child in children if (code := child.wait())), 0)


def train(
    steps: int, out: Path, own: Ranks, *, warm: bool, tiny: bool
) -> tuple[list[dict[str, str]], float]:
    """Train so many steps; the rows of metrics.csv, and the seconds until the first has ended.

    Only the first process has rows.
    """
    tokens = 24 if tiny else TOKENS
    tokenizer: Any = AutoTokenizer.from_pretrained(policy.POLICIES / "tiny", padding_side="left")
    shape: dict[str, Any] = TINY | {"vocab_size": len(tokenizer)} if tiny else {}
    model = full_size.bare(**shape)
    base = list(model.parameters())
    before = bits(base)
    on_cpu = model.device.type == "cpu"
    head.install()
    if not on_cpu:
        delta.install()
        residual.widen(model)
    torch.manual_seed(1)  # the same adapter and prompt in every process
    sampling = Sampling(temperature=1.0, top_p=0.95, top_k=20, max_completion_tokens=tokens)
    sizes: dict[str, Any] = {"rollouts_per_step": GROUP, "group_size": GROUP}
    spec = RunSpec(trainer=Trainer(steps=steps, sampling=sampling, **sizes))
    plan = batches.plan(spec, whole=True, processes=own.size)
    config = settings.config(spec, plan, out, on_cpu=on_cpu)
    drawn = decoding(sampling, builtin=False)
    prompt = tuple(torch.randint(100, model.config.vocab_size, (32 if tiny else PROMPT,)).tolist())

    def engine(of: Any) -> engines.Engine:
        return engines.build("static", of, drawn, NEVER, pad=0)[1]

    painter = Painter(
        engine=engine(model),
        decode=lambda tokens: str(len(tokens)),
        env=Answers(),
        run="bench",
        seed_of=lambda step, attempt, row: batches.row_seed(1, step, attempt, row),
        stop=lambda: None,
        ranks=own,
    )
    session = trainer.Session(
        batches=plan,
        painter=painter,
        groups_of=lambda step: [Group(0, "a daisy", batches.draw_seed(1, step, 0), prompt)],
        artifacts=artifacts.Artifacts(out),
        progress=Progress("bench", steps),
        limits=trainer.Limits(False, 3, 5, 0.0, 1),
        stopping=lambda: False,
        flat_steps_teach=False,
        ranks=own,
    )
    if warm:
        loaded = policy.Policy(taught(model, tokenizer, out, tiny=tiny), tokenizer, NEVER, None)
    else:
        loaded = policy.Policy(model, tokenizer, NEVER, full_size.lora())
    chats = [{"prompt": [{"role": "user", "content": "a daisy"}]}] * (steps * GROUP)
    began = time.perf_counter()
    built = grpo.build(loaded, config, Dataset.from_list(chats), session)
    painter.engine = engine(built.adapted)
    built.train()
    whole = time.perf_counter() - began
    if bits(base) != before:
        sys.exit("step_h200: the training has changed weights of the base")
    if not own.first:
        return [], whole
    with (out / "metrics.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    return rows, whole - sum(float(row["step_time"]) for row in rows[1:])


def bits(weights: Sequence[torch.Tensor]) -> list[int]:
    """A sum for each tensor of its numbers' bits, taken as whole numbers."""
    whole = {2: torch.int16, 4: torch.int32}
    return [
        int(each.data.view(whole[each.element_size()]).sum(dtype=torch.int64)) for each in weights
    ]


def taught(model: Any, tokenizer: Any, out: Path, *, tiny: bool) -> Any:
    """The policy with the adapter that a cold start has written, read as a run reads it."""
    # It imports this module.
    import cold_start_h200 as cold

    sizes = (16, 64) if tiny else (cold.PROMPT, cold.REPLY)
    spec = Sft(learning_rate=cold.LEARNING_RATE, target_gate_pass_rate=1.0)
    examples = cold.corpus(tokenizer, WARM_STEPS * spec.batch_size, *sizes)
    adapted: Any = get_peft_model(model, full_size.lora())
    told = cold.Steps().tell
    outcome = coldstart.run(adapted, examples, spec, lambda _look: 0.0, told, stop=lambda: None)
    folder = out / "warm"
    folder.mkdir()
    coldrun.save(adapted, outcome, folder)
    began = policy.adapted(adapted.unload(), str(folder))
    norms = [w.detach().float().norm() for n, w in began.named_parameters() if "lora_B" in n]
    print(
        f"begins from an adapter with B of norm {float(torch.stack(norms).norm()):.4f}", flush=True
    )
    return began


if __name__ == "__main__":
    main()
