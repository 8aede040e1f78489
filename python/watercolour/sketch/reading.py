"""One parsed sketch with its names resolved: what every rule reads."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator

from watercolour.api.reasons import ViolationCode
from watercolour.api.rollout import Violation
from watercolour.sketch.literals import string_value
from watercolour.sketch.names import KNOWN
from watercolour.sketch.parse import Node, Syntax
from watercolour.sketch.scope import Scopes, resolve

_MEMBER_PLACES = frozenset(
    {("method_definition", "name"), ("pair", "key"), ("field_definition", "property")}
)
_PATTERN_PLACES = frozenset(
    {
        ("array_pattern", None),
        ("object_pattern", None),
        ("rest_pattern", None),
        ("parenthesized_expression", None),
        ("pair_pattern", "value"),
        ("assignment_pattern", "left"),
        ("object_assignment_pattern", "left"),
    }
)


@dataclasses.dataclass(frozen=True, slots=True)
class Reading:
    """A sketch as the rules see it.

    ``methods`` are the allowed p5.brush methods. ``free`` lists the identifiers that the sketch
    does not declare; assigning to a name that nobody else owns declares it. ``own_members`` are
    the names of the methods and properties that the sketch gives its own objects.
    """

    syntax: Syntax
    scopes: Scopes
    methods: frozenset[str]
    free: tuple[tuple[Node, str], ...]
    free_names: dict[int, str]
    own_members: frozenset[str]

    def violation(self, code: ViolationCode, node: Node, message: str) -> Violation:
        """Return a violation at the node's place."""
        line, column = self.syntax.place(node)
        return Violation(code=code, message=message, line=line, column=column)

    def is_free(self, node: Node, name: str) -> bool:
        """Tell whether the node is the global of that name, not the sketch's own."""
        return self.free_names.get(node.index) == name


def read(syntax: Syntax, methods: frozenset[str]) -> Reading:
    """Resolve the sketch's names."""
    scopes = resolve(syntax)
    free = sorted((*scopes.free, *_still_free(scopes)), key=lambda pair: pair[0].index)
    implicit = {
        name
        for node, name in free
        if name not in KNOWN and not name.startswith("__") and is_target(node)
    }
    free = tuple((node, name) for node, name in free if name not in implicit)
    return Reading(
        syntax,
        scopes,
        methods,
        free,
        {node.index: name for node, name in free},
        frozenset(_own_members(syntax)),
    )


def _still_free(scopes: Scopes) -> Iterator[tuple[Node, str]]:
    """Yield references that a top-level ``var`` of a known global's name does not make its own.

    ``var fetch;`` leaves the page's own ``fetch`` as it is, and so does everything before the
    statement that gives the variable a value.
    """
    for binding in scopes.program.bindings.values():
        if binding.kind == "var" and binding.name in KNOWN:
            given = min((_value_end(node) for node in binding.declarations), default=math.inf)
            for reference in binding.references:
                if reference.start < given:
                    yield reference, binding.name


def _value_end(declaration: Node) -> float:
    declarator = declaration.parent
    statement = declarator.parent if declarator else None
    if declarator is None or statement is None or declarator.child("value") is None:
        return math.inf
    at_top = statement.parent is not None and statement.parent.kind == "program"
    return declarator.end if at_top else math.inf


def _own_members(syntax: Syntax) -> Iterator[str]:
    for node in syntax.nodes:
        parent = node.parent
        if parent is None:
            continue
        if (parent.kind, node.field) in _MEMBER_PLACES:
            yield string_value(syntax, node) or syntax.text(node)
        elif node.kind == "shorthand_property_identifier" or (
            node.field == "property" and parent.kind == "member_expression" and is_target(parent)
        ):
            yield syntax.text(node)


def outer(node: Node) -> tuple[Node | None, str | None]:
    """Return the parent beyond parentheses, and the field in which the node lies there."""
    while node.parent and node.parent.kind == "parenthesized_expression":
        node = node.parent
    return node.parent, node.field


def inner(node: Node) -> Node:
    """Return the expression inside parentheses."""
    while node.kind == "parenthesized_expression":
        inside = [c for c in node.children if c.kind not in ("(", ")", "comment")]
        if len(inside) != 1:
            break
        node = inside[0]
    return node


def is_target(node: Node) -> bool:
    """Tell whether the node is assigned to, updated, deleted or filled by a pattern."""
    while node.parent and (node.parent.kind, node.field) in _PATTERN_PLACES:
        node = node.parent
    parent = node.parent
    if parent is None:
        return False
    match parent.kind:
        case "assignment_expression" | "augmented_assignment_expression":
            return node.field == "left"
        case "for_in_statement":
            return node.field == "left" and parent.child("kind") is None
        case "update_expression":
            return True
        case "unary_expression":
            operator = parent.child("operator")
            return operator is not None and operator.kind == "delete"
        case _:
            return False


def root_is_target(node: Node) -> bool:
    """Tell whether the node, or any member reached through it, is assigned to."""
    while True:
        if is_target(node):
            return True
        parent, field = outer(node)
        if parent is None or field != "object":
            return False
        node = parent


def call_of(node: Node) -> Node | None:
    """Return the call or construction whose callee the node is."""
    parent, field = outer(node)
    if parent is None:
        return None
    if parent.kind == "call_expression" and field == "function":
        return parent
    if parent.kind == "new_expression" and field == "constructor":
        return parent
    return None


def arguments(call: Node) -> list[Node]:
    """Return a call's arguments, in order; a tagged template is its own single argument."""
    listed = call.child("arguments")
    if listed is None:
        return []
    if listed.kind != "arguments":
        return [listed]
    return [c for c in listed.children if c.kind not in ("(", ")", ",", "comment")]
