"""Scorer and judge: off until the trainer has a node, asleep when idle, gone first. And Kueue."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.operator.world import RUN, World, run_spec, story, training

from watercolour.api.status import ConditionType, Phase
from watercolour_operator.names import Component
from watercolour_operator.observed import Demand, Load

T = ConditionType
BUSY, QUIET = Demand(2, 2, 0), Demand(0, 0, 0)


def test_the_scorer_starts_when_the_trainer_is_scheduled_and_not_earlier() -> None:
    world = World(room=False)
    assert world.live(5).scorer == 0
    assert world.status.scorer == "Stopped"
    world.room = True
    world.tick()
    assert world.reconcile().scorer == 1
    assert world.status.scorer == "Starting"
    world.live(3)
    assert world.status.scorer == "Ready"
    assert world.said(T.SCORER_READY) == ("True", "Ready")


def test_a_trainer_that_cannot_start_wakes_no_scorer() -> None:
    world = World()
    world.reconcile()
    world.tick()
    broken = {"phase": "Pending", "ready": False, "started": None}
    world.change(world.trainer, **broken, waiting_reason="ImagePullBackOff", message="no such tag")
    assert world.trainer.scheduled is not None
    assert world.reconcile().scorer == 0


def test_an_idle_scorer_sleeps_and_announced_demand_wakes_it() -> None:
    world = training(scorer={"backend": "hpsv3", "idleTimeoutSeconds": 100})
    world.demand = BUSY
    world.live(20)
    world.demand = QUIET
    world.live(100)
    assert world.of(Component.SCORER), "never before idleTimeoutSeconds"
    world.live(15)
    assert world.of(Component.SCORER) == []
    assert world.status.scorer == "Sleeping"
    assert world.said(T.SCORER_READY) == ("True", "Idle")
    world.demand = Demand(0, 0, 16)
    assert world.live(1).scorer == 1
    assert world.status.scorer == "Starting"


def test_long_demand_keeps_the_scorer_awake_and_writes_the_status_seldom() -> None:
    world = training()
    world.demand = BUSY
    noted: set[str | None] = set()
    for _ in range(180):
        world.tick(10)
        assert world.reconcile().scorer == 1
        noted.add(world.status.last_demand_time)
    assert len(noted) <= 31


def test_demand_that_is_not_known_changes_nothing() -> None:
    world = training(scorer={"backend": "hpsv3", "idleTimeoutSeconds": 50})
    world.demand = None
    world.live(300, every=5)
    assert len(world.of(Component.SCORER)) == 1
    world.demand = QUIET
    world.live(5)
    assert world.of(Component.SCORER) == []
    world.demand = None
    world.live(100, every=5)
    assert world.of(Component.SCORER) == []


def test_a_woken_scorer_gets_its_whole_idle_time_again() -> None:
    world = training(scorer={"backend": "hpsv3", "idleTimeoutSeconds": 50})
    world.live(70)
    world.demand = BUSY
    world.live(5)
    world.demand = QUIET
    world.live(49)
    assert len(world.of(Component.SCORER)) == 1


def test_between_two_attempts_the_scorer_is_off() -> None:
    world = training()
    world.kubelet = False
    world.evict_trainer()
    assert world.live(3).scorer == 0


def test_a_judge_of_its_own_follows_the_scorer() -> None:
    judge = {"backend": "openai", "deploy": {"image": "vllm:1", "model": "m"}}
    world = training(judge=judge, recipe={"name": "hps-led"})
    assert world.ready(Component.JUDGE) == 1
    world.live(700, every=10)
    assert world.said(T.JUDGE_READY) == ("True", "Idle")
    world.end_trainer(0)
    plan = world.reconcile()
    assert [removal.name for removal in plan.remove[:2]] == [f"{RUN}-scorer", f"{RUN}-judge"]


def test_a_run_without_a_scorer_in_the_cluster_shows_none() -> None:
    scorer = {"backend": "hpsv3", "endpoint": "http://scorer.studio:8000"}
    world = training(scorer=scorer)
    assert world.status.scorer is None
    assert world.status.columns.scorer == "-"
    assert world.said(T.SCORER_READY) == ("True", "NotNeeded")


SHARED = {"backend": "hpsv3", "sharing": "Namespace", "idleTimeoutSeconds": 20}


def test_a_shared_scorer_stays_on_while_another_run_wants_it() -> None:
    world = training(scorer=SHARED)
    world.sharers, world.wanted_elsewhere = (("lotus", "u2"),), True
    assert world.live(60).scorer == 1
    assert world.status.scorer == "Sleeping", "for this run it sleeps"
    world.wanted_elsewhere = False
    assert world.live(1).scorer == 0


def test_a_shared_scorer_is_left_to_those_who_share_it() -> None:
    world = training(scorer=SHARED)
    world.sharers, world.kept_elsewhere = (("lotus", "u2"),), True
    world.end_trainer(0)
    world.live(10)
    assert world.phase is Phase.SUCCEEDED
    assert f"{RUN}-scorer" not in world.removed
    assert len(world.of(Component.SCORER)) == 1
    plan = world.live(4000, every=100)
    assert plan.again_seconds is None, "nothing of it is left to be waited for"
    assert f"{RUN}-scorer" not in world.removed
    assert world.said(T.CLEANED_UP) == ("True", "CleanedUp")


def test_the_last_of_those_who_share_a_scorer_takes_it_along() -> None:
    world = training(scorer=SHARED)
    world.end_trainer(0)
    world.live(3)
    assert f"{RUN}-scorer" in world.removed
    assert world.of(Component.SCORER) == []


def test_a_shared_scorer_that_nobody_sees_to_goes() -> None:
    """The other is suspended: it owns the scorer too, and applies nothing."""
    world = training(scorer=SHARED)
    world.sharers = (("lotus", "u2"),)
    world.end_trainer(0)
    world.live(3)
    assert f"{RUN}-scorer" in world.removed
    assert world.of(Component.SCORER) == []


def test_a_run_that_waits_in_a_queue_leaves_a_shared_scorer_to_those_who_train() -> None:
    world = World(spec=run_spec(queueName="gpus", scorer=SHARED))
    world.sharers, world.wanted_elsewhere, world.kept_elsewhere = (("lotus", "u2"),), True, True
    plan = world.live(5)
    assert world.said(T.PROGRESSING) == ("False", "Queued")
    assert (plan.env, plan.scorer, plan.renderers) == (0, 1, 0)
    world.wanted_elsewhere = False
    assert world.live(1).scorer == 0


def test_a_queue_holds_the_trainer_back_and_nothing_else_runs() -> None:
    world = World(spec=run_spec(queueName="gpus", startupDeadlineSeconds=60))
    plan = world.live(200)
    assert (plan.env, plan.scorer, plan.renderers) == (0, 0, 0)
    assert world.pods == {}
    assert world.phase is Phase.STARTING
    assert world.said(T.PROGRESSING) == ("False", "Queued")
    assert world.attempt.started is None, "its clock stands"
    admit(world)
    world.live(3)
    assert world.attempt.started is not None
    assert world.ready(Component.TRAINER) == 1
    assert world.ready(Component.ENV) == 1
    world.step(1)
    world.live(2)
    assert world.phase is Phase.RUNNING


def admit(world: World) -> None:
    """Kueue lets the newest Job run."""
    key = ("Job", f"{RUN}-trainer-{world.attempt.number}")
    world.children[key] = replace(world.children[key], suspended=False)


def test_a_queue_that_takes_its_room_back_is_a_disruption_and_the_next_attempt_queues() -> None:
    world = World(spec=run_spec(queueName="gpus"))
    world.live(2)
    admit(world)
    world.live(3)
    world.step(4, lastCheckpointStep=4)
    world.live(2)
    key = ("Job", f"{RUN}-trainer-1")
    world.children[key] = replace(world.children[key], suspended=True)
    world.progress = None
    world.live(10)
    assert key not in world.children, "or two attempts could be admitted"
    assert [(one.reason, one.counted) for one in world.status.attempts] == [
        ("TrainerDisrupted", False),
        (None, None),
    ]
    assert world.children["Job", f"{RUN}-trainer-2"].suspended
    assert world.attempt.resumed
    assert world.said(T.PROGRESSING) == ("False", "Queued")


def test_renderers_are_drained_before_there_are_fewer() -> None:
    world = training(renderers={"scaling": {"max": 4, "idleSeconds": 10}})
    world.demand = Demand(0, 8, 0)
    world.live(4)
    pods = world.of(Component.RENDERERS)
    assert len(pods) == 4
    for pod in pods:
        world.loads[pod.name] = Load(2, 2, draining=False)
    world.demand = Demand(0, 2, 0)
    drained: set[str] = set()
    for _ in range(40):
        world.tick()
        plan = world.reconcile()
        drained |= set(plan.drain)
        assert plan.renderers == 4, "all of them still paint"
    assert drained


@pytest.mark.parametrize("mode", ["HPA", "KEDA"])
def test_renderers_that_somebody_else_scales_are_left_alone(mode: str) -> None:
    world = World(room=False, spec=run_spec(renderers={"scaling": {"mode": mode}}))
    assert world.live(3).renderers is None
    world.room = True
    assert world.live(5).renderers is None


def test_externally_scaled_renderers_follow_the_specification() -> None:
    scaling = {"scaling": {"mode": "External"}, "replicas": 3}
    assert training(renderers=scaling).reconcile().renderers == 3


def test_a_blind_environment_is_told_as_degraded_scaling() -> None:
    world = training()
    world.demand = None
    world.live(60)
    assert world.said(T.DEGRADED) == ("True", "ScalingDegraded")
    assert story(world.events)[-1] == ("Warning", "ScalingDegraded")


def test_without_a_trainer_there_is_no_minimum_of_renderers() -> None:
    world = training(renderers={"scaling": {"min": 2, "idleSeconds": 5}})
    assert len(world.of(Component.RENDERERS)) == 2
    world.room = False
    world.evict_trainer()
    world.live(60)
    assert world.of(Component.RENDERERS) == []
