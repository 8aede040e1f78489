"""Scorer and judge put to the test: the judge at the start, both now and then on known paintings.

``POST /v1/selfcheck`` and ``POST /v1/probes``. Neither reads or leaves a remembered value, and the
judge's calls come out of its budget.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import asdict
from typing import Any

from fastapi import FastAPI

from watercolour import logs
from watercolour.api.errors import InfrastructureError
from watercolour.env.corridor import Rooms
from watercolour.env.presence import Presence
from watercolour.reward import pool as pools
from watercolour.reward import selfcheck, terms
from watercolour.reward.pool import Reference
from watercolour.reward.selfcheck import SelfCheck

log = logs.get(__name__)

#: Paintings that are scored again and again, and references that each of them is compared with.
PROBES, OPPONENTS = 4, 2

NOT_NEEDED = SelfCheck(None, None, None, None, 0, 0, "the recipe asks no judge")


async def self_check(rooms: Rooms) -> SelfCheck:
    """What the judge makes of pairs of which the answer is known; waits for one that sleeps."""
    if rooms.judge is None or rooms.pool is None:
        return NOT_NEEDED
    async with _awake(rooms.judge_presence):
        found = await selfcheck.check(rooms.judge, rooms.pool)
    log.info("the judge's self-check: %s", found.message)
    return found


async def probes(rooms: Rooms, prompt: str) -> list[dict[str, Any]]:
    """Quality and share of wins of the same few paintings, whenever it is asked.

    Args:
        rooms: scorer, judge and pool.
        prompt: the text sent to the scorer.

    Returns:
        One ``{name, quality, wins}`` a painting; None where nobody was asked or could say.
    """
    rated = rooms.pool or await asyncio.to_thread(pools.load, f"{pools.BUILTIN}flowers")
    ordered = sorted(rated.references, key=lambda one: (-one.strength, one.name))
    chosen = selfcheck.spread(ordered, PROBES + OPPONENTS)
    opponents, painted = chosen[1 : 1 + OPPONENTS], [*chosen[:1], *chosen[1 + OPPONENTS :]]
    return list(await asyncio.gather(*(_probe(rooms, prompt, one, opponents) for one in painted)))


async def _probe(
    rooms: Rooms, prompt: str, one: Reference, opponents: list[Reference]
) -> dict[str, Any]:
    quality, wins = await asyncio.gather(_quality(rooms, prompt, one), _wins(rooms, one, opponents))
    return {"name": one.name, "quality": quality, "wins": wins}


async def _quality(rooms: Rooms, prompt: str, one: Reference) -> float | None:
    if rooms.scorer is None:
        return None
    async with _awake(rooms.scorer_presence):
        try:
            return terms.quality((await rooms.scorer.score(one.painting, prompt)).mu)
        except (InfrastructureError, ValueError) as error:
            log.warning("the probe %s has no score: %s", one.name, error)
            return None


async def _wins(rooms: Rooms, one: Reference, opponents: list[Reference]) -> float | None:
    if rooms.judge is None:
        return None
    async with _awake(rooms.judge_presence):
        found = await rooms.judge.compare(one.painting, opponents, fresh=True)
    return terms.judge(found.votes)


@asynccontextmanager
async def _awake(presence: Presence | None) -> AsyncGenerator[None]:
    if presence is None:
        yield
        return
    async with presence.needed():
        yield


def add_routes(app: FastAPI) -> None:
    """Serve both; the application's state holds the corridor."""

    @app.post("/v1/selfcheck")
    async def post_selfcheck() -> dict[str, Any]:
        return asdict(await self_check(app.state.corridor.rooms))

    @app.post("/v1/probes")
    async def post_probes() -> dict[str, Any]:
        corridor = app.state.corridor
        return {"paintings": await probes(corridor.rooms, corridor.spec.scorer.prompt)}

    _ = (post_selfcheck, post_probes)
