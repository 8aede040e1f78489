"""Rollouts that clients have announced: what lets renderers start before the first job."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass
class _Announcement:
    rollouts: int
    until: float
    #: When the first of them is expected, in seconds since 1970.
    due: float


class Announcements:
    """The latest announcement of each client, until it lapses or its rollouts have arrived."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        """Read the time, in seconds since 1970, from ``clock``."""
        self._clock = clock
        self._by_client: dict[str, _Announcement] = {}

    def announce(self, client: str, rollouts: int, until: float, due_seconds: float = 0.0) -> None:
        """Expect so many rollouts of a client; replaces what it announced before.

        Args:
            client: who announces.
            rollouts: how many will come; 0 takes the announcement back.
            until: when the announcement lapses, in seconds since 1970.
            due_seconds: from now until the first of them is expected; 0 is at any moment.
        """
        self._drop_lapsed()
        self._by_client.pop(client, None)
        now = self._clock()
        if rollouts > 0 and until > now:
            self._by_client[client] = _Announcement(rollouts, until, now + due_seconds)

    def arrived(self, client: str) -> None:
        """One rollout of a client has arrived and is announced no longer."""
        announcement = self._by_client.get(client)
        if announcement is None:
            return
        announcement.rollouts -= 1
        # The others may come at any moment too.
        announcement.due = min(announcement.due, self._clock())
        if announcement.rollouts <= 0:
            del self._by_client[client]

    @property
    def total(self) -> int:
        """Rollouts still to come."""
        self._drop_lapsed()
        return sum(announcement.rollouts for announcement in self._by_client.values())

    @property
    def due_seconds(self) -> float:
        """Seconds until the first of them is expected; 0 is at any moment, or that none is."""
        self._drop_lapsed()
        first = min((one.due for one in self._by_client.values()), default=0.0)
        return max(first - self._clock(), 0.0)

    def _drop_lapsed(self) -> None:
        now = self._clock()
        for client in [name for name, one in self._by_client.items() if one.until <= now]:
            del self._by_client[client]
