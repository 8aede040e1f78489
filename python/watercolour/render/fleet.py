"""The renderers that there are: who they are, how many slots they have, who is well.

Each is asked again and again whether it is ready: seldom while it is, sooner while it is away. One
that fails a job rests before it gets another, the longer the more failed in a row.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import httpx

from watercolour import logs
from watercolour.api.errors import InfrastructureError
from watercolour.api.reasons import Reason
from watercolour.render.client import silence
from watercolour.render.discover import Find

log = logs.get(__name__)

#: Seconds between two looks at a renderer that is well.
LOOK_SECONDS = 1.0

#: Seconds between two looks at one that is away: the first pause and the longest.
AWAY_SECONDS, AWAY_SECONDS_MOST = 0.25, 2.0

#: Seconds of rest after a failed job: after the first one and at most.
REST_SECONDS, REST_SECONDS_MOST = 0.25, 8.0

#: Seconds until a renderer whose slots are filled by others is tried again, at first; it says
#: itself how long at most.
FULL_SECONDS = 0.05

#: Seconds in which a renderer has to say whether it is ready.
LOOK_TIMEOUT_SECONDS = 5.0

#: Seconds between two questions who the renderers are.
FIND_SECONDS = 1.0


@dataclass(eq=False)
class Renderer:
    """What is known of one renderer.

    Attributes:
        url: its base URL.
        slots: sketches it paints at once; 0 until it has told.
        busy: slots that are handed out here and not given back.
        ready: it answered the last look, and no job has found it away since.
        named: it is one of the renderers still; otherwise it may finish what it has.
        failures: jobs that failed on it since the last one that did not.
        refusals: the same, of jobs for which it had no slot.
        rests_until: when it may get a job again, in monotonic seconds.
    """

    url: str
    slots: int = 0
    busy: int = 0
    ready: bool = False
    named: bool = True
    failures: int = 0
    refusals: int = 0
    rests_until: float = 0.0
    watcher: asyncio.Task[None] | None = None
    woken: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def serves(self) -> bool:
        """Whether it takes jobs, now or when it has rested."""
        return self.ready and self.named

    def free(self, now: float) -> bool:
        """Whether it can take a job now."""
        return self.serves and self.busy < self.slots and self.rests_until <= now


class Fleet:
    """The renderers, looked at between :meth:`open` and :meth:`close`.

    Attributes:
        absent_since: since when no renderer serves, in monotonic seconds; None while one does.
        changed: called when a renderer may have become free, or serves no longer.
    """

    def __init__(self, http: httpx.AsyncClient, urls: Sequence[str], find: Find | None) -> None:
        """Look at nobody yet.

        Args:
            http: asks the renderers.
            urls: base URLs of renderers that are always there.
            find: tells, again and again, the URLs of all the others.
        """
        self._http = http
        self._fixed = [url.rstrip("/") for url in urls]
        self._find = find
        self._renderers: dict[str, Renderer] = {}
        #: All that looks or asks, until it has ended.
        self._tasks: set[asyncio.Task[None]] = set()
        self.absent_since: float | None = None
        self.changed: Callable[[], None] = lambda: None
        self._reason, self._words = Reason.RENDERER_UNAVAILABLE, "there is none"

    def open(self) -> None:
        """Begin to look, from within a running event loop."""
        self._name(self._fixed)
        if self._find is not None:
            self._start(self._keep_finding(self._find))

    async def close(self) -> None:
        """Look no longer."""
        running = list(self._tasks)
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    def _start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    @property
    def renderers(self) -> tuple[Renderer, ...]:
        """All that are known now, also those that only finish what they have."""
        return tuple(self._renderers.values())

    @property
    def comes_and_goes(self) -> bool:
        """Whether there being no renderer is no fault."""
        return self._find is not None

    def free(self) -> list[Renderer]:
        """Those that can take a job now."""
        now = time.monotonic()
        return [one for one in self._renderers.values() if one.free(now)]

    def serve_besides(self, renderer: Renderer) -> bool:
        """Whether another renderer serves."""
        return any(one.serves for one in self._renderers.values() if one is not renderer)

    def absence(self, seconds: float) -> InfrastructureError:
        """The error of a job that waited for so long while no renderer served."""
        return InfrastructureError(
            self._reason, f"no renderer took the job within {seconds:g} s: {self._words}"
        )

    def gave_back(self, renderer: Renderer) -> None:
        """A slot has come back."""
        renderer.busy -= 1
        self._forget_finished()
        self._update()

    def did_well(self, renderer: Renderer) -> None:
        """It has answered a job, whatever became of the sketch."""
        renderer.failures = renderer.refusals = 0

    def failed(self, renderer: Renderer, why: str, *, away: bool) -> None:
        """A job has failed on it: it rests, and if it is ``away`` it is looked at before the next.

        Jobs that failed together count once.
        """
        now = time.monotonic()
        if renderer.rests_until <= now:
            renderer.failures += 1
            self._rest(renderer, grown(REST_SECONDS, REST_SECONDS_MOST, renderer.failures))
        if away and renderer.ready:
            self._reason, self._words = Reason.RENDERER_UNAVAILABLE, why
            renderer.ready = False
            renderer.woken.set()
        self._update()

    def was_full(self, renderer: Renderer, retry_after_s: float) -> None:
        """It had no slot for a job, though it should have had one: others use it too."""
        renderer.refusals += 1
        self._rest(renderer, grown(FULL_SECONDS, retry_after_s, renderer.refusals))

    def _rest(self, renderer: Renderer, seconds: float) -> None:
        renderer.rests_until = time.monotonic() + seconds
        asyncio.get_running_loop().call_later(seconds, self.changed)

    def _update(self) -> None:
        if any(one.serves for one in self._renderers.values()):
            self.absent_since = None
        elif self.absent_since is None:
            self.absent_since = time.monotonic()
        self.changed()

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
                renderer.watcher = self._start(self._watch(renderer))
        for renderer in self._renderers.values():
            renderer.named = renderer.url in named
        self._forget_finished()
        self._update()

    def _forget_finished(self) -> None:
        """Forget the renderers that are no longer named and hold no job."""
        for renderer in [one for one in self._renderers.values() if not (one.named or one.busy)]:
            del self._renderers[renderer.url]
            if renderer.watcher is not None:
                renderer.watcher.cancel()

    async def _watch(self, renderer: Renderer) -> None:
        """Ask whether the renderer is ready, for ever."""
        misses = 0
        while True:
            await self._look(renderer)
            misses = 0 if renderer.ready else misses + 1
            pause = grown(AWAY_SECONDS, AWAY_SECONDS_MOST, misses) if misses else LOOK_SECONDS
            renderer.woken.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(renderer.woken.wait(), pause)
                # A job found it away. It gets its rest, else the next job fails as fast.
                await asyncio.sleep(renderer.rests_until - time.monotonic())

    async def _look(self, renderer: Renderer) -> None:
        """Ask whether it is ready: it says how many slots it has, or why it takes no work."""
        reason, why = Reason.RENDERER_UNAVAILABLE, ""
        try:
            answer = await self._http.get(f"{renderer.url}/readyz", timeout=LOOK_TIMEOUT_SECONDS)
            said = answer.json()
            if answer.status_code == 200:
                renderer.slots = int(said["slots"])
                why = f"{renderer.url} drains." if said["draining"] else ""
            else:
                why = str(said["detail"])
                known = said["reason"] in set(Reason)
                reason = Reason(said["reason"]) if known else reason
        except (httpx.HTTPError, ValueError, KeyError, TypeError) as error:
            why = silence(renderer.url, error)
        if renderer.ready and why:
            log.warning("a renderer is away: %s", why)
        elif not renderer.ready and not why:
            log.info("renderer %s is ready with %d slots", renderer.url, renderer.slots)
        if why:
            self._reason, self._words = reason, why
        renderer.ready = not why
        self._update()


def grown(first: float, most: float, times: int) -> float:
    """A pause that doubles each time up to a most, and varies so that not all end together."""
    return min(most, first * 2.0 ** min(times - 1, 30)) * random.uniform(0.5, 1.0)
