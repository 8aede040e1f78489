"""Generation by the trainer's own decode loop against transformers' ``generate``.

Both complete the same prompts with the tiny policy and an adapter, as a training step does: ours
with the adapter merged anew each time, theirs with the adapter beside the weights. Neither may
end early, so both draw equally many tokens. They alternate; the ratio is of the medians.

    .venv/bin/python bench/decode_loop.py [--rows 16] [--tokens 100] [--rounds 5]
"""

from __future__ import annotations

import argparse
import json
import time
from statistics import median
from typing import Any

import torch
from peft import get_peft_model

from watercolour.api.spec import Lora, Model
from watercolour.api.trainer import Decoding
from watercolour.train import policy, static
from watercolour.train.sampling import choose

SUBJECTS = ("a peach hibiscus", "a red poppy")
THREADS = 2


def main() -> None:
    """Measure, and print a table and a line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=16)
    parser.add_argument("--tokens", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    torch.set_num_threads(THREADS)
    loaded = policy.load(Model(), Lora())
    assert loaded.lora is not None
    model: Any = get_peft_model(loaded.model, loaded.lora).eval()
    prompts = prompts_of(loaded.tokenizer, args.rows)
    sampling = Decoding(args.tokens, top_p=0.95, top_k=20)
    ours, theirs = list[float](), list[float]()
    for round_ in range(args.rounds + 1):
        took = (
            own_loop(model, prompts, sampling, round_),
            plain_generate(model, prompts, sampling),
        )
        if round_:
            # The first round warms both up.
            ours.append(took[0])
            theirs.append(took[1])
    difference = logits_apart(model, prompts)
    report(args, median(ours), median(theirs), difference)


def prompts_of(tokenizer: Any, rows: int) -> list[list[int]]:
    """Prompts of two subjects, as two groups of a step have."""
    texts = [
        [{"role": "user", "content": f"Paint {SUBJECTS[row * 2 // rows]} in loose watercolour."}]
        for row in range(rows)
    ]
    return [
        tokenizer.apply_chat_template(
            text, add_generation_prompt=True, tokenize=True, return_dict=False
        )
        for text in texts
    ]


def own_loop(model: Any, prompts: list[list[int]], sampling: Decoding, seed: int) -> float:
    """Seconds of ours, the merging of the adapter included."""
    began = time.perf_counter()
    weights = static.merged(model, max(map(len, prompts)) + sampling.max_completion_tokens)
    seeds = [seed * 1000 + row for row in range(len(prompts))]
    static.generate(
        weights, prompts, seeds, sampling, frozenset([-1]), lambda *_: None, lambda: None
    )
    return time.perf_counter() - began


def plain_generate(model: Any, prompts: list[list[int]], sampling: Decoding) -> float:
    """Seconds of transformers' generate with its own sampling."""
    width = max(map(len, prompts))
    pad = model.config.pad_token_id
    tokens = torch.tensor([[pad] * (width - len(prompt)) + prompt for prompt in prompts])
    seen = torch.tensor([[0] * (width - len(p)) + [1] * len(p) for p in prompts])
    began = time.perf_counter()
    with torch.inference_mode():
        model.generate(
            tokens,
            attention_mask=seen,
            do_sample=True,
            temperature=sampling.temperature,
            top_p=sampling.top_p,
            top_k=sampling.top_k,
            max_new_tokens=sampling.max_completion_tokens,
            min_new_tokens=sampling.max_completion_tokens,
            pad_token_id=pad,
        )
    return time.perf_counter() - began


@torch.inference_mode()
def logits_apart(model: Any, prompts: list[list[int]]) -> float:
    """The greatest difference between our logits and the model's after the first prompt."""
    tokens = torch.tensor([prompts[0]])
    length = tokens.shape[1]
    weights = static.merged(model, length)
    shape = (len(weights.layers), 2, 1, weights.kv_heads, length, weights.head_size)
    place = torch.arange(length)[None]
    ours = static.forward(weights, tokens, place, torch.zeros(shape), 0, None)
    theirs = model(tokens).logits[:, -1]
    # The next greedy token must agree too.
    greedy = Decoding(1, top_k=1)
    assert choose(ours, torch.zeros(1), greedy)[0] == choose(theirs, torch.zeros(1), greedy)[0]
    return float((ours - theirs).abs().max())


def report(args: argparse.Namespace, ours: float, theirs: float, difference: float) -> None:
    """The table for people and the line for machines."""
    total = args.rows * args.tokens
    print(f"{args.rows} rows x {args.tokens} tokens, {THREADS} threads, tiny policy with adapter")
    for name, seconds in (("own loop", ours), ("generate", theirs)):
        print(f"  {name:9} {seconds:6.2f} s  {total / seconds:7.0f} tokens/s")
    print(f"  logits differ by at most {difference:.1e}")
    line = {
        "bench": "decode_loop",
        "ours": round(ours, 4),
        "theirs": round(theirs, 4),
        "ratio": round(theirs / ours, 2),
        "unit": "s",
        "n": args.rounds,
        "conditions": f"{args.rows} rows x {args.tokens} tokens, {THREADS} threads, CPU, builtin:"
        f"tiny with LoRA r 16 all-linear, top-p 0.95, top-k 20; logits apart {difference:.1e}",
    }
    print(json.dumps(line))


if __name__ == "__main__":
    main()
