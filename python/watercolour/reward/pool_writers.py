"""Who writes a pool's sketches: the grammar, a model behind an endpoint, or a run that has been."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from watercolour.api.errors import InfrastructureError, InputError
from watercolour.api.reasons import Reason
from watercolour.score.completions import CallFailed, Completions, data_url
from watercolour.sketch import figure_paint, grammar, palettes, prompt
from watercolour.sketch.figure import Figure

#: Shares of the intents that the grammar paints with when it is not told: a pool needs all tiers.
INTENTS: dict[figure_paint.Intent, float] = {"good": 0.4, "plain": 0.3, "ugly": 0.3}

#: Calls to a model under way at once.
CALLS_AT_ONCE = 4

#: Calls in a row without an answer after which an endpoint is given up.
MOST_FAILURES = 8


@dataclass(frozen=True)
class Proposal:
    """A sketch that wants to get into a pool.

    Attributes:
        reply: JavaScript, or a chat reply that holds it.
        seed: of its painting.
        facts: what its record says of where it came from.
    """

    reply: str
    seed: int
    facts: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True)
class Writer:
    """A model behind an OpenAI-compatible endpoint.

    Attributes:
        completions: the endpoint.
        model: its name there.
        system: a preset of :mod:`watercolour.sketch.prompt`, or, with ``system_text``, nothing.
        system_text: the system message itself.
        temperature: of the sampling.
        max_tokens: longest reply.
    """

    completions: Completions
    model: str
    system: str = "ten-methods"
    system_text: str | None = None
    temperature: float = 0.8
    max_tokens: int = 6_000

    def messages(self, subject: str, brief: str = "") -> list[dict[str, Any]]:
        """The chat that asks for a sketch of a subject.

        Raises:
            InputError: the subject is empty, or there is no such preset.
        """
        name = "none" if self.system_text is not None else self.system
        chat: list[dict[str, Any]] = [*prompt.messages(subject, name)]
        if self.system_text is not None:
            chat.insert(0, {"role": "system", "content": self.system_text})
        if brief:
            chat[-1] = {**chat[-1], "content": f"{chat[-1]['content']}\n\n{brief.strip()}"}
        return chat

    async def reply(self, messages: Sequence[Mapping[str, Any]], seed: int) -> str:
        """What the model answers.

        Raises:
            CallFailed: no answer came.
        """
        body = {
            "model": self.model,
            "messages": list(messages),
            "temperature": self.temperature,
            "max_tokens": self.max_tokens,
            "seed": seed,
        }
        return (await self.completions.ask(body)).content


@dataclass(frozen=True)
class Seed:
    """A picture that a writer is shown: its name in the pool, the file's bytes, its provenance."""

    name: str
    picture: bytes
    attribution: str = ""
    licence: str = ""


def require_known(subject: str | Figure) -> None:
    """Refuse a subject that the grammar cannot paint.

    Raises:
        InputError: it has neither a description nor a place in the grammar (InvalidInput).
    """
    if isinstance(subject, str) and subject not in palettes.SUBJECTS:
        known = ", ".join(palettes.SUBJECTS)
        raise InputError(
            Reason.INVALID_INPUT,
            f"--subject {subject!r}: the grammar does not know it; it knows {known}.",
            remedy="Describe it in a file such as examples/subjects/jellyfish.yaml and give that, "
            "or let a model write the sketches (--from model).",
            field="subject",
            value=subject,
        )


async def from_grammar(
    subject: str | Figure, *, seed: int, canvas: int, intents: Mapping[figure_paint.Intent, float]
) -> AsyncGenerator[Proposal]:
    """Sketches without end; the n-th depends on the seed and n alone.

    Raises:
        InputError: the grammar does not know the subject (InvalidInput).
    """
    require_known(subject)
    number = 0
    while True:
        rng = random.Random(f"pool {seed} {number}")
        intent = rng.choices(list(intents), list(intents.values()))[0]
        if isinstance(subject, str):
            text = grammar.sample(subject, rng, intent).sketch
        else:
            text = figure_paint.sketch(subject, rng, intent, canvas).text
        number += 1
        yield Proposal(text, number, {"origin": "grammar"})


async def from_model(
    writer: Writer, subject: str, *, seed: int, brief: str = "", seeds: Sequence[Seed] = ()
) -> AsyncGenerator[Proposal]:
    """Sketches without end, each an answer of its own; with ``seeds`` after one of these pictures.

    Raises:
        InfrastructureError: the endpoint has not answered :data:`MOST_FAILURES` times in a row.
    """
    number = failed = 0
    while True:
        batch = range(number, number + CALLS_AT_ONCE)
        replies = await asyncio.gather(
            *(_written(writer, subject, brief, seed + n, _pick(seeds, n)) for n in batch)
        )
        number += CALLS_AT_ONCE
        for reply in replies:
            if isinstance(reply, CallFailed):
                failed += 1
                if failed >= MOST_FAILURES:
                    raise InfrastructureError(
                        Reason.ENDPOINT_UNAVAILABLE,
                        f"{writer.completions.endpoint} has not answered {failed} calls in a row: "
                        f"{reply}.",
                        remedy="Check --endpoint, --model and the key.",
                    )
            else:
                failed = 0
                yield reply


def _pick(seeds: Sequence[Seed], number: int) -> Seed | None:
    return seeds[number % len(seeds)] if seeds else None


async def _written(
    writer: Writer, subject: str, brief: str, seed: int, shown: Seed | None
) -> Proposal | CallFailed:
    messages = writer.messages(subject, brief)
    facts: dict[str, Any] = {"origin": "model", "generator": writer.model}
    if shown is not None:
        messages[-1] = with_picture(
            messages[-1], shown.picture, "Take this picture as what you paint from."
        )
        facts |= {
            "seed_picture": shown.name,
            "attribution": shown.attribution and f"after {shown.attribution}",
            "licence": shown.licence,
        }
    try:
        return Proposal(await writer.reply(messages, seed), 1, facts)
    except CallFailed as failure:
        return failure


def with_picture(message: Mapping[str, Any], picture: bytes, words: str) -> dict[str, Any]:
    """The message with a picture and some words behind its own."""
    return {
        "role": message["role"],
        "content": [
            {"type": "text", "text": message["content"]},
            {"type": "image_url", "image_url": {"url": data_url(picture)}},
            {"type": "text", "text": words},
        ],
    }


async def from_list(proposals: Iterable[Proposal]) -> AsyncGenerator[Proposal]:
    """Sketches that are there already, such as a run's."""
    for proposal in proposals:
        yield proposal


def spread(ranked: Sequence[Proposal], count: int) -> list[Proposal]:
    """At most ``count`` of them, evenly from the first to the last, so that no tier is missing."""
    if count >= len(ranked):
        return list(ranked)
    if count == 1:
        return [ranked[0]]
    return [ranked[round(n * (len(ranked) - 1) / (count - 1))] for n in range(count)]
