"""The line for slots: clients take turns, the least busy renderer first, none gets too much."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field

from watercolour.api.errors import InfrastructureError
from watercolour.api.reasons import Reason
from watercolour.render.client import NotTaken
from watercolour.render.fleet import Fleet, Renderer
from watercolour.render.turns import Turns


class Closing(NotTaken):
    """No more jobs are taken; this one was not begun, or had to be given up."""


def closing() -> Closing:
    """The error of a job that came too late."""
    return Closing(Reason.RENDERER_UNAVAILABLE, "no more jobs are taken here.")


@dataclass(eq=False)
class Claim:
    """A job's claim to slots.

    Attributes:
        client: whose turn it uses up.
        held: slots that it holds.
    """

    client: str
    held: int = 0


@dataclass(frozen=True)
class Wish:
    """Which slot is wanted.

    Attributes:
        avoid: the renderer that the job has failed on; no other one serving, it will do.
        spare: only a slot that nobody else waits for, and never one of ``avoid``.
        since: when the wait began, in monotonic seconds.
    """

    avoid: Renderer | None = None
    spare: bool = False
    since: float = field(default_factory=time.monotonic)


@dataclass(eq=False)
class _Waiter:
    claim: Claim
    wish: Wish
    turn: asyncio.Future[Renderer]


class Queue:
    """Hands out the slots of a fleet."""

    def __init__(self, fleet: Fleet, wait_s: float | None, absence_s: float | None) -> None:
        """Hand out whenever the fleet changes.

        Args:
            fleet: the renderers.
            wait_s: how long anyone may wait for a slot; None for as long as they like.
            absence_s: the same while no renderer serves.
        """
        self._fleet = fleet
        self._wait_s = wait_s
        self._absence_s = absence_s
        self._lines: Turns[_Waiter] = Turns()
        self._spares: Turns[_Waiter] = Turns()
        self._closed = False
        fleet.changed = self._hand_out

    def close(self) -> None:
        """Refuse everyone who waits or comes."""
        self._closed = True
        for waiter in [*self._lines.clear(), *self._spares.clear()]:
            waiter.turn.set_exception(closing())

    async def take(self, claim: Claim, wish: Wish, *, head: bool = False) -> Renderer:
        """Wait for a slot, to be given back by :meth:`give_back`.

        Args:
            claim: whose it will be.
            wish: which one.
            head: wait at the head of the client's line.

        Raises:
            InfrastructureError: none came in time.
            Closing: no more slots are handed out.
        """
        if self._closed:
            raise closing()
        lines = self._spares if wish.spare else self._lines
        turn: asyncio.Future[Renderer] = asyncio.get_running_loop().create_future()
        waiter = _Waiter(claim, wish, turn)
        lines.add(claim.client, waiter, first=head)
        self._hand_out()
        try:
            while not turn.done():
                await asyncio.wait({turn}, timeout=self._patience(wish))
            return turn.result()
        except BaseException:
            lines.remove(claim.client, waiter)
            # The slot may have been handed over in the very moment of the cancellation.
            if turn.done() and turn.exception() is None:
                self.give_back(claim, turn.result())
            raise

    def give_back(self, claim: Claim, renderer: Renderer) -> None:
        """A slot is free again."""
        claim.held -= 1
        self._fleet.gave_back(renderer)

    def _patience(self, wish: Wish) -> float | None:
        """Seconds after which to look again whether the wait has been too long.

        Raises:
            InfrastructureError: it has.
        """
        now, absent = time.monotonic(), self._fleet.absent_since
        left: list[float] = []
        if self._wait_s is not None:
            left.append(wish.since + self._wait_s - now)
            if left[-1] <= 0:
                raise InfrastructureError(
                    Reason.RENDERER_UNAVAILABLE,
                    f"no renderer had a free slot for {self._wait_s:g} s.",
                )
        if self._absence_s is not None:
            since = now if absent is None else max(absent, wish.since)
            left.append(since + self._absence_s - now)
            if left[-1] <= 0:
                raise self._fleet.absence(self._absence_s)
        return min(left) if left else None

    def _hand_out(self) -> None:
        """Give free slots to those who wait: one of each client in turn."""
        for lines in (self._lines, self._spares):
            while (match := self._match(lines)) is not None:
                waiter, renderer = match
                renderer.busy += 1
                waiter.claim.held += 1
                waiter.turn.set_result(renderer)

    def _match(self, lines: Turns[_Waiter]) -> tuple[_Waiter, Renderer] | None:
        """Who is next and where to; taken out of the line."""
        free = self._fleet.free()
        waiter = lines.take(lambda each: any(self._may(each.wish, one) for one in free))
        if waiter is None:
            return None
        renderer = min(
            (one for one in free if self._may(waiter.wish, one)),
            key=lambda one: (one.busy / one.slots, one.failures),
        )
        return waiter, renderer

    def _may(self, wish: Wish, renderer: Renderer) -> bool:
        if renderer is not wish.avoid:
            return True
        return not (wish.spare or self._fleet.serve_besides(renderer))
