"""What can be read off a sketch without painting it: its fills and its shapes, as written.

Calls of the sketch's own functions count for what those functions paint; a loop counts once,
because how often it turns is known to nobody before it does. The sketch must have passed the gate.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from watercolour.sketch.exports import PAINTERS
from watercolour.sketch.parse import Node, Syntax, parse

#: Methods that leave a shape on the canvas; wash and hatch only say how the next ones are filled.
SHAPES = PAINTERS - {"wash", "hatch"}

#: Kinds of nodes whose code does not run where it is written.
_FUNCTIONS = frozenset(
    {
        "function_declaration",
        "function_expression",
        "arrow_function",
        "generator_function_declaration",
        "method_definition",
    }
)

#: The most that is counted; functions that call each other could multiply without end.
MOST = 10_000


@dataclass(frozen=True)
class SketchFacts:
    """A sketch, counted.

    Attributes:
        characters: its length.
        fills: calls of ``brush.fill``, directly or through functions of its own.
        shapes: every shape as written, in order: an outline from ``brush.beginShape`` to
            ``brush.endShape``, another painting call, or a call of a function that paints; blanks
            are left out.
        methods: the p5.brush methods that it calls.
    """

    characters: int
    fills: int
    shapes: tuple[str, ...] = field(repr=False)
    methods: frozenset[str]


def read(sketch: str) -> SketchFacts:
    """Count a sketch.

    Raises:
        TooDeepError: it nests deeper than the gate allows.
    """
    syntax = parse(sketch)
    own = dict(_functions(syntax))
    painting = {name for name in own if _leads_to(syntax, own, name, SHAPES, set())}
    # Functions that nobody calls paint nothing; p5 itself calls these two.
    bodies = [syntax.root, *(own[name] for name in ("setup", "draw") if name in own)]
    return SketchFacts(
        characters=len(sketch),
        fills=sum(_count(syntax, own, body, "fill", ()) for body in bodies),
        shapes=tuple(shape for body in bodies for shape in _shapes(syntax, body, painting)),
        methods=frozenset(
            method for node in syntax.nodes if (method := _method(syntax, node)) is not None
        ),
    )


def _functions(syntax: Syntax) -> Iterator[tuple[str, Node]]:
    """The sketch's named functions and their bodies."""
    for node in syntax.nodes:
        body = node
        if node.kind == "variable_declarator":
            value = node.child("value")
            if value is None or value.kind not in _FUNCTIONS:
                continue
            body = value
        elif node.kind != "function_declaration":
            continue
        name, inside = node.child("name"), body.child("body")
        if name is not None and inside is not None:
            yield syntax.text(name), inside


def _calls(syntax: Syntax, body: Node) -> Iterator[Node]:
    """The calls in a body that run when it runs, in the order in which they are written."""
    skip = -1
    for node in syntax.within(body):
        if node.index <= skip:
            continue
        if node.kind in _FUNCTIONS and node is not body and not _is_argument(node):
            skip = node.last
        elif node.kind == "call_expression":
            yield node


def _is_argument(node: Node) -> bool:
    """Whether a function is handed to a call, such as ``forEach``, which then runs it."""
    return node.parent is not None and node.parent.kind == "arguments"


def _method(syntax: Syntax, call: Node) -> str | None:
    """The name of the p5.brush method that a call calls, if it does."""
    called = call.child("function") if call.kind == "call_expression" else None
    if called is None or called.kind != "member_expression":
        return None
    owner, name = called.child("object"), called.child("property")
    if owner is None or name is None or syntax.text(owner) != "brush":
        return None
    return syntax.text(name)


def _named(syntax: Syntax, call: Node) -> str | None:
    """The name of the plain function that a call calls, if it does."""
    called = call.child("function")
    return syntax.text(called) if called is not None and called.kind == "identifier" else None


def _leads_to(
    syntax: Syntax, own: dict[str, Node], name: str, methods: frozenset[str], seen: set[str]
) -> bool:
    """Whether a function calls one of the methods, directly or through others."""
    seen.add(name)
    for call in _calls(syntax, own[name]):
        other = _named(syntax, call)
        if _method(syntax, call) in methods:
            return True
        if other in own and other not in seen and _leads_to(syntax, own, other, methods, seen):
            return True
    return False


def _count(
    syntax: Syntax, own: dict[str, Node], body: Node, method: str, inside: tuple[str, ...]
) -> int:
    """Calls of a method that a body makes; a function that calls itself counts once."""
    total = 0
    for call in _calls(syntax, body):
        other = _named(syntax, call)
        if _method(syntax, call) == method:
            total += 1
        elif other in own and other not in inside and len(inside) < 8:
            total += _count(syntax, own, own[other], method, (*inside, other))
        if total >= MOST:
            return MOST
    return total


def _shapes(syntax: Syntax, body: Node, painting: set[str]) -> Iterator[str]:
    """The shapes of a body as written."""
    begun: Node | None = None
    for call in _calls(syntax, body):
        method, own = _method(syntax, call), _named(syntax, call)
        if method in ("beginShape", "beginStroke"):
            begun = call
        elif method in SHAPES:
            start = call if begun is None else begun
            yield plain(syntax.data[start.start : call.end].decode("utf-8"))
            begun = None
        elif own in painting:
            yield plain(syntax.text(call))


def plain(text: str) -> str:
    """Code without its blanks."""
    return re.sub(r"\s+", "", text)
