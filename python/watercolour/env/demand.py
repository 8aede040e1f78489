"""Rollouts that clients have announced: what lets renderers start before the first job."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass
class _Announcement:
    rollouts: int
    until: float


class Announcements:
    """The latest announcement of each client, until it lapses or its rollouts have arrived."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        """Read the time, in seconds since 1970, from ``clock``."""
        self._clock = clock
        self._by_client: dict[str, _Announcement] = {}

    def announce(self, client: str, rollouts: int, until: float) -> None:
        """Expect so many rollouts of a client; replaces what it announced before.

        Args:
            client: who announces.
            rollouts: how many will come; 0 takes the announcement back.
            until: when the announcement lapses, in seconds since 1970.
        """
        self._drop_lapsed()
        self._by_client.pop(client, None)
        if rollouts > 0 and until > self._clock():
            self._by_client[client] = _Announcement(rollouts, until)

    def arrived(self, client: str) -> None:
        """One rollout of a client has arrived and is announced no longer."""
        announcement = self._by_client.get(client)
        if announcement is None:
            return
        announcement.rollouts -= 1
        if announcement.rollouts <= 0:
            del self._by_client[client]

    @property
    def total(self) -> int:
        """Rollouts still to come."""
        self._drop_lapsed()
        return sum(announcement.rollouts for announcement in self._by_client.values())

    def _drop_lapsed(self) -> None:
        now = self._clock()
        for client in [name for name, one in self._by_client.items() if one.until <= now]:
            del self._by_client[client]
