"""The environment on real sockets, between edges that fail on demand."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any

import httpx
from tests import serving
from tests.unit.env.edges import Edge, reply

from watercolour.api import load
from watercolour.api.rollout import Rollout
from watercolour.api.spec import RunSpec
from watercolour.env.client import EnvClient
from watercolour.env.server import Neighbours, create_app, neighbours


@dataclass
class World:
    """The environment's surroundings."""

    pool: str
    renderer: Edge
    scorer: Edge
    judge: Edge

    def spec(self, recipe: str | dict[str, Any] = "hps-only", **spec: Any) -> RunSpec:
        """A run of two rollouts a step."""
        plain = {
            "recipe": {"name": recipe} if isinstance(recipe, str) else recipe,
            "references": {"pool": self.pool},
            "trainer": {"rolloutsPerStep": 2, "groupSize": 2, "guards": {"probes": 2}},
        }
        data = {
            "apiVersion": "watercolour.dev/v1alpha1",
            "kind": "WatercolourRun",
            "metadata": {"name": "test"},
            "spec": plain | spec,
        }
        return load.from_dict(data).spec

    def near(self, spec: RunSpec) -> Neighbours:
        return neighbours(
            spec, renderers=[self.renderer.url], scorer=self.scorer.url, judge=self.judge.url
        )


@contextmanager
def listening(spec: RunSpec, world: World, near: Neighbours | None = None) -> Generator[str]:
    """The server in a thread; yields its URL once it listens."""
    with serving.listening(create_app(spec, near or world.near(spec)), grace_seconds=1) as url:
        yield url


@asynccontextmanager
async def env(spec: RunSpec, world: World, **options: Any) -> AsyncGenerator[EnvClient]:
    with listening(spec, world) as url:
        client = EnvClient(url, timeout_s=30.0, **options)
        try:
            yield client
        finally:
            await asyncio.to_thread(client.close)


async def ask(client: EnvClient, completion: str = reply(), **ids: Any) -> Rollout:
    settings: dict[str, Any] = {"subject": "a red poppy", "seed": 7} | ids
    return await client.evaluate(completion, **settings)


async def scrape(url: str) -> str:
    async with httpx.AsyncClient() as http:
        return (await http.get(f"{url}/metrics")).text
