"""What two GPUs save when they hold the base model in parts (spec.trainer.fsdp), and what it costs.

A policy of Qwen3-4B's shape with random weights trains by our own trainer, started as a run starts
it: by two processes that hold the base whole each, then by two that hold it in parts. Both get the
same completions, drawn by chance and served as vLLM serves them, and the same rewards, so that both
have to end with the same adapter; the bench fails if they do not. The last line compares the peak
memory of one process. Needs two GPUs; where there is one, `--share` puts both processes on it and
lets them speak through gloo, because NCCL takes one process a GPU. What each holds and learns is
the same then, and the seconds say nothing.

    python bench/fsdp_h200.py [--steps 4] [--tokens 1024] [--share] [--tiny]
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import os
import random
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
# The server is that of the tests.
sys.path.insert(0, str(ROOT))

import torch
from safetensors.torch import load_file
from step_h200 import Answers
from tests.unit.train.vllm_server import Vllm, serving
from torch import distributed
from torch.distributed.tensor import DTensor
from transformers import AutoTokenizer, Qwen3Config, Qwen3ForCausalLM

from watercolour.api import dump, load
from watercolour.api.spec import WatercolourRun
from watercolour.train import checkpoint, launch, policy, ranks, session
from watercolour.train.progress import Progress

SELF = (sys.executable, str(Path(__file__).resolve()))
ROLLOUTS, PROCESSES = 8, 2
#: Qwen3-4B's, from its published configuration; the vocabulary is our small tokenizer's.
SHAPE: dict[str, Any] = {
    "hidden_size": 2560,
    "intermediate_size": 9728,
    "num_hidden_layers": 36,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "max_position_embeddings": 40_960,
}
TINY: dict[str, Any] = {
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "max_position_embeddings": 2048,
}
#: Largest difference of two adapters, in the norm, over the norm of what training made of one:
#: sums in another order, rounded to bfloat16, change that much.
APART = 0.05
Json = dict[str, Any]


def write(folder: Path, *, tiny: bool) -> int:
    """Write a checkpoint with random weights and its tokenizer; the size of the vocabulary."""
    tokenizer: Any = AutoTokenizer.from_pretrained(policy.POLICIES / "tiny", padding_side="left")
    torch.manual_seed(0)
    config = Qwen3Config(
        vocab_size=len(tokenizer),
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        dtype="float32" if tiny else "bfloat16",
        **(TINY if tiny else SHAPE),
    )
    with torch.device("cpu" if tiny else "cuda"):
        model = Qwen3ForCausalLM._from_config(config)  # pyright: ignore[reportPrivateUsage]
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return len(tokenizer)


class ByChance(Vllm):
    """A server that takes adapters, and completes each prompt by chance."""

    vocabulary: int
    tokens: int

    def answer(self, path: str, body: Json) -> tuple[int, Any]:
        """What vLLM would, but for the tokens."""
        if path != "/v1/completions":
            return 200, "done"
        drawn = random.Random(body["seed"]).choices(range(self.vocabulary), k=self.tokens)
        logs = {"token_logprobs": [-math.log(self.vocabulary)] * self.tokens}
        return 200, {"choices": [{"token_ids": drawn, "logprobs": logs, "finish_reason": "length"}]}


def specification(model: Path, endpoint: str, *, steps: int, tokens: int, fsdp: bool) -> Json:
    """The run."""
    return {
        "apiVersion": "watercolour.dev/v1alpha1",
        "kind": "WatercolourRun",
        "metadata": {"name": "parts" if fsdp else "whole"},
        "spec": {
            "model": {"id": str(model)},
            "prompts": {"system": "tiny"},
            "recipe": {"name": "control"},
            "trainer": {
                "processes": PROCESSES,
                "fsdp": fsdp,
                "engine": "vllm",
                "vllm": {"endpoint": endpoint},
                "steps": steps,
                "rolloutsPerStep": ROLLOUTS,
                "groupSize": ROLLOUTS,
                "learningRate": 1e-4,
                "warmupSteps": 0,
                "checkpointEvery": steps,
                "sampling": {"maxCompletionTokens": tokens, "topP": 1.0, "topK": 0},
                # Weighed by how likely the policy was to draw them, they would teach nothing.
                "grpo": {"vllm_importance_sampling_correction": False},
                "guards": {"probes": 0},
            },
        },
    }


def share() -> None:
    """Have this process use the first GPU beside others, and speak with them through gloo."""
    os.environ["LOCAL_RANK"] = "0"
    begin, gather = distributed.init_process_group, distributed.all_gather_into_tensor

    def by_gloo(_: str, **more: Any) -> None:
        begin("gloo", **more)

    def flat(into: torch.Tensor, own: torch.Tensor, *words: Any, **more: Any) -> Any:
        # NCCL asks for as many numbers, gloo for the same shape too.
        return gather(into.view(-1), own.reshape(-1), *words, **more)

    distributed.init_process_group = by_gloo
    distributed.all_gather_into_tensor = flat


def child(arguments: list[str]) -> int:
    """One process of a training; writes down what it held and the most that it used."""
    parser = argparse.ArgumentParser()
    for name in ("--spec", "--out"):
        parser.add_argument(name, type=Path, required=True)
    parser.add_argument("--share", action="store_true")
    args, _ = parser.parse_known_args(arguments)
    if args.share:
        share()
    wanted = load.run(args.spec)
    held: list[int] = []
    read = policy.load

    def counted(*words: Any, **more: Any) -> policy.Policy:
        found = read(*words, **more)
        weights = [w.to_local() if isinstance(w, DTensor) else w for w in found.model.parameters()]
        held.append(sum(weight.numel() for weight in weights))
        return found

    policy.load = counted
    with ranks.joined() as own:
        shown = Progress("bench", wanted.spec.trainer.steps)
        env: Any = Answers(seconds=0.0)
        session.run(wanted, args.out, env, shown, lambda: False, resume=False, ranks=own)
        used = torch.cuda.max_memory_allocated() / 2**30 if torch.cuda.is_available() else 0.0
        kept = {"weights": held[0], "peak_gib": round(used, 2)}
        (args.out / f"rank-{own.rank}.json").write_text(json.dumps(kept))
    return 0


def trained(spec: Json, out: Path, *, shared: bool) -> Json:
    """Train by two processes, on one GPU if it is ``shared``; the figures of both.

    Raises:
        SystemExit: the training failed.
    """
    wanted: WatercolourRun = load.from_dict(spec)
    out.mkdir()
    (out / "run.yaml").write_text(dump.to_yaml(wanted, full=True))
    words = ["--spec", str(out / "run.yaml"), "--out", str(out)]
    words += ["--share"] * shared
    if status := launch.run(words, wanted.spec, None, SELF):
        sys.exit(status)
    with (out / "metrics.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    ranks_of = [json.loads((out / f"rank-{one}.json").read_text()) for one in range(PROCESSES)]
    return {
        "weights": [one["weights"] for one in ranks_of],
        "peak_gib": max(one["peak_gib"] for one in ranks_of),
        # The first step loads kernels.
        "update_s": round(median(float(row["seconds_update"]) for row in rows[1:]), 2),
        "grad_norm": [float(row["grad_norm"]) for row in rows],
    }


def adapter(out: Path, step: int) -> dict[str, torch.Tensor]:
    """What a training has made, by name."""
    folder = out / checkpoint.FOLDER / f"{checkpoint.PREFIX}{step}"
    return {name: each.float() for name, each in load_file(folder / policy.ADAPTER_FILE).items()}


def apart(ours: dict[str, torch.Tensor], theirs: dict[str, torch.Tensor]) -> float:
    """Distance of two adapters' B, which begin at 0, over the norm of the second's."""
    made = [name for name in theirs if "lora_B" in name]
    square = sum(float((ours[name] - theirs[name]).square().sum()) for name in made)
    return math.sqrt(square / sum(float(theirs[name].square().sum()) for name in made))


def main() -> None:
    """Measure, and print two lines and one of JSON."""
    if "RANK" in os.environ:
        launch.program(lambda: child(sys.argv[1:]))
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--tokens", type=int, default=1024)
    parser.add_argument("--share", action="store_true", help="both processes on one GPU")
    parser.add_argument("--tiny", action="store_true", help="try it out on the CPU")
    args = parser.parse_args()
    needed = 1 if args.share else PROCESSES
    if not args.tiny and (there := torch.cuda.device_count()) < needed:
        instead = "" if args.share else "; --share does with one"
        sys.exit(f"fsdp_h200: needs {needed} GPU(s), and {there} are here{instead}")
    found: dict[str, Json] = {}
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        vocabulary = write(folder / "model", tiny=args.tiny)
        torch.cuda.empty_cache()
        chance = ByChance(folder / "model", end=0)
        chance.vocabulary, chance.tokens = vocabulary, args.tokens
        with serving(chance):
            for name in ("whole", "parts"):
                sizes = {"steps": args.steps, "tokens": args.tokens, "fsdp": name == "parts"}
                spec = specification(folder / "model", chance.url, **sizes)
                found[name] = trained(spec, folder / name, shared=args.share)
                print(f"{name}: {json.dumps(found[name])}", flush=True)
        adapters = [adapter(folder / name, args.steps) for name in ("parts", "whole")]
    whole, parts = found["whole"], found["parts"]
    if not min(*whole["grad_norm"], *parts["grad_norm"]) > 0:
        sys.exit("fsdp_h200: a step learnt nothing, so the adapters are not compared")
    if sum(parts["weights"]) != whole["weights"][0]:
        sys.exit("fsdp_h200: the parts are not the whole")
    if (distance := apart(*adapters)) > APART:
        sys.exit(f"fsdp_h200: the adapters are {distance:.3f} of what training made apart")
    memory = "peak_gib" if not args.tiny else "weights"
    ours, theirs = (max(one["weights"]) if args.tiny else one[memory] for one in (parts, whole))
    print(
        json.dumps(
            {
                "bench": "fsdp_h200",
                "ours": ours,
                "theirs": theirs,
                "ratio": round(theirs / ours, 2),
                "unit": "weights" if args.tiny else "GiB of a process",
                "n": args.steps - 1,
                "conditions": {
                    "update_ratio": None
                    if args.share
                    else round(parts["update_s"] / max(whole["update_s"], 0.01), 2),
                    "adapters_apart": round(distance, 5),
                    "tokens": args.tokens,
                },
            }
        )
    )


if __name__ == "__main__":
    main()
