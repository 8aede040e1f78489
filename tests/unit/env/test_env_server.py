"""The server around the sessions: demand, neighbours that sleep or come and go, readiness."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import httpx
import pytest
from tests.unit.env import edges
from tests.unit.env.edges import another
from tests.unit.env.world import World, ask, listening

from watercolour.api.reasons import Reason
from watercolour.env.client import EnvClient
from watercolour.env.server import Neighbours, neighbours

pytestmark = pytest.mark.usefixtures("brisk")


async def test_demand_shows_what_waits_what_runs_and_what_was_announced(world: World) -> None:
    go, running = threading.Event(), threading.Semaphore(0)

    def slow(body: dict[str, Any]) -> edges.Answer:
        running.release()
        go.wait(20)
        return edges.painted()

    world.renderer.answer = slow
    with listening(world.spec(), world) as url:
        client = EnvClient(url, sessions=5, timeout_s=30)
        assert await client.announce(8, time.time() + 60)
        jobs = [asyncio.create_task(ask(client, another(n))) for n in range(5)]
        for _ in range(2):
            await asyncio.to_thread(running.acquire)
        async with httpx.AsyncClient() as http:

            async def demand() -> dict[str, Any]:
                return (await http.get(f"{url}/v1/demand")).json()

            async with asyncio.timeout(20):
                while (found := await demand())["queued"] < 3:
                    pass
            quiet = {"waiting": 0, "inflight": 0, "idle_seconds": None}
            waiting = {"queued": 3, "inflight": 2, "announced": 3, "due_seconds": 0.0}
            assert found == {**waiting, "scorer": quiet}
            text = (await http.get(f"{url}/metrics")).text
            assert "watercolour_render_queue_depth 3.0" in text
            assert "watercolour_renders_inflight 2.0" in text
            assert "watercolour_render_jobs_total 5.0" in text
            go.set()
            await asyncio.gather(*jobs)
            found = await demand()
            assert found["scorer"].pop("idle_seconds") >= 0
            assert found == {
                "queued": 0,
                "inflight": 0,
                "announced": 3,
                "due_seconds": 0.0,
                "scorer": {"waiting": 0, "inflight": 0},
            }
            text = (await http.get(f"{url}/metrics")).text
            assert 'watercolour_render_jobs_ended_total{outcome="painted"} 5.0' in text
            assert 'watercolour_render_jobs_ended_total{outcome="cancelled"} 0.0' in text
            assert 'watercolour_render_attempts_total{outcome="painted"} 5.0' in text
            bad = await http.post(f"{url}/v1/demand", json={"announced": -1, "until": 0})
            assert bad.status_code == 400
            assert "announced" in bad.json()["error"]
            assert await client.announce(8, time.time() + 600, 300.0)
            assert 290 < (await demand())["due_seconds"] <= 300
            bad = {"announced": 1, "until": time.time() + 60, "due_seconds": -1}
            reply = await http.post(f"{url}/v1/demand", json=bad)
            assert (reply.status_code, "due_seconds" in reply.json()["error"]) == (400, True)
        await asyncio.to_thread(client.close)


def in_cluster(world: World, recipe: str = "hps-only") -> Neighbours:
    """Renderers by name; scorer and judge that may sleep."""
    port = int(world.renderer.url.rpartition(":")[2])
    return neighbours(
        world.spec(recipe),
        renderers=[],
        scorer=world.scorer.url,
        judge=world.judge.url,
        dns=("127.0.0.1", port),
    )


async def test_without_a_renderer_work_waits_is_demand_and_no_fault(world: World) -> None:
    world.renderer.gets["/readyz"] = (503, {})
    with listening(world.spec(), world, in_cluster(world)) as url:
        client = EnvClient(url, timeout_s=30)
        job = asyncio.create_task(ask(client))
        async with httpx.AsyncClient(base_url=url) as http:
            async with asyncio.timeout(20):
                while (await http.get("/v1/demand")).json()["queued"] < 1:
                    pass
            ready = await http.get("/readyz")
            assert (ready.status_code, ready.json()["renderer"]) == (200, False)
            world.renderer.gets["/readyz"] = edges.renderer().gets["/readyz"]
            rollout = await job
        await asyncio.to_thread(client.close)
    assert (rollout.reward, rollout.attempts) == (pytest.approx(0.5), 1)


async def test_a_renderer_that_drains_costs_no_attempt(world: World) -> None:
    world.renderer.answer = lambda body: (
        edges.painted() if len(world.renderer.posts) > 4 else edges.drains()
    )
    with listening(world.spec(), world, in_cluster(world)) as url:
        client = EnvClient(url, timeout_s=30)
        rollout = await ask(client)
        await asyncio.to_thread(client.close)
    assert (rollout.reward, rollout.attempts) == (pytest.approx(0.5), 1)
    assert len(world.renderer.posts) == 5


async def test_a_painting_waits_for_a_scorer_that_sleeps_and_is_demand(world: World) -> None:
    world.scorer.gets["/readyz"] = (503, {"reason": "loading"})
    with listening(world.spec(), world, in_cluster(world)) as url:
        client = EnvClient(url, timeout_s=30)
        job = asyncio.create_task(ask(client))
        async with httpx.AsyncClient(base_url=url) as http:

            async def waiting() -> int:
                return (await http.get("/v1/demand")).json()["scorer"]["waiting"]

            async with asyncio.timeout(20):
                while await waiting() < 1:
                    pass
            ready = await http.get("/readyz")
            assert (ready.status_code, ready.json()["scorer"]) == (200, False)
            assert world.scorer.posts == []
            world.scorer.gets["/readyz"] = (200, {})
            rollout = await job
            assert await waiting() == 0
        await asyncio.to_thread(client.close)
    assert (rollout.reward, rollout.attempts) == (pytest.approx(0.5), 1)


async def test_a_scorer_that_does_not_wake_in_time_leaves_the_reward_unscored(
    world: World,
) -> None:
    world.scorer.gets["/readyz"] = (503, {})
    spec = world.spec(env={"messageTimeoutSeconds": 0.9}, renderers={"deadlineSeconds": 0.4})
    with listening(spec, world, in_cluster(world)) as url:
        client = EnvClient(url, timeout_s=30)
        rollout = await ask(client)
        await asyncio.to_thread(client.close)
    assert rollout.reward is None
    assert rollout.unscored_reason == Reason.SCORER_UNAVAILABLE
    assert rollout.terms["quality"] is None
    assert world.scorer.posts == []


async def test_it_is_ready_only_while_all_whom_it_needs_answer(world: World) -> None:
    with listening(world.spec("hps-led"), world) as url:
        client = EnvClient(url, timeout_s=30)
        await ask(client)
        async with httpx.AsyncClient() as http:
            well = await http.get(f"{url}/readyz")
            assert (well.status_code, well.json()) == (
                200,
                {"renderer": True, "scorer": True, "judge": True},
            )
            world.scorer.gets["/readyz"] = (503, {"reason": "loading"})
            loading = await http.get(f"{url}/readyz")
            assert (loading.status_code, loading.json()["scorer"]) == (503, False)
            assert (await http.get(f"{url}/livez")).status_code == 200
            assert (await http.get(f"{url}/health")).status_code == 200
            assert (await http.post(f"{url}/step", json={})).status_code == 404
        await asyncio.to_thread(client.close)


def test_the_server_refuses_a_spec_whose_recipe_it_cannot_serve(world: World) -> None:
    with pytest.raises(Exception, match=r"spec\.scorer\.backend=none.*recipe hps-only"):
        world.near(world.spec(scorer={"backend": "none"}))
    with pytest.raises(Exception, match=r"spec\.judge\.backend=none.*recipe hps-led"):
        world.near(world.spec("hps-led", judge={"backend": "none"}))
    with pytest.raises(Exception, match=r"spec\.scorer\.endpoint.*--scorer URL"):
        neighbours(world.spec(), renderers=["http://r"], scorer=None, judge=None)
    with pytest.raises(Exception, match="--renderer"):
        neighbours(world.spec(), renderers=[], scorer="http://s", judge=None)
    near = neighbours(
        world.spec(judge={"backend": "none"}), renderers=["http://r"], scorer="http://s", judge=None
    )
    assert near.judge is None
