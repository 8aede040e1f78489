"""Where a value can lie: variables, properties by name, the heap; and how it gets there."""

from __future__ import annotations

from watercolour.sketch.graph import Graph
from watercolour.sketch.literals import string_value
from watercolour.sketch.marks import Mark, character
from watercolour.sketch.parse import Node
from watercolour.sketch.reading import Reading, inner
from watercolour.sketch.scope import CLASSES, FUNCTIONS


class Places:
    """The vertices of a sketch's values.

    Each syntax node has the vertex of its own index. ``heap`` holds whatever is an element, an
    argument of an unknown call or any property; ``written`` what is stored under a computed key
    and may thus be any property; ``stringified`` what an object may become as a text.
    """

    def __init__(self, reading: Reading, numbers: frozenset[int]) -> None:
        self.reading = reading
        self.syntax = reading.syntax
        self.numbers = numbers
        self.graph = Graph(len(self.syntax.nodes))
        self.heap = self.graph.fresh()
        self.written = self.graph.fresh()
        self.stringified = self.graph.fresh()
        self.functions: dict[str, list[Node]] = {}
        """Functions by the name of the variable or property that holds them."""
        self._bindings: dict[int, int] = {}
        self._properties: dict[str, int] = {}

    def binding(self, node: Node) -> int:
        """The vertex of the variable that an identifier means, declared or merely assigned."""
        found = self.reading.scopes.bound.get(node.index)
        if found is None:
            return self.property(f"global {self.syntax.text(node)}")
        vertex = self._bindings.get(id(found))
        if vertex is None:
            vertex = self._bindings[id(found)] = self.graph.fresh()
        return vertex

    def property(self, name: str) -> int:
        """The one vertex of all properties of that name."""
        vertex = self._properties.get(name)
        if vertex is None:
            vertex = self._properties[name] = self.graph.fresh()
            self.graph.edge(self.written, vertex)
            self.graph.edge(vertex, self.heap)
            if name in ("toString", "valueOf", "toJSON"):
                self.graph.edge(vertex, self.stringified)
        return vertex

    def fill(self, target: Node, source: int) -> None:
        """Let a value flow into whatever a target or a pattern fills."""
        pending = [(inner(target), source)]
        while pending:
            node, vertex = pending.pop()
            match node.kind:
                case "identifier" | "shorthand_property_identifier_pattern":
                    self.graph.edge(vertex, self.binding(node))
                case "member_expression":
                    name = node.child("property")
                    if name:
                        self.graph.edge(vertex, self.property(self.syntax.text(name)))
                case "subscript_expression":
                    self._fill_element(node, vertex)
                case "assignment_pattern" | "object_assignment_pattern":
                    left = node.child("left")
                    pending.extend([(left, vertex)] if left else [])
                case "array_pattern" | "rest_pattern":
                    inside = self.unpacked(vertex)
                    pending.extend((child, inside) for child in node.children)
                case "object_pattern":
                    pending.extend(self._picked(child) for child in node.children)
                case _:
                    pass

    def _fill_element(self, target: Node, vertex: int) -> None:
        key = target.child("index")
        self.graph.edge(vertex, self.heap)
        if key is None or inner(key).index not in self.numbers:
            self.graph.edge(vertex, self.written)

    def _picked(self, child: Node) -> tuple[Node, int]:
        """What one entry of an object pattern fills, and the property that it picks."""
        match child.kind:
            case "pair_pattern":
                key, value = child.child("key"), child.child("value")
                if key and value and key.kind != "computed_property_name":
                    name = string_value(self.syntax, key) or self.syntax.text(key)
                    return value, self.property(name)
                return value or child, self.heap
            case "shorthand_property_identifier_pattern":
                return child, self.property(self.syntax.text(child))
            case "object_assignment_pattern":
                left = child.child("left")
                return child, self.property(self.syntax.text(left)) if left else self.heap
            case _:
                return child, self.heap

    def unpacked(self, vertex: int) -> int:
        """The vertex of what lies inside a value: the heap, its own marks, its characters."""
        inside = self.graph.fresh()
        self.graph.edge(self.heap, inside)
        self.graph.edge(vertex, inside)
        self.graph.edge(vertex, inside, character)
        return inside

    def mark(self, node: Node, marks: Mark) -> None:
        """Give a node's value marks of its own."""
        self.graph.marks[node.index] |= marks

    def is_function(self, node: Node) -> bool:
        """Tell whether turning the value into a text gives source code."""
        if node.kind in FUNCTIONS or node.kind in CLASSES:
            return True
        found = self.reading.scopes.bound.get(node.index)
        return found is not None and found.kind in ("function", "class")
