"""Which name means what: bindings, scopes and the references to them.

The rules follow ECMAScript's, with one deliberate narrowing: a function declared inside a block
is bound in that block alone. The old web semantics also make it a variable of the function
around, whose value outside the block may still be the page's own global.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from watercolour.sketch.parse import Node, Syntax

FUNCTIONS = frozenset(
    {
        "arrow_function",
        "function_declaration",
        "function_expression",
        "generator_function",
        "generator_function_declaration",
        "method_definition",
    }
)
DECLARED_FUNCTIONS = frozenset({"function_declaration", "generator_function_declaration"})
CLASSES = frozenset({"class", "class_declaration"})
_SCOPES = (
    FUNCTIONS
    | CLASSES
    | {
        "program",
        "statement_block",
        "for_statement",
        "for_in_statement",
        "catch_clause",
        "switch_body",
        "class_static_block",
    }
)
_NAMES = frozenset(
    {
        "identifier",
        "shorthand_property_identifier",
        "shorthand_property_identifier_pattern",
        "undefined",
    }
)


@dataclasses.dataclass(slots=True, eq=False)
class Binding:
    """One declared name: its declaring identifiers and every reference to it."""

    name: str
    scope: Scope
    kind: str
    declarations: list[Node] = dataclasses.field(default_factory=list[Node])
    references: list[Node] = dataclasses.field(default_factory=list[Node])


@dataclasses.dataclass(slots=True, eq=False)
class Scope:
    """A stretch of code with names of its own."""

    node: Node
    parent: Scope | None
    bindings: dict[str, Binding] = dataclasses.field(default_factory=dict[str, Binding])


@dataclasses.dataclass(frozen=True, slots=True)
class Scopes:
    """The resolved names of a sketch.

    ``bound`` gives the binding of each declaring or referring identifier (by node index);
    ``free`` lists, in document order, those that the sketch does not declare.
    """

    program: Scope
    scopes: tuple[Scope, ...]
    bound: dict[int, Binding]
    free: tuple[tuple[Node, str], ...]

    def bindings(self) -> Iterator[Binding]:
        """Yield every declared name."""
        for scope in self.scopes:
            yield from scope.bindings.values()


def resolve(syntax: Syntax) -> Scopes:
    """Bind every identifier of the sketch. Linear in the number of nodes times block depth."""
    scopes = _open_scopes(syntax)
    bound: dict[int, Binding] = {}
    declared = _declare(syntax, scopes, bound)
    free: list[tuple[Node, str]] = []
    for node in syntax.nodes:
        if node.kind not in _NAMES or node.index in declared:
            continue
        name = syntax.text(node)
        binding = _find(name, scopes[node.index])
        if binding is None:
            free.append((node, name))
        else:
            binding.references.append(node)
            bound[node.index] = binding
    own = tuple(
        scope for node, scope in zip(syntax.nodes, scopes, strict=True) if scope.node is node
    )
    return Scopes(scopes[0], own, bound, tuple(free))


def pattern_names(syntax: Syntax, pattern: Node) -> list[Node]:
    """Return the identifiers that a pattern (or a plain identifier) declares."""
    found: list[Node] = []
    pending = [pattern]
    while pending:
        node = pending.pop()
        if node.kind in ("identifier", "shorthand_property_identifier_pattern", "undefined"):
            found.append(node)
        elif node.kind in ("assignment_pattern", "object_assignment_pattern"):
            left = node.child("left")
            pending.extend([left] if left else [])
        elif node.kind == "pair_pattern":
            value = node.child("value")
            pending.extend([value] if value else [])
        elif node.kind in ("object_pattern", "array_pattern", "rest_pattern"):
            pending.extend(node.children)
    return found


def _open_scopes(syntax: Syntax) -> list[Scope]:
    """Return each node's scope, by index. A function's own name and parameters lie inside it."""
    scopes: list[Scope] = []
    for node in syntax.nodes:
        outer = scopes[node.parent.index] if node.parent else None
        if node.kind in _SCOPES:
            scopes.append(Scope(node, outer))
            continue
        assert outer is not None
        # A computed method name is evaluated outside the method: it does not see the parameters.
        key = node.kind == "computed_property_name" and outer.node.kind == "method_definition"
        scopes.append(outer.parent if key and outer.parent else outer)
    return scopes


def _declare(syntax: Syntax, scopes: list[Scope], bound: dict[int, Binding]) -> set[int]:
    declared: set[int] = set()

    def add(scope: Scope, kind: str, names: list[Node]) -> None:
        for node in names:
            name = syntax.text(node)
            binding = scope.bindings.get(name)
            if binding is None:
                binding = scope.bindings[name] = Binding(name, scope, kind)
            binding.declarations.append(node)
            bound[node.index] = binding
            declared.add(node.index)

    for node in syntax.nodes:
        here = scopes[node.index]
        match node.kind:
            case "variable_declarator":
                name, statement = node.child("name"), node.parent
                if name and statement:
                    kind = _declaration_kind(statement)
                    target = _var_scope(here) if kind == "var" else here
                    add(target, kind, pattern_names(syntax, name))
            case "for_in_statement" if node.child("kind"):
                kind_node, left = node.child("kind"), node.child("left")
                if kind_node and left:
                    target = _var_scope(here) if kind_node.kind == "var" else here
                    add(target, kind_node.kind, pattern_names(syntax, left))
            case "function_declaration" | "generator_function_declaration" | "class_declaration":
                name = node.child("name")
                if name and here.parent:
                    kind = "class" if node.kind == "class_declaration" else "function"
                    add(here.parent, kind, [name])
            case "function_expression" | "generator_function" | "class":
                name = node.child("name")
                if name:
                    add(here, "class" if node.kind == "class" else "function", [name])
            case "catch_clause":
                name = node.child("parameter")
                if name:
                    add(here, "let", pattern_names(syntax, name))
            case _:
                pass
        if node.kind in FUNCTIONS:
            for name in parameters(node):
                add(here, "parameter", pattern_names(syntax, name))
    return declared


def parameters(function: Node) -> list[Node]:
    """Return the parameter patterns of a function, in order."""
    single = function.child("parameter")
    if single:
        return [single]
    listed = function.child("parameters")
    if listed is None:
        return []
    return [c for c in listed.children if c.kind not in ("(", ")", ",", "comment")]


def _declaration_kind(statement: Node) -> str:
    return "var" if statement.kind == "variable_declaration" else "let"


def _var_scope(scope: Scope) -> Scope:
    """A function's ``var`` lives in its body: a parameter's default value does not see it."""
    while scope.parent:
        node, parent = scope.node, scope.node.parent
        is_body = node.kind == "statement_block" and parent is not None and parent.kind in FUNCTIONS
        if is_body or node.kind in ("program", "class_static_block"):
            return scope
        scope = scope.parent
    return scope


def _find(name: str, scope: Scope | None) -> Binding | None:
    while scope is not None:
        binding = scope.bindings.get(name)
        if binding is not None:
            return binding
        scope = scope.parent
    return None
