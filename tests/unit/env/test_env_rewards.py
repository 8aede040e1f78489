"""What a rollout is worth, and when it is worth nothing that could be told."""

from __future__ import annotations

import asyncio
import shutil
import threading
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.unit.env import edges
from tests.unit.env.edges import PAINTING, another, reply
from tests.unit.env.world import World, ask, env, listening, scrape

from watercolour.api.errors import InputError
from watercolour.api.reasons import Reason, ViolationCode
from watercolour.env import record
from watercolour.env.client import EnvClient
from watercolour.env.server import create_app

pytestmark = pytest.mark.usefixtures("brisk")

JELLYFISH = Path(__file__).parents[3] / "examples/subjects/jellyfish.yaml"


async def test_an_admitted_sketch_comes_back_with_all_that_became_of_it(world: World) -> None:
    async with env(world.spec("hps-led"), world) as client:
        rollout = await ask(client, run="r", step=2, group=1, index=3)
    assert rollout.gate_passed is True
    assert rollout.violations == ()
    assert rollout.painting == PAINTING
    assert (rollout.paint_fraction, rollout.shapes, rollout.mu) == (0.2, 3, 0.0)
    assert len(rollout.references) == len(rollout.votes) == 4
    assert {vote.value for vote in rollout.votes} == {0.5}
    assert rollout.terms == {
        "gate": 1.0,
        "length": 0.0,
        "quality": 0.5,
        "judge": 0.5,
        "pigment": 1.0,
    }
    assert rollout.pigment_share == 1.0
    assert rollout.reward == pytest.approx(0.05 + 0.6 * 0.5 + 0.3 * 0.5)
    assert rollout.draw_strength is not None
    assert rollout.reward_adjusted is not None
    assert rollout.unscored_reason is None
    assert {"gate", "queue", "render", "score", "judge", "env"} <= set(rollout.timings)
    assert rollout.versions["rasterizer"] == "software"
    assert rollout.versions["scorer"] == "embedded/1"
    assert (rollout.run, rollout.step, rollout.group, rollout.index) == ("r", 2, 1, 3)
    assert world.renderer.posts[0]["seed"] == 1
    assert world.scorer.posts[0]["prompt"] == "a loose watercolour flower"


async def test_a_refused_sketch_is_worth_0_and_costs_no_render(world: World) -> None:
    async with env(world.spec("hps-led"), world) as client:
        rollout = await ask(client, "I would rather not.")
    assert rollout.reward == 0.0
    assert rollout.reward_adjusted == 0.0
    assert rollout.gate_passed is False
    assert rollout.violations[0].code == ViolationCode.NO_SKETCH_IN_RESPONSE
    assert rollout.sketch is None
    assert world.renderer.posts == []


async def test_a_fault_that_only_the_render_finds_is_worth_0(world: World) -> None:
    world.renderer.answer = lambda body: edges.fault("sketch_timeout")
    async with env(world.spec(), world) as client:
        rollout = await ask(client)
    assert rollout.reward == 0.0
    assert [violation.code for violation in rollout.violations] == ["sketch_timeout"]
    assert rollout.js_errors == ("boom",)
    assert len(world.renderer.posts) == 1
    assert world.scorer.posts == []


async def test_a_blank_canvas_is_worth_0_by_the_recipes_least_paint(world: World) -> None:
    world.renderer.answer = lambda body: edges.painted(paint_fraction=0.0049)
    async with env(world.spec(), world) as client:
        blank = await ask(client)
        world.renderer.answer = lambda body: edges.painted(paint_fraction=0.005)
        enough = await ask(client, another(1))
    assert blank.reward == 0.0
    assert [violation.code for violation in blank.violations] == ["blank_canvas"]
    assert blank.painting == PAINTING
    assert enough.reward is not None
    assert enough.reward > 0


async def test_a_renderer_that_is_down_ten_times_gives_retries_and_none_but_never_0(
    world: World,
) -> None:
    failures = 10
    lock = threading.Lock()

    def failing(body: dict[str, Any]) -> edges.Answer:
        nonlocal failures
        with lock:
            if failures > 0:
                failures -= 1
                return edges.away()
        return edges.painted()

    world.renderer.answer = failing
    async with env(world.spec(), world, sessions=4) as client:
        rollouts = await asyncio.gather(*(ask(client, another(n), index=n) for n in range(8)))
    assert failures == 0
    for rollout in rollouts:
        assert rollout.reward is None or rollout.reward > 0
        if rollout.reward is None:
            assert rollout.unscored_reason == Reason.RENDERER_UNAVAILABLE
            assert rollout.attempts == 3
    assert any(rollout.reward for rollout in rollouts)
    assert sum(rollout.attempts for rollout in rollouts) > len(rollouts)


async def test_a_renderer_that_stays_broken_leaves_the_rollout_unscored(world: World) -> None:
    world.renderer.answer = lambda body: edges.away("BrowserCrashed")
    with listening(world.spec(), world) as url:
        client = EnvClient(url, timeout_s=30)
        rollout = await ask(client)
        text = await scrape(url)
        await asyncio.to_thread(client.close)
    assert rollout.reward is None
    assert rollout.reward_adjusted is None
    assert rollout.gate_passed is None
    assert rollout.unscored_reason == Reason.BROWSER_CRASHED
    assert rollout.attempts == 3
    assert rollout.sketch is not None
    assert 'watercolour_unscored_total{reason="BrowserCrashed"} 1.0' in text
    assert "watercolour_rollout_retries_total 2.0" in text


async def test_no_renderer_at_all_is_waited_for_until_the_client_would_give_up(
    world: World,
) -> None:
    world.renderer.gets["/readyz"] = (503, {})
    spec = world.spec(env={"messageTimeoutSeconds": 0.5}, renderers={"deadlineSeconds": 0.4})
    async with env(spec, world) as client:
        rollout = await ask(client)
    assert rollout.reward is None
    assert rollout.unscored_reason == Reason.RENDERER_UNAVAILABLE
    assert world.renderer.posts == []


async def test_a_scorer_that_stays_away_leaves_the_whole_reward_unscored(world: World) -> None:
    world.scorer.answer = lambda body: (503, {})
    async with env(world.spec("hps-led"), world) as client:
        rollout = await ask(client)
    assert rollout.reward is None
    assert rollout.unscored_reason == Reason.SCORER_UNAVAILABLE
    assert rollout.terms["quality"] is None
    assert rollout.terms["judge"] == 0.5
    assert rollout.gate_passed is True
    assert rollout.painting == PAINTING
    assert len(world.renderer.posts) == 1
    assert len(world.judge.posts) == 8


async def test_a_scorer_that_comes_back_costs_no_second_render(world: World) -> None:
    world.scorer.answer = lambda body: (
        (503, {}) if len(world.scorer.posts) <= 4 else edges.scored(4.0)
    )
    async with env(world.spec(), world) as client:
        rollout = await ask(client)
    assert rollout.reward == pytest.approx(0.05 + 0.9 * 0.7311, abs=1e-4)
    assert rollout.attempts == 2
    assert len(world.renderer.posts) == 1


async def test_a_judge_without_any_verdict_leaves_the_whole_reward_unscored(world: World) -> None:
    world.judge.answer = lambda body: edges.says("C")
    async with env(world.spec("judge-led"), world) as client:
        rollout = await ask(client)
    assert rollout.reward is None
    assert rollout.unscored_reason == Reason.JUDGE_UNAVAILABLE
    assert {vote.value for vote in rollout.votes} == {None}


async def test_rooms_without_weight_are_not_asked(world: World) -> None:
    async with env(world.spec("hps-only"), world) as client:
        rollout = await ask(client)
    assert rollout.reward == pytest.approx(0.5)
    assert rollout.terms["judge"] is None
    assert rollout.references == ()
    assert rollout.draw_strength is None
    assert rollout.reward_adjusted == rollout.reward
    assert world.judge.posts == []


async def test_equal_sketches_are_painted_scored_and_judged_once(world: World) -> None:
    with listening(world.spec("hps-led"), world) as url:
        client = EnvClient(url, sessions=4, timeout_s=30)
        first = await asyncio.gather(*(ask(client, index=n) for n in range(4)))
        again = await ask(client, f"Another try:\n{reply()}")
        text = await scrape(url)
        await asyncio.to_thread(client.close)
    assert len(world.renderer.posts) == 1
    assert len(world.scorer.posts) == 1
    assert len(world.judge.posts) == 8
    assert len({rollout.reward for rollout in [*first, again]}) == 1
    assert again.painting == PAINTING
    assert sum("render" in rollout.timings for rollout in [*first, again]) == 1
    assert "watercolour_renders_shared_total 4.0" in text


async def test_all_members_of_a_group_meet_the_same_references(world: World) -> None:
    async with env(world.spec("hps-led"), world, sessions=4) as client:
        group = await asyncio.gather(*(ask(client, another(n), seed=11) for n in range(4)))
        others = [await ask(client, another(n), seed=100 + n) for n in range(6)]
    assert len({rollout.references for rollout in group}) == 1
    assert len({rollout.draw_strength for rollout in group}) == 1
    assert len({rollout.references for rollout in others}) > 1


async def test_a_fault_of_ours_is_unscored_and_says_so(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(record.terms, "length", broken)
    async with env(world.spec(), world) as client:
        rollout = await ask(client)
    assert rollout.reward is None
    assert rollout.unscored_reason == Reason.INTERNAL_ERROR
    assert "ZeroDivisionError: a bug" in rollout.unscored_detail


async def test_the_embedded_recipe_pays_for_the_subjects_colours(world: World) -> None:
    async with env(world.spec("embedded"), world) as client:
        red = await ask(client)
        asked_for_blue = await ask(client, subject="a blue iris")
    assert red.reward == pytest.approx(0.05 + 0.4 * 0.5 + 0.2 * 0.5 + 0.3)
    assert asked_for_blue.terms["pigment"] == asked_for_blue.pigment_share == 0.0
    assert asked_for_blue.reward == pytest.approx(0.05 + 0.4 * 0.5 + 0.2 * 0.5)


async def test_a_pools_own_subject_is_paid_for_the_colours_that_the_pool_describes(
    world: World, tmp_path: Path
) -> None:
    folder = tmp_path / "pool"
    shutil.copytree(world.pool, folder)
    figure = yaml.safe_load(JELLYFISH.read_text())
    # The renderer of these tests paints red.
    for name, arcs, paid in (("a heron", [[340, 20]], 0.3), ("a heron", [[200, 300]], 0.0)):
        (folder / "subject.yaml").write_text(yaml.safe_dump(figure | {"name": name, "hue": arcs}))
        spec = world.spec("embedded", references={"pool": str(folder)})
        async with env(spec, world) as client:
            own, other = await ask(client, subject="a heron"), await ask(client)
        assert own.hues == tuple((float(a), float(b)) for a, b in arcs)
        assert own.pigment_share == own.terms["pigment"] == paid / 0.3
        assert own.reward == pytest.approx(0.05 + 0.4 * 0.5 + 0.2 * 0.5 + paid)
        # What the pool does not describe is as it was.
        assert (other.hues, other.terms["pigment"]) == ((), 1.0)


async def test_a_description_that_breaks_a_rule_ends_the_environment_before_it_serves(
    world: World, tmp_path: Path
) -> None:
    folder = tmp_path / "pool"
    shutil.copytree(world.pool, folder)
    (folder / "subject.yaml").write_text("name: a heron\nhue: red\n")
    spec = world.spec("embedded", references={"pool": str(folder)})
    with pytest.raises(InputError, match=r"subject\.yaml: hue='red'"):
        create_app(spec, world.near(spec))


@pytest.mark.parametrize("subject", ["a white lily", "a heron"])
async def test_a_subject_without_a_colour_is_rewarded_by_the_other_terms(
    world: World, subject: str
) -> None:
    async with env(world.spec("embedded"), world) as client:
        rollout = await ask(client, subject=subject)
    assert rollout.terms["pigment"] is None
    assert rollout.pigment_share is None
    assert rollout.unscored_reason is None
    assert rollout.reward == pytest.approx((0.05 + 0.4 * 0.5 + 0.2 * 0.5) / 0.7)


async def test_a_renderer_that_sends_no_picture_leaves_the_rollout_unscored(world: World) -> None:
    world.renderer.answer = lambda body: edges.painted(painting="bm8gcGljdHVyZQ==")
    async with env(world.spec("embedded"), world) as client:
        rollout = await ask(client)
    assert rollout.reward is None
    assert rollout.unscored_reason == Reason.RENDERER_UNAVAILABLE
    assert "no picture" in rollout.unscored_detail
