"""What a run may ask of its judge, and what it has asked."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass

#: Tokens of an answer that does not count them: two pictures, the criteria and a short verdict.
UNCOUNTED_TOKENS = 2_000


@dataclass
class Reservation:
    """Calls that nobody else may spend."""

    left: int


@dataclass
class Budget:
    """Counts calls and tokens against their limits; None is no limit.

    Calls count when they go out, tokens when the answer says how many. Calls that are under way
    when the tokens run out are still answered, so tokens may pass their limit by these.
    """

    calls: int | None = None
    tokens: int | None = None
    spent_calls: int = 0
    spent_tokens: int = 0
    reserved: int = 0

    def at_least(self, calls: int, tokens: int) -> None:
        """Take for spent what another process of the run has counted, where that is more."""
        self.spent_calls = max(self.spent_calls, calls)
        self.spent_tokens = max(self.spent_tokens, tokens)

    def affords(self, calls: int) -> bool:
        """Whether so many calls may still go out, beside those that are reserved."""
        if calls == 0:
            return True
        taken = self.spent_calls + self.reserved
        within = self.calls is None or taken + calls <= self.calls
        return within and (self.tokens is None or self.spent_tokens < self.tokens)

    @contextmanager
    def reserving(self, calls: int) -> Generator[Reservation | None]:
        """Keep so many calls for the block, which gets None if they are not to be had."""
        if not self.affords(calls):
            yield None
            return
        kept = Reservation(calls)
        self.reserved += calls
        try:
            yield kept
        finally:
            self.reserved -= kept.left
            kept.left = 0

    def call(self, kept: Reservation) -> bool:
        """Let one call go out, from what was reserved or else from the rest; False if none may."""
        if kept.left:
            kept.left -= 1
            self.reserved -= 1
        elif not self.affords(1):
            return False
        self.spent_calls += 1
        return True

    def answered(self, tokens: int | None) -> int:
        """An answer came; how many tokens it is taken for."""
        counted = UNCOUNTED_TOKENS if tokens is None else tokens
        self.spent_tokens += counted
        return counted

    def __str__(self) -> str:
        """What is spent of what, in words."""
        parts = [
            f"{spent:,} of {limit:,} {what}"
            for what, spent, limit in (
                ("calls", self.spent_calls, self.calls),
                ("tokens", self.spent_tokens, self.tokens),
            )
            if limit is not None
        ]
        return " and ".join(parts) or f"{self.spent_calls:,} calls, without a limit"
