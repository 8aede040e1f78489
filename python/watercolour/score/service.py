"""The scorer as a server: `python -m watercolour.score.service --backend embedded`.

Quality at POST /v1/score, and the pairwise judge behind the OpenAI chat contract at
POST /v1/chat/completions. It answers 503 with Retry-After until it has loaded or while its queue
is full, and 400 with the field's name to a malformed request; it never answers a number for a
painting that it could not score.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial

from fastapi import FastAPI
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from watercolour import logs, service
from watercolour.api.errors import WatercolourError
from watercolour.score import chat, embedded
from watercolour.score.batching import Batcher, Busy
from watercolour.score.chat import BadField
from watercolour.score.embedded import Embedded
from watercolour.score.features import Features, NotAPicture

log = logs.get("watercolour.score.service")

#: Largest request body, in bytes: two pictures of 12 MB as base64.
MAX_BODY = 32 * 2**20
RETRY_LOADING_SECONDS = 2

Load = Callable[[], Embedded]


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
            "Seconds of one batch, decoding included.",
            registry=self.registry,
            buckets=(0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10),
        )
        self.batch = Histogram(
            "watercolour_scorer_batch_pictures",
            "Pictures of one batch.",
            registry=self.registry,
            buckets=(1, 2, 4, 8, 16, 32),
        )
        self.hits = Counter(
            "watercolour_scorer_cache_hits",
            "Pictures whose features were remembered.",
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
    """What the running server knows: loading, failed, or loaded with its batcher."""

    metrics: Metrics
    since: float
    backend: Embedded | None = None
    batcher: Batcher | None = None
    failure: str = ""


def problem(status: int, title: str, detail: str, **more: object) -> JSONResponse:
    """An error as RFC 9457 problem details."""
    body = {"type": "about:blank", "title": title, "status": status, "detail": detail, **more}
    return JSONResponse(body, status, media_type="application/problem+json")


def _unavailable(detail: str, retry_after: int) -> JSONResponse:
    answer = problem(503, "Service Unavailable", detail, reason="ScorerUnavailable")
    answer.headers["Retry-After"] = str(retry_after)
    return answer


def _bad(error: BadField) -> JSONResponse:
    return problem(
        400, "Bad Request", f"{error.field} {error.message}", field=error.field, error=error.message
    )


async def _body(request: Request) -> bytes:
    """The whole body.

    Raises:
        BadField: it is longer than MAX_BODY.
    """
    parts: list[bytes] = []
    size = 0
    async for part in request.stream():
        size += len(part)
        if size > MAX_BODY:
            raise BadField("body", f"is longer than {MAX_BODY // 2**20} MiB")
        parts.append(part)
    return b"".join(parts)


async def _features(batcher: Batcher, field: str, painting: bytes) -> Features:
    try:
        return await batcher.features(painting)
    except NotAPicture as error:
        raise BadField(field, str(error)) from error


async def _score(backend: Embedded, batcher: Batcher, request: Request) -> JSONResponse:
    """``prompt`` is checked and unused: the heads know one, "a loose watercolour flower"."""
    asked = chat.parse_json(await _body(request))
    painting = chat.from_base64("painting", asked.get("painting"))
    if not isinstance(asked.get("prompt"), str):
        raise BadField("prompt", "is missing, must be a string")
    score = backend.score(await _features(batcher, "painting", painting))
    return JSONResponse(
        {
            "mu": score.mu,
            "sigma": score.sigma,
            "score": score.score,
            "backend": embedded.NAME,
            "version": backend.version,
        }
    )


async def _judge(backend: Embedded, batcher: Batcher, request: Request) -> JSONResponse:
    a, b = chat.pictures(chat.parse_json(await _body(request)))
    first, second = await asyncio.gather(
        _features(batcher, "messages (painting A)", a),
        _features(batcher, "messages (painting B)", b),
    )
    return JSONResponse(chat.completion(*backend.compare(first, second)))


Endpoint = Callable[[Embedded, Batcher, Request], Awaitable[JSONResponse]]


def _guarded(
    state: State, route: str, endpoint: Endpoint
) -> Callable[[Request], Awaitable[JSONResponse]]:
    """The endpoint once loaded; its errors as answers, each counted."""

    async def answer(request: Request) -> JSONResponse:
        if state.backend is None or state.batcher is None:
            detail = state.failure or "the scorer is loading"
            response = _unavailable(detail, RETRY_LOADING_SECONDS)
        else:
            try:
                response = await endpoint(state.backend, state.batcher, request)
            except BadField as error:
                response = _bad(error)
            except Busy as error:
                response = _unavailable(str(error), error.retry_after)
        state.metrics.requests.labels(route, str(response.status_code)).inc()
        return response

    return answer


async def _load(state: State, load: Load, app: FastAPI) -> None:
    """Load in a thread. A failure is shown and ends the server: trying again would not help."""
    try:
        state.backend = await asyncio.to_thread(load)
    except WatercolourError as error:
        state.failure = str(error)
        service.give_up(app, error)
        return
    state.metrics.ready.set(1)
    log.info("ready after %.1f s: %s", time.monotonic() - state.since, state.backend.version)


def create_app(load: Load, *, max_batch: int = 8, max_waiting: int = 256) -> FastAPI:
    """The server around a backend that ``load`` brings, in a thread, once the server runs.

    Args:
        load: blocks; raises WatercolourError when nothing can be loaded.
        max_batch: most pictures of one batch.
        max_waiting: pictures that may wait before callers get a 503.
    """
    state = State(Metrics(), time.monotonic())

    def embed(paintings: Sequence[bytes]) -> list[Features | NotAPicture]:
        assert state.backend is not None
        return state.backend.embed(paintings)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncGenerator[None]:
        async with Batcher(
            embed,
            max_batch=max_batch,
            max_waiting=max_waiting,
            observe=state.metrics.batch_done,
        ) as state.batcher:
            loading = asyncio.create_task(_load(state, load, app))
            yield
            loading.cancel()

    async def livez(_: Request) -> JSONResponse:
        return JSONResponse({"alive": True})

    async def readyz(_: Request) -> JSONResponse:
        seconds = round(time.monotonic() - state.since, 1)
        if state.backend is not None:
            return JSONResponse({"ready": True, "version": state.backend.version})
        detail = state.failure or f"loading for {seconds} s"
        return _unavailable(detail, RETRY_LOADING_SECONDS)

    async def metrics(_: Request) -> Response:
        if state.batcher is not None:
            state.metrics.waiting.set(state.batcher.waiting)
        return Response(generate_latest(state.metrics.registry), media_type="text/plain")

    app = FastAPI(lifespan=lifespan, openapi_url=None)
    app.add_route("/v1/score", _guarded(state, "score", _score), ["POST"])
    app.add_route("/v1/chat/completions", _guarded(state, "judge", _judge), ["POST"])
    app.add_route("/livez", livez)
    app.add_route("/readyz", readyz)
    app.add_route("/metrics", metrics)
    return app


def parser() -> argparse.ArgumentParser:
    """The command line."""
    p = argparse.ArgumentParser(prog="python -m watercolour.score.service", description=__doc__)
    service.add_arguments(p)
    p.add_argument("--backend", choices=[embedded.NAME], default=embedded.NAME)
    p.add_argument("--threads", type=int, default=1, help="threads of the backbone")
    p.add_argument("--max-batch", type=int, default=8, help="most pictures of one batch")
    p.add_argument(
        "--max-waiting", type=int, default=256, help="pictures that may wait before a 503"
    )
    return p


def main() -> int:
    """Serve until SIGTERM."""
    args = parser().parse_args()
    logs.setup("scorer")
    app = create_app(
        partial(embedded.load, args.threads),
        max_batch=args.max_batch,
        max_waiting=args.max_waiting,
    )
    try:
        service.serve(app, args)
    except WatercolourError as error:
        log.error("%s: %s", error.reason, error)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
