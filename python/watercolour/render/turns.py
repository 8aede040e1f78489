"""Lines of those who wait, a line a client; clients take turns. Pure."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable
from contextlib import suppress
from typing import Generic, TypeVar

Item = TypeVar("Item")


class Turns(Generic[Item]):
    """Round robin between clients, first in first out within one.

    While a client has an item that fits, no other client is served twice before it.
    """

    def __init__(self) -> None:
        self._lines: OrderedDict[str, deque[Item]] = OrderedDict()

    def __len__(self) -> int:
        return sum(len(line) for line in self._lines.values())

    def add(self, client: str, item: Item, *, first: bool = False) -> None:
        """Put an item at the end of its client's line, or at its head."""
        line = self._lines.setdefault(client, deque())
        if first:
            line.appendleft(item)
        else:
            line.append(item)

    def remove(self, client: str, item: Item) -> None:
        """Take an item out of its line; one that is not there is none to take."""
        line = self._lines.get(client)
        if line is None:
            return
        with suppress(ValueError):
            line.remove(item)
        if not line:
            del self._lines[client]

    def clear(self) -> list[Item]:
        """Take all items out; a client's are together."""
        items = [item for line in self._lines.values() for item in line]
        self._lines.clear()
        return items

    def take(self, fits: Callable[[Item], bool]) -> Item | None:
        """The next item that fits, taken out; None if there is none.

        An item that does not fit is passed over and keeps its place.
        """
        for client, line in self._lines.items():
            for item in line:
                if fits(item):
                    line.remove(item)
                    self._lines.move_to_end(client)
                    if not line:
                        del self._lines[client]
                    return item
        return None
