"""Members that lead out of a sketch's own objects: to code, prototypes, the page."""

from __future__ import annotations

from collections.abc import Iterator

from watercolour.api.reasons import ViolationCode
from watercolour.api.rollout import Violation
from watercolour.sketch.literals import string_value
from watercolour.sketch.names import (
    CODE_MEMBERS,
    KNOWN,
    PAGE_MEMBERS,
    REFUSED,
    SECRETS,
    THIS_DATA,
)
from watercolour.sketch.parse import Node
from watercolour.sketch.reading import Reading, call_of, outer
from watercolour.sketch.scope import CLASSES, FUNCTIONS

WORDS: frozenset[str] = CODE_MEMBERS | PAGE_MEMBERS
"""Member names that no object of a painting has; a computed key must never become one."""

_URLS = ("http://", "https://", "data:", "blob:", "javascript:", "file://", "//cdn.")


def check(reading: Reading) -> Iterator[Violation]:
    """Judge members, keys and string literals, wherever they stand."""
    syntax = reading.syntax
    own_text = "text" in reading.own_members
    for node in syntax.nodes:
        match node.kind:
            case "property_identifier":
                yield from _property(reading, node, syntax.text(node), own_text)
            case "shorthand_property_identifier_pattern":
                if syntax.text(node) in WORDS:
                    yield _refused(reading, node, syntax.text(node))
            case "subscript_expression":
                yield from _subscript(reading, node)
            case "string" | "template_string":
                yield from _string(reading, node)
            case "computed_property_name":
                yield from _computed_name(reading, node)
            case "this":
                yield from _this(reading, node)
            case _:
                pass


def _property(reading: Reading, node: Node, name: str, own_text: bool) -> Iterator[Violation]:
    parent = node.parent
    if parent is None:
        return
    if name in WORDS:
        if parent.kind == "method_definition" and name == "constructor":
            if parent.parent and parent.parent.kind == "class_body":
                return
        elif name == "prototype" and _is_own_prototype(reading, parent):
            return
        yield _refused(reading, node, name)
    elif name == "text" and not own_text and _is_called_member(parent):
        message = "A painting shows its subject and does not write its name; remove `text`."
        yield reading.violation(ViolationCode.TEXT_LABEL, node, message)


def _is_called_member(node: Node) -> bool:
    return node.kind == "member_expression" and call_of(node) is not None


def _is_own_prototype(reading: Reading, member: Node) -> bool:
    """Tell whether this is ``Name.prototype`` of a function or class that the sketch declares."""
    owner = member.child("object")
    binding = reading.scopes.bound.get(owner.index) if owner else None
    return binding is not None and binding.kind in ("function", "class")


def _refused(reading: Reading, node: Node, name: str) -> Violation:
    if name in CODE_MEMBERS:
        message = f"`{name}` leads to code or prototypes that are not the sketch's; leave it out."
        return reading.violation(ViolationCode.DYNAMIC_CODE, node, message)
    message = f"`{name}` leads out of the painting to the page; leave it out."
    return reading.violation(ViolationCode.EXTERNAL_ACCESS, node, message)


def _subscript(reading: Reading, node: Node) -> Iterator[Violation]:
    owner, key = node.child("object"), node.child("index")
    if owner is None or key is None:
        return
    name = reading.free_names.get(owner.index)
    if name is not None and name != "brush":
        message = f"Write `{name}.member`; a computed member of a global hides which one is used."
        yield reading.violation(ViolationCode.DYNAMIC_CODE, node, message)
    value = string_value(reading.syntax, key)
    if value is not None and value in WORDS:
        yield _refused(reading, key, value)


def _computed_name(reading: Reading, node: Node) -> Iterator[Violation]:
    for child in node.children:
        value = string_value(reading.syntax, child)
        if value is not None and value in WORDS:
            yield _refused(reading, child, value)


def _string(reading: Reading, node: Node) -> Iterator[Violation]:
    value = string_value(reading.syntax, node)
    if value is None:
        value = reading.syntax.text(node)
    lowered = value.lower()
    if any(word in lowered or word[::-1] in lowered for word in SECRETS):
        message = "This text holds the name of a way to code or to the page; leave it out."
        yield reading.violation(ViolationCode.DYNAMIC_CODE, node, message)
    elif any(url in lowered for url in _URLS):
        message = "A sketch may not refer to anything outside; remove the address."
        yield reading.violation(ViolationCode.EXTERNAL_ACCESS, node, message)


def _this(reading: Reading, node: Node) -> Iterator[Violation]:
    """Outside of classes ``this`` may be the page's global object."""
    home = _home(node)
    if home is not None and home.kind in CLASSES:
        return
    parent, field = outer(node)
    if home is None:
        message = "Here `this` is the page's global object; name what you mean."
        yield reading.violation(ViolationCode.HARNESS_TAMPERING, node, message)
        return
    if parent and parent.kind == "member_expression" and field == "object":
        member = parent.child("property")
        name = reading.syntax.text(member) if member else ""
        if name not in REFUSED and (name not in KNOWN or name in THIS_DATA):
            return
    message = "In a plain function `this` may be the page's global object; use a class."
    yield reading.violation(ViolationCode.HARNESS_TAMPERING, node, message)


def _home(node: Node) -> Node | None:
    """Return the function or class body that gives ``this`` its value; None at the top level."""
    inside: Node | None = None
    current = node.parent
    while current is not None:
        if current.kind in CLASSES:
            return current
        if current.kind in FUNCTIONS and current.kind != "arrow_function" and inside is None:
            inside = current
        current = current.parent
    return inside
