"""What recipes ask of the environment: who is needed, and what stands in the record."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.env import edges
from tests.unit.env.world import World, ask, env, listening, scrape

from watercolour.api.errors import InputError
from watercolour.api.reasons import Reason, ViolationCode
from watercolour.env.client import EnvClient
from watercolour.env.server import neighbours

pytestmark = pytest.mark.usefixtures("brisk")


async def test_the_control_recipe_asks_nobody_at_all(world: World) -> None:
    spec = world.spec("control")
    near = neighbours(spec, renderers=[], scorer=None, judge=None)
    assert (near.renderers, near.scorer, near.judge) == ((), None, None)
    with listening(spec, world, near) as url:
        client = EnvClient(url, timeout_s=30)
        admitted = await ask(client)
        refused = await ask(client, "I would rather not.")
        client.close()
    assert admitted.terms == {"gate": 1.0, "length": 0.0, "fills": 0.125}
    assert admitted.reward == pytest.approx(0.1 + 0.9 / 8)
    assert refused.reward == 0.0
    asked = (world.renderer.posts, world.scorer.posts, world.judge.posts)
    assert asked == ([], [], [])


async def test_chance_rewards_refused_sketches_too_and_by_their_place(world: World) -> None:
    async with env(world.spec("random"), world) as client:
        refused = await ask(client, "I would rather not.", step=3, index=1)
        admitted = await ask(client, step=3, index=1)
        other = await ask(client, step=3, index=2)
    assert refused.gate_passed is False
    assert refused.reward == admitted.reward
    assert other.reward != admitted.reward


async def test_a_term_about_the_group_leaves_a_rollout_pending_and_counted_as_that(
    world: World,
) -> None:
    spec = world.spec("hybrid")
    with listening(spec, world) as url:
        client = EnvClient(url, timeout_s=30)
        rollout = await ask(client)
        text = await scrape(url)
        client.close()
    assert rollout.reward is None
    assert rollout.unscored_reason == Reason.GROUP_PENDING
    assert {"quality", "utility", "perceptual"} <= rollout.terms.keys()
    assert "diversity" not in rollout.terms
    assert len(rollout.reference_strengths) == len(rollout.references) == 4
    assert 'watercolour_rollouts_total{outcome="pending"} 1.0' in text
    assert "GroupPending" not in text
    assert world.renderer.posts[0]["cpu_budget_s"] == 2.0


async def test_a_sketch_that_takes_more_memory_than_the_recipe_grants_is_refused(
    world: World,
) -> None:
    world.renderer.answer = lambda body: edges.painted(peak_memory_bytes=513 * 2**20)
    async with env(world.spec("hybrid"), world) as client:
        rollout = await ask(client)
    assert rollout.reward == -1.0
    assert [one.code for one in rollout.violations] == [ViolationCode.SKETCH_OOM]
    async with env(world.spec("hps-only"), world) as client:
        assert (await ask(client)).gate_passed is True


async def test_weights_and_draws_are_those_of_the_step(world: World) -> None:
    recipe: dict[str, Any] = {
        "name": "judge-led",
        "schedule": {"stages": [{"step": 5, "weights": {"gate": 0.5, "quality": 0.5}}]},
        "curriculum": [{"step": 5, "tierShares": {"love": 1.0, "okay": 0.0}}],
    }
    async with env(world.spec(recipe=recipe), world) as client:
        early, late = await ask(client, step=4), await ask(client, step=5)
    assert early.weights["judge"] == 0.6
    assert late.weights == {"gate": 0.5, "quality": 0.5}
    assert {name.partition("_")[0] for name in early.references} == {"love", "okay"}
    assert {name.partition("_")[0] for name in late.references} == {"love"}
    # Harder than at the start, and told against the start.
    assert early.mean_draw_strength == late.mean_draw_strength
    assert late.votes == ()


def test_marks_need_a_backend_that_gives_them(world: World) -> None:
    with pytest.raises(InputError, match=r"weighs mark_adherence.*Set it to vlm-mark"):
        world.near(world.spec("nine-signal"))


async def test_a_term_that_needs_a_replay_asks_for_one_and_no_other_does(world: World) -> None:
    square = [0.0, 0.0, 130.0, 0.0, 130.0, 130.0, 0.0, 130.0]
    shape = {
        "kind": "fill",
        "call": "circle",
        "paths": [square],
        "colour": "#d43428",
        "opacity": 0.8,
    }
    replay = {
        "width": 200,
        "height": 200,
        "seed": 1,
        "shapes": [shape],
        "truncated": False,
        "elsewhere": 0,
    }
    world.renderer.answer = lambda body: edges.painted(
        **({"replay": replay} if body.get("replay") else {})
    )
    own = {"name": "mine", "weights": {"gate": 0.5, "area": 0.5}}
    async with env(world.spec(recipe=own), world) as client:
        rollout = await ask(client)
    assert rollout.heaviest_shape == pytest.approx(0.338, abs=0.01)
    assert rollout.terms["area"] == pytest.approx((0.42 - 0.338) / 0.14, abs=0.06)
    async with env(world.spec("hps-only"), world) as client:
        assert (await ask(client, edges.another(1))).heaviest_shape is None
    assert "replay" not in world.renderer.posts[-1]
