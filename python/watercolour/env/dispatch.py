"""The render queue: fair among clients, one job a slot, the least busy renderer first.

A job waits here, never in a renderer. While no renderer is ready (none started yet, all being
replaced) jobs wait too: only the caller's own deadline ends the wait.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

import httpx

from watercolour import logs
from watercolour.api.errors import InfrastructureError
from watercolour.api.reasons import Reason

log = logs.get(__name__)

#: Seconds between looks at a renderer that is away, and at one that is well.
LOOK_AWAY_SECONDS, LOOK_WELL_SECONDS = 0.5, 5.0

#: Seconds in which a renderer has to tell its load.
LOOK_TIMEOUT_SECONDS = 5.0


@dataclass
class Renderer:
    """What the queue knows of one renderer.

    Attributes:
        url: its base URL.
        slots: sketches it paints at once; 0 until it has told.
        busy: slots that this queue has handed out and not got back.
        ready: it answered the last look, and no job has found it away since.
    """

    url: str
    slots: int = 0
    busy: int = 0
    ready: bool = False
    woken: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def free(self) -> bool:
        """Whether it can take a job now."""
        return self.ready and self.busy < self.slots


class RenderQueue:
    """Hands out renderers' slots, in turn among clients. Use as an async context manager."""

    def __init__(self, urls: Sequence[str]) -> None:
        """Know the renderers' base URLs; look at them once the context is entered."""
        self._renderers = [Renderer(url.rstrip("/")) for url in dict.fromkeys(urls)]
        self._waiting: OrderedDict[str, deque[asyncio.Future[Renderer]]] = OrderedDict()
        self._watchers: list[asyncio.Task[None]] = []
        self._http = httpx.AsyncClient(timeout=LOOK_TIMEOUT_SECONDS, trust_env=False)

    async def __aenter__(self) -> RenderQueue:
        self._watchers = [asyncio.create_task(self._watch(one)) for one in self._renderers]
        return self

    async def __aexit__(self, *_: object) -> None:
        for watcher in self._watchers:
            watcher.cancel()
        await asyncio.gather(*self._watchers, return_exceptions=True)
        await self._http.aclose()

    @property
    def urls(self) -> tuple[str, ...]:
        """The renderers' base URLs, as :meth:`slot` yields them."""
        return tuple(renderer.url for renderer in self._renderers)

    @property
    def queued(self) -> int:
        """Jobs that wait for a slot."""
        return sum(len(line) for line in self._waiting.values())

    @property
    def inflight(self) -> int:
        """Jobs that hold a slot."""
        return sum(renderer.busy for renderer in self._renderers)

    @property
    def slots(self) -> int:
        """Slots of the renderers that are ready."""
        return sum(renderer.slots for renderer in self._renderers if renderer.ready)

    @property
    def ready(self) -> bool:
        """Whether any renderer is ready."""
        return any(renderer.ready for renderer in self._renderers)

    @asynccontextmanager
    async def slot(self, client: str) -> AsyncGenerator[str]:
        """Wait for a slot; yields the URL of the renderer whose slot it is.

        A block that ends in ``InfrastructureError(RendererUnavailable)`` takes its renderer out
        of service until it answers again.

        Args:
            client: whose turn this job uses up; clients take turns, a client's own jobs keep
                their order.
        """
        renderer = await self._wait(client)
        try:
            yield renderer.url
        except InfrastructureError as error:
            if error.reason == Reason.RENDERER_UNAVAILABLE:
                renderer.ready = False
                renderer.woken.set()
            raise
        finally:
            renderer.busy -= 1
            self._hand_out()

    async def _wait(self, client: str) -> Renderer:
        turn: asyncio.Future[Renderer] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(client, deque()).append(turn)
        self._hand_out()
        try:
            return await turn
        except asyncio.CancelledError:
            # The slot may have been handed over in the very moment of the cancellation.
            if turn.done() and not turn.cancelled():
                turn.result().busy -= 1
                self._hand_out()
            else:
                self._leave(client, turn)
            raise

    def _leave(self, client: str, turn: asyncio.Future[Renderer]) -> None:
        line = self._waiting.get(client)
        if line is None:
            return
        with suppress(ValueError):
            line.remove(turn)
        if not line:
            del self._waiting[client]

    def _hand_out(self) -> None:
        """Give free slots to those who wait: one job of each client in turn."""
        while self._waiting:
            free = [renderer for renderer in self._renderers if renderer.free]
            if not free:
                return
            client, line = next(iter(self._waiting.items()))
            turn = line.popleft()
            self._waiting.move_to_end(client)
            if not line:
                del self._waiting[client]
            if turn.done():
                continue
            renderer = min(free, key=lambda one: one.busy / one.slots)
            renderer.busy += 1
            turn.set_result(renderer)

    async def _watch(self, renderer: Renderer) -> None:
        """Ask for the renderer's load for ever: seldom while it is well, often while away."""
        while True:
            await self._look(renderer)
            pause = LOOK_WELL_SECONDS if renderer.ready else LOOK_AWAY_SECONDS
            renderer.woken.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(renderer.woken.wait(), pause)
                # A job found it away. It gets a moment, else the next job fails as fast.
                await asyncio.sleep(LOOK_AWAY_SECONDS)

    async def _look(self, renderer: Renderer) -> None:
        try:
            answer = await self._http.get(f"{renderer.url}/v1/load")
            answer.raise_for_status()
            load = answer.json()
            slots, well = int(load["slots"]), not load.get("draining", False)
        except (httpx.HTTPError, ValueError, KeyError, TypeError) as error:
            if renderer.ready:
                log.warning("renderer %s is away: %s", renderer.url, error or type(error).__name__)
            renderer.ready = False
            return
        if well and not renderer.ready:
            log.info("renderer %s is ready with %d slots", renderer.url, slots)
        renderer.slots, renderer.ready = slots, well and slots > 0
        self._hand_out()
