"""The environment's client: many sessions, one call a rollout, no failure that raises.

All sockets live in a thread of their own, so that a trainer that computes does not keep pongs from
being sent, and so that the client can be called from any thread and any event loop.
"""

from __future__ import annotations

import asyncio
import random
import threading
import time
import uuid
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, Self, TypedDict, TypeVar, Unpack

import httpx
from websockets.asyncio.client import ClientConnection
from websockets.exceptions import WebSocketException
from websockets.protocol import State

from watercolour import logs
from watercolour.api.errors import InfrastructureError
from watercolour.api.reasons import Reason
from watercolour.api.rollout import Rollout
from watercolour.env import session, wire
from watercolour.env.ledger import Ledger
from watercolour.env.session import Task

log = logs.get(__name__)

#: Seconds in which a restarted server has to listen again, in each attempt.
CONNECT_SECONDS = 30.0

#: Seconds between knocks at a server that is away or full; the first, doubled up to the last.
KNOCK_SECONDS, KNOCK_SECONDS_MOST = 0.2, 3.0

Value = TypeVar("Value")


class Ids(TypedDict, total=False):
    """What the record of a rollout says of its place in a run; see :class:`Rollout`."""

    run: str
    step: int
    group: int
    index: int
    tokens: int
    truncated: bool


class EnvClient:
    """A client of one environment; use it as a context manager, from any thread.

    Every method waits for the client's own thread, where the sockets live.
    """

    def __init__(
        self,
        url: str,
        *,
        sessions: int = 16,
        timeout_s: float = 300.0,
        attempts: int = 3,
        connect_s: float = CONNECT_SECONDS,
        ledger: Ledger | None = None,
    ) -> None:
        """Start the thread; connect to nothing yet.

        Args:
            url: base URL of the environment, ``http`` or ``ws``.
            sessions: rollouts under way at once, each on a socket of its own.
            timeout_s: how long a reply may take; the run's ``env.messageTimeoutSeconds``.
            attempts: tries of a rollout whose socket fails.
            connect_s: how long each attempt waits for a server that refuses connections.
            ledger: what the run has spent on its judge, told to an environment that may have
                forgotten it.
        """
        self._url = url.rstrip("/")
        self._timeout_s = timeout_s
        self._attempts = attempts
        self._connect_s = connect_s
        self._ledger = ledger or Ledger()
        self._name = f"client-{uuid.uuid4()}"
        self._idle: list[ClientConnection] = []
        self._http: httpx.AsyncClient | None = None
        self._places = asyncio.Semaphore(sessions)
        #: Held to begin something, and to end the beginning for good.
        self._gate = threading.Lock()
        self._closed = False
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="watercolour-env-client", daemon=True
        )
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End what is under way, close the sockets, end the thread. Twice is harmless.

        Each future that was handed out brings what it brings when nobody answers.
        """
        with self._gate:
            first, self._closed = not self._closed, True
        if not first:
            self._thread.join()
            return
        asyncio.run_coroutine_threadsafe(self._shut(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def submit(
        self,
        completion: str,
        *,
        subject: str,
        seed: int,
        references: int | None = None,
        return_image: bool = True,
        **ids: Unpack[Ids],
    ) -> Future[Rollout]:
        """Evaluate one completion in the client's thread.

        The future brings a finished rollout, with ``reward`` None and ``unscored_reason`` set when
        no value could be obtained, as when the client is closed first; it raises for no outside
        fault.

        Args:
            completion: the policy's raw reply.
            subject: what it was asked to paint.
            seed: the group's draw seed; all members of a group meet the same references.
            references: how many to compare with; the run's number if None.
            return_image: bring the painting back.
            ids: for the record alone.
        """
        rollout = Rollout(subject=subject, seed=seed, completion=completion, **ids)
        task = Task(
            self._name,
            subject,
            seed,
            references,
            return_image,
            rollout.step,
            rollout.group,
            rollout.index,
        )
        unscored = rollout.model_copy(
            update={
                "unscored_reason": Reason.ENV_UNAVAILABLE,
                "unscored_detail": "the client was closed before the rollout was scored",
            }
        )
        return self._start(self._evaluate(rollout, task), unscored)

    async def evaluate(
        self,
        completion: str,
        *,
        subject: str,
        seed: int,
        references: int | None = None,
        return_image: bool = True,
        **ids: Unpack[Ids],
    ) -> Rollout:
        """As :meth:`submit`, for callers with an event loop."""
        return await asyncio.wrap_future(
            self.submit(
                completion,
                subject=subject,
                seed=seed,
                references=references,
                return_image=return_image,
                **ids,
            )
        )

    def submit_announcement(
        self, rollouts: int, until: float, due_seconds: float = 0.0
    ) -> Future[bool]:
        """Tell the environment that rollouts will come, so that renderers can start.

        Args:
            rollouts: how many; 0 takes the last announcement back.
            until: when it lapses, in seconds since 1970.
            due_seconds: from now until the first is expected; 0 is at any moment.

        Returns:
            Whether the environment heard it. It is advice: a lost one costs time and nothing else.
        """
        return self._start(self._announce(rollouts, until, due_seconds), False)

    async def announce(self, rollouts: int, until: float, due_seconds: float = 0.0) -> bool:
        """As :meth:`submit_announcement`, for callers with an event loop."""
        return await asyncio.wrap_future(self.submit_announcement(rollouts, until, due_seconds))

    def submit_self_check(self) -> Future[dict[str, Any] | None]:
        """Have the judge asked about pairs of which the answer is known; None if nobody answers."""
        return self._start(self._checked("selfcheck"), None)

    def submit_probes(self) -> Future[dict[str, Any] | None]:
        """Have the same few paintings scored anew; None if nobody answers."""
        return self._start(self._checked("probes"), None)

    def _start(self, work: Coroutine[Any, Any, Value], unanswered: Value) -> Future[Value]:
        """Begin; the future brings ``unanswered`` if the client is closed first."""
        with self._gate:
            if not self._closed:
                return asyncio.run_coroutine_threadsafe(
                    self._until_closed(work, unanswered), self._loop
                )
        work.close()
        ended: Future[Value] = Future()
        ended.set_result(unanswered)
        return ended

    async def _until_closed(self, work: Coroutine[Any, Any, Value], unanswered: Value) -> Value:
        try:
            return await work
        except asyncio.CancelledError:
            if not self._closed:
                raise  # Whoever waited for it wants it no more.
            return unanswered

    async def _shut(self) -> None:
        others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        await asyncio.gather(*(session.hang_up(socket) for socket in self._idle))
        self._idle.clear()
        if self._http is not None:
            await self._http.aclose()

    async def _announce(self, rollouts: int, until: float, due_seconds: float) -> bool:
        body: dict[str, Any] = {"announced": rollouts, "until": until, "client": self._name}
        body["due_seconds"] = due_seconds
        body["judge_spent"] = self._ledger.spent
        # Made here, on the loop that it belongs to, and kept: making one takes 20 ms.
        if self._http is None:
            self._http = httpx.AsyncClient(timeout=5.0, trust_env=False)
        try:
            reply = await self._http.post(f"{self._http_url}/v1/demand", json=body)
            self._ledger.note(reply.raise_for_status().json().get("judge_spent"))
        except (httpx.HTTPError, ValueError) as error:
            log.warning("announcement not heard: %s", str(error) or type(error).__name__)
            return False
        return True

    async def _checked(self, what: str) -> dict[str, Any] | None:
        try:
            async with httpx.AsyncClient(timeout=self._timeout_s, trust_env=False) as http:
                reply = await http.post(f"{self._http_url}/v1/{what}")
            reply.raise_for_status()
            return reply.json()
        except (httpx.HTTPError, ValueError) as error:
            log.warning("no answer to /v1/%s: %s", what, str(error) or type(error).__name__)
            return None

    @property
    def _http_url(self) -> str:
        return self._url.replace("ws", "http", 1) if self._url.startswith("ws") else self._url

    async def _evaluate(self, rollout: Rollout, task: Task) -> Rollout:
        """The boundary behind which every fault is a reason in the rollout."""
        began = time.perf_counter()
        why = ""
        attempt = 0
        async with self._places:
            while attempt < self._attempts:
                attempt += 1
                try:
                    done = await self._attempt(rollout, task, fresh=attempt > 1)
                except (WebSocketException, InfrastructureError, OSError, TimeoutError) as error:
                    why = f"{type(error).__name__}: {error}".rstrip(": ")
                    with logs.rollout(rollout.run, rollout.step, rollout.group, rollout.index):
                        log.warning("attempt %d at the environment failed: %s", attempt, why)
                    if attempt < self._attempts:
                        await asyncio.sleep(KNOCK_SECONDS * 2.0**attempt)
                    continue
                seconds = time.perf_counter() - began
                return done.model_copy(
                    update={
                        # The server's attempts are further tries of the same rollout.
                        "attempts": done.attempts + attempt - 1,
                        "timings": {**done.timings, "env": seconds},
                    }
                )
        return rollout.model_copy(
            update={
                "attempts": attempt,
                "unscored_reason": Reason.ENV_UNAVAILABLE,
                "unscored_detail": f"{attempt} attempts, the last: {why}",
                "timings": {"env": time.perf_counter() - began},
            }
        )

    async def _attempt(self, rollout: Rollout, task: Task, *, fresh: bool) -> Rollout:
        """One exchange on one socket, which is kept only if all of it went well.

        A socket that failed, or whose reply was not waited for, is thrown away: what may still
        arrive on it can never be taken for the answer to another request.
        """
        socket, episode = await self._begun(task, fresh=fresh)
        kept = False
        try:
            data = {"response": rollout.completion}
            reply = await session.ask(socket, "step", data, self._timeout_s)
            observation = session.observed(reply, episode)
            done = wire.fill(rollout, observation, reply.get("reward"))
            kept = True
            return done
        finally:
            if kept:
                self._idle.append(socket)
            else:
                socket.transport.abort()

    async def _begun(self, task: Task, *, fresh: bool) -> tuple[ClientConnection, str]:
        """A socket with a new episode on it; waits for a server that is away or full.

        Raises:
            InfrastructureError, OSError, WebSocketException, TimeoutError: no episode could be
                begun in the time for it.
        """
        knock = KNOCK_SECONDS
        refused_until = time.monotonic() + self._connect_s
        full_until = time.monotonic() + self._timeout_s
        while True:
            try:
                return await self._try_to_begin(task, None if fresh else self._reusable())
            except session.Full:
                if time.monotonic() >= full_until:
                    raise InfrastructureError(
                        Reason.ENV_UNAVAILABLE,
                        f"no session was free for {self._timeout_s:g} s",
                    ) from None
            except TimeoutError:
                raise
            except OSError:
                if time.monotonic() >= refused_until:
                    raise
            # Another idle socket may be as dead as this one.
            fresh = True
            await asyncio.sleep(knock * random.uniform(0.5, 1.0))
            knock = min(2 * knock, KNOCK_SECONDS_MOST)

    async def _try_to_begin(
        self, task: Task, socket: ClientConnection | None
    ) -> tuple[ClientConnection, str]:
        if socket is None:
            socket = await session.opened(self._url, self._connect_s)
        begun = False
        try:
            episode = await session.begin(socket, task, self._timeout_s)
            begun = True
            return socket, episode
        finally:
            if not begun:
                socket.transport.abort()

    def _reusable(self) -> ClientConnection | None:
        while self._idle:
            socket = self._idle.pop()
            if socket.state is State.OPEN:
                return socket
        return None
