"""The judge's limits and trials, through the environment's own server."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.unit.env import edges
from tests.unit.env.edges import another
from tests.unit.env.world import World, ask, env, listening, scrape

from watercolour.api.reasons import Reason
from watercolour.env.client import EnvClient

pytestmark = pytest.mark.usefixtures("brisk")


async def answered(client: EnvClient, what: str) -> dict[str, Any]:
    future = client.submit_self_check() if what == "selfcheck" else client.submit_probes()
    found = await asyncio.wrap_future(future)
    assert found is not None
    return found


async def test_the_self_check_asks_the_judge_itself_and_remembers_nothing(world: World) -> None:
    async with env(world.spec("hps-led"), world) as client:
        first = await answered(client, "selfcheck")
        asked = len(world.judge.posts)
        await answered(client, "selfcheck")
    # This judge always says A: equal pictures tie, and the pool has no tier meh to lose to love.
    assert (first["passed"], first["ties"], first["wins"]) == (True, 1.0, None)
    assert first["pairs"] == first["answered"] == 4
    assert asked == 8
    assert len(world.judge.posts) == 16


async def test_a_judge_that_is_away_is_no_unfit_one(world: World) -> None:
    world.judge.answer = lambda body: (503, {})
    async with env(world.spec("hps-led"), world) as client:
        found = await answered(client, "selfcheck")
    assert (found["passed"], found["reason"]) == (None, "JudgeUnavailable")


async def test_a_recipe_without_a_judge_has_nothing_to_check(world: World) -> None:
    async with env(world.spec("hps-only"), world) as client:
        found = await answered(client, "selfcheck")
    assert (found["passed"], found["pairs"]) == (None, 0)
    assert world.judge.posts == []


async def test_probes_are_scored_anew_whenever_they_are_asked_for(world: World) -> None:
    async with env(world.spec("hps-led"), world) as client:
        before = (await answered(client, "probes"))["paintings"]
        world.scorer.answer = lambda body: edges.scored(4.0)
        after = (await answered(client, "probes"))["paintings"]
    assert len(before) == 4
    assert {one["quality"] for one in before} == {0.5}
    assert all(one["quality"] > 0.7 for one in after)
    assert {one["wins"] for one in (*before, *after)} == {0.5}
    assert [one["name"] for one in before] == [one["name"] for one in after]


def hosted(world: World, **judge: Any) -> Any:
    """A run whose judge is an endpoint."""
    own = {"backend": "openai", "endpoint": world.judge.url, "model": "vlm"}
    return world.spec("hps-led", judge=own | judge)


async def test_a_spent_budget_leaves_rollouts_unscored_and_says_so(world: World) -> None:
    spec = hosted(world, budget={"calls": 8})
    async with env(spec, world) as client:
        first = await ask(client)
        second = await ask(client, another(1))
    assert first.reward is not None
    assert second.reward is None
    assert second.unscored_reason is Reason.JUDGE_BUDGET_SPENT
    assert "8 of 8 calls" in second.unscored_detail
    # There is nothing to be gained by asking again.
    assert second.attempts == 1
    assert len(world.judge.posts) == 8


async def test_verdicts_and_what_was_spent_outlive_the_environment(
    world: World, tmp_path: Path
) -> None:
    spec = hosted(world, budget={"calls": 12})
    near = replace(world.near(spec), verdicts=tmp_path / "verdicts.sqlite")
    for completions, asked in (((edges.reply(),), 8), ((edges.reply(), another(1)), 8)):
        with listening(spec, world, near) as url:
            client = EnvClient(url, timeout_s=30.0)
            found = [await ask(client, one) for one in completions]
            shown = await scrape(url)
            await asyncio.to_thread(client.close)
        assert found[0].reward is not None
        assert len(world.judge.posts) == asked
        assert "watercolour_judge_budget_calls_spent 8.0" in shown
    assert found[1].unscored_reason is Reason.JUDGE_BUDGET_SPENT


async def test_the_embedded_judge_stands_in_only_where_the_run_says_so(world: World) -> None:
    world.judge.answer = lambda body: (503, {})
    scored = world.scorer.answer
    # The embedded scorer judges as well: what shows messages is asked as a judge.
    world.scorer.answer = lambda body: edges.says("A") if "messages" in body else scored(body)
    async with env(hosted(world), world) as client:
        alone = await ask(client)
    async with env(hosted(world, fallback="embedded"), world) as client:
        helped = await ask(client)
    assert alone.unscored_reason is Reason.JUDGE_UNAVAILABLE
    assert helped.reward is not None
    assert helped.versions["judge"] == "embedded"
