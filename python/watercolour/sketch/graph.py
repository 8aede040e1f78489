"""Marks that spread along edges until nothing changes."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from watercolour.sketch.marks import Mark


@dataclasses.dataclass(frozen=True, slots=True)
class _Edge:
    target: int
    change: Callable[[Mark], Mark] | None


class Graph:
    """Vertices with marks, edges that carry them, and vertices that join several texts to one."""

    def __init__(self, vertices: int) -> None:
        self.marks: list[Mark] = [Mark.NONE] * vertices
        self._edges: dict[int, list[_Edge]] = {}
        self._foreign: dict[int, bool] = {}
        self._pieces: dict[int, int] = {}
        self._hexes: set[int] = set()

    def fresh(self) -> int:
        """Add a vertex."""
        self.marks.append(Mark.NONE)
        return len(self.marks) - 1

    def edge(self, source: int, target: int, change: Callable[[Mark], Mark] | None = None) -> None:
        """Let every mark of the source reach the target, changed on the way."""
        self._edges.setdefault(source, []).append(_Edge(target, change))

    def join(self, vertex: int, *, foreign: bool, pieces: int = 0) -> None:
        """Make the vertex a concatenation.

        ``foreign`` says that one part occurs in no forbidden word, so that the whole cannot be
        one; ``pieces`` is how many literal parts are pieces of one.
        """
        self._foreign[vertex] = foreign
        self._pieces[vertex] = pieces
        if pieces and not foreign:
            self.marks[vertex] |= Mark.PIECE

    def part(self, source: int, vertex: int) -> None:
        """Make the source a part of a concatenation."""
        self.edge(source, vertex, _arrive)

    def run(self) -> None:
        """Carry every mark along every edge until nothing changes.

        A vertex sends again only when it has gained a mark, of which there are five: linear.
        """
        waiting = [vertex for vertex, mark in enumerate(self.marks) if mark]
        sent: dict[int, Mark] = {}
        while waiting:
            vertex = waiting.pop()
            mark, before = self.marks[vertex], sent.get(vertex, Mark.NONE)
            sent[vertex] = mark
            if mark == before:
                continue
            changed = (e.target for e in self._edges.get(vertex, ()) if self._send(e, mark, before))
            waiting.extend(changed)

    def _send(self, edge: _Edge, mark: Mark, before: Mark) -> bool:
        target = edge.target
        old = self.marks[target]
        if edge.change is _arrive:
            self.marks[target] |= self._joined(target, mark, mark & ~before)
        else:
            self.marks[target] |= edge.change(mark) if edge.change else mark
        return self.marks[target] != old

    def _joined(self, target: int, mark: Mark, new: Mark) -> Mark:
        result = Mark.STRING | Mark.COMPOSED
        if self._foreign[target]:
            return result
        if new & Mark.PIECE:
            self._pieces[target] += 1
        if mark & Mark.HEX:
            self._hexes.add(target)
        result |= mark & (Mark.PIECE | Mark.BUILT | Mark.HEX)
        if self._pieces[target] >= 2 or (self._pieces[target] and target in self._hexes):
            result |= Mark.BUILT
        return result


def _arrive(mark: Mark) -> Mark:
    """Tag an edge into a concatenation; what arrives is weighed there with the other parts."""
    return mark
