"""The renderer as a server: ``python -m watercolour.render.service --slots 2 --announce FILE``."""

from __future__ import annotations

import argparse
import asyncio
import base64
import hashlib
import json
import sys
import time
from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field, replace
from typing import Annotated, Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from pydantic import BaseModel, ConfigDict, Field

from watercolour import logs, service
from watercolour.api.errors import InfrastructureError, InputError, WatercolourError
from watercolour.api.reasons import Reason
from watercolour.render import canary, chromium, homes, paint, pool, vendor
from watercolour.render.result import Job, Painted, SketchFault

log = logs.get(__name__)

#: Paintings that are remembered, so that equal requests are answered without painting.
CACHE_ENTRIES = 256

#: Longest sketch that is taken in, in characters.
MAX_SKETCH = 200_000

#: Seconds after which a busy or unready renderer is worth asking again.
RETRY_AFTER = 1


class RenderRequest(BaseModel):
    """Body of ``POST /v1/render``."""

    model_config = ConfigDict(extra="forbid", strict=True)

    sketch: str = Field(min_length=1, max_length=MAX_SKETCH)
    seed: Annotated[int, Field(ge=0, lt=2**31)]
    size: Annotated[int, Field(ge=64, le=2048)] | None = None
    deadline_s: Annotated[float, Field(gt=0, le=600)] = 60.0
    cpu_budget_s: Annotated[float, Field(gt=0, le=600)] = 20.0
    fresh: bool = Field(default=False, description="Paint again even if the cache knows it.")


@dataclass
class Metrics:
    """The renderer's metrics in a registry of their own."""

    registry: CollectorRegistry = field(default_factory=CollectorRegistry)

    def __post_init__(self) -> None:
        name = "watercolour_render"
        self.requests = Counter(
            f"{name}_requests", "Answers by outcome", ["outcome"], registry=self.registry
        )
        self.seconds = Histogram(
            f"{name}_seconds", "Wall seconds of a painting", registry=self.registry
        )
        self.cpu = Counter(f"{name}_cpu_seconds", "CPU seconds painted", registry=self.registry)
        self.per_shape = Gauge(
            f"{name}_seconds_per_shape", "CPU seconds a filled shape, last", registry=self.registry
        )
        self.busy = Gauge(f"{name}_busy_slots", "Slots that paint", registry=self.registry)
        self.launches = Gauge(
            f"{name}_browser_launches", "Browsers started", registry=self.registry
        )
        self.recycled = Gauge(f"{name}_pages_recycled", "Pages replaced", registry=self.registry)


@dataclass
class Renderer:
    """The pool, the cache in front of it, and what the endpoints show."""

    pool: pool.Pool
    metrics: Metrics = field(default_factory=Metrics)
    canary: canary.Canary = field(default_factory=canary.Canary)
    draining: bool = False
    trouble: WatercolourError | None = None
    _cache: OrderedDict[str, Painted] = field(default_factory=OrderedDict[str, Painted])
    _flying: dict[str, asyncio.Future[Painted]] = field(
        default_factory=dict[str, "asyncio.Future[Painted]"]
    )

    @property
    def refuses(self) -> str | None:
        """The reason for which it takes no work and will take none; None if there is none."""
        return self.trouble.reason if self.trouble is not None else self.canary.refuses

    def load(self) -> dict[str, Any]:
        """The body of /v1/load."""
        return {
            "slots": self.pool.slots,
            "busy": self.pool.busy,
            "draining": self.draining,
            "refuses": self.refuses,
        }

    def unready(self) -> Response | None:
        """Why it takes no work now; None when it does.

        A renderer that drains stays ready: of its pods, a ReplicaSet kills the unready first, and
        this one may still be painting.
        """
        if self.trouble is not None:
            return problem(503, self.trouble.reason, str(self.trouble))
        if self.canary.refuses is not None:
            words = "what the network policy forbids can be reached"
            return problem(503, self.canary.refuses, words)
        if self.canary.forbids or not self.pool.ready:
            return problem(503, Reason.RENDERER_UNAVAILABLE, "starting")
        return None

    async def warm(self) -> None:
        """Start the browser; what stops it shows in /readyz and in every answer."""
        try:
            await self.pool.start()
            self.trouble = None
        except WatercolourError as error:
            self.trouble = error
            log.error("%s", error)

    async def render(self, job: Job, *, fresh: bool = False) -> Painted:
        """Paint, or answer from the cache; equal jobs that overlap are painted once.

        Raises:
            Busy: every slot paints.
            SketchFault, InfrastructureError: see :meth:`Pool.paint`.
        """
        if fresh:
            return await self._paint(job)
        key = _key(job)
        if found := self._cache.get(key):
            self._cache.move_to_end(key)
            return replace(found, cached=True)
        if (flying := self._flying.get(key)) is not None:
            return replace(await asyncio.shield(flying), cached=True)
        task = asyncio.ensure_future(self._paint(job))
        self._flying[key] = task
        task.add_done_callback(lambda done: self._landed(key, done))
        return await asyncio.shield(task)

    def _landed(self, key: str, done: asyncio.Future[Painted]) -> None:
        del self._flying[key]
        if done.cancelled() or done.exception():
            return
        self._cache[key] = done.result()
        if len(self._cache) > CACHE_ENTRIES:
            self._cache.popitem(last=False)

    async def _paint(self, job: Job) -> Painted:
        started = time.monotonic()
        drawn = await self.pool.paint(job)
        taken = time.monotonic() - started
        self.metrics.seconds.observe(taken)
        self.metrics.cpu.inc(drawn.cpu_seconds)
        if drawn.shapes:
            self.metrics.per_shape.set(drawn.cpu_seconds / drawn.shapes)
        png, share, encoding = await asyncio.to_thread(_finish, drawn, job.size)
        return Painted(
            painting=png,
            paint_fraction=share,
            shapes=drawn.shapes,
            js_errors=drawn.js_errors,
            timings={**drawn.timings, "wall": round(taken, 4), "encode": round(encoding, 4)},
            cpu_seconds=drawn.cpu_seconds,
            rasterizer=self.pool.rasterizer,
            versions=self.pool.versions,
        )


def _finish(drawn: pool.Drawn, size: int | None) -> tuple[bytes, float, float]:
    started = time.monotonic()
    rgb = paint.from_framebuffer(drawn.data, drawn.width, drawn.height)
    png = paint.encode(paint.resize(rgb, size))
    return png, round(paint.fraction(rgb), 6), time.monotonic() - started


def _key(job: Job) -> str:
    text = json.dumps([job.sketch, job.seed, job.size])
    return hashlib.sha256(text.encode()).hexdigest()


def problem(status: int, reason: str, detail: str, **more: Any) -> Response:
    """An application/problem+json answer with a stable reason."""
    retry = {"Retry-After": str(RETRY_AFTER)} if status in (429, 503) else {}
    body = {"type": "about:blank", "status": status, "reason": reason, "detail": detail, **more}
    return Response(json.dumps(body), status, headers=retry, media_type="application/problem+json")


def _fields(error: RequestValidationError) -> str:
    return "; ".join(
        f"{'.'.join(str(part) for part in item['loc'][1:]) or 'body'}: {item['msg']}"
        for item in error.errors()
    )


def create_app(
    launch: chromium.Launch,
    slots: int,
    mode: canary.Mode = "Off",
    forbidden: tuple[str, int] | None = None,
) -> FastAPI:
    """The service. It is ready once the browser's pages are open and the canary is shut out.

    Args:
        launch: how the browser is started.
        slots: sketches painted at once.
        mode: what follows if the canary's address can be reached.
        forbidden: that address and its port.
    """
    state: list[Renderer] = []

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with pool.opened(launch, slots) as painters:
            renderer = Renderer(painters, canary=canary.Canary(mode if forbidden else "Off"))
            state.append(renderer)
            tasks = [asyncio.create_task(renderer.warm())]
            if forbidden is not None:
                tasks.append(asyncio.create_task(canary.watch(renderer.canary, *forbidden)))
            yield
            renderer.draining = True
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    app = FastAPI(title="watercolour renderer", lifespan=lifespan)

    @app.exception_handler(RequestValidationError)
    async def malformed(_: Request, error: RequestValidationError) -> Response:
        state[0].metrics.requests.labels("malformed").inc()
        return problem(400, "MalformedRequest", _fields(error))

    @app.post("/v1/render")
    async def render(body: RenderRequest) -> Response:
        job = Job(**body.model_dump(exclude={"fresh"}))
        return await _render(state[0], job, fresh=body.fresh)

    @app.get("/livez")
    async def livez() -> dict[str, str]:
        return {"status": "alive"}

    @app.get("/readyz")
    async def readyz() -> Response:
        ready = Response(json.dumps({"status": "ready"}), media_type="application/json")
        return state[0].unready() or ready

    @app.get("/metrics")
    async def metrics() -> Response:
        renderer = state[0]
        renderer.metrics.busy.set(renderer.pool.busy)
        renderer.metrics.launches.set(renderer.pool.counts.launches)
        renderer.metrics.recycled.set(renderer.pool.counts.recycled)
        return Response(generate_latest(renderer.metrics.registry), media_type="text/plain")

    @app.get("/v1/load")
    async def load() -> dict[str, Any]:
        return state[0].load()

    @app.post("/v1/drain")
    async def drain() -> dict[str, Any]:
        state[0].draining = True
        return state[0].load()

    @app.delete("/v1/drain")
    async def undrain() -> dict[str, Any]:
        state[0].draining = False
        return state[0].load()

    return app


async def _render(renderer: Renderer, job: Job, *, fresh: bool) -> Response:
    outcome = "painted"
    try:
        if renderer.draining or renderer.canary.forbids:
            outcome = "refused"
            return problem(503, Reason.RENDERER_UNAVAILABLE, "no work is taken", taken=False)
        painted = await renderer.render(job, fresh=fresh)
        outcome = "cached" if painted.cached else "painted"
        body = asdict(painted) | {"painting": base64.b64encode(painted.painting).decode()}
        return Response(json.dumps(body), media_type="application/json")
    except pool.Busy:
        outcome = "busy"
        return problem(429, "Busy", f"all {renderer.pool.slots} slots paint")
    except SketchFault as fault:
        outcome = fault.violation.code
        return problem(
            422,
            "SketchFault",
            fault.violation.message,
            violation=fault.violation.model_dump(mode="json"),
            js_errors=fault.js_errors,
        )
    except InfrastructureError as error:
        outcome = error.reason
        return problem(503, error.reason, str(error))
    finally:
        renderer.metrics.requests.labels(outcome).inc()


def main() -> int:
    """Command line of the renderer."""
    parser = argparse.ArgumentParser(prog="watercolour.render.service", description=__doc__)
    service.add_arguments(parser)
    parser.add_argument("--slots", type=int, default=2, help="sketches painted at once")
    parser.add_argument(
        "--network-canary",
        choices=("Required", "Warn", "Off"),
        default="Off",
        help="what follows if --canary-address can be reached: take no work, warn, or do not try",
    )
    parser.add_argument(
        "--canary-address", metavar="IP:PORT", help="an address that the network policy forbids"
    )
    parser.add_argument(
        "--grace-seconds",
        type=int,
        default=service.GRACE_SECONDS,
        help="after SIGTERM, for paintings that are under way; above the longest render's deadline",
    )
    parser.add_argument(
        "--allow-unsandboxed",
        action="store_true",
        help="go on without Chromium's own sandbox where the kernel lacks it",
    )
    args = parser.parse_args()
    logs.setup("renderer")
    try:
        forbidden = _forbidden(args)
        vendor.library("p5.min.js")
        chromium.find()
        homes.sweep()
        launch = chromium.Launch(allow_unsandboxed=args.allow_unsandboxed)
        app = create_app(launch, args.slots, args.network_canary, forbidden)
        service.serve(app, args, grace_seconds=args.grace_seconds)
    except WatercolourError as error:
        sys.stderr.write(f"watercolour: {error.reason}: {error}\n")
        return error.exit_code
    return 0


def _forbidden(args: argparse.Namespace) -> tuple[str, int] | None:
    """The canary's address.

    Raises:
        InputError: it is missing or malformed.
    """
    if args.network_canary == "Off":
        return None
    if not args.canary_address:
        raise InputError(
            Reason.INVALID_INPUT,
            f"--canary-address: --network-canary={args.network_canary} needs it.",
            remedy="Name an address that the network policy forbids, or say Off.",
            field="canary-address",
        )
    return canary.parse(args.canary_address)


if __name__ == "__main__":
    sys.exit(main())
