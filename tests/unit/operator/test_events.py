"""Events: transitions only, each told once, in the words of the status."""

from __future__ import annotations

from tests.unit.operator.world import World, run_spec, story, training

from watercolour.api.reasons import Reason
from watercolour.api.status import Condition, ConditionType, Status
from watercolour_operator import events
from watercolour_operator.names import Component
from watercolour_operator.observed import Demand, Trouble


def test_two_equal_statuses_tell_nothing() -> None:
    world = training()
    assert events.between(world.status, world.status) == []


def test_a_long_busy_run_tells_no_more_than_a_short_one() -> None:
    world = training(scorer={"backend": "hpsv3", "idleTimeoutSeconds": 10})
    for step in range(2, 40):
        world.demand = Demand(8, 8, 8) if step % 2 else Demand(0, 0, 0)
        world.step(step)
        world.live(40, every=2)
    world.end_trainer(0)
    world.live(10)
    assert len(world.events) <= 6, story(world.events)
    assert {event.type for event in world.events} == {"Normal"}


def test_an_event_has_the_words_of_its_condition() -> None:
    world = World()
    world.live(2)
    scheduled = next(event for event in world.events if event.reason == "TrainerScheduled")
    assert scheduled.message == "1 GPU on node-3; scorer starting."
    training = next(event for event in training_of(world) if event.reason == "Training")
    assert training.message == world.condition(ConditionType.PROGRESSING).message


def test_a_trainer_that_is_ready_at_once_is_told_of_too() -> None:
    world = training()
    assert [event.reason for event in world.events].count(Reason.TRAINER_SCHEDULED) == 1
    before = Status.model_validate({"phase": "Starting", "attempts": [{"number": 1}]})
    ready = Condition(
        type=ConditionType.TRAINER_READY,
        status="True",
        reason="Ready",
        message="The trainer runs on gpu-1.",
        last_transition_time="2026-09-01T12:00:00Z",
    )
    after = before.model_copy(update={"conditions": (ready,)})
    assert story(events.between(before, after)) == [("Normal", "TrainerScheduled")]


def test_a_trainer_that_is_not_ready_for_a_moment_is_not_told_again() -> None:
    world = training()
    pod = world.trainer
    world.change(pod, ready=False)
    world.live(2)
    assert "starting" not in world.condition(ConditionType.TRAINER_READY).message
    world.change(world.trainer, ready=True)
    world.live(2)
    assert [event.reason for event in world.events].count(Reason.TRAINER_SCHEDULED) == 1


def test_what_keeps_an_attempt_from_starting_is_a_warning() -> None:
    world = World(trouble=Trouble(Reason.PERMISSION_DENIED, "no verb", transient=True))
    world.live(2)
    assert ("Warning", "PermissionDenied") in story(world.events)
    assert ("Normal", "PermissionDenied") not in story(world.events)


def training_of(world: World) -> list[events.Event]:
    """The events of the world once its run trains."""
    world.step(1)
    world.live(2)
    return world.events


def test_a_fault_that_shows_in_several_conditions_is_told_once() -> None:
    world = training()
    env = world.of(Component.ENV)[0]
    world.change(env, ready=False, waiting_reason="ImagePullBackOff", message="no such image")
    world.live(30)
    assert story(world.events).count(("Warning", "ImageUnavailable")) == 1


def test_a_failed_attempt_says_what_happens_next() -> None:
    world = training(step=17)
    world.step(17, lastCheckpointStep=15)
    world.live(2)
    world.end_trainer(137, reason="OOMKilled")
    world.live(2)
    warning, resumed = world.events[-3:-1]
    assert story([warning, resumed]) == [("Warning", "TrainerOOMKilled"), ("Normal", "Resumed")]
    assert warning.message.startswith(
        "The trainer ran out of memory at step 17; resuming from step 15 (restart 1 of 3)."
    )
    assert resumed.message == "Attempt 2: resuming from step 15."


def test_a_disruption_says_that_it_is_not_counted() -> None:
    world = training(step=17)
    world.evict_trainer()
    world.live(4)
    warning = next(event for event in world.events if event.type == "Warning")
    assert "(not counted as a restart)" in warning.message


def test_the_last_failure_is_told_by_the_run_alone() -> None:
    world = training(restartPolicy={"maxRestarts": 0})
    world.end_trainer(1, "boom")
    world.live(2)
    assert [event for event in story(world.events) if event[0] == "Warning"] == [
        ("Warning", "RestartsExhausted")
    ]
    assert "boom" in world.events[-1].message


def test_a_lost_write_tells_nothing_twice() -> None:
    world = World(spec=run_spec(suspend=True))
    world.lose_status = True
    world.reconcile()
    assert world.events == []
    world.reconcile()
    world.reconcile()
    assert story(world.events) == [("Normal", "RunSuspended")]


def test_a_message_is_never_longer_than_the_api_server_takes() -> None:
    long = Condition(
        type=ConditionType.DEGRADED,
        status="True",
        reason="QuotaExceeded",
        message="x" * 5000,
        last_transition_time="2026-09-01T12:00:00Z",
    )
    [event] = events.between(Status(), Status(conditions=(long,)))
    assert len(event.message) == events.LONGEST


def test_every_alarm_is_a_reason_that_somebody_can_look_up() -> None:
    assert all(reason.__doc__ for reason in events.ALARMS)
