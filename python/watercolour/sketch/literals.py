"""The value of string literals, so that an escape cannot hide a word."""

from __future__ import annotations

import re

from watercolour.sketch.parse import Node, Syntax

_ESCAPE = re.compile(
    r"\\(?:u\{([0-9a-fA-F]{1,6})\}|u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|([0-7]{1,3})|(\r\n|[\s\S]))"
)
_SIMPLE = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v"}


def unescape(raw: str) -> str:
    """Return the characters that a JavaScript literal's body stands for."""
    if "\\" not in raw:
        return raw
    return _ESCAPE.sub(_character, raw)


def _character(match: re.Match[str]) -> str:
    braced, four, two, octal, other = match.groups()
    digits = braced or four or two
    if digits:
        value = int(digits, 16)
        return chr(value) if value <= 0x10FFFF else "\ufffd"
    if octal:
        return chr(int(octal, 8))
    if other in ("\n", "\r\n", "\r", "\u2028", "\u2029"):
        return ""
    return _SIMPLE.get(other, other)


def string_value(syntax: Syntax, node: Node) -> str | None:
    """Return the value of a string literal or of a template without substitutions, else None."""
    if node.kind == "string":
        return unescape(syntax.text(node)[1:-1])
    if node.kind == "template_string" and not any(
        c.kind == "template_substitution" for c in node.children
    ):
        return unescape(syntax.text(node)[1:-1])
    return None
