"""The life of a run that nothing befalls, and of one that is suspended."""

from __future__ import annotations

import pytest
from tests.unit.operator.world import RUN, World, run_spec, story, training

from watercolour.api.status import ConditionType, Phase
from watercolour_operator.names import Component
from watercolour_operator.observed import Demand

T = ConditionType


def test_a_healthy_run_goes_through_its_phases_and_tells_at_most_six_events() -> None:
    world = World()
    phases: list[Phase] = []
    world.watchers.append(lambda _, plan: phases.append(plan.status.phase))
    world.live(4)
    for step in range(1, 101):
        world.step(step, reward={"mean": 0.3 + step / 400})
        world.live(30, every=10)
    world.end_trainer(0, '{"step": 100, "reward_first_fifth": 0.31, "reward_last_fifth": 0.52}')
    world.live(20)

    order = list(dict.fromkeys(phases))
    assert order == [Phase.STARTING, Phase.RUNNING, Phase.COMPLETING, Phase.SUCCEEDED]
    assert story(world.events) == [
        ("Normal", "Started"),
        ("Normal", "TrainerScheduled"),
        ("Normal", "Training"),
        ("Normal", "Succeeded"),
    ]
    assert world.events[-1].message == "100 steps, reward 0.31 → 0.52."
    assert world.said(T.COMPLETE) == ("True", "Succeeded")


def test_at_the_end_the_scorer_goes_first_and_the_finished_trainer_stays_for_its_log() -> None:
    world = training()
    world.end_trainer(0)
    plan = world.reconcile()
    assert [removal.name for removal in plan.remove] == [
        f"{RUN}-scorer",
        f"{RUN}-renderers",
        f"{RUN}-env",
    ]
    assert all(removal.grace_seconds == 5 for removal in plan.remove)
    world.live(3)
    assert world.of(Component.SCORER) == []
    world.live(60)
    assert [pod.phase for pod in world.of(Component.TRAINER)] == ["Succeeded"]
    assert world.status.scorer == "Stopped"


@pytest.mark.parametrize("code", [0, 1])
def test_a_run_that_has_ended_has_no_time_left(code: int) -> None:
    world = training(restartPolicy={"maxRestarts": 0})
    world.step(5, eta_seconds=30.0)
    world.live(10)
    assert world.status.progress
    assert world.status.progress.eta_seconds == 30
    world.end_trainer(code)
    world.live(60)
    assert world.phase in (Phase.SUCCEEDED, Phase.FAILED)
    assert world.status.progress.step == 5
    assert world.status.progress.eta_seconds is None
    assert world.status.progress.queue is None


def test_what_is_left_goes_after_the_ttl_and_the_files_stay() -> None:
    world = training(cleanup={"ttlSeconds": 60, "runTtlSecondsSucceeded": 600})
    world.end_trainer(0)
    world.live(30)
    assert world.said(T.CLEANED_UP) == ("False", "CleaningUp")
    world.live(60)
    assert [kind for kind, _ in world.children] == ["PersistentVolumeClaim"]
    assert world.pods == {}
    assert world.said(T.CLEANED_UP) == ("True", "CleanedUp")
    assert not world.run_deleted
    world.live(600, every=10)
    assert world.run_deleted


def test_a_failed_run_without_a_ttl_of_its_own_is_kept() -> None:
    world = training(cleanup={"runTtlSecondsSucceeded": 10}, restartPolicy={"maxRestarts": 0})
    world.end_trainer(1)
    world.live(100)
    assert world.phase is Phase.FAILED
    assert not world.run_deleted


def test_columns_show_what_is_known() -> None:
    world = World(room=False)
    world.live(1)
    columns = world.status.columns
    assert (columns.step, columns.reward, columns.scorer) == ("0/100", "-", "Stopped")
    world.room = True
    world.live(4)
    world.demand = Demand(4, 0, 0)
    world.step(12, reward={"mean": 0.4666})
    world.live(4)
    columns = world.status.columns
    assert (columns.step, columns.reward, columns.renderers) == ("12/100", "0.47", "2/2")
    assert columns.scorer == "Ready"


def test_nothing_changes_between_two_looks_at_a_run_in_which_nothing_happens() -> None:
    world = training()
    world.live(700, every=10)
    before = world.status.model_copy(update={"cost": None, "columns": None})
    world.tick(30)
    after = world.reconcile().status.model_copy(update={"cost": None, "columns": None})
    assert after == before


def test_a_trainer_that_misses_an_answer_changes_nothing_and_a_silent_one_is_told() -> None:
    world = training(step=4)
    world.step(5, etaSeconds=750.0)
    world.live(2)
    world.progress = None
    world.live(100, every=10)
    assert world.said(T.PROGRESSING) == ("True", "Training")
    world.live(60, every=10)
    assert world.said(T.PROGRESSING) == ("Unknown", "ProgressUnknown")
    assert world.status.columns.step == "5/100", "the last figures stay"


def test_a_step_that_takes_five_times_as_long_as_usual_is_overdue() -> None:
    world = training(step=4)
    world.step(5, etaSeconds=95 * 60.0)
    world.live(280, every=10)
    assert world.said(T.PROGRESSING) == ("True", "Training")
    world.live(60, every=10)
    assert world.said(T.PROGRESSING) == ("False", "StepOverdue")
    world.step(6)
    world.live(2)
    assert world.said(T.PROGRESSING) == ("True", "Training")


def test_too_many_unscored_rollouts_degrade_a_run() -> None:
    world = training()
    world.step(3, unscoredRate=0.1)
    world.live(2)
    assert world.said(T.DEGRADED) == ("False", "Healthy")
    world.step(4, unscoredRate=0.11)
    world.live(2)
    assert world.said(T.DEGRADED) == ("True", "UnscoredRateHigh")
    assert world.condition(T.DEGRADED).message.startswith("11% of the rollouts are unscored")


def test_a_finished_run_writes_no_status_any_more() -> None:
    world = training()
    world.end_trainer(0)
    world.live(30)
    before = world.status
    world.tick(600)
    assert world.reconcile().status == before


def test_suspending_lets_the_trainer_write_its_checkpoint_and_frees_every_gpu() -> None:
    world = training(step=41)
    world.step(41, lastCheckpointStep=40)
    world.live(2)
    world.edit(suspend=True)
    plan = world.reconcile()
    assert plan.status.phase is Phase.SUSPENDING
    trainer = next(removal for removal in plan.remove if removal.kind == "Job")
    assert trainer.grace_seconds is None, "its own grace, for the checkpoint"
    assert plan.remove[0].name == f"{RUN}-scorer"
    world.live(1)
    assert world.attempt.ended is None, "its pod still writes"
    world.live(4)
    assert world.phase is Phase.SUSPENDED
    assert world.pods == {}
    assert ("PersistentVolumeClaim", f"{RUN}-artifacts") in world.children
    assert world.said(T.SUSPENDED) == ("True", "RunSuspended")
    assert "step 40" in world.condition(T.SUSPENDED).message
    assert world.attempt.reason == "RunSuspended"
    assert world.attempt.counted is False


def test_a_resumed_run_goes_on_from_the_checkpoint_with_the_next_attempt() -> None:
    world = training(step=41)
    world.step(41, lastCheckpointStep=40)
    world.live(2)
    world.edit(suspend=True)
    world.live(5)
    world.edit(suspend=False)
    world.progress = None
    plan = world.reconcile()
    assert (plan.attempt, plan.resume) == (2, True)
    world.live(4)
    assert world.phase is Phase.STARTING
    assert world.status.columns.step == "40/100"
    assert world.said(T.SUSPENDED) == ("False", "Resumed")
    world.step(41)
    world.live(2)
    assert world.phase is Phase.RUNNING
    assert [attempt.counted for attempt in world.status.attempts] == [False, None]
    assert ("Normal", "Resumed") in story(world.events)


def test_a_run_that_is_created_suspended_starts_nothing() -> None:
    world = World(spec=run_spec(suspend=True))
    world.live(5)
    assert world.phase is Phase.SUSPENDED
    assert world.children == {}
    world.edit(suspend=False)
    world.live(3)
    assert world.attempt.number == 1


def test_whoever_changes_their_mind_while_the_run_suspends_waits_for_the_old_pod() -> None:
    world = training()
    world.edit(suspend=True)
    world.live(1)
    world.edit(suspend=False)
    world.progress = None
    plan = world.reconcile()
    assert plan.attempt is None
    world.live(5)
    assert world.phase is Phase.STARTING
    assert [attempt.reason for attempt in world.status.attempts] == ["RunSuspended", None]


def test_suspended_time_does_not_count_towards_the_active_deadline() -> None:
    world = training(activeDeadlineSeconds=100)
    world.live(50, every=5)
    world.edit(suspend=True)
    world.live(5)
    world.live(1000, every=50)
    world.edit(suspend=False)
    world.progress = None
    world.live(5)
    world.step(2)
    world.live(20)
    assert world.phase is Phase.RUNNING
    world.live(40)
    assert world.phase is Phase.FAILED
    assert world.said(T.FAILED) == ("True", "ActiveDeadlineExceeded")


@pytest.mark.parametrize("raised", [120, 101])
def test_steps_that_are_raised_before_the_end_are_made_by_another_attempt(raised: int) -> None:
    world = training(step=99)
    world.edit(trainer={"steps": raised})
    world.progress = world.progress and world.progress.model_copy(update={"steps": 100})
    world.end_trainer(0, '{"step": 100, "steps": 100, "lastCheckpointStep": 100}')
    plan = world.live(1)
    assert world.phase is Phase.STARTING
    assert (plan.attempt, plan.resume) == (2, True)


def test_steps_that_are_raised_while_the_parts_end_change_nothing() -> None:
    world = training(step=99)
    world.end_trainer(0, '{"step": 100, "steps": 100}')
    world.reconcile()
    assert world.phase is Phase.COMPLETING
    world.edit(trainer={"steps": 120})
    world.live(5)
    assert world.phase is Phase.SUCCEEDED


def test_steps_that_are_raised_after_the_end_change_nothing_and_are_answered() -> None:
    world = training(step=99)
    world.end_trainer(0, '{"step": 100, "steps": 100}')
    world.live(20)
    before = world.condition(T.PROGRESSING).message
    world.edit(trainer={"steps": 120})
    world.live(5)
    assert world.phase is Phase.SUCCEEDED
    assert world.condition(T.PROGRESSING).message == (
        f"{before} trainer.steps=120 came after the end and is passed over: what is done stays "
        "done. Make a new run that starts from this one's adapter."
    )
    world.edit(trainer={"steps": 100})
    world.live(5)
    assert world.condition(T.PROGRESSING).message == before


def test_a_run_of_one_step_says_so() -> None:
    world = training(trainer={"steps": 1})
    world.end_trainer(0, '{"step": 1, "steps": 1}')
    world.live(5)
    assert world.condition(T.COMPLETE).message == "1 step."
