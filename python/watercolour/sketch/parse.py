"""Source text to a syntax tree that rules can walk in plain loops.

tree-sitter's nodes are copied once, in document order, into flat Python objects: a rule visits
``tree.nodes`` instead of recursing, so that no nesting can exhaust the stack.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from functools import cache

import tree_sitter_javascript
from tree_sitter import Language, Parser, Tree

MAX_DEPTH = 400
"""Deepest nesting of syntax nodes that is looked at; real sketches stay below 60."""


@dataclasses.dataclass(slots=True, eq=False, repr=False)
class Node:
    """One syntax node. ``start`` and ``end`` are byte offsets into the UTF-8 source."""

    kind: str
    start: int
    end: int
    parent: Node | None
    field: str | None
    index: int
    last: int = 0
    missing: bool = False
    children: list[Node] = dataclasses.field(default_factory=list["Node"])

    def child(self, field: str) -> Node | None:
        """Return the first child in ``field``."""
        for node in self.children:
            if node.field == field:
                return node
        return None

    def __repr__(self) -> str:
        return f"<{self.kind} {self.start}-{self.end}>"


class TooDeepError(ValueError):
    """The source nests deeper than ``MAX_DEPTH``."""


@dataclasses.dataclass(frozen=True, slots=True)
class Syntax:
    """A parsed sketch: its source and its nodes in document order (a parent before its children).

    A node's subtree is ``nodes[node.index : node.last + 1]``.
    """

    source: str
    data: bytes
    nodes: tuple[Node, ...]
    broken: bool

    @property
    def root(self) -> Node:
        """The program."""
        return self.nodes[0]

    def text(self, node: Node) -> str:
        """Return the node's source text."""
        return self.data[node.start : node.end].decode("utf-8")

    def within(self, node: Node) -> Iterator[Node]:
        """Yield the node and everything below it, in document order."""
        for index in range(node.index, node.last + 1):
            yield self.nodes[index]

    def place(self, node: Node) -> tuple[int, int]:
        """Return the node's line and column, both from 1; the column counts characters."""
        before = self.data[: node.start]
        line_start = before.rfind(b"\n") + 1
        return before.count(b"\n") + 1, len(before[line_start:].decode("utf-8")) + 1


@cache
def _language() -> tuple[Language, tuple[str | None, ...]]:
    language = Language(tree_sitter_javascript.language())
    fields = (None, *(language.field_name_for_id(i + 1) for i in range(language.field_count)))
    return language, fields


def parse(source: str) -> Syntax:
    """Parse a sketch.

    The source must be encodable as UTF-8; bounding its length is the caller's business.

    Raises:
        TooDeepError: syntax nodes nest deeper than ``MAX_DEPTH``.
    """
    data = source.encode("utf-8")
    language, fields = _language()
    # A parser is cheap to make and not safe to share between threads.
    tree = Parser(language).parse(data)
    return Syntax(source, data, tuple(_copy(tree, fields)), tree.root_node.has_error)


def is_program(source: str) -> bool:
    """Tell whether the text as a whole is JavaScript."""
    language, _ = _language()
    return not Parser(language).parse(source.encode("utf-8", "replace")).root_node.has_error


def _copy(tree: Tree, fields: tuple[str | None, ...]) -> list[Node]:
    nodes: list[Node] = []
    cursor = tree.walk()
    parent: Node | None = None
    depth = 0
    while True:
        seen = cursor.node
        assert seen is not None
        node = Node(
            seen.type,
            seen.start_byte,
            seen.end_byte,
            parent,
            fields[cursor.field_id or 0],
            len(nodes),
            missing=seen.is_missing,
        )
        nodes.append(node)
        if parent is not None:
            parent.children.append(node)
        if cursor.goto_first_child():
            depth += 1
            if depth > MAX_DEPTH:
                raise TooDeepError(f"nested deeper than {MAX_DEPTH} levels")
            parent = node
            continue
        node.last = node.index
        while not cursor.goto_next_sibling():
            if parent is None or not cursor.goto_parent():
                return nodes
            parent.last = len(nodes) - 1
            parent = parent.parent
            depth -= 1
