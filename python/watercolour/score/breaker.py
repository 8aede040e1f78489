"""The circuit breaker in front of an endpoint: while it is away, nobody waits for it in vain.

Closed, every call goes through. After so many failed calls in a row it opens: calls fail at once.
When the cooldown is over one call is let through as a probe; it closes the breaker, or opens it
again for twice as long. Pure but for the clock that it is given; belongs to one event loop.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from enum import StrEnum

#: The cooldown grows to so many times its first length.
LONGEST = 10.0


class State(StrEnum):
    """Where the breaker stands."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half-open"
    """The probe is under way; everyone else is turned away."""


class Breaker:
    """Counts failed calls in a row; whoever calls tells it how each call ended."""

    def __init__(
        self, failures: int, cooldown_s: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Start closed.

        Args:
            failures: failed calls in a row that open it, at least 1.
            cooldown_s: how long it stays open the first time.
            clock: seconds that only grow; a test's own.
        """
        self._limit = failures
        self._first = self._cooldown = cooldown_s
        self._clock = clock
        self._failed = 0
        self._until: float | None = None
        self._probing = False
        self.opened = 0

    @property
    def state(self) -> State:
        """Where it stands now."""
        if self._until is None:
            return State.CLOSED
        return State.HALF_OPEN if self._probing else State.OPEN

    def admits(self) -> bool:
        """Whether a call may go out now; the first one after the cooldown is the probe."""
        if self._until is None:
            return True
        if self._probing or self._clock() < self._until:
            return False
        self._probing = True
        return True

    def holds(self) -> bool:
        """Whether a call that was admitted earlier should give up: others found the end first."""
        return self._until is not None and not self._probing

    @property
    def seconds_left(self) -> float:
        """Until the next probe; 0 when calls go out."""
        return 0.0 if self._until is None else max(0.0, self._until - self._clock())

    def succeeded(self) -> None:
        """The endpoint answered, whatever it said."""
        self._failed, self._until, self._probing = 0, None, False
        self._cooldown = self._first

    def failed(self) -> None:
        """A call ended without an answer."""
        self._failed += 1
        if self._probing:
            self._cooldown = min(2 * self._cooldown, LONGEST * self._first)
        elif self._until is not None or self._failed < self._limit:
            return
        self._probing = False
        self._until = self._clock() + self._cooldown
        self.opened += 1

    def abandoned(self) -> None:
        """A call was cancelled before it ended; a probe that was is owed again."""
        self._probing = False
