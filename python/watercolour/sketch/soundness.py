"""Whether a text is one whole JavaScript program, and where it stops being one."""

from __future__ import annotations

import re

from watercolour.api.reasons import ViolationCode
from watercolour.api.rollout import Violation
from watercolour.sketch.parse import Node, Syntax

_LINE_BREAKS = re.compile("\r(?!\n)|[\u2028\u2029]")
_SURROGATES = re.compile("[\ud800-\udfff]")
_TOKENS = re.compile(
    r"""(?P<comment>//[^\n]*|/\*[\s\S]*?(?:\*/|(?P<open_comment>\Z)))
    |(?P<string>"(?:[^"\\\n]|\\[\s\S])*(?:"|(?P<open_string>\Z|\n|\\\Z))
      |'(?:[^'\\\n]|\\[\s\S])*(?:'|(?P<open_string2>\Z|\n|\\\Z)))
    |(?P<bracket>[()\[\]{}`])""",
    re.VERBOSE,
)
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
    opened = _first_left_open(source)
    if opened is not None:
        line = source.count("\n", 0, opened) + 1
        last = len(source.rstrip())
        message = f"The sketch stops in the middle: what line {line} opens is never closed."
        return _at(source, max(last - 1, 0), message, ViolationCode.TRUNCATED)
    node = _first_error(syntax)
    place = syntax.place(node)
    found = "" if node.missing else syntax.text(node).split("\n", 1)[0].strip()[:40]
    what = f"`{node.kind}` is missing here" if node.missing else f"unexpected `{found}`"
    return Violation(
        code=ViolationCode.SYNTAX_ERROR,
        message=f"This is not JavaScript: {what}.",
        line=place[0],
        column=place[1],
    )


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


def _first_left_open(source: str) -> int | None:
    """Return the offset of what is still open at the end of the text, or None.

    None too when a bracket closes what was not opened: then the error is not at the end. The
    scan knows strings, templates and comments; it need not know regular expressions, because it
    only chooses between two words for a text that is already known not to be a program.
    """
    opened: list[tuple[str, int]] = []
    position = 0
    while True:
        if opened and opened[-1][0] == "`":
            found = re.compile(r"(?:[^`\\$]|\\[\s\S]|\$(?!\{))*(`|\$\{)?").match(source, position)
            assert found is not None
            position = found.end()
            if found[1] == "`":
                opened.pop()
            elif found[1] == "${":
                opened.append(("{", position - 1))
            else:
                return opened[0][1]
            continue
        token = _TOKENS.search(source, position)
        if token is None:
            return opened[0][1] if opened else None
        position = token.end()
        if token["open_comment"] is not None:
            return opened[0][1] if opened else token.start()
        unfinished = (
            token["open_string"] if token["open_string"] is not None else token["open_string2"]
        )
        if unfinished is not None:
            if position >= len(source):
                return opened[0][1] if opened else token.start()
            return None
        bracket = token["bracket"]
        if bracket in ("(", "[", "{", "`"):
            opened.append((bracket, token.start()))
        elif bracket and (not opened or opened.pop()[0] != _PAIRS[bracket]):
            return None
