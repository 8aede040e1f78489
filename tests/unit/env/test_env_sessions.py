"""Sessions: who gets one, who may use it, and what is told in it."""

from __future__ import annotations

import asyncio
import json

import pytest
from openenv.core.generic_client import GenericEnvClient
from tests.unit.env import edges
from tests.unit.env.edges import another, reply
from tests.unit.env.world import World, ask, listening
from websockets.asyncio.client import connect

from watercolour.api.rollout import Rollout
from watercolour.env.client import EnvClient

pytestmark = pytest.mark.usefixtures("brisk")


async def test_more_clients_than_sessions_wait_for_their_turn(world: World) -> None:
    spec = world.spec(env={"sessions": 2})
    with listening(spec, world) as url:
        clients = [EnvClient(url, sessions=1, timeout_s=30) for _ in range(4)]

        async def one(client: EnvClient, n: int) -> Rollout:
            rollout = await ask(client, another(n))
            await asyncio.to_thread(client.close)
            return rollout

        rollouts = await asyncio.gather(*(one(client, n) for n, client in enumerate(clients)))
    assert [rollout.reward for rollout in rollouts] == [pytest.approx(0.5)] * 4
    assert {rollout.attempts for rollout in rollouts} == {1}


async def test_a_session_whose_client_died_is_free_again(world: World) -> None:
    spec = world.spec(env={"sessions": 2})
    with listening(spec, world) as url:
        for _ in range(2):
            async with connect(f"{url.replace('http', 'ws')}/ws") as socket:
                await socket.send(json.dumps({"type": "reset", "data": {}}))
                await socket.recv()
                socket.transport.abort()
        client = EnvClient(url, sessions=2, timeout_s=30)
        rollouts = await asyncio.gather(ask(client, another(1)), ask(client, another(2)))
        await asyncio.to_thread(client.close)
    assert {rollout.attempts for rollout in rollouts} == {1}


async def test_any_openenv_client_can_use_it(world: World) -> None:
    with listening(world.spec("hps-led"), world) as url:
        async with GenericEnvClient(base_url=url) as client:
            task = await client.reset(seed=3, subject="a blue iris", return_image=True)
            assert task.reward is None
            assert "a blue iris" in task.observation["prompt"]
            assert len(task.observation["references"]) == 4
            result = await client.step({"response": reply()})
            state = await client.state()
    assert result.done is True
    assert result.reward == pytest.approx(0.5)
    assert result.observation["gate_passed"] is True
    assert result.observation["painting"]
    assert state["submitted"] == 1
    assert state["subject"] == "a blue iris"


async def test_a_policy_may_revise_and_see_its_painting(world: World) -> None:
    world.renderer.answer = lambda body: edges.painted(js_errors=["x is not defined"])
    with listening(world.spec("hps-led"), world) as url:
        async with GenericEnvClient(base_url=url) as client:
            await client.reset(seed=3, revisions=1, return_image=True)
            refused = await client.step({"response": "no"})
            assert (refused.done, refused.reward) == (False, 0.0)
            assert refused.observation["revisions_left"] == 1 - 0
            assert "no_sketch_in_response" in refused.observation["critique"]
            admitted = await client.step({"response": reply()})
            with pytest.raises(RuntimeError, match="revisions"):
                await client.step({"response": reply()})
    assert admitted.done is True
    assert admitted.observation["finished"] is True
    assert admitted.observation["painting"]
    assert "x is not defined" in admitted.observation["critique"]


async def test_the_critique_tells_neither_scores_nor_references(world: World) -> None:
    async def critique(mu: float, winner: str, n: int) -> str:
        world.scorer.answer = lambda body: edges.scored(mu)
        world.judge.answer = lambda body: edges.says(winner)
        with listening(world.spec("hps-led"), world) as url:
            async with GenericEnvClient(base_url=url) as client:
                await client.reset(seed=n, revisions=1)
                step = await client.step({"response": reply()})
        names = step.observation["references"]
        assert names
        assert not any(name in step.observation["critique"] for name in names)
        return step.observation["critique"]

    assert await critique(7.0, "A", 1) == await critique(-7.0, "B", 2)


async def test_a_value_out_of_range_is_named(world: World) -> None:
    with listening(world.spec(), world) as url:
        async with GenericEnvClient(base_url=url) as client:
            with pytest.raises(RuntimeError, match="references=0 is not a whole number"):
                await client.reset(references=0)
            with pytest.raises(RuntimeError, match="step before reset"):
                await client.step({"response": reply()})
