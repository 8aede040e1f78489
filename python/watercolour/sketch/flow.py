"""Whether a computed key may become the name of something forbidden.

``petals[i]`` and ``palette[name]`` are what good sketches write; ``x["con" + "structor"]`` is how
a sketch spells a name that the other rules would refuse. So this rule follows texts through the
whole sketch: from literals, through concatenations and string methods, variables, parameters,
returned values, properties and array elements, to the keys of subscripts. It looks at neither
order nor conditions, and takes each property name for one place wherever it appears, so it errs
on the side of too much flow; numbers, which most keys are, are left out of it.
"""

from __future__ import annotations

from collections.abc import Iterator

from watercolour.api.reasons import ViolationCode
from watercolour.api.rollout import Violation
from watercolour.sketch.flow_calls import (
    CUTTING,
    JOINING,
    REWRITING,
    connect_call,
    connect_function,
    connect_return,
    register,
)
from watercolour.sketch.literals import string_value, unescape
from watercolour.sketch.marks import Mark, character, is_foreign, of_text
from watercolour.sketch.numeric import numbers
from watercolour.sketch.parse import Node
from watercolour.sketch.places import Places
from watercolour.sketch.reading import Reading, inner
from watercolour.sketch.scope import FUNCTIONS

_SPELLING = frozenset({"description", "message", "source", "stack"})
_MATERIAL = (
    CUTTING
    | JOINING
    | REWRITING
    | _SPELLING
    | {"entries", "keys", "name", "raw", "stringify", "toString"}
)
_PASSING = frozenset(
    {
        "array",
        "assignment_expression",
        "await_expression",
        "parenthesized_expression",
        "sequence_expression",
        "ternary_expression",
        "yield_expression",
    }
)


def check(reading: Reading) -> Iterator[Violation]:
    """Refuse computed keys that may be forbidden words."""
    keys = _computed_keys(reading)
    if not keys or not _has_material(reading):
        return
    known = numbers(reading)
    keys = [key for key in keys if inner(key).index not in known]
    if not keys:
        return
    places = _spread(reading, known)
    stringified = places.graph.marks[places.stringified]
    for key in keys:
        if (places.graph.marks[key.index] | stringified) & Mark.BUILT:
            message = "This key may be put together out of pieces; write the member's name."
            yield reading.violation(ViolationCode.DYNAMIC_CODE, key, message)


def _computed_keys(reading: Reading) -> list[Node]:
    """Return the keys in brackets that are not literals."""
    keys: list[Node] = []
    for node in reading.syntax.nodes:
        if node.kind == "subscript_expression":
            key = node.child("index")
        elif node.kind == "computed_property_name":
            key = next((c for c in node.children if c.kind not in ("[", "]", "comment")), None)
        else:
            continue
        if key is not None and inner(key).kind not in ("number", "string"):
            keys.append(key)
    return keys


def _has_material(reading: Reading) -> bool:
    """Tell whether the sketch holds any text but colours, or anything that makes texts."""
    syntax = reading.syntax
    for node in syntax.nodes:
        match node.kind:
            case "string":
                if of_text(string_value(syntax, node) or "#") != Mark.HEX:
                    return True
            case "template_string":
                return True
            case "property_identifier" if syntax.text(node) in _MATERIAL:
                return True
            case "identifier" if syntax.text(node) in ("char", "splitTokens"):
                return True
            case "for_in_statement":
                operator = node.child("operator")
                if operator and operator.kind == "in":
                    return True
            case _:
                pass
    return False


def _spread(reading: Reading, known: frozenset[int]) -> Places:
    """Build the graph of the sketch's values and let the marks spread."""
    places = Places(reading, known)
    for node in reading.syntax.nodes:
        if node.kind in FUNCTIONS:
            register(places, node)
    for node in reading.syntax.nodes:
        _connect(places, node)
    places.graph.run()
    return places


def _connect(places: Places, node: Node) -> None:
    match node.kind:
        case "string" | "template_string":
            _text(places, node)
        case "identifier" | "shorthand_property_identifier":
            _name(places, node)
        case "member_expression":
            _member(places, node)
        case "subscript_expression":
            _subscript(places, node)
        case "binary_expression":
            _binary(places, node)
        case "call_expression" | "new_expression":
            connect_call(places, node)
        case "variable_declarator":
            _assign(places, node.child("name"), node.child("value"))
        case "assignment_pattern" | "object_assignment_pattern":
            _assign(places, node.child("left"), node.child("right"))
        case "augmented_assignment_expression":
            _augmented(places, node)
        case "pair" | "field_definition":
            _store(places, node.child("key") or node.child("property"), node.child("value"))
        case "for_in_statement":
            _iterate(places, node)
        case "return_statement":
            connect_return(places, node)
        case "spread_element":
            _unpack(places, node)
        case _:
            if node.kind in _PASSING:
                _pass(places, node)
            elif node.kind in FUNCTIONS:
                connect_function(places, node)


def _pass(places: Places, node: Node) -> None:
    """Let an expression have the values of its parts."""
    if node.kind == "assignment_expression":
        _assign(places, node.child("left"), node.child("right"))
    for child in node.children:
        if child.field in ("left", "condition"):
            continue
        places.graph.edge(child.index, node.index)
        if node.kind in ("array", "yield_expression"):
            places.graph.edge(child.index, places.heap)
        if places.is_function(child):
            places.mark(node, Mark.STRING | Mark.COMPOSED)


def _text(places: Places, node: Node) -> None:
    value = string_value(places.syntax, node)
    if value is not None:
        places.mark(node, of_text(value))
        return
    parts: list[Node] = []
    literals: list[str] = []
    for child in node.children:
        if child.kind == "template_substitution":
            parts.extend(c for c in child.children if c.kind not in ("${", "}", "comment"))
        elif child.kind in ("string_fragment", "escape_sequence"):
            literals.append(unescape(places.syntax.text(child)))
    _join(places, node, parts, literals)


def _join(places: Places, node: Node, parts: list[Node], literals: list[str]) -> None:
    """Make the node the concatenation of the parts and of literal texts."""
    marks = [of_text(text) for text in literals]
    foreign = any(is_foreign(text) for text in literals) or any(
        inner(part).index in places.numbers for part in parts
    )
    pieces = sum(1 for mark in marks if mark & Mark.PIECE)
    places.graph.join(node.index, foreign=foreign, pieces=pieces)
    if any(mark & (Mark.COMPOSED | Mark.BUILT) for mark in marks):
        places.mark(node, Mark.COMPOSED)
    for part in map(inner, parts):
        places.graph.part(part.index, node.index)
        if places.is_function(part):
            places.mark(node, Mark.STRING | Mark.COMPOSED)


def _plus(places: Places, node: Node, operands: list[Node]) -> None:
    values = [string_value(places.syntax, inner(operand)) for operand in operands]
    literals = [value for value in values if value is not None]
    if len(literals) == len(operands):
        places.mark(node, of_text("".join(literals)))
    parts = [o for o, value in zip(operands, values, strict=True) if value is None]
    _join(places, node, parts, literals)


def _binary(places: Places, node: Node) -> None:
    operator, left, right = node.child("operator"), node.child("left"), node.child("right")
    if operator is None or left is None or right is None or node.index in places.numbers:
        return
    if operator.kind in ("&&", "||", "??"):
        places.graph.edge(left.index, node.index)
        places.graph.edge(right.index, node.index)
    elif operator.kind == "+":
        _plus(places, node, [left, right])


def _augmented(places: Places, node: Node) -> None:
    operator, left, right = node.child("operator"), node.child("left"), node.child("right")
    if operator is None or left is None or right is None:
        return
    if operator.kind == "+=":
        _plus(places, node, [left, right])
    elif operator.kind in ("&&=", "||=", "??="):
        places.graph.edge(right.index, node.index)
    places.fill(left, node.index)


def _name(places: Places, node: Node) -> None:
    if node.index not in places.reading.free_names:
        places.graph.edge(places.binding(node), node.index)
    if node.kind == "shorthand_property_identifier":
        places.graph.edge(node.index, places.property(places.syntax.text(node)))


def _member(places: Places, node: Node) -> None:
    name = node.child("property")
    if name is None:
        return
    text = places.syntax.text(name)
    if text != "length":
        places.graph.edge(places.property(text), node.index)
    if text in _SPELLING:
        places.mark(node, Mark.STRING | Mark.PIECE | Mark.COMPOSED)
    elif text == "name":
        places.mark(node, Mark.STRING | Mark.PIECE)


def _subscript(places: Places, node: Node) -> None:
    owner = node.child("object")
    places.graph.edge(places.heap, node.index)
    if owner:
        places.graph.edge(owner.index, node.index, character)


def _assign(places: Places, target: Node | None, value: Node | None) -> None:
    if target is not None and value is not None:
        places.fill(target, value.index)


def _store(places: Places, key: Node | None, value: Node | None) -> None:
    if key is None or value is None:
        return
    if key.kind == "computed_property_name":
        places.graph.edge(value.index, places.heap)
        places.graph.edge(value.index, places.written)
        return
    name = string_value(places.syntax, key) or places.syntax.text(key)
    places.graph.edge(value.index, places.property(name))


def _iterate(places: Places, node: Node) -> None:
    left, right, operator = node.child("left"), node.child("right"), node.child("operator")
    if left is None or right is None or operator is None:
        return
    if operator.kind == "in":
        inside = places.graph.fresh()
        places.graph.marks[inside] = Mark.STRING | Mark.PIECE
    else:
        inside = places.unpacked(right.index)
    places.fill(left, inside)


def _unpack(places: Places, node: Node) -> None:
    for child in node.children:
        inside = places.unpacked(child.index)
        places.graph.edge(inside, node.index)
        places.graph.edge(inside, places.heap)
