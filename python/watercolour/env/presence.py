"""Neighbours that sleep when nobody needs them: who needs one waits here, and is counted.

In a cluster scorer and judge are scaled to no pod while there is nothing to score. What waits for
them is demand, which the operator reads and wakes them for. Nothing is scored meanwhile: a rollout
waits for as long as its client does, and is unscored after that.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import httpx

from watercolour.api.reasons import Reason
from watercolour.env.measure import Finding

#: Seconds between two looks at a neighbour that is away.
LOOK_SECONDS = 1.0


async def answers(http: httpx.AsyncClient, url: str) -> bool:
    """Whether a neighbour is there and does not say that it is loading."""
    try:
        found = await http.get(f"{url.rstrip('/')}/readyz")
    except httpx.HTTPError:
        return False
    # A hosted judge knows no /readyz and says so; what is loading says 503.
    return found.status_code < 500


@dataclass
class Presence:
    """Whether one neighbour is awake, and who wants it.

    Attributes:
        http: asks it.
        url: its base URL.
        sleeps: whether its absence is waited for; otherwise it is taken to be there.
        waiting: calls that wait for it to wake.
        busy: calls that it has been given and not answered.
    """

    http: httpx.AsyncClient
    url: str
    sleeps: bool
    clock: Callable[[], float] = time.monotonic
    waiting: int = 0
    busy: int = 0
    _awake: bool = False
    _last: float | None = None
    _looking: asyncio.Lock = field(default_factory=asyncio.Lock)

    @asynccontextmanager
    async def needed(self) -> AsyncGenerator[None]:
        """Wait until it is awake; the block is the call. The caller's deadline ends the wait."""
        self.waiting += 1
        try:
            await self._until_awake()
        finally:
            self.waiting -= 1
            self._last = self.clock()
        self.busy += 1
        try:
            yield
        finally:
            self.busy -= 1
            self._last = self.clock()

    def missed(self) -> None:
        """A call found it away: look before the next one."""
        self._awake = False

    @property
    def demand(self) -> dict[str, float | int | None]:
        """Its part of ``GET /v1/demand``: calls that wait and run, seconds since the last one."""
        idle = None if self._last is None else round(self.clock() - self._last, 1)
        busy = self.waiting + self.busy
        return {"waiting": self.waiting, "inflight": self.busy, "idle_seconds": 0 if busy else idle}

    async def _until_awake(self) -> None:
        while self.sleeps and not self._awake:
            async with self._looking:
                if self._awake:
                    return
                self._awake = await answers(self.http, self.url)
                if not self._awake:
                    await asyncio.sleep(LOOK_SECONDS)


async def awake(
    presence: Presence | None, away: Reason, ask: Callable[[], Awaitable[Finding]]
) -> Finding:
    """Ask a neighbour that may sleep, once it is awake; at once if nothing is known of it.

    A finding without a value for the reason ``away`` says that it has gone to sleep again.
    """
    if presence is None:
        return await ask()
    async with presence.needed():
        finding = await ask()
        if finding.reason is away:
            presence.missed()
        return finding
