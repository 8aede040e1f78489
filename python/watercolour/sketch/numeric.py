"""Which expressions are plainly numbers: such a key can name nothing, such a sum spells nothing."""

from __future__ import annotations

from watercolour.sketch.names import NUMBER_FUNCTIONS, NUMBER_VARIABLES
from watercolour.sketch.parse import Node
from watercolour.sketch.reading import Reading, arguments, inner
from watercolour.sketch.scope import FUNCTIONS, Binding, parameters

INDEXED = frozenset(
    {"every", "filter", "find", "findIndex", "findLast", "findLastIndex", "flatMap", "forEach"}
    | {"from", "map", "some"}
)
"""Array methods that give their callback an index as its second argument."""

_ARITHMETIC = frozenset({"-", "*", "/", "%", "**", "|", "&", "^", "<<", ">>", ">>>"})
_EXPRESSIONS = frozenset(
    {
        "assignment_expression",
        "binary_expression",
        "call_expression",
        "identifier",
        "member_expression",
        "parenthesized_expression",
        "ternary_expression",
        "unary_expression",
        "update_expression",
    }
)
_UPDATES = frozenset(f"{operator}=" for operator in _ARITHMETIC)
_Value = Node | Binding


def numbers(reading: Reading) -> frozenset[int]:
    """Return the indices of the expressions that are numbers whatever happens.

    A variable is a number when all that is ever assigned to it is; what rests on itself alone
    counts as one. Linear in the size of the sketch.
    """
    users: dict[int, list[int]] = {}
    expressions: set[int] = set()
    others: list[int] = []

    def rest(key: int, on: list[_Value] | None) -> None:
        if on is None:
            others.append(key)
            return
        for value in on:
            users.setdefault(_key(value), []).append(key)

    for node in reading.syntax.nodes:
        if node.kind in _EXPRESSIONS:
            expressions.add(node.index)
            rest(node.index, _rests_on(reading, node))
        elif node.kind != "number":
            others.append(node.index)
    for binding in reading.scopes.bindings():
        rest(_key(binding), _assigned(reading, binding))
    refuted = set(others)
    while others:
        for user in users.get(others.pop(), ()):
            if user not in refuted:
                refuted.add(user)
                others.append(user)
    literals = (node.index for node in reading.syntax.nodes if node.kind == "number")
    return frozenset(expressions - refuted).union(literals)


def _key(value: _Value) -> int:
    # Node indices count from 0, so a binding takes a negative number.
    return value.index if isinstance(value, Node) else -1 - value.declarations[0].index


def _rests_on(reading: Reading, node: Node) -> list[_Value] | None:
    """Return what must be numbers for the node to be one, or None when it need not be."""
    match node.kind:
        case "update_expression":
            return []
        case "parenthesized_expression":
            inside = inner(node)
            return None if inside is node else [inside]
        case "unary_expression":
            operator = node.child("operator")
            return [] if operator and operator.kind in ("-", "+", "~") else None
        case "binary_expression":
            return _binary(node)
        case "ternary_expression":
            return _all(node.child("consequence"), node.child("alternative"))
        case "assignment_expression":
            return _all(node.child("right"))
        case "call_expression":
            return [] if _is_number_call(reading, node) else None
        case "member_expression":
            return [] if _is_number_member(reading, node) else None
        case _:
            return _variable(reading, node)


def _binary(node: Node) -> list[_Value] | None:
    operator = node.child("operator")
    if operator is None:
        return None
    if operator.kind in _ARITHMETIC:
        return []
    if operator.kind in ("+", "||", "&&", "??"):
        return _all(node.child("left"), node.child("right"))
    return None


def _is_number_call(reading: Reading, node: Node) -> bool:
    callee = node.child("function")
    if callee is None:
        return False
    callee = inner(callee)
    name = reading.free_names.get(callee.index)
    if name == "random":
        # Given a list, `random` picks one of its elements.
        plain = ("number", "binary_expression", "unary_expression")
        return all(inner(argument).kind in plain for argument in arguments(node))
    if name is not None:
        return name in NUMBER_FUNCTIONS
    owner = callee.child("object")
    return owner is not None and reading.is_free(owner, "Math")


def _is_number_member(reading: Reading, node: Node) -> bool:
    owner, name = node.child("object"), node.child("property")
    if owner is None or name is None:
        return False
    if reading.is_free(owner, "Math"):
        return True
    return reading.syntax.text(name) == "length" and "length" not in reading.own_members


def _variable(reading: Reading, node: Node) -> list[_Value] | None:
    name = reading.free_names.get(node.index)
    if name is not None:
        return [] if name in NUMBER_VARIABLES else None
    binding = reading.scopes.bound.get(node.index)
    return [binding] if binding else None


def _assigned(reading: Reading, binding: Binding) -> list[_Value] | None:
    """Return every value that the variable is given, or None when one is out of sight."""
    values: list[_Value] = []
    for declaration in binding.declarations:
        given = _declared(reading, binding, declaration)
        if given is None:
            return None
        values.extend(given)
    for reference in binding.references:
        given = _given_by_reference(reference)
        if given is None:
            return None
        values.extend(given)
    return values


def _declared(reading: Reading, binding: Binding, declaration: Node) -> list[_Value] | None:
    parent = declaration.parent
    if parent is None:
        return None
    if parent.kind == "variable_declarator":
        value = parent.child("value")
        return [value] if value else []
    if binding.kind != "parameter":
        return None
    default: list[_Value] = []
    parameter = declaration
    if parent.kind == "assignment_pattern" and declaration.field == "left":
        parameter, right = parent, parent.child("right")
        default = [right] if right else []
    given = _arguments_of(reading, parameter)
    return None if given is None else default + given


def _arguments_of(reading: Reading, parameter: Node) -> list[_Value] | None:
    """Return the arguments of every call for a parameter, or None when calls are unknown."""
    listed = parameter.parent
    function = listed.parent if listed and listed.kind == "formal_parameters" else listed
    if function is None or function.kind not in FUNCTIONS or parameter.kind == "rest_pattern":
        return None
    position = parameters(function).index(parameter)
    if position == 1 and is_indexed_callback(reading, function):
        return []
    calls = calls_by_name(reading, function)
    if calls is None:
        return None
    values: list[_Value] = []
    for call in calls:
        given = arguments(call)
        if any(argument.kind in ("spread_element", "template_string") for argument in given):
            return None
        values.extend(given[position : position + 1])
    return values


def calls_by_name(reading: Reading, function: Node) -> list[Node] | None:
    """Return all calls of a function, or None when it is used in any other way than by calls."""
    name = function.child("name")
    parent = function.parent
    if name is None and parent and parent.kind == "variable_declarator":
        name = parent.child("name")
    binding = reading.scopes.bound.get(name.index) if name else None
    if binding is None or len(binding.declarations) != 1:
        return None
    calls: list[Node] = []
    for reference in binding.references:
        call = reference.parent
        if call is None or call.kind != "call_expression" or reference.field != "function":
            return None
        calls.append(call)
    return calls


def is_indexed_callback(reading: Reading, function: Node) -> bool:
    """Tell whether the function is given to an array method that passes an index second."""
    listed = function.parent
    call = listed.parent if listed and listed.kind == "arguments" else None
    callee = call.child("function") if call else None
    name = callee.child("property") if callee else None
    return (
        name is not None
        and reading.syntax.text(name) in INDEXED
        and reading.syntax.text(name) not in reading.own_members
    )


def _all(*nodes: Node | None) -> list[_Value] | None:
    found: list[_Value] = [node for node in nodes if node is not None]
    return found if len(found) == len(nodes) else None


def _given_by_reference(reference: Node) -> list[_Value] | None:
    """Return the value that a reference assigns to its variable; empty when it only reads."""
    parent = reference.parent
    if parent is None:
        return None
    if reference.kind == "shorthand_property_identifier_pattern":
        return None
    match parent.kind:
        case "assignment_expression" if reference.field == "left":
            return _all(parent.child("right"))
        case "augmented_assignment_expression" if reference.field == "left":
            operator, right = parent.child("operator"), parent.child("right")
            if operator and operator.kind in _UPDATES:
                return []
            return _all(right)
        case "for_in_statement" if reference.field == "left":
            return None
        case "array_pattern" | "rest_pattern" | "pair_pattern":
            return None
        case "assignment_pattern" | "object_assignment_pattern" if reference.field == "left":
            return None
        case _:
            return []
