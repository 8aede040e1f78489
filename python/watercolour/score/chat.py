"""The part of the OpenAI chat contract that a pairwise judge needs: two pictures in, JSON out."""

from __future__ import annotations

import base64
import binascii
import json
import time
import uuid
from typing import Any

MODEL = "embedded"


class BadField(ValueError):
    """A field of a request is missing or wrong.

    Attributes:
        field: its place, as in ``messages[1].content[3].image_url.url``.
    """

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field
        self.message = message


def parse_json(body: bytes) -> dict[str, Any]:
    """The body as a JSON object.

    Raises:
        BadField: it is none.
    """
    try:
        found = json.loads(body)
    # Nesting of a hundred thousand brackets ends in a RecursionError.
    except (ValueError, RecursionError) as error:
        raise BadField("body", f"is not JSON: {str(error)[:120]}") from error
    if not isinstance(found, dict):
        raise BadField("body", f"is a JSON {type(found).__name__}, must be an object")
    return found


def from_base64(field: str, value: Any) -> bytes:
    """The bytes of a base64 field.

    Raises:
        BadField: not a string, empty, or not base64.
    """
    if not isinstance(value, str) or not value:
        raise BadField(field, "is missing, must be a base64 string")
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError) as error:
        raise BadField(field, f"is not base64: {error}") from error


def _data_url(field: str, url: Any) -> bytes:
    head, comma, data = url.partition(",") if isinstance(url, str) else ("", "", "")
    if not (comma and head.startswith("data:image/") and head.endswith(";base64")):
        raise BadField(
            field, "must be a `data:image/…;base64,` URL; this judge fetches nothing from a network"
        )
    return from_base64(field, data)


def pictures(request: dict[str, Any]) -> tuple[bytes, bytes]:
    """Paintings A and B: the request's two images, in order of appearance.

    Raises:
        BadField: another model, a malformed message, a remote URL, not exactly two images, a
            stream, or a response format other than a JSON schema.
    """
    if request.get("model") != MODEL:
        raise BadField("model", f"is {request.get('model')!r}, must be {MODEL!r}")
    if request.get("stream"):
        raise BadField("stream", "must be false")
    form = request.get("response_format")
    if not isinstance(form, dict) or form.get("type") != "json_schema":
        raise BadField("response_format", "must be of type json_schema")
    messages = request.get("messages")
    if not isinstance(messages, list):
        raise BadField("messages", "is missing, must be a list")
    found: list[bytes] = []
    for i, message in enumerate(messages):
        content = message.get("content") if isinstance(message, dict) else None
        if isinstance(content, str):
            continue
        if not isinstance(content, list):
            raise BadField(f"messages[{i}].content", "must be a string or a list of parts")
        for j, part in enumerate(content):
            if isinstance(part, dict) and part.get("type") == "image_url":
                image = part.get("image_url")
                url = image.get("url") if isinstance(image, dict) else None
                found.append(_data_url(f"messages[{i}].content[{j}].image_url.url", url))
    if len(found) != 2:
        raise BadField("messages", f"shows {len(found)} images, must show exactly 2 (A, then B)")
    return found[0], found[1]


def completion(winner: str, reason: str) -> dict[str, Any]:
    """A chat completion whose message is the verdict, strict JSON."""
    return {
        "id": f"chatcmpl-{uuid.uuid4().hex}",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": MODEL,
        "choices": [
            {
                "index": 0,
                "finish_reason": "stop",
                "message": {
                    "role": "assistant",
                    "content": json.dumps({"winner": winner, "reason": reason}),
                },
            }
        ],
        "usage": {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0},
    }
