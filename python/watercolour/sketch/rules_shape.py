"""What every sketch must have: setup, a WEBGL canvas, and paint from p5.brush."""

from __future__ import annotations

from collections.abc import Iterator

from watercolour.api.reasons import ViolationCode
from watercolour.api.rollout import Violation
from watercolour.sketch.exports import PAINTERS
from watercolour.sketch.literals import string_value
from watercolour.sketch.parse import Node
from watercolour.sketch.reading import Reading, arguments, call_of, inner, outer

_FUNCTION_VALUES = frozenset({"arrow_function", "function_expression", "generator_function"})


def check(reading: Reading) -> Iterator[Violation]:
    """Judge the sketch's outline."""
    yield from _entry_points(reading)
    yield from _webgl(reading)
    yield from _painters(reading)


def _entry_points(reading: Reading) -> Iterator[Violation]:
    if not any(_is_function(reading, node) for node in _setups(reading)):
        yield Violation(
            code=ViolationCode.MISSING_ENTRY_POINTS,
            message="The sketch has no `setup`; p5 starts by calling `function setup() {...}`.",
        )


def _setups(reading: Reading) -> Iterator[Node]:
    """Yield the places at the top level that give ``setup`` its value."""
    binding = reading.scopes.program.bindings.get("setup")
    for node in binding.declarations if binding else []:
        if node.parent:
            yield node.parent
    for node in reading.syntax.root.children:
        if node.kind == "expression_statement" and node.children:
            assignment = inner(node.children[0])
            left = assignment.child("left") if assignment.kind == "assignment_expression" else None
            if left and left.kind == "identifier" and reading.syntax.text(left) == "setup":
                yield assignment


def _is_function(reading: Reading, place: Node) -> bool:
    if place.kind == "function_declaration":
        return True
    value = place.child("value") or place.child("right")
    if value is None:
        return False
    value = inner(value)
    if value.kind in _FUNCTION_VALUES:
        return True
    binding = reading.scopes.bound.get(value.index)
    return binding is not None and binding.kind == "function"


def _webgl(reading: Reading) -> Iterator[Violation]:
    calls = [
        (node, call)
        for node, name in reading.free
        if name == "createCanvas" and (call := call_of(node))
    ]
    if not calls:
        yield Violation(
            code=ViolationCode.NOT_WEBGL,
            message="The sketch makes no canvas; call `createCanvas(width, height, WEBGL)`.",
        )
    for node, call in calls:
        given = arguments(call)
        if len(given) < 3 or not _is_webgl(reading, given[2]):
            message = "p5.brush needs WebGL; call `createCanvas(width, height, WEBGL)`."
            yield reading.violation(ViolationCode.NOT_WEBGL, node, message)


def _is_webgl(reading: Reading, mode: Node) -> bool:
    mode = inner(mode)
    if reading.is_free(mode, "WEBGL") or reading.is_free(mode, "WEBGL2"):
        return True
    if string_value(reading.syntax, mode) in ("webgl", "webgl2"):
        return True
    binding = reading.scopes.bound.get(mode.index)
    if binding is None or len(binding.declarations) != 1:
        return False
    declarator = binding.declarations[0].parent
    value = declarator.child("value") if declarator else None
    return value is not None and reading.is_free(inner(value), "WEBGL")


def _painters(reading: Reading) -> Iterator[Violation]:
    for node, name in reading.free:
        if name != "brush":
            continue
        parent, field = outer(node)
        member = parent.child("property") if parent and field == "object" else None
        if member and reading.syntax.text(member) in PAINTERS:
            return
    yield Violation(
        code=ViolationCode.NO_PAINTING_CALLS,
        message="Nothing is painted; call at least one of: "
        + ", ".join(f"brush.{name}" for name in sorted(PAINTERS))
        + ".",
    )
