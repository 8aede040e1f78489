"""The scorer's HTTP application, around any backend.

Quality at POST /v1/score, and with the embedded backend the pairwise judge behind the OpenAI chat
contract at POST /v1/chat/completions. It answers 503 with Retry-After until it has loaded or when
it has no value, 429 with Retry-After while its queue is full, and 400 with the field's name to a
malformed request; it never answers a number for a painting that it could not score.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

from fastapi import FastAPI
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from watercolour import logs, service
from watercolour.api.errors import WatercolourError
from watercolour.api.terms import MARKS
from watercolour.score import chat
from watercolour.score.backend import (
    Backend,
    Batching,
    Judging,
    Load,
    Observed,
    Open,
    UnknownMarks,
    Unscored,
)
from watercolour.score.batching import Busy
from watercolour.score.chat import BadField
from watercolour.score.pictures import NotAPicture

log = logs.get("watercolour.score.app")

#: Largest request body, in bytes: two pictures of 12 MB as base64.
MAX_BODY = 32 * 2**20
#: Longest prompt, in characters: what HPSv3's instruction around it leaves room for.
MAX_PROMPT = 2_000
RETRY_LOADING_SECONDS = 2
RETRY_UNSCORED_SECONDS = 1


class Metrics:
    """The scorer's own registry, so that two apps in one process do not share it."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "watercolour_scorer_requests",
            "Requests answered.",
            ["route", "status"],
            registry=self.registry,
        )
        self.seconds = Histogram(
            "watercolour_scorer_batch_seconds",
            "Seconds of one batch.",
            registry=self.registry,
            buckets=(0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10),
        )
        self.batch = Histogram(
            "watercolour_scorer_batch_pictures",
            "Pictures of one batch.",
            registry=self.registry,
            buckets=(1, 2, 4, 8, 16, 32, 64),
        )
        self.hits = Counter(
            "watercolour_scorer_cache_hits",
            "Pictures that were remembered.",
            registry=self.registry,
        )
        self.waiting = Gauge(
            "watercolour_scorer_queue_depth", "Pictures that wait.", registry=self.registry
        )
        self.ready = Gauge(
            "watercolour_scorer_ready", "1 once loaded, else 0.", registry=self.registry
        )

    def batch_done(self, size: int, seconds: float) -> None:
        """Record one batch."""
        self.batch.observe(size)
        self.seconds.observe(seconds)


@dataclass
class State:
    """What the running server knows: loading (what, and how far), failed, or at work."""

    metrics: Metrics
    since: float
    stage: str = "starting"
    share: float = 0.0
    backend: Backend | None = None
    at_work: Open | None = None
    failure: str = ""

    def report(self, stage: str, share: float) -> None:
        """What is being loaded; called in the loading thread."""
        self.stage, self.share = stage, share

    @property
    def absent(self) -> str:
        """Why there is no backend at work."""
        seconds = time.monotonic() - self.since
        return self.failure or f"loading for {seconds:.0f} s: {self.stage}, {self.share:.0%}"


def problem(status: int, title: str, detail: str, **more: object) -> JSONResponse:
    """An error as RFC 9457 problem details."""
    body = {"type": "about:blank", "title": title, "status": status, "detail": detail, **more}
    return JSONResponse(body, status, media_type="application/problem+json")


def _unavailable(detail: str, retry_after: int, **more: object) -> JSONResponse:
    answer = problem(503, "Service Unavailable", detail, reason="ScorerUnavailable", **more)
    answer.headers["Retry-After"] = str(retry_after)
    return answer


def _busy(error: Busy) -> JSONResponse:
    answer = problem(429, "Too Many Requests", str(error), reason="ScorerUnavailable")
    answer.headers["Retry-After"] = str(error.retry_after)
    return answer


def _bad(error: BadField) -> JSONResponse:
    return problem(
        400, "Bad Request", f"{error.field} {error.message}", field=error.field, error=error.message
    )


async def _body(request: Request) -> dict[str, Any]:
    """The body as a JSON object.

    Raises:
        BadField: it is longer than MAX_BODY, or none.
    """
    parts: list[bytes] = []
    size = 0
    async for part in request.stream():
        size += len(part)
        if size > MAX_BODY:
            raise BadField("body", f"is longer than {MAX_BODY // 2**20} MiB")
        parts.append(part)
    return chat.parse_json(b"".join(parts))


def _prompt(value: object) -> str:
    if not isinstance(value, str):
        raise BadField("prompt", "is missing, must be a string")
    if not value.strip() or len(value) > MAX_PROMPT:
        raise BadField(
            "prompt", f"has {len(value)} characters, must have 1 to {MAX_PROMPT} that are no space"
        )
    return value


def _marks(value: object) -> tuple[str, ...]:
    if value is None:
        return ()
    if not isinstance(value, list):
        raise BadField("marks", "must be a list of names")
    for name in value:
        if name not in MARKS:
            raise BadField("marks", f"has {name!r}, must be of {', '.join(MARKS)}")
    return tuple(dict.fromkeys(map(str, value)))


async def _score(at_work: Open, backend: Backend, request: Request) -> JSONResponse:
    asked = await _body(request)
    painting = chat.from_base64("painting", asked.get("painting"))
    prompt, marks = _prompt(asked.get("prompt")), _marks(asked.get("marks"))
    try:
        found = await at_work.score(painting, prompt, marks)
    except NotAPicture as error:
        raise BadField("painting", str(error.args[0])) from error
    except UnknownMarks as error:
        raise BadField("marks", str(error)) from error
    if not all(map(math.isfinite, (found.mu, found.sigma, found.score, *found.marks.values()))):
        raise Unscored(f"the backend {backend.name} gave a value that is not finite")
    return JSONResponse(
        {
            "mu": found.mu,
            "sigma": found.sigma,
            "score": found.score,
            "backend": backend.name,
            "version": backend.version,
            **({"marks": dict(found.marks)} if marks else {}),
        }
    )


async def _judge(at_work: Open, backend: Backend, request: Request) -> JSONResponse:
    if not isinstance(at_work, Judging):
        detail = f"The backend {backend.name} judges nothing. Start one with --backend embedded."
        return problem(404, "Not Found", detail)
    a, b = chat.pictures(await _body(request))
    try:
        winner, reason = await at_work.compare(a, b)
    except NotAPicture as error:
        message, letter = error.args
        raise BadField(f"messages (painting {letter})", message) from error
    return JSONResponse(chat.completion(winner, reason))


Endpoint = Callable[[Open, Backend, Request], Awaitable[JSONResponse]]


def _guarded(
    state: State, route: str, endpoint: Endpoint
) -> Callable[[Request], Awaitable[JSONResponse]]:
    """The endpoint once loaded; its errors as answers, each counted."""

    async def answer(request: Request) -> JSONResponse:
        if state.backend is None or state.at_work is None:
            response = _unavailable(state.absent, RETRY_LOADING_SECONDS)
        else:
            try:
                response = await endpoint(state.at_work, state.backend, request)
            except BadField as error:
                response = _bad(error)
            except Busy as error:
                response = _busy(error)
            except Unscored as error:
                log.warning("unscored: %s", error)
                response = _unavailable(str(error), RETRY_UNSCORED_SECONDS)
        state.metrics.requests.labels(route, str(response.status_code)).inc()
        return response

    return answer


async def _load(
    state: State, load: Load, batching: Batching, stack: AsyncExitStack, app: FastAPI
) -> None:
    """Load in a thread. A failure is shown and ends the server: trying again would not help."""
    try:
        backend = await asyncio.to_thread(load, state.report)
    except WatercolourError as error:
        state.failure = str(error)
        service.give_up(app, error)
        return
    observed = Observed(state.metrics.batch_done, state.metrics.hits.inc)
    state.at_work = await stack.enter_async_context(backend.open(batching, observed))
    state.backend = backend
    state.metrics.ready.set(1)
    log.info("ready after %.1f s: %s", time.monotonic() - state.since, backend.version)


def create_app(load: Load, batching: Batching | None = None) -> FastAPI:
    """The server around a backend that ``load`` brings, in a thread, once the server runs.

    Args:
        load: blocks; raises WatercolourError when nothing can be loaded.
        batching: how what waits is gathered.
    """
    state = State(Metrics(), time.monotonic())

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncGenerator[None]:
        async with AsyncExitStack() as stack:
            loading = asyncio.create_task(_load(state, load, batching or Batching(), stack, app))
            yield
            loading.cancel()

    async def livez(_: Request) -> JSONResponse:
        return JSONResponse({"alive": True})

    async def readyz(_: Request) -> JSONResponse:
        if state.backend is not None:
            return JSONResponse(
                {"ready": True, "backend": state.backend.name, "version": state.backend.version}
            )
        return _unavailable(
            state.absent,
            RETRY_LOADING_SECONDS,
            stage=state.stage,
            progress=round(state.share, 4),
        )

    async def metrics(_: Request) -> Response:
        if state.at_work is not None:
            state.metrics.waiting.set(state.at_work.waiting)
        return Response(generate_latest(state.metrics.registry), media_type="text/plain")

    app = FastAPI(lifespan=lifespan, openapi_url=None)
    app.add_route("/v1/score", _guarded(state, "score", _score), ["POST"])
    app.add_route("/v1/chat/completions", _guarded(state, "judge", _judge), ["POST"])
    app.add_route("/livez", livez)
    app.add_route("/readyz", readyz)
    app.add_route("/metrics", metrics)
    return app
