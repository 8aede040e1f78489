"""Whether a text is one whole JavaScript program, and where it stops being one."""

from __future__ import annotations

import dataclasses
import re

from watercolour.api.reasons import ViolationCode
from watercolour.api.rollout import Violation
from watercolour.sketch.parse import Node, Syntax

_LINE_BREAKS = re.compile("\r(?!\n)|[\u2028\u2029]")
_SURROGATES = re.compile("[\ud800-\udfff]")
_TOKENS = re.compile(
    r"""//[^\n]*
    |/\*[\s\S]*?\*/
    |"(?:[^"\\\n]|\\[\s\S])*"
    |'(?:[^'\\\n]|\\[\s\S])*'
    |(?P<open>/\*[\s\S]*|"(?:[^"\\\n]|\\[\s\S])*\\?|'(?:[^'\\\n]|\\[\s\S])*\\?)
    |(?P<bracket>[()\[\]{}`])""",
    re.VERBOSE,
)
_TEMPLATE = re.compile(r"(?:[^`\\$]|\\[\s\S]|\$(?!\{))*(?:`|\$\{)")
_PAIRS = {")": "(", "]": "[", "}": "{"}


def check_text(sketch: str) -> Violation | None:
    """Refuse characters that editors, the parser and V8 do not read alike."""
    found = _SURROGATES.search(sketch)
    if found:
        return _at(sketch, found.start(), "A sketch is Unicode text; half a character stands here.")
    found = _LINE_BREAKS.search(sketch)
    if found:
        name = f"U+{ord(found[0]):04X}"
        return _at(sketch, found.start(), f"End lines with a line feed; {name} hides what follows.")
    return None


def check_tree(syntax: Syntax) -> Violation | None:
    """Return the first syntax error: ``truncated`` when the text merely stops too early."""
    if not syntax.broken:
        return None
    source = syntax.source
    left = _left_open(source)
    if left is not None and left.at_end:
        line = source.count("\n", 0, left.offset) + 1
        message = f"The sketch stops in the middle: what line {line} opens is never closed."
        end = max(len(source.rstrip()) - 1, 0)
        return _at(source, end, message, ViolationCode.TRUNCATED)
    if left is not None:
        return _at(source, left.offset, "This is not JavaScript: a text is not closed on its line.")
    node = _first_error(syntax)
    found = "" if node.missing else syntax.text(node).split("\n", 1)[0].strip()[:40]
    what = f"`{node.kind}` is missing here" if node.missing else f"unexpected `{found}`"
    line, column = syntax.place(node)
    message = f"This is not JavaScript: {what}."
    return Violation(code=ViolationCode.SYNTAX_ERROR, message=message, line=line, column=column)


def _at(
    sketch: str, offset: int, message: str, code: ViolationCode = ViolationCode.SYNTAX_ERROR
) -> Violation:
    line_start = sketch.rfind("\n", 0, offset) + 1
    return Violation(
        code=code,
        message=message,
        line=sketch.count("\n", 0, offset) + 1,
        column=offset - line_start + 1,
    )


def _first_error(syntax: Syntax) -> Node:
    """Return the innermost node of the first error in document order."""
    found: Node | None = None
    for node in syntax.nodes:
        if node.kind != "ERROR" and not node.missing:
            continue
        if found is None or (node.index <= found.last):
            found = node
    return found or syntax.root


@dataclasses.dataclass(frozen=True, slots=True)
class _LeftOpen:
    offset: int
    at_end: bool


def _left_open(source: str) -> _LeftOpen | None:
    """Return what is never closed: up to the text's end, or a quoted text up to its line's end.

    None when all is closed, and when a bracket closes what was not opened. The scan knows quoted
    texts, templates and comments; it need not know regular expressions, because it only chooses
    the words for a text that is already known not to be a program.
    """
    opened: list[tuple[str, int]] = []
    position = 0
    while True:
        if opened and opened[-1][0] == "`":
            inside = _TEMPLATE.match(source, position)
            if inside is None:
                return _LeftOpen(opened[0][1], at_end=True)
            position = inside.end()
            if source[position - 1] == "`":
                opened.pop()
            else:
                opened.append(("{", position - 1))
            continue
        token = _TOKENS.search(source, position)
        if token is None:
            return _LeftOpen(opened[0][1], at_end=True) if opened else None
        position = token.end()
        if token["open"] is not None:
            if position < len(source):
                return _LeftOpen(token.start(), at_end=False)
            return _LeftOpen(opened[0][1] if opened else token.start(), at_end=True)
        bracket = token["bracket"]
        if bracket in ("(", "[", "{", "`"):
            opened.append((bracket, token.start()))
        elif bracket and (not opened or opened.pop()[0] != _PAIRS[bracket]):
            return None
