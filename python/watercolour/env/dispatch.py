"""The render queue: fair among clients, one job a slot, the least busy renderer first.

A job waits here, never in a renderer. While no renderer is ready (none started yet, all being
replaced) jobs wait too: only the caller's own deadline ends the wait. Renderers come and go while
jobs wait; one that drains or is no longer named gets no job and may finish those that it has.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

import httpx

from watercolour import logs
from watercolour.api.errors import InfrastructureError
from watercolour.api.reasons import Reason
from watercolour.env.discover import Find

log = logs.get(__name__)

#: Seconds between looks at a renderer that is away, and at one that is well.
LOOK_AWAY_SECONDS, LOOK_WELL_SECONDS = 0.5, 1.0

#: Seconds in which a renderer has to tell its load.
LOOK_TIMEOUT_SECONDS = 5.0

#: Seconds between two questions who the renderers are.
FIND_SECONDS = 1.0


@dataclass
class Renderer:
    """What the queue knows of one renderer.

    Attributes:
        url: its base URL.
        slots: sketches it paints at once; 0 until it has told.
        busy: slots that this queue has handed out and not got back.
        ready: it answered the last look, and no job has found it away since.
        named: it is one of the run's renderers still; otherwise it may finish what it has.
    """

    url: str
    slots: int = 0
    busy: int = 0
    ready: bool = False
    named: bool = True
    watcher: asyncio.Task[None] | None = None
    woken: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def free(self) -> bool:
        """Whether it can take a job now."""
        return self.ready and self.named and self.busy < self.slots


class RenderQueue:
    """Hands out renderers' slots, in turn among clients. Use as an async context manager."""

    def __init__(
        self,
        urls: Sequence[str] = (),
        *,
        find: Find | None = None,
        left: Callable[[str], object] = lambda url: None,
    ) -> None:
        """Look at nobody before the context is entered.

        Args:
            urls: base URLs of renderers that are always there.
            find: tells, again and again, the URLs of all the others.
            left: told the URL of a renderer that is there no more and has finished.
        """
        self._fixed = [url.rstrip("/") for url in urls]
        self._find = find
        self._left = left
        self._renderers: dict[str, Renderer] = {}
        self._waiting: OrderedDict[str, deque[asyncio.Future[Renderer]]] = OrderedDict()
        self._finder: asyncio.Task[None] | None = None
        self._http = httpx.AsyncClient(
            timeout=LOOK_TIMEOUT_SECONDS,
            trust_env=False,
            limits=httpx.Limits(max_connections=None),
        )

    async def __aenter__(self) -> RenderQueue:
        self._name(self._fixed)
        if self._find is not None:
            self._finder = asyncio.create_task(self._keep_finding(self._find))
        return self

    async def __aexit__(self, *_: object) -> None:
        tasks = [one.watcher for one in self._renderers.values()] + [self._finder]
        running = [task for task in tasks if task is not None]
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        await self._http.aclose()

    @property
    def urls(self) -> tuple[str, ...]:
        """The base URLs of the renderers that are known now, as :meth:`slot` yields them."""
        return tuple(self._renderers)

    @property
    def finds(self) -> bool:
        """Whether renderers may come and go, so that there being none is no fault."""
        return self._find is not None

    @property
    def queued(self) -> int:
        """Jobs that wait for a slot."""
        return sum(len(line) for line in self._waiting.values())

    @property
    def inflight(self) -> int:
        """Jobs that hold a slot."""
        return sum(renderer.busy for renderer in self._renderers.values())

    @property
    def slots(self) -> int:
        """Slots of the renderers that are ready."""
        known = self._renderers.values()
        return sum(one.slots for one in known if one.ready and one.named)

    @property
    def ready(self) -> bool:
        """Whether any renderer is ready."""
        return any(one.ready and one.named for one in self._renderers.values())

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
            self._forget_finished()
            self._hand_out()

    async def _keep_finding(self, find: Find) -> None:
        """Ask who the renderers are, for ever; who cannot be told stays as it was."""
        while True:
            found = await find()
            if found is not None:
                self._name([*self._fixed, *sorted(found)])
            await asyncio.sleep(FIND_SECONDS)

    def _name(self, named: Sequence[str]) -> None:
        """These are the renderers now."""
        for url in named:
            if url not in self._renderers:
                renderer = self._renderers[url] = Renderer(url)
                renderer.watcher = asyncio.create_task(self._watch(renderer))
        for renderer in self._renderers.values():
            renderer.named = renderer.url in named
        self._forget_finished()
        self._hand_out()

    def _forget_finished(self) -> None:
        """Forget the renderers that are no longer named and hold no job."""
        for renderer in [one for one in self._renderers.values() if not (one.named or one.busy)]:
            del self._renderers[renderer.url]
            if renderer.watcher is not None:
                renderer.watcher.cancel()
            self._left(renderer.url)

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
            free = [renderer for renderer in self._renderers.values() if renderer.free]
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
            slots = int(load["slots"])
            well = not load.get("draining", False) and load.get("refuses") is None
        except (httpx.HTTPError, ValueError, KeyError, TypeError) as error:
            if renderer.ready:
                log.warning("renderer %s is away: %s", renderer.url, error or type(error).__name__)
            renderer.ready = False
            return
        if well and not renderer.ready:
            log.info("renderer %s is ready with %d slots", renderer.url, slots)
        renderer.slots, renderer.ready = slots, well and slots > 0
        self._hand_out()
