"""Spelling that would let two parsers read two programs, or one reader miss a word."""

from __future__ import annotations

from collections.abc import Iterator

from watercolour.api.reasons import ViolationCode
from watercolour.api.rollout import Violation
from watercolour.sketch.parse import Node
from watercolour.sketch.reading import Reading

_NAME_TOKENS = frozenset(
    {
        "identifier",
        "private_property_identifier",
        "property_identifier",
        "shorthand_property_identifier",
        "shorthand_property_identifier_pattern",
        "statement_identifier",
    }
)
_NOT_NAMES = frozenset({"await", "let", "yield"})
_NOT_SCRIPT = {
    "hash_bang_line": "a hash-bang line",
    "html_comment": "an HTML comment",
    "html_character_reference": "an HTML entity",
    "jsx_element": "JSX",
    "jsx_self_closing_element": "JSX",
    "decorator": "a decorator",
    "using_declaration": "a `using` declaration",
}
_BEFORE_REGEX = frozenset("(,=:[!&|?{;+-*%~<>^")
_KEYWORDS_BEFORE_REGEX = frozenset(
    {"return", "typeof", "case", "in", "instanceof", "void", "delete", "else", "do", "throw", "=>"}
)


def check(reading: Reading) -> Iterator[Violation]:
    """Refuse escaped names, foreign syntax and slashes that V8 may read in another way."""
    previous: Node | None = None
    for node in reading.syntax.nodes:
        if node.kind in _NAME_TOKENS:
            yield from _name(reading, node)
        elif node.kind in _NOT_SCRIPT:
            message = f"A sketch is plain JavaScript, without {_NOT_SCRIPT[node.kind]}."
            yield reading.violation(ViolationCode.SYNTAX_ERROR, node, message)
        elif _is_html_comment(reading, node, previous):
            message = "A browser takes this for an HTML comment and skips the line; put in spaces."
            yield reading.violation(ViolationCode.SYNTAX_ERROR, node, message)
        elif _is_ambiguous(node, previous):
            message = "This slash can be read as a division or as a regular expression; rewrite it."
            yield reading.violation(ViolationCode.SYNTAX_ERROR, node, message)
        elif node.kind == "with_statement":
            message = "`with` hides which names the sketch uses; write the members out."
            yield reading.violation(ViolationCode.DYNAMIC_CODE, node, message)
        elif node.kind in ("import_statement", "export_statement", "meta_property") or (
            node.kind == "import" and node.children
        ):
            yield from _module(reading, node)
        if not node.children and node.kind != "comment":
            previous = node


def _name(reading: Reading, node: Node) -> Iterator[Violation]:
    name = reading.syntax.text(node)
    if "\\" in name:
        message = f"`{name}` spells a name with an escape; write its letters."
        yield reading.violation(ViolationCode.DYNAMIC_CODE, node, message)
    elif name in _NOT_NAMES and node.kind != "property_identifier":
        message = f"`{name}` is a keyword of the language; choose another name."
        yield reading.violation(ViolationCode.SYNTAX_ERROR, node, message)


def _is_html_comment(reading: Reading, node: Node, previous: Node | None) -> bool:
    """Tell whether operators spell ``<!--``, or ``-->`` at the start of a line."""
    data = reading.syntax.data
    if node.kind == "--":
        return data[max(node.start - 2, 0) : node.start] == b"<!"
    if node.kind[0] == ">" and previous and previous.kind == "--" and previous.end == node.start:
        line = data[data.rfind(b"\n", 0, previous.start) + 1 : previous.start].strip()
        return not line or line.endswith(b"*/")
    return False


def _is_ambiguous(node: Node, previous: Node | None) -> bool:
    """Tell whether a slash stands where the language's two readings depend on the context."""
    if previous is None:
        return False
    if node.kind == "regex":
        kind = previous.kind
        sign = kind[0] in _BEFORE_REGEX and kind not in ("++", "--")
        return not (sign or kind in _KEYWORDS_BEFORE_REGEX)
    if node.kind in ("/", "/=") and node.field == "operator":
        return previous.kind in ("}", "await", "yield")
    return False


def _module(reading: Reading, node: Node) -> Iterator[Violation]:
    if node.kind == "export_statement":
        message = "A sketch is a script, not a module; remove `export`."
        yield reading.violation(ViolationCode.SYNTAX_ERROR, node, message)
    elif reading.syntax.text(node).startswith("import"):
        message = "A sketch may not import anything; p5 and p5.brush are already there."
        yield reading.violation(ViolationCode.EXTERNAL_ACCESS, node, message)
