"""The renderer's endpoints. Which answer an exception becomes is decided here and nowhere else."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict, dataclass, field
from typing import Any, TypeVar

from fastapi import FastAPI, Request, Response
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.routing import Route

from watercolour import logs
from watercolour.api.errors import InfrastructureError
from watercolour.api.reasons import Reason
from watercolour.render import body as bodies
from watercolour.render import canary, chromium, mistakes, pool, schemas
from watercolour.render.isolation import Isolation
from watercolour.render.renderer import Renderer
from watercolour.render.result import Job, SketchFault

log = logs.get(__name__)

T = TypeVar("T")

#: Seconds after which a busy or unready renderer is worth asking again.
RETRY_AFTER = 1

#: What is answered to nobody: the client has hung up.
GONE = 499

TITLES = {
    404: "There is no such path",
    405: "The path does not know this method",
    422: "The sketch is at fault",
    429: "Every slot paints",
    503: "The infrastructure is at fault",
}


@dataclass(frozen=True)
class Options:
    """How the service is set up.

    Attributes:
        launch: how the browser is started.
        slots: sketches painted at once.
        max_scale: largest drawing scale that is taken; above 1 it paints prints.
        wear: when a page is replaced although nothing went wrong.
        canary: what follows if the forbidden address can be reached.
        outpost: tries that address; None to leave it untried.
        isolation: what keeps browsers apart from the machine.
    """

    launch: chromium.Launch = field(default_factory=chromium.Launch)
    slots: int = 2
    max_scale: int = 1
    wear: pool.Wear = field(default_factory=pool.Wear)
    canary: canary.Mode = "Off"
    outpost: canary.Outpost | None = None
    isolation: Isolation = field(default_factory=Isolation)


def _said(model: type[BaseModel], description: str) -> dict[str, Any]:
    return {"model": model, "description": description}


_503 = _said(schemas.InfrastructureProblem, "The infrastructure is at fault. Worth a retry.")
_RENDER: dict[int | str, dict[str, Any]] = {
    200: _said(schemas.RenderAnswer, "Painted, or remembered."),
    400: _said(schemas.MalformedProblem, "The request is malformed."),
    422: _said(schemas.SketchProblem, "The sketch is at fault, and nothing else."),
    429: _said(schemas.BusyProblem, "Every slot paints."),
    503: _503,
}
_METRICS: dict[int | str, dict[str, Any]] = {
    200: {"content": {"text/plain": {"schema": {"type": "string"}}}, "description": "Prometheus'."}
}


def _request(max_scale: int) -> dict[str, Any]:
    """The published request: what this renderer takes."""
    schema = schemas.RenderRequest.model_json_schema()
    schema["properties"]["scale"]["maximum"] = max_scale
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}


class Service:
    """The application and the renderer that lives as long as it."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self._renderer: Renderer | None = None
        self.app = FastAPI(
            title="Watercolour renderer",
            summary="Turns an untrusted p5.brush sketch into a painting.",
            version="1",
            lifespan=self._lifespan,
            docs_url=None,
            redoc_url=None,
        )
        self.app.add_exception_handler(HTTPException, _no_such_path)
        add = self.app.add_api_route
        asks = _request(options.max_scale)
        add("/v1/render", self.render, methods=["POST"], responses=_RENDER, openapi_extra=asks)
        add("/v1/load", self.load, methods=["GET"])
        add("/v1/drain", self.drain, methods=["POST"])
        add("/v1/drain", self.undrain, methods=["DELETE"])
        add("/livez", self.livez, methods=["GET"])
        unready = _said(schemas.UnreadyProblem, "No work is taken now.")
        ready = _said(schemas.Readiness, "Work is taken.")
        add("/readyz", self.readyz, methods=["GET"], responses={200: ready, 503: unready})
        add("/metrics", self.metrics, methods=["GET"], responses=_METRICS, response_class=Response)
        self.app.openapi = self.openapi

    @property
    def renderer(self) -> Renderer:
        """The running renderer."""
        assert self._renderer is not None, "the application has not been started"
        return self._renderer

    @asynccontextmanager
    async def _lifespan(self, _: FastAPI) -> AsyncIterator[None]:
        wanted = self.options
        async with pool.opened(wanted.launch, wanted.slots, wanted.wear) as painters:
            bird = canary.Canary(wanted.canary if wanted.outpost else "Off")
            self._renderer = Renderer(painters, bird, wanted.isolation)
            if wanted.outpost is None:
                yield
                return
            watch = asyncio.create_task(canary.watch(bird, wanted.outpost))
            try:
                yield
            finally:
                watch.cancel()

    async def stopping(self, seconds: float) -> None:
        """Take no more work; return when all that was begun is answered, or the time is over."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.renderer.drain()

    async def render(self, request: Request) -> Response:
        """Paint one sketch."""
        self.renderer.entered()
        outcome = "gone"
        try:
            outcome, answer = await self._render(request)
            return answer
        finally:
            self.renderer.left()
            self.renderer.metrics.requests.labels(outcome).inc()

    async def _render(self, request: Request) -> tuple[str, Response]:
        """The outcome's name and the answer."""
        try:
            wanted = await bodies.read(request)
            if wanted.scale > (most := self.options.max_scale):
                raise bodies.Malformed(
                    mistakes.mistake("scale", f"this renderer takes at most {most}", wanted.scale)
                )
            if not self.renderer.takes_work:
                return "refused", unavailable("no work is taken.", taken=False)
            job = Job(**wanted.model_dump(exclude={"fresh"}))
            painting = self.renderer.render(job, fresh=wanted.fresh)
            painted = await unless(bodies.gone(request), painting)
            facts = asdict(painted) | {"painting": base64.b64encode(painted.painting).decode()}
            text = schemas.RenderAnswer.model_validate(facts).model_dump_json()
            answer = Response(text, media_type="application/json")
            return "cached" if painted.cached else "painted", answer
        except bodies.Malformed as error:
            return "malformed", problem(mistakes.malformed(*error.mistakes))
        except ClientDisconnect:
            return "gone", Response(status_code=GONE)
        except pool.Busy:
            return "busy", busy(self.renderer.pool.slots)
        except SketchFault as fault:
            return fault.violation.code, at_fault(fault)
        except InfrastructureError as error:
            return error.reason, unavailable(str(error), error.reason)
        except Exception:
            log.exception("a request failed")
            words = "a fault of ours; the renderer's log has the traceback."
            return Reason.INTERNAL_ERROR, unavailable(words, Reason.INTERNAL_ERROR)

    async def livez(self) -> schemas.Alive:
        """Whether the process answers."""
        return schemas.Alive()

    async def readyz(self) -> Response:
        """Whether work is taken, and on what the renderer stands."""
        details = self.renderer.readiness()
        why = self.renderer.unready()
        if why is None:
            return Response(details.model_dump_json(), media_type="application/json")
        told = _told(503, why.reason)
        return problem(
            schemas.UnreadyProblem(**told, detail=str(why), taken=False, details=details)
        )

    async def metrics(self) -> Response:
        """The metrics in Prometheus' text format."""
        self.renderer.show()
        text = generate_latest(self.renderer.metrics.registry)
        return Response(text, media_type=CONTENT_TYPE_LATEST)

    async def load(self) -> schemas.Load:
        """How full the renderer is."""
        return self.renderer.load()

    async def drain(self) -> schemas.Load:
        """Finish what is being painted and take no more work."""
        self.renderer.draining = True
        return self.renderer.load()

    async def undrain(self) -> schemas.Load:
        """Take work again."""
        self.renderer.draining = False
        return self.renderer.load()

    def openapi(self) -> dict[str, Any]:
        """The published document: FastAPI's, with problems under their own media type."""
        if self.app.openapi_schema is None:
            self.app.openapi_schema = _with_problems(FastAPI.openapi(self.app))
        return self.app.openapi_schema


def create_app(options: Options) -> FastAPI:
    """The service. It is ready once its pages are warm and the canary is shut out."""
    return Service(options).app


async def unless(gone: Awaitable[None], work: Awaitable[T]) -> T:
    """The outcome of the work, which is cancelled when its asker goes first.

    Raises:
        ClientDisconnect: the asker has gone.
    """
    working, going = asyncio.ensure_future(work), asyncio.ensure_future(gone)
    try:
        await asyncio.wait({working, going}, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            return working.result()
        raise ClientDisconnect
    finally:
        for task in (working, going):
            task.cancel()
        await asyncio.gather(working, going, return_exceptions=True)


def problem(told: schemas.Problem, headers: dict[str, str] | None = None) -> Response:
    """An application/problem+json answer; it says when to ask again if that makes sense."""
    retry = {"Retry-After": str(RETRY_AFTER)} if told.status in (429, 503) else {}
    return Response(
        told.model_dump_json(),
        told.status,
        headers=retry | (headers or {}),
        media_type="application/problem+json",
    )


def unavailable(
    detail: str, reason: Reason = Reason.RENDERER_UNAVAILABLE, *, taken: bool = True
) -> Response:
    """A 503. A reason that the contract does not know is a fault of ours."""
    known = reason if reason in schemas.INFRASTRUCTURE_REASONS else Reason.INTERNAL_ERROR
    told = _told(503, known)
    return problem(schemas.InfrastructureProblem(**told, detail=detail, taken=taken))


def busy(slots: int) -> Response:
    """A 429."""
    told = _told(429, schemas.Refusal.BUSY)
    return problem(schemas.BusyProblem(**told, detail=f"All {slots} slots paint."))


def at_fault(fault: SketchFault) -> Response:
    """A 422."""
    told = _told(422, schemas.Refusal.SKETCH_FAULT)
    return problem(
        schemas.SketchProblem(
            **told,
            detail=fault.violation.message,
            violation=fault.violation,
            js_errors=fault.js_errors,
        )
    )


def _told(status: int, reason: str) -> dict[str, Any]:
    return {
        "type": f"{schemas.PROBLEM}{reason}",
        "title": TITLES[status],
        "status": status,
        "reason": reason,
    }


async def _no_such_path(request: Request, error: Exception) -> Response:
    """404 and 405 in the form of every other problem."""
    assert isinstance(error, HTTPException)
    known = error.status_code == 405
    reason = schemas.Refusal.METHOD_NOT_ALLOWED if known else schemas.Refusal.NOT_FOUND
    words = f"{request.method} {mistakes.cut(request.url.path)}: see /openapi.json."
    told = _told(405 if known else 404, reason)
    allowed = {"Allow": ", ".join(sorted(_methods(request)))} if known else {}
    return problem(schemas.PathProblem(**told, detail=words), allowed)


def _methods(request: Request) -> set[str]:
    """What may be done with a path; the framework names the first route's methods alone."""
    routes = (route for route in request.app.routes if isinstance(route, Route))
    return {
        method
        for route in routes
        if route.path == request.url.path
        for method in route.methods or ()
    }


def _with_problems(document: dict[str, Any]) -> dict[str, Any]:
    """FastAPI lists every model as application/json; problems go by their own media type."""
    for operations in document["paths"].values():
        for operation in operations.values():
            for status, response in operation["responses"].items():
                content = response.get("content", {})
                if int(status) >= 400 and "application/json" in content:
                    content["application/problem+json"] = content.pop("application/json")
                if status in ("429", "503"):
                    response["headers"] = {
                        "Retry-After": {
                            "description": "Seconds after which to ask again.",
                            "schema": {"type": "integer"},
                        }
                    }
    return document
