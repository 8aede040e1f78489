"""The allow-list of global names, and how the library's own may be used."""

from __future__ import annotations

import difflib
from collections.abc import Iterator

from watercolour.api.reasons import ViolationCode
from watercolour.api.rollout import Violation
from watercolour.sketch.exports import METHODS
from watercolour.sketch.literals import string_value
from watercolour.sketch.names import (
    CODE_MEMBERS,
    ECMASCRIPT,
    ENTRY_POINTS,
    KNOWN,
    NAMESPACES,
    NEEDED,
    P5,
    REFUSED,
    STATICS,
)
from watercolour.sketch.parse import Node
from watercolour.sketch.reading import (
    Reading,
    arguments,
    call_of,
    is_target,
    outer,
    root_is_target,
)
from watercolour.sketch.scope import FUNCTIONS, Binding, Scope

_RENAMED = {
    "bleed": "fillBleed",
    "noHatching": "noHatch",
    "setBrush": "set",
    "setHatch": "hatchStyle",
}
"""Names of the library's first version and of common guesses."""

_CALLABLE = frozenset({"Array", "BigInt", "Number", "Object", "Promise", "String", "Symbol"})
_ADVICE = {
    ViolationCode.EXTERNAL_ACCESS: "a painting is made from the sketch and the seed alone",
    ViolationCode.DYNAMIC_CODE: "it can run code that nobody has read",
    ViolationCode.HARNESS_TAMPERING: "it belongs to the page around the sketch",
    ViolationCode.TEXT_LABEL: "a painting shows its subject and does not write its name",
    ViolationCode.BARE_PRIMITIVES: "it draws without pigment; use p5.brush",
}

_SPECIAL_ADVICE = {
    "RegExp": "write the pattern as a literal",
    "arguments": "take rest parameters, as in `(...values)`",
    "createFramebuffer": "paint on the canvas itself",
    "createGraphics": "paint on the canvas itself",
    "describe": "it writes words into the page",
    "mouseIsPressed": "nobody moves a mouse here",
    "mouseX": "nobody moves a mouse here",
    "mouseY": "nobody moves a mouse here",
    "requestAnimationFrame": "a painting is one frame; p5 calls `draw`",
    "setInterval": "a painting is one frame; p5 calls `draw`",
    "setTimeout": "a painting is one frame; p5 calls `draw`",
}


def check(reading: Reading) -> Iterator[Violation]:
    """Judge every name that the sketch does not declare itself."""
    for node, name in reading.free:
        if name == "brush":
            yield from _brush(reading, node)
        elif root_is_target(node) and name not in ENTRY_POINTS:
            yield _overridden(reading, node, name)
        elif name == "p5":
            yield from _p5(reading, node)
        elif name in NAMESPACES:
            yield from _namespace(reading, node, name)
        elif name in REFUSED:
            yield _refused(reading, node, name)
        elif name == "createCanvas":
            yield from _canvas(reading, node)
        elif name not in ECMASCRIPT and name not in P5 and name not in ENTRY_POINTS:
            yield _unknown(reading, node, name)


def check_declarations(reading: Reading) -> Iterator[Violation]:
    """Refuse top-level declarations that would replace what the page and the library need."""
    for binding in reading.scopes.bindings():
        if binding.name in NEEDED and (binding.scope.parent is None or _leaks_from_block(binding)):
            yield _overridden(reading, binding.declarations[0], binding.name)
        elif binding.name in CODE_MEMBERS:
            message = f"`{binding.name}` names a way to code; choose another name."
            yield reading.violation(ViolationCode.DYNAMIC_CODE, binding.declarations[0], message)


def _leaks_from_block(binding: Binding) -> bool:
    """Tell whether a function in a block becomes a variable of the page as well, as of old."""
    scope: Scope | None = binding.scope
    if binding.kind != "function" or scope.node.kind in FUNCTIONS:
        return False
    while scope is not None:
        if scope.node.kind in FUNCTIONS or scope.node.kind == "class_static_block":
            return False
        scope = scope.parent
    return True


def _overridden(reading: Reading, node: Node, name: str) -> Violation:
    message = f"`{name}` is not the sketch's to change; give your own thing another name."
    return reading.violation(ViolationCode.HARNESS_TAMPERING, node, message)


def _refused(reading: Reading, node: Node, name: str) -> Violation:
    code = REFUSED[name]
    call = call_of(node)
    if name in ("setTimeout", "setInterval") and call:
        given = arguments(call)
        if given and given[0].kind in ("arrow_function", "function_expression"):
            code = ViolationCode.HARNESS_TAMPERING
    advice = _SPECIAL_ADVICE.get(name, _ADVICE[code])
    return reading.violation(code, node, f"`{name}` is not for a sketch: {advice}.")


def _unknown(reading: Reading, node: Node, name: str) -> Violation:
    if name in KNOWN:
        message = f"`{name}` belongs to the page and is not for a sketch; declare your own name."
    else:
        own = set(reading.scopes.program.bindings)
        close = difflib.get_close_matches(name, sorted(own | P5), n=1, cutoff=0.8)
        hint = f"Did you mean `{close[0]}`?" if close else "Declare it or correct its spelling."
        message = f"`{name}` is declared neither by the sketch nor by p5 or p5.brush. {hint}"
    return reading.violation(ViolationCode.EXTERNAL_ACCESS, node, message)


def _brush(reading: Reading, node: Node) -> Iterator[Violation]:
    parent, field = outer(node)
    if root_is_target(node):
        yield _overridden(reading, node, "brush")
        return
    if parent is None or parent.kind != "member_expression" or field != "object":
        if parent and parent.kind == "unary_expression" and _operator(parent) == "typeof":
            return
        message = "Call p5.brush as `brush.method(...)`; any other use hides the method's name."
        yield reading.violation(ViolationCode.DYNAMIC_CODE, node, message)
        return
    member = parent.child("property")
    name = reading.syntax.text(member) if member else ""
    if name not in reading.methods:
        yield _unknown_method(reading, member or node, name)
    further, further_field = outer(parent)
    if further and further_field == "object":
        message = f"Call `brush.{name}(...)` itself; its own members are not for a sketch."
        yield reading.violation(ViolationCode.DYNAMIC_CODE, parent, message)


def _unknown_method(reading: Reading, node: Node, name: str) -> Violation:
    if name in METHODS:
        message = f"`brush.{name}` is not among the methods that this run allows."
    else:
        known = _RENAMED.get(name) or next(
            iter(difflib.get_close_matches(name, sorted(reading.methods), n=1)), ""
        )
        hint = f"; did you mean `brush.{known}`?" if known else "."
        message = f"p5.brush has no method `{name}`{hint}"
    return reading.violation(ViolationCode.UNKNOWN_BRUSH_METHOD, node, message)


def _p5(reading: Reading, node: Node) -> Iterator[Violation]:
    parent, field = outer(node)
    if parent and parent.kind == "member_expression" and field == "object":
        member = parent.child("property")
        use, use_field = outer(parent)
        if (
            member
            and reading.syntax.text(member) == "Vector"
            and use
            and (use.kind == "new_expression" or use_field == "object")
        ):
            return
    message = "Of the class `p5` a sketch may use `p5.Vector` alone; p5's functions are global."
    yield reading.violation(ViolationCode.HARNESS_TAMPERING, node, message)


def _namespace(reading: Reading, node: Node, name: str) -> Iterator[Violation]:
    parent, field = outer(node)
    if parent is None:
        return
    if parent.kind == "member_expression" and field == "object":
        yield from _static(reading, parent, name)
    elif not (
        (name in _CALLABLE and _is_called_or_passed(node))
        or _is_unpacked(reading, node, parent, name)
        or _is_compared(parent, field)
    ):
        message = f"Use `{name}` by its members, as in `{name}.member`; an alias hides them."
        yield reading.violation(ViolationCode.DYNAMIC_CODE, node, message)


def _static(reading: Reading, member: Node, name: str) -> Iterator[Violation]:
    property_ = member.child("property")
    known = STATICS.get(name)
    if property_ is None or known is None:
        return
    static = reading.syntax.text(property_)
    if static in known:
        if name == "JSON" and static == "parse":
            yield from _json_parse(reading, member)
        elif name == "Object" and static == "defineProperty":
            yield from _define_property(reading, member)
        return
    if static in ("fromCharCode", "fromCodePoint"):
        message = f"`{name}.{static}` spells text out of numbers; write the text."
        yield reading.violation(ViolationCode.DYNAMIC_CODE, member, message)
        return
    message = f"`{name}.{static}` is not for a sketch: it reaches behind the language's objects."
    yield reading.violation(ViolationCode.HARNESS_TAMPERING, member, message)


def _json_parse(reading: Reading, member: Node) -> Iterator[Violation]:
    """Admit the usual deep copy alone: parsing text could bring forth any name."""
    call = call_of(member)
    given = arguments(call) if call else []
    if len(given) == 1 and given[0].kind == "call_expression":
        function = given[0].child("function")
        if function and reading.syntax.text(function) == "JSON.stringify":
            return
    message = "Write data as JavaScript; `JSON.parse` is admitted around `JSON.stringify` alone."
    yield reading.violation(ViolationCode.DYNAMIC_CODE, member, message)


def _define_property(reading: Reading, member: Node) -> Iterator[Violation]:
    call = call_of(member)
    given = arguments(call) if call else []
    own = bool(given) and (given[0].kind == "this" or given[0].index in reading.scopes.bound)
    named = len(given) > 1 and string_value(reading.syntax, given[1]) is not None
    if not (own and named):
        message = "Define properties on the sketch's own objects alone, under a literal name."
        yield reading.violation(ViolationCode.HARNESS_TAMPERING, member, message)


def _is_called_or_passed(node: Node) -> bool:
    parent, _ = outer(node)
    return call_of(node) is not None or (parent is not None and parent.kind == "arguments")


def _is_compared(parent: Node, field: str | None) -> bool:
    return (
        parent.kind == "binary_expression"
        and field == "right"
        and _operator(parent) == "instanceof"
    )


def _is_unpacked(reading: Reading, node: Node, parent: Node, name: str) -> bool:
    """Tell whether this is ``const { sin, cos: c } = Math``: plain members, each by its name."""
    if parent.kind != "variable_declarator" or name != "Math":
        return False
    pattern = parent.child("name")
    plain = ("{", "}", ",", "comment", "shorthand_property_identifier_pattern", "pair_pattern")
    if pattern is None or pattern.kind != "object_pattern":
        return False
    for child in pattern.children:
        if child.kind not in plain:
            return False
        if child.kind == "pair_pattern":
            key, value = child.child("key"), child.child("value")
            if not (key and value):
                return False
            if key.kind != "property_identifier" or value.kind != "identifier":
                return False
    return True


def _canvas(reading: Reading, node: Node) -> Iterator[Violation]:
    """The canvas belongs to the page: what ``createCanvas`` returns may be kept, not used."""
    call = call_of(node)
    if call is None:
        message = "Call `createCanvas` directly; an alias hides the canvas's size and mode."
        yield reading.violation(ViolationCode.HARNESS_TAMPERING, node, message)
        return
    parent, field = outer(call)
    while parent and parent.kind == "await_expression":
        parent, field = outer(parent)
    if parent is None or parent.kind == "expression_statement":
        return
    target = None
    if parent.kind == "variable_declarator" and field == "value":
        target = parent.child("name")
    elif parent.kind == "assignment_expression" and field == "right":
        target = parent.child("left")
    if target and target.kind == "identifier" and _is_never_read(reading, target):
        return
    message = "The canvas belongs to the page; call `createCanvas(...)` and leave its result alone."
    yield reading.violation(ViolationCode.HARNESS_TAMPERING, node, message)


def _is_never_read(reading: Reading, target: Node) -> bool:
    binding = reading.scopes.bound.get(target.index)
    if binding is not None:
        return all(is_target(reference) for reference in binding.references)
    name = reading.syntax.text(target)
    return all(is_target(node) for node, other in reading.scopes.free if other == name)


def _operator(node: Node) -> str:
    operator = node.child("operator")
    return operator.kind if operator else ""
