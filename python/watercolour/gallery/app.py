"""The web application: pages of this machine, of which rating a pool is the first.

A page is a file of ``site`` and some routes below ``/api``. Pages share the guard, the look
(``base.css``) and the small modules of ``site``; nothing is built and nothing is asked of another
server.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from fastapi import APIRouter, FastAPI
from pydantic import BaseModel, ConfigDict, Field
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, RedirectResponse, Response
from starlette.staticfiles import StaticFiles

from watercolour.api.errors import InfrastructureError, WatercolourError
from watercolour.api.reasons import Reason
from watercolour.gallery import rating
from watercolour.gallery.guard import Guard
from watercolour.reward import pool as pools
from watercolour.reward import rating_log
from watercolour.reward.rating_log import Said, Won

SITE = Path(__file__).with_name("site")


class _Asked(BaseModel):
    """What every request of the rating page says: who rates, how, and what is to be shown."""

    model_config = ConfigDict(extra="forbid")

    rater: str
    mode: rating.Mode = "tiers"
    skipped: list[str] = Field(default_factory=list, max_length=10_000)
    wanted: str | None = None


class _Act(_Asked):
    id: str = Field(min_length=8, max_length=64)


class _Rate(_Act):
    name: str
    said: Said


class _Compare(_Act):
    left: str
    right: str
    won: Won


def create_app(pool: Path, token: str, *, rater: str = "") -> FastAPI:
    """The application for one pool.

    Args:
        pool: its folder.
        token: what a visitor has to bring; see :mod:`watercolour.gallery.guard`.
        rater: who rates, unless the page says otherwise.
    """
    app = FastAPI(openapi_url=None, middleware=[Middleware(Guard, token=token)])
    app.add_exception_handler(WatercolourError, _problem)
    app.include_router(rating_routes(pool, rater))
    app.mount("/site", StaticFiles(directory=SITE))

    @app.get("/")
    async def index() -> Response:
        return RedirectResponse("/rate")

    return app


def rating_routes(pool: Path, rater: str) -> APIRouter:
    """The page that rates a pool."""
    routes = APIRouter()

    @routes.get("/rate")
    async def page() -> Response:
        return FileResponse(SITE / "rate.html", headers={"Cache-Control": "no-cache"})

    @routes.get("/paintings/{name}.png")
    async def painting(name: str) -> Response:
        known = {record.name for record in await asyncio.to_thread(pools.read_records, pool)}
        path = pools.painting_path(pool, name)
        if name not in known or not path.is_file():
            return Response(status_code=404)
        return FileResponse(path, headers={"Cache-Control": "no-cache"})

    @routes.get("/api/rating/rater")
    async def who() -> Response:
        return JSONResponse({"rater": rater})

    @routes.post("/api/rating/state")
    async def state(asked: _Asked) -> Response:
        return await _shown(pool, asked)

    @routes.post("/api/rating/rate")
    async def rate(asked: _Rate) -> Response:
        act = partial(rating.rate, act_id=asked.id, name=asked.name, said=asked.said)
        return await _shown(pool, asked, act)

    @routes.post("/api/rating/compare")
    async def compare(asked: _Compare) -> Response:
        act = partial(
            rating.compare,
            act_id=asked.id,
            left=asked.left,
            right=asked.right,
            won=asked.won,
        )
        return await _shown(pool, asked, act)

    @routes.post("/api/rating/undo")
    async def undo(asked: _Act) -> Response:
        return await _shown(pool, asked, partial(rating.undo, act_id=asked.id))

    return routes


async def _shown(
    pool: Path, asked: _Asked, act: Callable[[Path, str], object] | None = None
) -> Response:
    """Do what was asked, then tell how things stand; in a thread, since it waits for the disk.

    An act may name the painting that is to be shown afterwards.
    """

    def work() -> dict[str, Any]:
        rater = rating_log.checked_rater(asked.rater)
        wanted = act(pool, rater) if act is not None else None
        shown = wanted if isinstance(wanted, str) else asked.wanted
        return rating.state(pool, rater, asked.mode, skipped=asked.skipped, wanted=shown)

    return JSONResponse(await asyncio.to_thread(work))


async def _problem(_: Request, error: Exception) -> Response:
    """Any of our errors as JSON, with what to do about it."""
    assert isinstance(error, WatercolourError)
    status = 400
    if isinstance(error, InfrastructureError):
        status = 507 if error.reason == Reason.DISK_FULL else 503
    told = {"reason": error.reason.value, "message": error.message, "remedy": error.remedy}
    return JSONResponse(told, status)
