"""The environment's server: OpenEnv over WebSocket, demand, readiness, metrics.

python -m watercolour.env.server --spec run.yaml --renderer URL --scorer URL --judge URL

In a cluster ``--renderers-dns NAME`` takes the place of ``--renderer``. Renderers come and go
there, and scorer and judge sleep when there is nothing to score, so that the absence of any of them
is no fault: work waits for them, and ``GET /v1/demand`` says how much.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

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
from watercolour.api.errors import WatercolourError
from watercolour.api.spec import RunSpec
from watercolour.env import checks, inputs
from watercolour.env.corridor import Corridor, Rooms
from watercolour.env.demand import Announcements
from watercolour.env.environment import PaintEnvironment
from watercolour.env.metrics import Metrics
from watercolour.env.models import PaintAction, PaintObservation, PaintState
from watercolour.env.owed import Counted, Owed
from watercolour.env.presence import Presence, answers
from watercolour.render import discover
from watercolour.render.dispatcher import Dispatcher
from watercolour.reward import judges, pool, pool_subject, recipes
from watercolour.score.budget import Budget
from watercolour.score.client import ScoreClient
from watercolour.score.completions import Completions
from watercolour.score.vlm_mark import VlmMark

log = logs.get(__name__)

#: Seconds in which a neighbour has to answer a readiness check.
READY_TIMEOUT_SECONDS = 2.0


@dataclass(frozen=True)
class Neighbours:
    """Whom the environment talks to.

    Attributes:
        renderers: base URLs; at least one, or else ``dns``, unless the recipe has nothing painted.
        dns: host name and port that stand for all renderers that there are; the neighbours then
            live in a cluster, where each of them may be away for a while.
        scorer: base URL; None when no term of the recipe needs it.
        judge: base URL; None when no term of the recipe needs it.
        judge_key: bearer token for the judge.
        stand_in: base URL of the embedded judge that the specification asks for as a fallback.
        verdicts: file in which the judge's verdicts outlive this process.
        hedge_s: seconds of a render after which an idle renderer gets the same job; None never.
    """

    renderers: tuple[str, ...]
    scorer: str | None = None
    judge: str | None = None
    judge_key: str | None = None
    dns: tuple[str, int] | None = None
    hedge_s: float | None = None
    stand_in: str | None = None
    verdicts: Path | None = None


class Spent(BaseModel):
    """What a run has asked of its judge."""

    model_config = ConfigDict(extra="forbid")

    calls: int = Field(ge=0)
    tokens: int = Field(ge=0)


class Demand(BaseModel):
    """The body of ``POST /v1/demand``."""

    model_config = ConfigDict(extra="forbid")

    announced: int = Field(ge=0, description="Rollouts to come; 0 takes it back.")
    until: float = Field(description="When it lapses, in seconds since 1970.")
    due_seconds: float = Field(
        default=0.0,
        ge=0,
        allow_inf_nan=False,
        description="From now until the first is expected; 0 is at any moment.",
    )
    client: str = Field(default="", description="Who announces; one announcement each.")
    judge_spent: Spent | None = Field(
        default=None, description="What the run had spent by the last answer to its client."
    )


def neighbours(
    spec: RunSpec,
    *,
    renderers: Sequence[str],
    scorer: str | None,
    judge: str | None,
    judge_key: str | None = None,
    dns: tuple[str, int] | None = None,
    hedge_s: float | None = None,
    verdicts: Path | None = None,
) -> Neighbours:
    """Match what was given with what the recipe needs; the rest is left alone.

    Raises:
        InputError: the recipe is unknown, or a backend is off or a URL missing although the
            recipe gives its term weight.
    """
    recipe = recipes.get(spec.recipe)
    if not renderers and dns is None and recipe.paints:
        remedy = "Name at least one by its URL, or all by --renderers-dns."
        raise inputs.invalid("--renderer", None, "no renderer is named", remedy)
    found: dict[str, str | None] = {"scorer": None, "judge": None}
    inputs.require_backends(spec, recipe)
    scores = scorer or spec.scorer.endpoint
    if spec.scorer.backend == inputs.VLM_MARK:
        # There is no server of ours between: the model is asked from here.
        scores = spec.scorer.endpoint or judge or spec.judge.endpoint
    for room, url, asking in (
        ("scorer", scores, recipe.asks("scorer", "marks")),
        ("judge", judge or spec.judge.endpoint, recipe.asks("judge")),
    ):
        if not asking:
            continue
        if url is None:
            raise inputs.invalid(
                f"spec.{room}.endpoint",
                None,
                f"recipe {recipe.name} needs a {room} and none is named",
                f"Set it, or start with --{room} URL.",
            )
        found[room] = url
    # The embedded scorer judges as well, so it is who stands in.
    stand_in = None
    if found["judge"] is not None and spec.judge.fallback == judges.EMBEDDED:
        stand_in = scorer or spec.scorer.endpoint
    return Neighbours(
        tuple(renderers),
        found["scorer"],
        found["judge"],
        judge_key,
        dns,
        hedge_s,
        stand_in,
        verdicts,
    )


@dataclass(frozen=True)
class Opened:
    """What the running server works with."""

    corridor: Corridor
    renderers: Dispatcher
    http: httpx.AsyncClient
    #: Scorer and judge, where the recipe needs them.
    present: dict[str, Presence]


@asynccontextmanager
async def opened(
    spec: RunSpec, near: Neighbours, rated: pool.Pool | None, hues: pool_subject.Hues
) -> AsyncGenerator[Opened]:
    """A corridor with all its clients open, and the dispatcher at work."""
    async with AsyncExitStack() as stack:
        http = await stack.enter_async_context(
            httpx.AsyncClient(timeout=READY_TIMEOUT_SECONDS, trust_env=False)
        )
        # What the specification names runs elsewhere and is not woken.
        elsewhere = (spec.scorer.endpoint, spec.judge.endpoint)
        present = {
            room: Presence(http, url, sleeps=near.dns is not None and url not in elsewhere)
            for room, url in (("scorer", near.scorer), ("judge", near.judge))
            if url is not None
        }
        find = _nobody if not near.renderers else None
        if near.dns is not None:
            find = discover.by_dns(*near.dns)
        # A rollout waits for as long as its client does.
        renderers = await stack.enter_async_context(
            Dispatcher(near.renderers, find=find, wait_s=None, absence_s=None, hedge_s=near.hedge_s)
        )
        scorer = judge = None
        if near.scorer is not None:
            scorer = _scorer(spec, near.scorer, near.judge_key)
            stack.push_async_callback(scorer.aclose)
        if near.judge is not None:
            judge = await stack.enter_async_context(
                judges.opened(
                    spec,
                    near.judge,
                    key=near.judge_key,
                    verdicts=near.verdicts,
                    stand_in=near.stand_in,
                )
            )
        rooms = Rooms(
            renderers, scorer, judge, rated, present.get("scorer"), present.get("judge"), hues
        )
        yield Opened(Corridor(spec, rooms), renderers, http, present)


def _scorer(spec: RunSpec, url: str, key: str | None) -> ScoreClient | VlmMark:
    """Whom to ask for scores: a scorer, or a vision-language model itself."""
    wanted = spec.scorer
    if wanted.backend != inputs.VLM_MARK:
        return ScoreClient(url, attempts=wanted.attempts, timeout_s=wanted.timeout_seconds)
    asked = Completions(
        url,
        attempts=wanted.attempts,
        timeout_s=wanted.timeout_seconds,
        api_key=key,
        concurrency=spec.judge.concurrency,
    )
    return VlmMark(asked, model=wanted.model or spec.judge.model)


async def _nobody() -> frozenset[str] | None:
    """The renderers of a recipe that has nothing painted."""
    return frozenset()


def create_app(spec: RunSpec, near: Neighbours) -> FastAPI:
    """The server's application; its lifespan opens and closes everything.

    Raises:
        InputError: the pool cannot be used (InvalidPool), the gate allows a method that p5.brush
            does not have, or there is no such system prompt.
    """
    # What is wrong with the input shows now, not in the middle of the first rollout.
    rated = inputs.require(spec)
    paints = recipes.get(spec.recipe).paints
    hues = pool_subject.hues(spec.references.pool) if paints else {}
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
        async with openenv_lifespan(inner), opened(spec, near, rated, hues) as now:
            metrics.show_renders(now.renderers)
            if now.corridor.rooms.judge is not None:
                metrics.show_judge(now.corridor.rooms.judge)
            metrics.announced.set_function(lambda: announcements.total)
            inner.state.corridor, inner.state.opened = now.corridor, now
            yield

    app.router.lifespan_context = lifespan
    app.state.owed = Owed()
    app.add_middleware(Counted, owed=app.state.owed)
    _add_routes(app, metrics, announcements)
    checks.add_routes(app)
    return app


def _add_routes(app: FastAPI, metrics: Metrics, announcements: Announcements) -> None:
    def budget() -> Budget | None:
        now: Opened = app.state.opened
        judge = now.corridor.rooms.judge
        return None if judge is None else judge.completions.budget

    def demand() -> dict[str, Any]:
        now: Opened = app.state.opened
        own = budget()
        spent = own and {"calls": own.spent_calls, "tokens": own.spent_tokens}
        return {
            "queued": now.renderers.queued,
            "inflight": now.renderers.inflight,
            # Renderers start for what is announced, and nothing may be painted at all.
            "announced": announcements.total if now.corridor.recipe.paints else 0,
            "due_seconds": round(announcements.due_seconds, 1),
            **{room: presence.demand for room, presence in now.present.items()},
            **({"judge_spent": spent} if spent else {}),
        }

    @app.get("/v1/demand")
    async def get_demand() -> dict[str, Any]:
        return demand()

    @app.post("/v1/demand")
    async def post_demand(body: Demand) -> dict[str, Any]:
        announcements.announce(body.client, body.announced, body.until, body.due_seconds)
        own = budget()
        if own is not None and body.judge_spent is not None:
            own.at_least(body.judge_spent.calls, body.judge_spent.tokens)
        return demand()

    @app.get("/livez")
    async def livez() -> dict[str, str]:
        return {"status": "ok"}

    @app.get("/readyz")
    async def readyz() -> JSONResponse:
        now: Opened = app.state.opened
        checks = {"renderer": now.renderers.ready} | await reachable(now)
        well = all(checks.values()) or now.renderers.finds
        return JSONResponse(checks, status_code=200 if well else 503)

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


async def reachable(now: Opened) -> dict[str, bool]:
    """Whether scorer and judge, where the recipe needs them, answer."""
    found = await asyncio.gather(*(answers(now.http, one.url) for one in now.present.values()))
    return dict(zip(now.present, found, strict=True))


async def drain(app: FastAPI, seconds: float) -> None:
    """Let end what is being painted and measured, and send every answer that is owed.

    What waits for a renderer gets an error for its answer, upon which its client asks whoever
    serves next.
    """
    now, owed = app.state.opened, app.state.owed
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await asyncio.gather(now.renderers.drain(seconds), owed.none())


def main(argv: Sequence[str] | None = None) -> int:
    """Serve until told to stop; the exit code says whose fault an early end is."""
    parser = argparse.ArgumentParser(prog="watercolour.env.server", description=__doc__)
    parser.add_argument("--spec", type=Path, required=True, help="the run's YAML file")
    parser.add_argument(
        "--renderer", action="append", default=[], metavar="URL", help="a renderer; repeatable"
    )
    parser.add_argument(
        "--renderers-dns",
        metavar="NAME[:PORT]",
        help=f"all renderers: the addresses of this name, looked up again and again "
        f"(port {discover.PORT} if none is given)",
    )
    parser.add_argument(
        "--hedge-seconds",
        type=float,
        metavar="S",
        help="send a render that takes longer than this to an idle renderer as well; the first "
        "answer counts (off)",
    )
    parser.add_argument("--scorer", metavar="URL", help="instead of spec.scorer.endpoint")
    parser.add_argument("--judge", metavar="URL", help="instead of spec.judge.endpoint")
    parser.add_argument(
        "--verdicts",
        type=Path,
        metavar="FILE",
        help="keep the judge's verdicts, and what was spent of its budget, beyond this process",
    )
    key = parser.add_mutually_exclusive_group()
    key.add_argument(
        "--judge-key-file", type=Path, metavar="FILE", help="holds the judge's bearer token"
    )
    key.add_argument("--judge-key-env", metavar="NAME", help="variable that holds that token")
    parser.add_argument(
        "--grace-seconds",
        type=float,
        default=service.GRACE_SECONDS,
        help="after SIGTERM, for rollouts that are being painted and measured",
    )
    service.add_arguments(parser)
    args = parser.parse_args(argv)
    logs.setup("env")
    try:
        spec = load.run(args.spec).spec
        dns = discover.parse(args.renderers_dns) if args.renderers_dns else None
        near = neighbours(
            spec,
            renderers=args.renderer,
            scorer=args.scorer,
            judge=args.judge,
            judge_key=_secret(args.judge_key_file, args.judge_key_env),
            dns=dns,
            hedge_s=args.hedge_seconds,
            verdicts=args.verdicts,
        )
        app = create_app(spec, near)
        service.serve(app, args, websockets=True, drain=partial(drain, app, args.grace_seconds))
    except WatercolourError as error:
        print(f"{parser.prog}: {error.reason}: {error}", file=sys.stderr)  # noqa: T201
        return error.exit_code
    return 0


def _secret(path: Path | None, variable: str | None) -> str | None:
    if variable is not None:
        value = os.environ.get(variable, "").strip()
        if not value:
            raise inputs.invalid("--judge-key-env", variable, "the variable is not set", "Set it.")
        return value
    if path is None:
        return None
    try:
        return path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise inputs.invalid(
            "--judge-key-file", path, "the file cannot be read", "Name a readable text file."
        ) from error


if __name__ == "__main__":
    sys.exit(main())
