"""What a text may be, seen from the words that a computed key must never become."""

from __future__ import annotations

import re
from enum import IntFlag

from watercolour.sketch.names import CODE_MEMBERS, PAGE_MEMBERS

_WORDS = CODE_MEMBERS | PAGE_MEMBERS
_FRAGMENTS = "\n".join(sorted(_WORDS))
_HEX = re.compile(r"#[0-9a-fA-F]*")
_HOLDS_WORD = re.compile("|".join(sorted(re.escape(word.lower()) for word in _WORDS)))


class Mark(IntFlag):
    """What a value may be; the flow analysis carries these marks from place to place."""

    NONE = 0
    STRING = 1
    """A text."""
    PIECE = 2
    """A text that occurs inside a forbidden word."""
    BUILT = 4
    """A text put together in such a way that it may be a forbidden word."""
    COMPOSED = 8
    """A text that may hold a forbidden word and more: cutting it may lay the word bare."""
    HEX = 16
    """Cut out of a hexadecimal colour: no forbidden word is made of such letters alone."""


def of_text(value: str) -> Mark:
    """Return the marks of a literal."""
    if _HEX.fullmatch(value):
        return Mark.HEX
    mark = Mark.STRING
    if value in _WORDS:
        mark |= Mark.BUILT
    if value and value in _FRAGMENTS:
        mark |= Mark.PIECE
    if _HOLDS_WORD.search(value.lower()):
        mark |= Mark.COMPOSED
    return mark


def is_foreign(value: str) -> bool:
    """Tell whether no forbidden word can contain this text."""
    return bool(value) and value not in _FRAGMENTS


def character(mark: Mark) -> Mark:
    """Return the marks of a single character: a piece at most."""
    result = mark & Mark.HEX
    return result | Mark.STRING | Mark.PIECE if mark & ~Mark.HEX else result


def cut(mark: Mark) -> Mark:
    """Return the marks of a slice or a change of case."""
    result = character(mark)
    if mark & (Mark.COMPOSED | Mark.BUILT):
        result |= Mark.COMPOSED | Mark.BUILT
    return result


def rewrite(mark: Mark) -> Mark:
    """Return the marks of a text in which parts were replaced."""
    return Mark.STRING | Mark.PIECE | Mark.COMPOSED | Mark.BUILT if mark else mark
