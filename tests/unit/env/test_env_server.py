"""The whole environment on real sockets, between edges that fail on demand."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import AsyncGenerator, Generator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
import uvicorn
from openenv.core.generic_client import GenericEnvClient
from tests.unit.env import edges
from tests.unit.env.edges import PAINTING, Edge, another, reply, serving
from websockets.asyncio.client import connect

from watercolour import service
from watercolour.api import load
from watercolour.api.reasons import Reason, ViolationCode
from watercolour.api.rollout import Rollout
from watercolour.api.spec import RunSpec
from watercolour.env import corridor, dispatch, presence
from watercolour.env.client import EnvClient
from watercolour.env.server import Neighbours, create_app, neighbours
from watercolour.reward import judge as judging
from watercolour.score import client as scoring


@pytest.fixture(autouse=True)
def brisk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every retry come at once."""
    monkeypatch.setattr(dispatch, "LOOK_AWAY_SECONDS", 0.01)
    monkeypatch.setattr(presence, "LOOK_SECONDS", 0.01)
    monkeypatch.setattr(corridor, "BACKOFF_SECONDS", 0.001)
    monkeypatch.setattr(judging, "BACKOFF_SECONDS", 0.001)
    monkeypatch.setattr(scoring, "BACKOFF_SECONDS", 0.001)


@dataclass
class World:
    """The environment's surroundings."""

    pool: str
    renderer: Edge
    scorer: Edge
    judge: Edge

    def spec(self, recipe: str = "hps-only", **spec: Any) -> RunSpec:
        """A run of two rollouts a step."""
        plain = {
            "recipe": {"name": recipe},
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


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(edges.write_pool(tmp_path_factory.mktemp("pool") / "pool"))


@pytest.fixture
def world(pool: str) -> Generator[World]:
    with ExitStack() as stack:
        yield World(
            pool,
            *(
                stack.enter_context(serving(edge))
                for edge in (edges.renderer(), edges.scorer(), edges.judge())
            ),
        )


@contextmanager
def listening(spec: RunSpec, world: World, near: Neighbours | None = None) -> Generator[str]:
    """The server in a thread; yields its URL once it listens."""
    bound = service.listen("127.0.0.1", 0)
    bound.listen()  # Whoever connects now waits until the server accepts.
    config = uvicorn.Config(
        create_app(spec, near or world.near(spec)),
        ws="websockets-sansio",
        log_config=None,
        timeout_graceful_shutdown=1,
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, args=([bound],))
    thread.start()
    url = f"http://127.0.0.1:{bound.getsockname()[1]}"
    try:
        httpx.get(f"{url}/livez", timeout=30).raise_for_status()
        yield url
    finally:
        server.should_exit = True
        thread.join()
        bound.close()


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
    world.renderer.gets["/v1/load"] = (503, {})
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

    monkeypatch.setattr(corridor.terms, "length", broken)
    async with env(world.spec(), world) as client:
        rollout = await ask(client)
    assert rollout.reward is None
    assert rollout.unscored_reason == Reason.INTERNAL_ERROR
    assert "ZeroDivisionError: a bug" in rollout.unscored_detail


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
            assert found == {"queued": 3, "inflight": 2, "announced": 3, "scorer": quiet}
            text = (await http.get(f"{url}/metrics")).text
            assert "watercolour_render_queue_depth 3.0" in text
            go.set()
            await asyncio.gather(*jobs)
            found = await demand()
            assert found["scorer"].pop("idle_seconds") >= 0
            assert found == {
                "queued": 0,
                "inflight": 0,
                "announced": 3,
                "scorer": {"waiting": 0, "inflight": 0},
            }
            bad = await http.post(f"{url}/v1/demand", json={"announced": -1, "until": 0})
            assert bad.status_code == 400
            assert "announced" in bad.json()["error"]
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
    world.renderer.gets["/v1/load"] = (503, {})
    with listening(world.spec(), world, in_cluster(world)) as url:
        client = EnvClient(url, timeout_s=30)
        job = asyncio.create_task(ask(client))
        async with httpx.AsyncClient(base_url=url) as http:
            async with asyncio.timeout(20):
                while (await http.get("/v1/demand")).json()["queued"] < 1:
                    pass
            ready = await http.get("/readyz")
            assert (ready.status_code, ready.json()["renderer"]) == (200, False)
            world.renderer.gets["/v1/load"] = edges.renderer().gets["/v1/load"]
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


async def test_the_embedded_recipe_pays_for_the_subjects_colours(world: World) -> None:
    async with env(world.spec("embedded"), world) as client:
        red = await ask(client)
        asked_for_blue = await ask(client, subject="a blue iris")
    assert red.reward == pytest.approx(0.05 + 0.4 * 0.5 + 0.2 * 0.5 + 0.3)
    assert asked_for_blue.terms["pigment"] == asked_for_blue.pigment_share == 0.0
    assert asked_for_blue.reward == pytest.approx(0.05 + 0.4 * 0.5 + 0.2 * 0.5)


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
