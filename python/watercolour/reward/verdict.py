"""What the judge is asked and how its answer is read."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

#: What makes one watercolour better than another. It names no subject: whether a picture is the
#: wanted flower is the scorer's business, how it is painted the judge's.
CRITERIA = (
    "You compare two watercolour paintings, A and B, and name the better painted one.\n"
    "A painting is better when its pigment bleeds softly into wet paper, when thin transparent "
    "washes lie over one another and let each other shine through, when some edges are crisp and "
    "others dissolve, and when its parts are placed with intent on the sheet.\n"
    "A painting is worse when the colours are muddy or opaque lumps, when it is scribbled evenly "
    "all over, when every edge is hard and flat like cut paper, or when the sheet is nearly empty."
    "\n"
    "Ignore what is depicted and which picture comes first. One of the two must win."
)

#: Longest answer, in tokens: room for the verdict and one short sentence.
MAX_TOKENS = 220

SCHEMA: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["winner", "reason"],
    "properties": {
        "winner": {"type": "string", "enum": ["A", "B"]},
        "reason": {
            "type": "string",
            "maxLength": 160,
            "description": "Why, in at most 20 words.",
        },
    },
}


class Verdict(BaseModel):
    """The judge's answer."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    winner: Literal["A", "B"]
    reason: str


def parse(content: object) -> Verdict | None:
    """The verdict in a message's content; None unless it follows the schema to the letter."""
    if not isinstance(content, str):
        return None
    try:
        return Verdict.model_validate_json(content)
    except ValidationError:
        return None


def request(model: str, criteria: str, a: str, b: str) -> dict[str, Any]:
    """The body of one chat completion that shows two pictures, given as ``data:`` URLs."""
    return {
        "model": model,
        "temperature": 0,
        "max_tokens": MAX_TOKENS,
        "messages": [
            {"role": "system", "content": criteria},
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "Painting A:"},
                    {"type": "image_url", "image_url": {"url": a}},
                    {"type": "text", "text": "Painting B:"},
                    {"type": "image_url", "image_url": {"url": b}},
                    {"type": "text", "text": "Which one is better painted, A or B?"},
                ],
            },
        ],
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "verdict", "strict": True, "schema": SCHEMA},
        },
    }


def body(model: str, criteria: str, a: str, b: str) -> bytes:
    """:func:`request` as JSON.

    The pictures are put in afterwards: they are most of it, and hold nothing to escape.
    """
    before, between, after = _frame(model, criteria)
    return "".join((before, a, between, b, after)).encode()


@lru_cache(16)
def _frame(model: str, criteria: str) -> tuple[str, str, str]:
    """What stands before, between and after the pictures."""
    whole = json.dumps(request(model, criteria, "\x00a", "\x00b"))
    # Criteria may hold anything, and come first.
    before, _, rest = whole.rpartition("\\u0000a")
    between, _, after = rest.partition("\\u0000b")
    return before, between, after
