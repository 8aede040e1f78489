"""The chat contract: two pictures in, a verdict out, and every fault named by its field."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from watercolour.score import chat
from watercolour.score.chat import BadField

A, B = ("data:image/png;base64," + base64.b64encode(x).decode() for x in (b"first", b"second"))


def request(*urls: Any, **more: Any) -> dict[str, Any]:
    parts = [{"type": "image_url", "image_url": {"url": url}} for url in urls]
    return {
        "model": "embedded",
        "messages": [
            {"role": "system", "content": "Compare."},
            {"role": "user", "content": [{"type": "text", "text": "Painting A:"}, *parts]},
        ],
        "response_format": {"type": "json_schema", "json_schema": {"name": "verdict"}},
        **more,
    }


def test_pictures_come_in_the_order_of_the_request() -> None:
    assert chat.pictures(request(A, B)) == (b"first", b"second")
    assert chat.pictures(request(B, A)) == (b"second", b"first")


def test_pictures_may_stand_in_two_messages() -> None:
    asked = request(A)
    asked["messages"].append({"role": "user", "content": request(B)["messages"][1]["content"]})
    assert chat.pictures(asked) == (b"first", b"second")


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ({}, "model"),
        (request(A, B, model="gpt"), "model"),
        (request(A, B, stream=True), "stream"),
        (request(A, B, response_format=None), "response_format"),
        (request(A, B, response_format={"type": "text"}), "response_format"),
        (request(A, B, messages="hello"), "messages"),
        (request(A, B, messages=[]), "messages"),
        (request(A, B, messages=[3]), "messages[0].content"),
        (request(A), "messages"),
        (request(A, B, A), "messages"),
        (request(A, "https://example.org/b.png"), "messages[1].content[2].image_url.url"),
        (request(A, None), "messages[1].content[2].image_url.url"),
        (request("data:image/png;base64,!!", B), "messages[1].content[1].image_url.url"),
        (request("data:image/png;base64,", B), "messages[1].content[1].image_url.url"),
        (request("data:text/html;base64,aGk=", B), "messages[1].content[1].image_url.url"),
    ],
)
def test_a_malformed_request_is_refused_by_field(asked: dict[str, Any], field: str) -> None:
    with pytest.raises(BadField) as raised:
        chat.pictures(asked)
    assert raised.value.field == field


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"3", b"\xff\xfe", b"[" * 200_000])
def test_a_body_that_is_no_json_object_is_refused(body: bytes) -> None:
    with pytest.raises(BadField, match=r"^is "):
        chat.parse_json(body)


def test_the_verdict_is_strict_json_in_the_first_choice() -> None:
    answer = chat.completion("B", 'because "so"')
    content = answer["choices"][0]["message"]["content"]
    assert json.loads(content) == {"winner": "B", "reason": 'because "so"'}
    assert answer["model"] == "embedded"
