"""Forward and backward of 8 rows of 2,500 tokens at full size: our delta rule against the stock.

Qwen3.5-35B-A3B in its true shape, LoRA on all linear layers, gradient checkpointing, and a head in
chunks, as the trainer has it. Stock is transformers' reference at micro-batches of 1, as published,
and of 4; ours takes all 8 rows at once. They alternate. Needs a GPU with 90 GiB.

    python bench/update_h200.py [--rounds 3]
"""

from __future__ import annotations

import argparse
import json
import time
from statistics import median
from typing import Any

import full_size
import torch
from torch.utils.checkpoint import checkpoint
from transformers.models.qwen3_5_moe import modeling_qwen3_5_moe as modeling

from watercolour.train import delta

ROWS, TOKENS, CHUNK = 8, 2_500, 2_048
RULE = "torch_chunk_gated_delta_rule"


def main() -> None:
    """Measure, and print a table and a line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    model = full_size.policy()
    base = model.get_base_model()
    base.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    model.enable_input_require_grads()
    model.train()
    reference: Any = getattr(modeling, RULE)
    delta.install()
    own: Any = getattr(modeling, RULE)
    cases = {"ours, 8 at once": (own, 8), "stock, 4": (reference, 4), "stock, 1": (reference, 1)}
    took: dict[str, list[float]] = {name: [] for name in cases}
    norms: dict[str, float] = {}
    peaks: dict[str, float] = {}
    for round_ in range(args.rounds + 1):
        for name, (rule, size) in cases.items():
            setattr(modeling, RULE, rule)
            torch.cuda.reset_peak_memory_stats()
            seconds, norms[name] = update(model, size)
            peaks[name] = torch.cuda.max_memory_allocated() / 2**30
            if round_:
                took[name].append(seconds)
    print(f"{'rows at once':18} {'seconds':>8} {'peak GiB':>9} {'gradient norm':>14}")
    for name, seconds in took.items():
        print(f"{name:18} {median(seconds):8.2f} {peaks[name]:9.1f} {norms[name]:14.6f}")
    ours, theirs = median(took["ours, 8 at once"]), median(took["stock, 1"])
    result: dict[str, Any] = {
        "bench": "update_h200",
        "ours": round(ours, 2),
        "theirs": round(theirs, 2),
        "ratio": round(theirs / ours, 2),
        "unit": "s",
        "n": args.rounds,
        "conditions": f"{ROWS} rows of {TOKENS} tokens, bf16, {torch.cuda.get_device_name()}",
    }
    print(json.dumps(result))


def update(model: Any, size: int) -> tuple[float, float]:
    """Seconds of one update in micro-batches of ``size``, and the gradient's norm."""
    torch.manual_seed(1)
    ids = torch.randint(100, 200_000, (ROWS, TOKENS), device="cuda")
    torch.cuda.synchronize()
    began = time.perf_counter()
    for some in ids.split(size):
        (negative_log_likelihood(model, some) / (ROWS * (TOKENS - 1))).backward()
    torch.cuda.synchronize()
    seconds = time.perf_counter() - began
    gradients = [one.grad for one in model.parameters() if one.grad is not None]
    norm = torch.stack([one.float().norm() for one in gradients]).norm().item()
    for parameter in model.parameters():
        parameter.grad = None
    return seconds, norm


def negative_log_likelihood(model: Any, ids: torch.Tensor) -> Any:
    """Summed over all tokens but each row's first."""
    base = model.get_base_model()
    hidden = base.model(input_ids=ids, use_cache=False).last_hidden_state[:, :-1].flatten(0, 1)
    targets, weight = ids[:, 1:].flatten(), base.lm_head.weight

    def chunk(some: Any, labels: Any) -> Any:
        logits = (some @ weight.t()).float()
        return (logits.logsumexp(-1) - logits.gather(1, labels.unsqueeze(1)).squeeze(1)).sum()

    parts = zip(hidden.split(CHUNK), targets.split(CHUNK), strict=True)
    sums: list[Any] = [checkpoint(chunk, *part, use_reentrant=False) for part in parts]
    return torch.stack(sums).sum()


if __name__ == "__main__":
    main()
