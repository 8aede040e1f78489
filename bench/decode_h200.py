"""Generation with a LoRA adapter at full size: our decode loop against transformers' ``generate``.

Qwen3.5-35B-A3B in its true shape with random weights, 8 rows of one prompt. Theirs has a static
cache and compiled decoding, at the short context that suits it best; ours runs on to a context of
3,000 tokens. They alternate. Needs a GPU with 80 GiB; theirs compiles for two to three minutes.

    python bench/decode_h200.py [--rounds 3] [--no-theirs] [--rows 32]
"""

from __future__ import annotations

import argparse
import json
import time
from statistics import median
from typing import Any

import full_size
import torch

from watercolour.api.trainer import Decoding
from watercolour.train import residual
from watercolour.train.decode.loop import Decoder

PROMPT, TOKENS, SHORT, COMPARED = 512, 2_500, 128, 512
#: No token ends a row, so that every row has its full length.
NEVER = frozenset({10**6})


def main() -> None:
    """Measure, and print a table and a line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rows", type=int, default=8)
    parser.add_argument("--no-theirs", action="store_true")
    args = parser.parse_args()
    model = full_size.policy().eval()
    prompt = torch.randint(100, 200_000, (PROMPT,)).tolist()
    # First as transformers has it: the sum through the layers rounded after each of them.
    short = Decoder(model, Decoding(COMPARED, 1.0, 0.95, 20), NEVER)
    before = apart(model, prompt, own(short, prompt, 4, 0)[1])
    del short
    residual.widen(model)
    decoder = Decoder(model, Decoding(TOKENS, 1.0, 0.95, 20), NEVER)
    began = time.perf_counter()
    rows = own(decoder, prompt, args.rows, 0)[1]
    first = time.perf_counter() - began
    mismatch = apart(model, prompt, rows[:4])
    if not args.no_theirs:
        stock(model, prompt, args.rows)
    ours, theirs = list[float](), list[float]()
    for round_ in range(args.rounds):
        ours.append(args.rows * TOKENS / own(decoder, prompt, args.rows, round_)[0])
        if not args.no_theirs:
            theirs.append(args.rows * SHORT / stock(model, prompt, args.rows))
    print(f"first call, with every compilation {first:8.1f} s")
    span = f"context {PROMPT} to {PROMPT + TOKENS}"
    print(f"ours, {args.rows} rows, {span}: {median(ours):.0f} tokens/s")
    if theirs:
        print(f"generate, static cache, context {PROMPT} to {PROMPT + SHORT} {median(theirs):8.0f}")
    print("sampler against the training forward, |difference of log p|:")
    print("  as transformers has it: " + before)
    print("  the sum through the layers in float32: " + mismatch)
    print(f"peak memory {torch.cuda.max_memory_allocated() / 2**30:.1f} GiB")
    result: dict[str, Any] = {
        "bench": "decode_h200",
        "ours": round(median(ours), 1),
        "theirs": round(median(theirs), 1) if theirs else None,
        "ratio": round(median(ours) / median(theirs), 2) if theirs else None,
        "unit": "tokens/s",
        "n": args.rounds,
        "conditions": f"{args.rows} rows, LoRA r 16, bf16, {torch.cuda.get_device_name()}",
    }
    print(json.dumps(result))


def own(decoder: Decoder, prompt: list[int], rows: int, seed: int) -> tuple[float, list[Any]]:
    """Seconds of one call of ours, prefill and merging included, and its rows."""
    torch.cuda.synchronize()
    began = time.perf_counter()
    seeds = [seed * rows + row for row in range(rows)]
    made = decoder.generate([prompt] * rows, seeds, lambda *_: None, lambda: None)
    torch.cuda.synchronize()
    return time.perf_counter() - began, made


def stock(model: Any, prompt: list[int], rows: int) -> float:
    """Seconds of one call of transformers' ``generate``, prefill included."""
    ids = torch.tensor([prompt] * rows, device="cuda")
    torch.cuda.synchronize()
    began = time.perf_counter()
    with torch.no_grad():
        model.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            max_new_tokens=SHORT,
            min_new_tokens=SHORT,
            do_sample=True,
            top_p=0.95,
            top_k=20,
            cache_implementation="static",
            pad_token_id=0,
        )
    torch.cuda.synchronize()
    return time.perf_counter() - began


@torch.no_grad()
def apart(model: Any, prompt: list[int], rows: list[Any]) -> str:
    """The sampler's log-probabilities against those of one forward pass a row, and of all.

    Also against those from logits that are rounded to bfloat16, as TRL has them.
    """
    base = model.get_base_model()
    ids = torch.tensor([[*prompt, *row.tokens[:COMPARED]] for row in rows], device="cuda")
    drawn = torch.tensor([row.log_probabilities[:COMPARED] for row in rows])

    def forward(some: Any, kind: torch.dtype = torch.float32) -> Any:
        hidden = base.model(input_ids=some).last_hidden_state[:, PROMPT - 1 : -1]
        logits = torch.stack(
            [torch.mm(h, base.lm_head.weight.t(), out_dtype=torch.float32) for h in hidden]
        )
        logs = logits.to(kind).float().log_softmax(-1)
        return logs.gather(-1, some[:, PROMPT:].unsqueeze(-1)).squeeze(-1).cpu()

    alone = torch.cat([forward(row.unsqueeze(0)) for row in ids])
    together = forward(ids)
    rounded = forward(ids, torch.bfloat16)
    ours, theirs = (drawn - together).abs(), (alone - together).abs()
    return (
        f"mean {ours.mean():.1e}, max {ours.max():.1e}; alone {(drawn - alone).abs().mean():.1e}; "
        f"logits rounded {(drawn - rounded).abs().mean():.1e}; the model's own between batches of "
        f"1 and {len(rows)}: mean {theirs.mean():.1e}, max {theirs.max():.1e}"
    )


if __name__ == "__main__":
    main()
