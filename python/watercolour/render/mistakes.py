"""What is wrong with a request, in the words of the contract."""

from __future__ import annotations

import json

from pydantic import ValidationError

from watercolour.render.schemas import (
    ECHO,
    PROBLEM,
    REMEDIES,
    MalformedProblem,
    Mistake,
    Refusal,
    RenderRequest,
)

#: Most mistakes that are told of.
MISTAKES = 20


def malformed(*mistakes: Mistake) -> MalformedProblem:
    """The problem that tells of these mistakes."""
    told = (
        f"{one.field}{'' if one.value is None else f'={one.value}'}: {one.problem}. {one.remedy}"
        for one in mistakes
    )
    return MalformedProblem(
        type=f"{PROBLEM}{Refusal.MALFORMED_REQUEST}",
        title="The request is malformed",
        status=400,
        detail=" ".join(told),
        errors=mistakes,
    )


def mistake(field: str, problem: str, value: object = None) -> Mistake:
    """One thing wrong with a request; its remedy goes by the field."""
    known = ", ".join(RenderRequest.model_fields)
    remedy = REMEDIES.get(field, f"Leave it out; the fields are {known}.")
    return Mistake(field=cut(field), value=echo(value), problem=problem, remedy=remedy)


def mistakes(error: ValidationError) -> tuple[Mistake, ...]:
    """What pydantic found, in the words of the contract."""
    found: list[Mistake] = []
    for item in error.errors(include_url=False, include_context=False)[:MISTAKES]:
        field = ".".join(str(part) for part in item["loc"]) or "body"
        value = None if item["type"] in ("missing", "json_invalid") else item["input"]
        words = item["msg"][:1].lower() + item["msg"][1:]
        found.append(mistake(field, words.removeprefix("input "), value))
    return tuple(found)


def echo(value: object) -> str | int | float | bool | None:
    """A refused value as it goes back: as it is when short, else its beginning."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, (int, float)) and abs(value) < 2**53:
        return value
    return cut(value if isinstance(value, str) else json.dumps(value, default=str))


def cut(text: str) -> str:
    """The beginning of a text, short enough for an answer."""
    return text if len(text) <= ECHO else f"{text[:ECHO]}…"
