"""The environment's server: OpenEnv over WebSocket, demand, readiness, metrics.

python -m watercolour.env.server --spec run.yaml --renderer URL --scorer URL --judge URL
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import httpx
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from openenv.core.env_server.http_server import create_fastapi_app
from openenv.core.env_server.types import ConcurrencyConfig, ServerMode
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from pydantic import BaseModel, ConfigDict, Field

from watercolour import logs, service
from watercolour.api import load
from watercolour.api.errors import InputError, WatercolourError
from watercolour.api.reasons import Reason
from watercolour.api.spec import RunSpec
from watercolour.env.corridor import Corridor, Rooms
from watercolour.env.demand import Announcements
from watercolour.env.dispatch import RenderQueue
from watercolour.env.environment import PaintEnvironment
from watercolour.env.metrics import Metrics
from watercolour.env.models import PaintAction, PaintObservation, PaintState
from watercolour.render.client import RenderClient
from watercolour.reward import pool, recipes
from watercolour.reward.judge import Judge
from watercolour.reward.verdict import CRITERIA
from watercolour.score.client import ScoreClient
from watercolour.sketch import exports, prompt

log = logs.get(__name__)

#: Seconds in which a neighbour has to answer a readiness check.
READY_TIMEOUT_SECONDS = 2.0


@dataclass(frozen=True)
class Neighbours:
    """Whom the environment talks to.

    Attributes:
        renderers: base URLs, at least one.
        scorer: base URL; None when the recipe gives quality no weight.
        judge: base URL; None when the recipe gives the judge no weight.
        judge_key: bearer token for the judge.
    """

    renderers: tuple[str, ...]
    scorer: str | None = None
    judge: str | None = None
    judge_key: str | None = None


class Demand(BaseModel):
    """The body of ``POST /v1/demand``."""

    model_config = ConfigDict(extra="forbid")

    announced: int = Field(ge=0, description="Rollouts to come; 0 takes it back.")
    until: float = Field(description="When it lapses, in seconds since 1970.")
    client: str = Field(default="", description="Who announces; one announcement each.")


def neighbours(
    spec: RunSpec,
    *,
    renderers: Sequence[str],
    scorer: str | None,
    judge: str | None,
    judge_key: str | None = None,
) -> Neighbours:
    """Match what was given with what the recipe needs; the rest is left alone.

    Raises:
        InputError: the recipe is unknown, or a backend is off or a URL missing although the
            recipe gives its term weight.
    """
    recipe = recipes.get(spec.recipe)
    if not renderers:
        raise _invalid("--renderer", None, "no renderer is named", "Name at least one by its URL.")
    found: dict[str, str | None] = {"quality": None, "judge": None}
    for term, room, backend, url in (
        ("quality", "scorer", spec.scorer.backend, scorer or spec.scorer.endpoint),
        ("judge", "judge", spec.judge.backend, judge or spec.judge.endpoint),
    ):
        if not recipe.needs(term):
            continue
        weight = recipe.weights[term]
        if backend == "none":
            raise _invalid(
                f"spec.{room}.backend",
                backend,
                f"recipe {recipe.name} gives {term} the weight {weight:g}",
                f"Choose another backend, or set spec.recipe.weights.{term} to 0.",
            )
        if url is None:
            raise _invalid(
                f"spec.{room}.endpoint",
                None,
                f"recipe {recipe.name} needs a {room} and none is named",
                f"Set it, or start with --{room} URL.",
            )
        found[term] = url
    return Neighbours(tuple(renderers), found["quality"], found["judge"], judge_key)


def _invalid(field: str, value: object, why: str, remedy: str) -> InputError:
    return InputError(
        Reason.INVALID_SPEC, f"{field}={value}: {why}.", remedy=remedy, field=field, value=value
    )


@asynccontextmanager
async def opened(
    spec: RunSpec, near: Neighbours, rated: pool.Pool | None
) -> AsyncGenerator[tuple[Corridor, RenderQueue]]:
    """A corridor with all its clients open, and the render queue at work."""
    async with AsyncExitStack() as stack:
        queue = await stack.enter_async_context(RenderQueue(near.renderers))
        renderers = {url: RenderClient([url]) for url in queue.urls}
        for renderer in renderers.values():
            stack.push_async_callback(renderer.aclose)
        scorer = judge = None
        if near.scorer is not None:
            scorer = ScoreClient(
                near.scorer,
                attempts=spec.scorer.attempts,
                timeout_s=spec.scorer.timeout_seconds,
            )
            stack.push_async_callback(scorer.aclose)
        if near.judge is not None:
            judge = Judge(
                near.judge,
                model=spec.judge.model,
                attempts=spec.judge.attempts,
                timeout_s=spec.judge.timeout_seconds,
                api_key=near.judge_key,
                criteria=spec.judge.criteria or CRITERIA,
                both_orders=spec.judge.order == "both",
                remember=spec.judge.cache.enabled,
            )
            stack.push_async_callback(judge.aclose)
        yield Corridor(spec, Rooms(queue, renderers, scorer, judge, rated)), queue


def create_app(spec: RunSpec, near: Neighbours) -> FastAPI:
    """The server's application; its lifespan opens and closes everything.

    Raises:
        InputError: the pool cannot be used (InvalidPool), the gate allows a method that p5.brush
            does not have, or there is no such system prompt.
    """
    # What is wrong with the input shows now, not in the middle of the first rollout.
    exports.allowed(spec.recipe.gate)
    prompt.preset(spec.prompts.system, spec.model.id)
    references = spec.references
    rated = None if near.judge is None else pool.load(references.pool)
    if rated is not None:
        pool.draw(rated, spec.seed, references.per_rollout, references.tier_shares)
    metrics, announcements = Metrics(), Announcements()

    # Replies outlive a session's idle time when their client's patience does.
    idle = max(spec.env.idle_seconds, spec.env.message_timeout_seconds)
    app = create_fastapi_app(
        partial(PaintEnvironment, lambda: app.state.corridor, announcements, metrics),
        PaintAction,
        PaintObservation,
        concurrency_config=ConcurrencyConfig(
            max_concurrent_envs=spec.env.sessions, session_timeout=idle
        ),
        env_name="watercolour",
        state_cls=PaintState,
        # Without the stateless reset and step over HTTP: a session lives on its socket.
        mode=ServerMode.PRODUCTION,
    )
    openenv_lifespan = app.router.lifespan_context

    @asynccontextmanager
    async def lifespan(inner: FastAPI) -> AsyncGenerator[None]:
        async with (
            openenv_lifespan(inner),
            opened(spec, near, rated) as (corridor, queue),
            httpx.AsyncClient(timeout=READY_TIMEOUT_SECONDS, trust_env=False) as http,
        ):
            metrics.queue_depth.set_function(lambda: queue.queued)
            metrics.renders_inflight.set_function(lambda: queue.inflight)
            metrics.render_slots.set_function(lambda: queue.slots)
            metrics.announced.set_function(lambda: announcements.total)
            inner.state.corridor, inner.state.queue, inner.state.http = corridor, queue, http
            yield

    app.router.lifespan_context = lifespan
    _add_routes(app, near, metrics, announcements)
    return app


def _add_routes(
    app: FastAPI, near: Neighbours, metrics: Metrics, announcements: Announcements
) -> None:
    def demand() -> dict[str, int]:
        queue: RenderQueue = app.state.queue
        return {
            "queued": queue.queued,
            "inflight": queue.inflight,
            "announced": announcements.total,
        }

    @app.get("/v1/demand")
    async def get_demand() -> dict[str, int]:
        return demand()

    @app.post("/v1/demand")
    async def post_demand(body: Demand) -> dict[str, int]:
        announcements.announce(body.client, body.announced, body.until)
        return demand()

    @app.get("/livez")
    async def livez() -> dict[str, str]:
        return {"status": "ok"}

    @app.get("/readyz")
    async def readyz() -> JSONResponse:
        queue: RenderQueue = app.state.queue
        checks = {"renderer": queue.ready} | await reachable(app.state.http, near)
        return JSONResponse(checks, status_code=200 if all(checks.values()) else 503)

    @app.get("/metrics")
    async def scrape() -> Response:
        return Response(generate_latest(metrics.registry), media_type=CONTENT_TYPE_LATEST)

    @app.exception_handler(RequestValidationError)
    async def malformed(_: Request, error: RequestValidationError) -> JSONResponse:
        said = "; ".join(
            f"{'.'.join(str(part) for part in one['loc'])}: {one['msg']}" for one in error.errors()
        )
        return JSONResponse({"error": said}, status_code=400)

    # FastAPI holds them; a name each keeps readers and checkers happy.
    _ = (get_demand, post_demand, livez, readyz, scrape, malformed)


async def reachable(http: httpx.AsyncClient, near: Neighbours) -> dict[str, bool]:
    """Whether scorer and judge, where the recipe needs them, answer."""
    wanted = {"scorer": near.scorer, "judge": near.judge}
    asked = {room: url for room, url in wanted.items() if url is not None}
    answers = await asyncio.gather(*(_answers(http, url) for url in asked.values()))
    return dict(zip(asked, answers, strict=True))


async def _answers(http: httpx.AsyncClient, url: str) -> bool:
    try:
        answer = await http.get(f"{url.rstrip('/')}/readyz")
    except httpx.HTTPError:
        return False
    # A hosted judge knows no /readyz and says so; what is loading says 503.
    return answer.status_code < 500


def main(argv: Sequence[str] | None = None) -> int:
    """Serve until told to stop; the exit code says whose fault an early end is."""
    parser = argparse.ArgumentParser(prog="watercolour.env.server", description=__doc__)
    parser.add_argument("--spec", type=Path, required=True, help="the run's YAML file")
    parser.add_argument(
        "--renderer", action="append", default=[], metavar="URL", help="a renderer; repeatable"
    )
    parser.add_argument("--scorer", metavar="URL", help="instead of spec.scorer.endpoint")
    parser.add_argument("--judge", metavar="URL", help="instead of spec.judge.endpoint")
    key = parser.add_mutually_exclusive_group()
    key.add_argument(
        "--judge-key-file", type=Path, metavar="FILE", help="holds the judge's bearer token"
    )
    key.add_argument("--judge-key-env", metavar="NAME", help="variable that holds that token")
    service.add_arguments(parser)
    args = parser.parse_args(argv)
    logs.setup("env")
    try:
        spec = load.run(args.spec).spec
        near = neighbours(
            spec,
            renderers=args.renderer,
            scorer=args.scorer,
            judge=args.judge,
            judge_key=_secret(args.judge_key_file, args.judge_key_env),
        )
        service.serve(create_app(spec, near), args, websockets=True)
    except WatercolourError as error:
        print(f"{parser.prog}: {error.reason}: {error}", file=sys.stderr)  # noqa: T201
        return error.exit_code
    return 0


def _secret(path: Path | None, variable: str | None) -> str | None:
    if variable is not None:
        value = os.environ.get(variable, "").strip()
        if not value:
            raise _invalid("--judge-key-env", variable, "the variable is not set", "Set it.")
        return value
    if path is None:
        return None
    try:
        return path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise _invalid(
            "--judge-key-file", path, "the file cannot be read", "Name a readable text file."
        ) from error


if __name__ == "__main__":
    sys.exit(main())
