"""Rounds of critique and repaint: a vision model says what is wrong, a code model paints again.

Every round stays: its sketch and painting as a record of the pool, and what was said in

    rounds/NAME.json

Of a painting and those that were made of it the best one takes part in the rating; the others are
set aside, with the reason in their records.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from watercolour.api.errors import InfrastructureError, InputError
from watercolour.api.reasons import Reason
from watercolour.render.dispatcher import Dispatcher
from watercolour.reward import pool as pools
from watercolour.reward import pool_build, pool_intake
from watercolour.reward.pool import Record
from watercolour.reward.pool_intake import Refused
from watercolour.reward.pool_writers import Writer, with_picture
from watercolour.score.completions import CallFailed, Completions, data_url

FOLDER = "rounds"

#: As often as the published pool was revised.
ROUNDS = 3

#: Longest critique, in tokens.
MAX_TOKENS = 500

CRITERIA = (
    "You teach watercolour. You are shown one painting that was made by code, and what it was to "
    "show. Mark it from 1 to 10: 1 an empty sheet or a smear, 4 a coloured mass, 7 recognisable "
    "and decently painted, 10 accomplished. What counts: pigment that bleeds softly, thin washes "
    "over one another, crisp edges beside lost ones, colours that stay clean, a placement with "
    "intent, and that one sees at once what it is. Then say what works and must stay, what is "
    "wrong, and the one change that would help most, in words that a painter could follow."
)

Sentence = Annotated[str, Field(max_length=400)]


class Critique(BaseModel):
    """What the critic said of one painting."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    mark: int = Field(ge=1, le=10)
    keep: Sentence = Field(description="What works and must stay.")
    faults: list[Sentence] = Field(max_length=5, description="What is wrong, the worst first.")
    change: Sentence = Field(description="The one change that would help most.")

    def words(self) -> str:
        """As the painter is told it. The mark is left out: a painter must not paint for it."""
        faults = "".join(f"\n- {fault}" for fault in self.faults)
        wrong = f"\nWhat is wrong:{faults}" if faults else ""
        return f"What works and must stay: {self.keep}{wrong}\nChange first: {self.change}"


class Round(BaseModel):
    """One try: what was painted and said, or why there is no painting."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    number: int = Field(ge=0, description="0 is the painting that the rounds begin with.")
    painting: str | None = Field(default=None, description="Its name; None when there is none.")
    critique: Critique | None = None
    outcome: Literal["kept", "set aside", "refused", "failed"]
    why: str = Field(description="In a sentence.")


class Story(BaseModel):
    """All rounds of one painting."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    subject: str
    critic: str
    painter: str
    rounds: tuple[Round, ...]


@dataclass(frozen=True)
class Critic:
    """A vision model behind an OpenAI-compatible endpoint."""

    completions: Completions
    model: str

    async def look(self, painting: bytes, subject: str) -> Critique:
        """What it says of a painting.

        Raises:
            CallFailed: no answer came, or it breaks the schema.
        """
        found = await self.completions.ask(request(self.model, painting, subject))
        try:
            return Critique.model_validate_json(found.content)
        except ValidationError as error:
            raise CallFailed(
                f"the critique breaks the schema ({error.errors()[0]['msg']}): "
                f"{found.content[:120]!r}"
            ) from error


def request(model: str, painting: bytes, subject: str) -> dict[str, Any]:
    """The body of the chat completion that asks for a critique."""
    schema = Critique.model_json_schema()
    content = [
        {"type": "text", "text": f"It was to show {subject}, in loose watercolour."},
        {"type": "image_url", "image_url": {"url": data_url(painting)}},
    ]
    return {
        "model": model,
        "temperature": 0,
        "max_tokens": MAX_TOKENS,
        "messages": [
            {"role": "system", "content": CRITERIA},
            {"role": "user", "content": content},
        ],
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "critique", "strict": True, "schema": schema},
        },
    }


@dataclass(frozen=True)
class Studio:
    """Whoever takes part in the rounds.

    Attributes:
        critic: looks.
        painter: repaints.
        painter_sees: show the painter its painting too; a model that sees no pictures refuses it.
        brief: what a painter has to know of the subject.
        rounds: how many at most.
    """

    critic: Critic
    painter: Writer
    painter_sees: bool = False
    brief: str = ""
    rounds: int = ROUNDS


def waiting(folder: Path, records: Sequence[Record]) -> list[Record]:
    """Paintings whose rounds are still to come: written by code, taking part, without a story."""
    return [
        record
        for record in records
        if not record.imported
        and not record.aside
        and not record.parent
        and not story_path(folder, record.name).exists()
    ]


def story_path(folder: Path, name: str) -> Path:
    """Where a painting's rounds are told."""
    return folder / FOLDER / f"{name}.json"


def read_story(folder: Path, name: str) -> Story:
    """The rounds of a painting.

    Raises:
        InputError: there are none, or the file is broken (InvalidPool).
    """
    path = story_path(folder, name)
    try:
        return Story.model_validate_json(path.read_bytes())
    except (OSError, ValidationError) as error:
        raise InputError(
            Reason.INVALID_POOL,
            f"{path}: no rounds can be read ({type(error).__name__}).",
            remedy="Name a painting that was criticised, or delete the file and do it again.",
            field=str(path),
        ) from error


async def refine(
    folder: Path,
    records: Sequence[Record],
    studio: Studio,
    urls: Sequence[str],
    progress: Callable[[Story], None] = lambda _story: None,
) -> list[Story]:
    """Give these paintings their rounds, one after the other; each is written when it is done.

    Raises:
        InfrastructureError: a renderer failed for good, the disk is full, or the critic answered
            nothing for any of them (EndpointUnavailable).
    """
    stories: list[Story] = []
    canvas = pools.read_card(folder).canvas
    async with Dispatcher(urls) as renderers:
        for record in records:
            story = await _story(folder, record, canvas, studio, renderers)
            if all(each.outcome == "failed" for each in story.rounds):
                raise InfrastructureError(
                    Reason.ENDPOINT_UNAVAILABLE,
                    f"no critique of {record.name}: {story.rounds[0].why}",
                    remedy="Check --endpoint, the model's name and the key; it must see pictures.",
                )
            _keep(folder, story)
            stories.append(story)
            progress(story)
    return stories


async def _story(
    folder: Path, record: Record, canvas: int, studio: Studio, renderers: Dispatcher
) -> Story:
    """The rounds of one painting; new paintings are added to the pool, none is judged yet."""
    sketch = pools.read_text(pools.sketch_path(folder, record.name))
    painting = pools.painting_path(folder, record.name).read_bytes()
    current, rounds, refusal = record, list[Round](), ""
    seen = pool_intake.Seen([(record.name, painting)])
    critique = await _looked(studio, painting, record.subject)
    rounds.append(_round(0, record.name, critique))
    for number in range(1, studio.rounds + 1):
        if isinstance(critique, CallFailed):
            break
        asked = _asked(studio, record.subject, sketch, painting, critique, refusal)
        try:
            reply = await studio.painter.reply(asked, number)
        except CallFailed as failure:
            why = f"the painter did not answer: {failure}"
            rounds.append(Round(number=number, outcome="failed", why=why))
            break
        outcome = await pool_intake.judge_by_gate(
            reply, seed=record.seed, canvas=canvas, renderers=renderers
        )
        if not isinstance(outcome, Refused):
            twin = seen.twin(outcome.painted.painting)
            if twin is not None:
                outcome = Refused("duplicate", f"It looks like {twin}: nothing has changed.")
        if isinstance(outcome, Refused):
            refusal = f"{outcome.code}: {outcome.message}"
            rounds.append(Round(number=number, outcome="refused", why=refusal))
            continue
        refusal, sketch, painting = "", outcome.sketch, outcome.painted.painting
        current = pool_intake.add(
            folder,
            Record(
                name=f"{record.name}-r{number}",
                subject=record.subject,
                origin="critique",
                seed=record.seed,
                generator=studio.painter.model,
                parent=current.name,
                round=number,
                licence=record.licence,
                attribution=record.attribution,
                seed_picture=record.seed_picture,
                aside="its rounds are not over",
                **pool_build.facts(sketch, outcome.painted),  # pyright: ignore[reportArgumentType]
            ),
            painting,
            sketch,
        )
        seen.add(current.name, painting)
        critique = await _looked(studio, painting, record.subject)
        rounds.append(_round(number, current.name, critique))
    return Story(
        name=record.name,
        subject=record.subject,
        critic=studio.critic.model,
        painter=studio.painter.model,
        rounds=tuple(decided(rounds)),
    )


async def _looked(studio: Studio, painting: bytes, subject: str) -> Critique | CallFailed:
    try:
        return await studio.critic.look(painting, subject)
    except CallFailed as failure:
        return failure


def _round(number: int, name: str, critique: Critique | CallFailed) -> Round:
    if isinstance(critique, CallFailed):
        why = f"the critic did not answer: {critique}"
        return Round(number=number, painting=name, outcome="failed", why=why)
    return Round(number=number, painting=name, critique=critique, outcome="set aside", why="")


def _asked(
    studio: Studio,
    subject: str,
    sketch: str,
    painting: bytes,
    critique: Critique,
    refusal: str,
) -> list[dict[str, Any]]:
    """The chat that asks for the painting once more."""
    words = f"Your painting was looked at.\n{critique.words()}\n"
    if refusal:
        words += f"Your last try was not painted at all: {refusal}\n"
    words += "Paint it again and send the whole sketch."
    follow: dict[str, Any] = {"role": "user", "content": words}
    if studio.painter_sees:
        follow = with_picture({"role": "user", "content": "This is it:"}, painting, words)
    return [
        *studio.painter.messages(subject, studio.brief),
        {"role": "assistant", "content": f"```javascript\n{sketch.strip()}\n```"},
        follow,
    ]


def decided(rounds: Sequence[Round]) -> list[Round]:
    """The rounds with one of them kept: the highest mark, and of equal ones the earliest.

    Without any mark the painting that the rounds began with is kept.
    """
    marked = [each for each in rounds if each.critique is not None]
    best = max(marked, key=lambda each: (_mark(each), -each.number), default=rounds[0])
    told: list[Round] = []
    for each in rounds:
        if each is best and each.critique is not None:
            others = [_mark(other) for other in marked if other is not best]
            why = f"mark {_mark(each)}" + (f", the others {_listed(others)}" if others else "")
            told.append(each.model_copy(update={"outcome": "kept", "why": why}))
        elif each.critique is not None:
            why = f"mark {_mark(each)}; round {best.number} has {_mark(best)}"
            told.append(each.model_copy(update={"outcome": "set aside", "why": why}))
        else:
            told.append(each)
    return told


def _mark(each: Round) -> int:
    return each.critique.mark if each.critique is not None else 0


def _listed(marks: Sequence[int]) -> str:
    return ", ".join(str(mark) for mark in marks)


def _keep(folder: Path, story: Story) -> None:
    """Write the story, then what it decided."""
    text = json.dumps(story.model_dump(), indent=1, ensure_ascii=False) + "\n"
    pool_build.write(story_path(folder, story.name), text.encode())
    by_name = {each.painting: each for each in story.rounds if each.painting}
    none_kept = all(each.outcome != "kept" for each in story.rounds)
    changed: list[Record] = []
    for record in pools.read_records(folder):
        each = by_name.get(record.name)
        if each is None:
            continue
        first = none_kept and record.name == story.name
        aside = "" if each.outcome == "kept" or first else f"critique: {each.why}"
        changed.append(record.model_copy(update={"aside": aside}))
    pool_intake.update(folder, changed)
