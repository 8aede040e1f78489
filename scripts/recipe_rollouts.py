"""Rollouts for the pictures of the recipes: the same sketches, rewarded by each shipped recipe.

Every recipe has a corridor of its own, as in a run: gate, renderer, scorer, judge and reward are
the real ones. For each subject there is a group of sketches that met one draw of references.
"""

from __future__ import annotations

import asyncio
import random
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice
from typing import Any

from scripts import measuring_model

from watercolour.api import load
from watercolour.api.rollout import Rollout
from watercolour.api.spec import RunSpec
from watercolour.env import inputs
from watercolour.env.corridor import Corridor
from watercolour.env.draws import Place
from watercolour.env.server import neighbours, opened
from watercolour.local import untrained
from watercolour.local.calibrating import own_judge
from watercolour.local.painting import own_renderer
from watercolour.reward import pool, recipes, reckon
from watercolour.sketch import grammar
from watercolour.sketch.grammar import Intent

SUBJECTS = ("a peach hibiscus", "a blue iris", "a red poppy", "a yellow daisy")

#: Of each subject: replies of the policy before training, sketches of the grammar by intent, and
#: paintings of each tier of the pool.
REPLIES = 10
DRAWN: dict[Intent, int] = {"good": 2, "plain": 2, "ugly": 6, "broken": 1}
RATED = 2

#: Seeds of the draws, one a group; of what the policy and the grammar write.
SEED = 7

AT_ONCE = 4

#: A recipe and a step of its run.
Wanted = tuple[str, int]


@dataclass(frozen=True)
class Candidate:
    """A reply, and where it comes from in two or three words."""

    origin: str
    reply: str


@dataclass(frozen=True)
class Shown:
    """A rewarded rollout, and where its sketch comes from."""

    origin: str
    rollout: Rollout


def candidates(subject: str, drawn: Sequence[str]) -> Iterator[Candidate]:
    """Sketches of a subject from the policy, the grammar and the pool.

    Args:
        subject: what they were to paint.
        drawn: names of references that the group meets; a painting does not meet itself.
    """
    for reply in islice(untrained.replies("builtin:tiny", subject, SEED), REPLIES):
        yield Candidate("policy, untrained", reply.reply)
    rng = random.Random(f"pictures {subject}")
    for intent, count in DRAWN.items():
        for _ in range(count):
            sample = grammar.sample(subject, rng, intent)
            flaw = f": {sample.flaw.replace('_', ' ')}" if sample.flaw else ""
            yield Candidate(f"grammar, {intent}{flaw}", _fenced(sample.sketch))
    rated = [one for one in pool.load("builtin:flowers").references if one.subject == subject]
    for tier in ("love", "okay", "meh"):
        some = [one for one in rated if one.tier == tier and one.name not in drawn]
        for one in some[:RATED]:
            yield Candidate(f"pool, {tier}", _fenced(one.sketch))


def _fenced(sketch: str) -> str:
    return f"```javascript\n{sketch}\n```"


def spec(recipe: str, model: str) -> RunSpec:
    """A run by the recipe, with the embedded scorer and judge, or with the measuring model."""
    whole: dict[str, Any] = {"recipe": {"name": recipe}}
    if recipes.RECIPES[recipe].asks("marks"):
        whole["scorer"] = {
            "backend": inputs.VLM_MARK,
            "endpoint": model,
            "model": measuring_model.NAME,
        }
    run = {"apiVersion": "watercolour.dev/v1alpha1", "kind": "WatercolourRun"}
    return load.from_dict({**run, "metadata": {"name": recipe}, "spec": whole}).spec


def rewarded(wanted: Sequence[Wanted]) -> dict[Wanted, list[list[Shown]]]:
    """For each recipe and step, of every subject the group of its rewarded rollouts.

    Raises:
        WatercolourError: renderer or scorer could not be started.
    """
    with ExitStack() as around:
        renderer = around.enter_context(own_renderer(slots=2))
        scorer = around.enter_context(own_judge())
        model = around.enter_context(measuring_model.serving())
        written: dict[str, list[Candidate]] = {}
        for number, subject in enumerate(SUBJECTS):
            draw = pool.draw(
                pool.load("builtin:flowers"),
                SEED + number,
                RunSpec().references.per_rollout,
                RunSpec().references.tier_shares,
            )
            written[subject] = list(candidates(subject, [one.name for one in draw]))
        return {
            (name, step): asyncio.run(
                _of_recipe(spec(name, model), renderer, scorer, written, step)
            )
            for name, step in wanted
        }


async def _of_recipe(
    wanted: RunSpec,
    renderer: str,
    scorer: str,
    written: dict[str, list[Candidate]],
    step: int,
) -> list[list[Shown]]:
    near = neighbours(wanted, renderers=[renderer], scorer=scorer, judge=scorer)
    async with opened(wanted, near, inputs.require(wanted), {}) as found:
        return [
            await _of_group(found.corridor, subject, number, some, step)
            for number, (subject, some) in enumerate(written.items())
        ]


async def _of_group(
    corridor: Corridor, subject: str, number: int, some: Sequence[Candidate], step: int
) -> list[Shown]:
    draw = corridor.draw(SEED + number, step=step)
    free = asyncio.Semaphore(AT_ONCE)

    async def one(index: int, candidate: Candidate) -> Rollout:
        async with free:
            return await corridor.evaluate(
                candidate.reply,
                subject=subject,
                seed=SEED + number,
                draw=draw,
                client="pictures",
                place=Place(step, number, index),
            )

    alone = await asyncio.gather(*(one(index, each) for index, each in enumerate(some)))
    whole = reckon.completed(corridor.recipe.at(step).of(alone[0]), alone)
    for rollout in whole:
        # A picture of what the recipe likes must not leave out whom nobody could ask.
        if rollout.reward is None:
            said = f"{rollout.unscored_reason}: {rollout.unscored_detail}"
            sys.exit(f"A rollout of {corridor.recipe.name} has no reward. {said}. Run it again.")
    return [Shown(each.origin, rollout) for each, rollout in zip(some, whole, strict=True)]
