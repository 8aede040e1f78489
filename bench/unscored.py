"""What a rollout without a value does to the weights: nothing, as if it had never been sampled.

Real GRPO steps by TRL on the builtin policy, from one recorded set of completions. For each
pattern of missing values three steps start from the same weights: with the members unscored
(ours), with the remaining members alone, and with what is missing at 0 (theirs: what a failure
counts for where None and 0 are confused). What is missing is a member's whole reward, or one of the
terms that the recipe joins to it. Told is how far the first and the third land from the second,
as a share of the second's own movement. Float rounding alone is some 1e-6: rows are padded
differently without a neighbour.

    python bench/unscored.py [--seed 0]
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import tempfile
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
import transformers
import trl
from peft import get_peft_model_state_dict
from torch import Tensor

from watercolour.api import load
from watercolour.api.reasons import Reason
from watercolour.api.rollout import Rollout
from watercolour.api.spec import WatercolourRun
from watercolour.api.trainer import decoding
from watercolour.reward import recipes
from watercolour.train import artifacts, asking, batches, engines, grpo, policy, session, settings
from watercolour.train import trainer as trainers
from watercolour.train.progress import Progress
from watercolour.train.rollouts import Painter
from watercolour.train.sampling import OnRow, Row, Stop

#: Members of the largest group.
MEMBERS = 8

#: Tokens of the longest completion: enough for rows of different lengths.
TOKENS = 48

SUBJECT = "a red poppy"

#: What joins the terms: a shipped recipe's weights, and the one rule. The gate has a value always.
RECIPE = recipes.RECIPES["hps-led"]
TERMS = tuple(name for name, weight in RECIPE.weights.items() if weight and name != "gate")

#: Weights of the KL term: none, and one at which it matters.
BETAS = (0.0, 0.04)

#: How far rounding may take the weights: differently padded rows add up in another order.
TOLERANCE = 1e-3

Value = float | None


@dataclass(frozen=True)
class Pattern:
    """Which members of which groups have no value.

    Attributes:
        name: for the table.
        groups: sizes of the groups; they are equal.
        missing: places, over all groups, without a value.
        left: sizes of the groups that remain; none if nothing can be learnt.
        term: the only term of theirs that is missing; None if all are.
    """

    name: str
    groups: tuple[int, ...]
    missing: tuple[int, ...]
    left: tuple[int, ...]
    term: str | None = None


PATTERNS = (
    *(Pattern(f"member {place + 1} of 8", (8,), (place,), (7,)) for place in (0, 3, 7)),
    Pattern("one term of member 4", (8,), (3,), (7,), "judge"),
    Pattern("one term of every other", (8,), (0, 2, 4, 6), (4,), "quality"),
    Pattern("every other of 8", (8,), (0, 2, 4, 6), (4,)),
    Pattern("the first half of 8", (8,), (0, 1, 2, 3), (4,)),
    Pattern("all but two of 8", (8,), (0, 1, 3, 4, 6, 7), (2,)),
    Pattern("one in each of two groups", (4, 4), (1, 6), (3, 3)),
    Pattern("one group of two", (4, 4), (4, 5, 6, 7), (4,)),
    Pattern("all but one of 8", (8,), (0, 1, 2, 3, 4, 5, 6), ()),
    Pattern("all of 8", (8,), tuple(range(8)), ()),
)


def terms(text: str) -> dict[str, Value]:
    """What a completion is worth, term by term: between 0.05 and 1, by the completion alone."""
    digest = hashlib.sha256(text.encode()).digest()
    return {name: 0.05 + 0.95 * digest[place] / 255 for place, name in enumerate(TERMS)}


class Stage:
    """An environment that has a value for each completion, or None, and answers at once."""

    def __init__(self, values: Sequence[Value], size: int) -> None:
        self.values, self.size = values, size

    def submit(self, completion: str, **ids: Any) -> Future[Rollout]:
        """The rollout with its value; of a second attempt too."""
        value = self.values[ids["group"] * self.size + ids["index"]]
        scored = {"gate_passed": True, "reward": value, "reward_adjusted": value}
        update: dict[str, Any] = scored
        if value is None:
            update = {"unscored_reason": Reason.RENDERER_UNAVAILABLE}
        future: Future[Rollout] = Future()
        future.set_result(Rollout(completion=completion, sketch=completion, **ids, **update))
        return future

    def submit_announcement(
        self, rollouts: int, until: float, due_seconds: float = 0.0
    ) -> Future[bool]:
        """Nobody waits for them."""
        future: Future[bool] = Future()
        future.set_result(True)
        return future


def wanted(sizes: Sequence[int], seed: int, **trainer: Any) -> WatercolourRun:
    """One step with groups of these sizes."""
    return load.from_dict(
        {
            "apiVersion": "watercolour.dev/v1alpha1",
            "kind": "WatercolourRun",
            "metadata": {"name": "unscored"},
            "spec": {
                "seed": seed,
                "prompts": {"subjects": [SUBJECT]},
                "trainer": {
                    "steps": 1,
                    "rolloutsPerStep": sum(sizes),
                    "groupSize": sizes[0],
                    "warmupSteps": 0,
                    "sampling": {"maxCompletionTokens": TOKENS},
                    "guards": {"probes": 0, "collapse": False},
                    **trainer,
                },
            },
        }
    )


def perturb(model: Any, seed: int) -> None:
    """Make B differ from 0, so that A has a gradient and the KL term a value."""
    chance = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, weight in sorted(model.named_parameters()):
            if "lora_B" in name:
                weight.normal_(std=0.01, generator=chance)


def recorded(run: WatercolourRun) -> tuple[list[Row], list[dict[str, Value]]]:
    """Completions of the policy before the step, and what each of their terms is worth."""
    found = policy.load(run.spec.model, run.spec.trainer.lora)
    drawn = decoding(run.spec.trainer.sampling, builtin=True)
    pad = found.tokenizer.pad_token_id
    _, engine = engines.build("auto", found.model, drawn, found.ends, pad=pad)
    prompt = asking.tokens_of(run.spec, found, SUBJECT)
    seeds = [batches.row_seed(run.spec.seed, 0, 0, place) for place in range(MEMBERS)]
    rows = engine([prompt] * MEMBERS, seeds, lambda number, row: None, lambda: None)
    return rows, [terms(found.tokenizer.decode(row.tokens)) for row in rows]


def replay(rows: Sequence[Row]) -> engines.Engine:
    """An engine that writes these rows, whatever it is asked."""

    def engine(prompts: Any, seeds: Any, on_row: OnRow, stop: Stop) -> list[Row]:
        written = list(rows[: len(prompts)])  # fewer when a group without any value is retried
        for place, row in enumerate(written):
            on_row(place, row)
        return written

    return engine


def step(run: WatercolourRun, rows: Sequence[Row], values: Sequence[Value]) -> Tensor:
    """Take one step with these rows and values; how far each adapted weight moved."""
    spec = run.spec
    found = policy.load(spec.model, spec.trainer.lora)
    plan = batches.plan(spec, whole=True)
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder)
        painter = Painter(
            engine=replay(rows),
            decode=found.tokenizer.decode,
            env=Stage(values, spec.trainer.group_size),
            run=run.metadata.name,
            seed_of=lambda step, attempt, row: 0,
            stop=lambda: None,
        )
        ask = partial(asking.tokens_of, spec, found)
        held = trainers.Session(
            batches=plan,
            painter=painter,
            groups_of=partial(session.groups_of, spec, plan, ask),
            artifacts=artifacts.Artifacts(out),
            progress=Progress(run.metadata.name, 1),
            limits=trainers.Limits(False, 0, 2, 0.0, 1),
            stopping=lambda: False,
            flat_steps_teach=spec.trainer.beta != 0,
        )
        config = settings.config(spec, plan, out, on_cpu=True)
        trainer = grpo.build(found, config, session.dataset(spec, plan), held)
        perturb(trainer.adapted, spec.seed)
        before = adapter(trainer.adapted)
        trainer.train()
        return adapter(trainer.adapted) - before


def adapter(model: Any) -> Tensor:
    """Every adapted weight in one vector, as a copy, in float64."""
    state = get_peft_model_state_dict(model)
    return torch.cat([state[name].flatten().double() for name in sorted(state)])


def apart(one: Tensor, two: Tensor) -> float:
    """Length of the difference, as a share of the second's length."""
    return float((one - two).norm() / two.norm())


def measure(
    pattern: Pattern,
    make: Callable[..., WatercolourRun],
    rows: list[Row],
    worths: list[dict[str, Value]],
) -> tuple[float, float | None]:
    """How far unscored members, and members or terms at 0, land from where they do not exist.

    Where nothing is left to learn from, the first is how far the weights moved at all, and the
    second is None.
    """

    def rewards(lacking: Value) -> list[Value]:
        values: list[Value] = []
        for place, found in enumerate(worths):
            away = (pattern.term,) if pattern.term else TERMS
            changed = dict.fromkeys(away, lacking) if place in pattern.missing else {}
            values.append(RECIPE.combine(found | changed, gate_passed=True))
        return values

    whole = make(pattern.groups)
    unscored = step(whole, rows, rewards(None))
    if not pattern.left:
        return float(unscored.norm()), None
    kept = [place for place in range(MEMBERS) if place not in pattern.missing]
    values = rewards(None)
    alone = step(
        make(pattern.left), [rows[place] for place in kept], [values[place] for place in kept]
    )
    return apart(unscored, alone), apart(step(whole, rows, rewards(0.0)), alone)


def main() -> None:
    """Print a table and a line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    transformers.utils.logging.disable_progress_bar()
    warnings.simplefilter("ignore")
    torch.set_num_threads(2)
    worst, least, moved = 0.0, float("inf"), 0.0
    for beta in BETAS:
        make = partial(wanted, seed=args.seed, beta=beta)
        rows, worths = recorded(make((MEMBERS,)))
        print(f"beta {beta:<22g} unscored        as 0")
        for pattern in PATTERNS:
            ours, theirs = measure(pattern, make, rows, worths)
            if theirs is not None:
                worst, least = max(worst, ours), min(least, theirs)
                print(f"  {pattern.name:25} {ours:8.0e}    {theirs:8.0e}", flush=True)
                continue
            # A lone member teaches nothing by its reward, but it is there, and feels the KL term.
            if beta == 0 or len(pattern.missing) == MEMBERS:
                moved = max(moved, ours)
            print(f"  {pattern.name:25} moves {ours:.0e}", flush=True)
    conditions = f"TRL {trl.__version__}, builtin policy, AdamW, seed {args.seed}"
    found = {
        "bench": "unscored",
        "ours": worst,
        "theirs": least,
        "ratio": least / worst,
        "unit": "distance from the step without the members, as a share of that step",
        "n": len(BETAS) * len(PATTERNS),
        "conditions": f"{conditions}; with nothing left to learn from it moved {moved:g}",
    }
    print(json.dumps(found))
    sys.exit(worst > TOLERANCE or moved > 0)


if __name__ == "__main__":
    main()
