"""When a page has painted enough."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Wear:
    """When a page is replaced although nothing went wrong. It is looked at after each painting.

    Attributes:
        renders: paintings of one page.
        seconds: its age.
        memory_bytes: resident memory of its process.
    """

    renders: int = 200
    seconds: float = 1800.0
    memory_bytes: int = 400 * 2**20

    def cause(self, renders: int, seconds: float, memory_bytes: int) -> str | None:
        """Why such a page is to be replaced; None when it is not."""
        if renders >= self.renders:
            return "count"
        if seconds >= self.seconds:
            return "age"
        return "memory" if memory_bytes >= self.memory_bytes else None
