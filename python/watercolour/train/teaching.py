"""What a policy is taught in the cold start, and how it is looked at meanwhile.

``spec.sft`` says what is learnt and for how long, ``spec.prompts`` what the policy is asked.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from watercolour import logs
from watercolour.api.errors import InputError
from watercolour.api.reasons import Reason
from watercolour.api.spec import RunSpec, Sft
from watercolour.train import asking, batches, coldstart, gpu_memory, pairs, preflight
from watercolour.train import policy as policies
from watercolour.train.coldstart import Example, Outcome, Tell
from watercolour.train.engines import Engine
from watercolour.train.files import write_text
from watercolour.train.ranks import Ranks
from watercolour.train.sampling import Stop

log = logs.get(__name__)

#: What came of it, in the folder of the run or of the adapter.
FILE = "sft.json"
ALONE = Ranks()


def _go_on() -> None:
    """Nobody stops it but by a signal, which ends the process."""


def teach(
    spec: RunSpec,
    policy: policies.Policy,
    adapted: Any,
    engine: Engine,
    tell: Tell,
    ranks: Ranks = ALONE,
    *,
    stop: Stop = _go_on,
    stop_together: Stop = _go_on,
) -> Outcome:
    """Fit the adapter of a policy to the corpus of ``spec.sft``.

    Args:
        spec: the run's; without ``sft`` its defaults.
        policy: tokenizer and model.
        adapted: the model with its adapter, which is trained.
        engine: generates by that model, to see how many sketches pass the gate.
        tell: hears of each step.
        ranks: those that share the training.
        stop: called at every token; raises to abandon the cold start.
        stop_together: the same, called by all that share the training at the same place.

    Raises:
        InputError: the corpus cannot be used (InvalidSpec, ArtifactsDamaged).
        InfrastructureError: see :func:`watercolour.train.coldstart.run`.
    """
    wanted, subjects = spec.sft or Sft(), spec.prompts.subjects
    asked = [subjects[number % len(subjects)] for number in range(coldstart.PROBES)]
    prompts = [asking.tokens_of(spec, policy, subject) for subject in asked]
    own = [row for row in range(len(prompts)) if ranks.owns(row, len(prompts))]

    def decode(tokens: Sequence[int]) -> str:
        return policy.tokenizer.decode(tokens, skip_special_tokens=True)

    def rate(look: int) -> float:
        seeds = [batches.row_seed(spec.seed, preflight.STEP, look, row) for row in own]
        remedy = "Lower spec.trainer.sampling.maxCompletionTokens."
        with ranks.agreed(), gpu_memory.full_named(lambda: ("sketching probes", remedy)):
            found = coldstart.admitted(
                engine, decode, [prompts[row] for row in own], seeds, spec.recipe.gate, stop
            )
        return sum(ranks.gather(found)) / len(prompts)

    def stop_between_steps() -> None:
        stop()
        stop_together()

    examples = _examples(spec, policy, wanted)
    return coldstart.run(adapted, examples, wanted, rate, tell, stop_between_steps, ranks)


def _examples(spec: RunSpec, policy: policies.Policy, wanted: Sft) -> list[Example]:
    """The corpus as tokens, without what a rollout could not hold: it would teach to be cut off."""
    found = pairs.load(wanted, spec.seed)
    most = spec.trainer.sampling.max_completion_tokens
    examples = [asking.reply_tokens(spec, policy, pair) for pair in found]
    short: list[Example] = [one for one in examples if len(one[1]) <= most]
    if not short:
        shortest = min(len(reply) for _, reply in examples)
        raise InputError(
            Reason.INVALID_SPEC,
            f"spec.sft.corpus={wanted.corpus}: its shortest sketch has {shortest} tokens, more "
            f"than spec.trainer.sampling.maxCompletionTokens={most}.",
            remedy=f"Raise that to {shortest} or more, or name a corpus of shorter sketches.",
            field="spec.sft.corpus",
            value=wanted.corpus,
        )
    if len(short) < len(examples):
        log.warning(
            "cold start: %d of %d sketches are longer than maxCompletionTokens=%d and left out",
            len(examples) - len(short),
            len(examples),
            most,
        )
    return short


def write(outcome: Outcome, folder: Path) -> None:
    """Write down what came of it."""
    write_text(folder / FILE, json.dumps(asdict(outcome), indent=2) + "\n")
