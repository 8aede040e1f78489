"""Asks a run's pods: trainer, environment and renderers, for progress, queue and load.

Three ways lead to a pod: its own address, from inside the cluster; the API server's proxy, from
outside; and an address in which the pod's names are filled in, for tests. A fourth asks nobody and
reads annotations, where pods are played and serve nothing.

A renderer runs what a model wrote, so no answer is trusted: it is short, in time, at the address
that was asked, and of the agreed shape, or it is no answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import aiohttp

from watercolour.api.status import Progress
from watercolour_operator.cluster.api import Api, short
from watercolour_operator.cluster.errors import ApiError
from watercolour_operator.cluster.kinds import POD
from watercolour_operator.names import PORTS
from watercolour_operator.observed import Demand, Load, Pod
from watercolour_operator.scaling import answers
from watercolour_operator.scaling.scripted import Scripted
from watercolour_operator.settings import Settings

#: Seconds to reach a pod, and to have its whole answer.
CONNECT_SECONDS, ANSWER_SECONDS = 1.0, 2.0

#: Questions that are open at the same time.
AT_ONCE = 64


@dataclass(frozen=True, slots=True)
class Question:
    """Who is asked what."""

    namespace: str
    run: str
    pod: Pod
    method: str
    path: str


#: Asks one question; the body of a good answer.
#: Raises Unanswered.
Call = Callable[[Question], Awaitable[bytes]]


class Unanswered(Exception):
    """Nobody answered, or not within the rules."""


@asynccontextmanager
async def connect(settings: Settings, api: Api) -> AsyncGenerator[Http | Scripted]:
    """The way to the pods that ``settings.reach`` names."""
    if settings.reach == "scripted":
        yield Scripted(api)
        return
    if settings.reach == "proxy":
        yield Http(through_api_server(api))
        return
    limits = aiohttp.ClientTimeout(total=ANSWER_SECONDS, connect=CONNECT_SECONDS)
    connector = aiohttp.TCPConnector(limit=AT_ONCE)
    # Pods of the cluster are never behind the proxy that the environment's variables name.
    async with aiohttp.ClientSession(
        timeout=limits, connector=connector, trust_env=False
    ) as session:
        yield Http(directly(session, None if settings.reach == "dns" else settings.reach))


@dataclass
class Http:
    """Asks over HTTP, by whichever way. A question never raises: no usable answer is None."""

    call: Call
    _open: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(AT_ONCE))

    async def progress(self, namespace: str, run: str, pod: Pod) -> Progress | None:
        """The trainer's ``GET /progress``."""
        return answers.progress(await self._ask(namespace, run, pod, "GET", "/progress"))

    async def demand(self, namespace: str, run: str, pod: Pod) -> Demand | None:
        """The environment's ``GET /v1/demand``."""
        return answers.demand(await self._ask(namespace, run, pod, "GET", "/v1/demand"))

    async def load(self, namespace: str, run: str, pod: Pod) -> Load | None:
        """A renderer's ``GET /v1/load``."""
        return answers.load(await self._ask(namespace, run, pod, "GET", "/v1/load"))

    async def drain(self, namespace: str, run: str, pod: Pod) -> bool:
        """A renderer's ``POST /v1/drain``; whether it agreed."""
        load = answers.load(await self._ask(namespace, run, pod, "POST", "/v1/drain"))
        return load is not None and load.draining

    async def undrain(self, namespace: str, run: str, pod: Pod) -> bool:
        """A renderer's ``DELETE /v1/drain``; whether it agreed."""
        load = answers.load(await self._ask(namespace, run, pod, "DELETE", "/v1/drain"))
        return load is not None and not load.draining

    async def _ask(
        self, namespace: str, run: str, pod: Pod, method: str, path: str
    ) -> answers.Said | None:
        try:
            # Waiting for its turn is no part of a question's time.
            async with self._open:
                body = await self.call(Question(namespace, run, pod, method, path))
        except Unanswered:
            return None
        return answers.read(body)


def directly(session: aiohttp.ClientSession, template: str | None = None) -> Call:
    """At the pod's address, or at a template of one with namespace, run, component and pod."""

    async def call(asked: Question) -> bytes:
        url = _base(asked, template) + asked.path
        try:
            async with session.request(asked.method, url, allow_redirects=False) as answer:
                if answer.status != 200:
                    raise Unanswered(f"status {answer.status}")
                return await short(answer.content)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise Unanswered(str(error) or type(error).__name__) from error

    return call


def _base(asked: Question, template: str | None) -> str:
    pod = asked.pod
    if template is not None:
        return template.format(
            namespace=asked.namespace, run=asked.run, component=pod.component.value, pod=pod.name
        )
    if not pod.ip:
        raise Unanswered("the pod has no address yet")
    host = f"[{pod.ip}]" if ":" in pod.ip else pod.ip
    return f"http://{host}:{PORTS[pod.component]}"


def through_api_server(api: Api) -> Call:
    """By the API server's proxy; needs the verbs get, create and delete on pods/proxy."""

    async def call(asked: Question) -> bytes:
        port = PORTS[asked.pod.component]
        path = POD.path(asked.namespace, f"{asked.pod.name}:{port}", f"proxy{asked.path}")
        try:
            return await api.reach(asked.method, path, ANSWER_SECONDS)
        except ApiError as error:
            raise Unanswered(error.words) from error

    return call
