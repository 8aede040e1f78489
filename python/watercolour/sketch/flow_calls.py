"""What calls do to the values that pass through them."""

from __future__ import annotations

from watercolour.sketch.literals import string_value
from watercolour.sketch.marks import Mark, cut, is_foreign, rewrite
from watercolour.sketch.numeric import calls_by_name, is_indexed_callback
from watercolour.sketch.parse import Node
from watercolour.sketch.places import Places
from watercolour.sketch.reading import arguments, inner
from watercolour.sketch.scope import FUNCTIONS, parameters

CUTTING = frozenset(
    {
        "at",
        "charAt",
        "match",
        "matchAll",
        "normalize",
        "slice",
        "split",
        "substr",
        "substring",
        "toLocaleLowerCase",
        "toLocaleUpperCase",
        "toLowerCase",
        "toUpperCase",
        "trim",
        "trimEnd",
        "trimStart",
    }
)
REWRITING = frozenset({"replace", "replaceAll"})
JOINING = frozenset({"concat", "join", "padEnd", "padStart", "repeat"})
_PASSING_GLOBALS = frozenset({"max", "min", "random", "shuffle", "str", "structuredClone"})
_SPELLED = Mark.STRING | Mark.PIECE | Mark.BUILT


def register(places: Places, node: Node) -> None:
    """Note a function under the names by which it can be called."""
    parent = node.parent
    holders = [node.child("name")]
    if parent and node.kind != "method_definition":
        match parent.kind:
            case "variable_declarator":
                holders.append(parent.child("name"))
            case "pair":
                holders.append(parent.child("key"))
            case "field_definition":
                holders.append(parent.child("property"))
            case "assignment_expression":
                left = parent.child("left")
                holders.append((left.child("property") or left) if left else None)
            case _:
                pass
    for name in {places.syntax.text(holder) for holder in holders if holder}:
        places.functions.setdefault(name, []).append(node)


def connect_function(places: Places, node: Node) -> None:
    """Let a function's value carry what it returns, and unknown callers fill its parameters."""
    graph, body, name = places.graph, node.child("body"), node.child("name")
    if node.kind == "arrow_function" and body and body.kind != "statement_block":
        graph.edge(body.index, node.index)
    if node.kind == "method_definition":
        _connect_method(places, node, name)
    elif name is not None:
        graph.edge(node.index, places.binding(name))
    if calls_by_name(places.reading, node) is None:
        indexed = is_indexed_callback(places.reading, node)
        for position, parameter in enumerate(parameters(node)):
            if not (indexed and position == 1):
                places.fill(parameter, places.heap)


def _connect_method(places: Places, node: Node, name: Node | None) -> None:
    if name is None or name.kind == "computed_property_name":
        places.graph.edge(node.index, places.heap)
        places.graph.edge(node.index, places.stringified)
        return
    stored = places.property(places.syntax.text(name))
    places.graph.edge(node.index, stored)
    if any(child.kind == "set" for child in node.children):
        for parameter in parameters(node):
            places.fill(parameter, stored)


def connect_return(places: Places, node: Node) -> None:
    """Let a returned value reach its function's value."""
    function = node.parent
    while function is not None and function.kind not in FUNCTIONS:
        function = function.parent
    if function is not None:
        for child in node.children:
            places.graph.edge(child.index, function.index)


def connect_call(places: Places, node: Node) -> None:
    """Let arguments reach parameters, and results the call."""
    callee = node.child("function") or node.child("constructor")
    if callee is None:
        return
    callee = inner(callee)
    given = arguments(node)
    if given and given[0].kind == "template_string":
        given = [*given, *_substitutions(given[0])]
    name = places.reading.free_names.get(callee.index)
    if name is not None:
        _call_global(places, node, name, given)
        return
    member = callee.child("property") if callee.kind == "member_expression" else None
    owner = callee.child("object") if member else None
    if member and owner:
        root = places.reading.free_names.get(owner.index)
        if root is not None:
            _call_static(places, node, root, places.syntax.text(member), given)
            return
        _call_method(places, node, owner, places.syntax.text(member), given)
    places.graph.edge(callee.index, node.index)
    _fill_parameters(places, callee, member, given)


def _substitutions(template: Node) -> list[Node]:
    inside = [c for c in template.children if c.kind == "template_substitution"]
    return [part for c in inside for part in c.children if part.kind not in ("${", "}")]


def _fill_parameters(places: Places, callee: Node, member: Node | None, given: list[Node]) -> None:
    known = places.functions.get(places.syntax.text(member or callee), [])
    if callee.kind in FUNCTIONS:
        known = [callee]
    found = places.reading.scopes.bound.get(callee.index)
    if found is not None and found.kind == "class":
        known = places.functions.get("constructor", [])
    spread = any(argument.kind in ("spread_element", "template_string") for argument in given)
    for function in known:
        for position, parameter in enumerate(parameters(function)):
            everything = spread or parameter.kind == "rest_pattern"
            for argument in given if everything else given[position : position + 1]:
                places.fill(parameter, argument.index)
    if not known or member:
        for argument in given:
            places.graph.edge(argument.index, places.heap)


def _call_method(places: Places, node: Node, owner: Node, method: str, given: list[Node]) -> None:
    """The methods of texts and arrays, on an object that may be either."""
    graph = places.graph
    graph.edge(places.heap, node.index)
    if method in CUTTING:
        graph.edge(owner.index, node.index, cut)
    elif method in REWRITING:
        for part in (owner, *given):
            graph.edge(part.index, node.index, rewrite)
    elif method in JOINING:
        foreign = any(is_foreign(string_value(places.syntax, g) or "") for g in given)
        graph.join(node.index, foreign=foreign)
        for vertex in (places.heap, owner.index, *(g.index for g in given)):
            # A list has more than one element: each of its pieces counts twice.
            graph.part(vertex, node.index)
            graph.part(vertex, node.index)
    else:
        graph.edge(owner.index, node.index)
    if method == "toString":
        # A radix up to 16 gives no word; a string is a colour's format.
        plain = ("2", "8", "10", "16")
        if given and given[0].kind != "string" and places.syntax.text(given[0]) not in plain:
            places.mark(node, _SPELLED)
        if places.is_function(inner(owner)):
            places.mark(node, Mark.STRING | Mark.COMPOSED)


def _call_static(places: Places, node: Node, root: str, method: str, given: list[Node]) -> None:
    if root in ("Object", "Array", "String", "Promise"):
        _pass_through(places, node, given)
        if method in ("keys", "entries"):
            places.mark(node, Mark.STRING | Mark.PIECE)
        elif method == "raw":
            places.mark(node, _SPELLED)
    elif root == "JSON":
        places.mark(node, Mark.STRING | Mark.PIECE | Mark.COMPOSED)


def _call_global(places: Places, node: Node, name: str, given: list[Node]) -> None:
    if name in ("char", "splitTokens"):
        places.mark(node, Mark.STRING | Mark.PIECE)
    if name in ("String", "str") and given and places.is_function(inner(given[0])):
        places.mark(node, Mark.STRING | Mark.COMPOSED)
    if name in _PASSING_GLOBALS or name[0].isupper():
        _pass_through(places, node, given)


def _pass_through(places: Places, node: Node, given: list[Node]) -> None:
    places.graph.edge(places.heap, node.index)
    for argument in given:
        places.graph.edge(argument.index, node.index)
        places.graph.edge(argument.index, places.heap)
