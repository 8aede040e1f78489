"""What a run does when its trainer dies or its node goes: the next attempt, or the end."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from tests.unit.operator.world import RUN, World, run_spec, story, training

from watercolour.api.status import ConditionType, Phase
from watercolour_operator.names import Component

T = ConditionType


def next_starts(world: World, step: int) -> None:
    """Let the next attempt come up and make a step."""
    world.live(15)
    world.step(step)
    world.live(2)
    assert world.phase is Phase.RUNNING


@pytest.mark.parametrize(
    ("code", "ended_reason", "message", "reason"),
    [
        (137, "OOMKilled", "", "TrainerOOMKilled"),
        (1, "Error", "Traceback: ValueError: no", "TrainerFailed"),
        (3, "Error", '{"reason": "InfrastructureDegraded"}', "InfrastructureDegraded"),
        (137, "Error", "", "TrainerFailed"),
        (1, "Error", '{"reason": "InternalError", "message": "KeyError: x"}', "TrainerFailed"),
    ],
)
def test_errors_and_lack_of_memory_count(
    code: int, ended_reason: str, message: str, reason: str
) -> None:
    world = training(step=17)
    world.end_trainer(code, message, reason=ended_reason)
    world.live(1)
    ended = world.status.attempts[0]
    assert (ended.reason, ended.counted, ended.last_step) == (reason, True, 17)
    assert world.status.last_failure is not None
    assert world.status.last_failure.reason == reason
    assert ("Warning", reason) in story(world.events)


def test_a_preempted_trainer_does_not_count_and_the_next_attempt_waits_for_its_pod() -> None:
    world = training(step=17)
    world.evict_trainer()
    plan = world.reconcile()
    assert plan.attempt == 1, "the old pod still writes its checkpoint"
    world.live(4)
    assert [(one.number, one.reason, one.counted) for one in world.status.attempts] == [
        (1, "TrainerDisrupted", False),
        (2, None, None),
    ]
    assert world.said(T.PROGRESSING) == ("True", "Resumed")
    said = world.condition(T.PROGRESSING).message
    assert said == "Attempt 2: resuming from a checkpoint, or starting anew if there is none."


def test_a_further_attempt_looks_for_a_checkpoint_that_was_never_heard_of() -> None:
    world = training(step=17)
    world.evict_trainer()
    plan = world.live(4)
    assert (plan.attempt, plan.resume, world.attempt.resumed) == (2, True, None)
    world.step(16)
    world.live(2)
    assert world.phase is Phase.RUNNING
    assert world.attempt.first_step is None, "it is not known"


def test_a_run_that_is_not_to_resume_begins_anew() -> None:
    world = training(step=17, trainer={"resume": False})
    world.step(17, lastCheckpointStep=10)
    world.live(2)
    world.evict_trainer()
    plan = world.live(4)
    assert (plan.attempt, plan.resume, world.attempt.first_step) == (2, False, 0)
    assert world.said(T.PROGRESSING) == ("True", "Started")
    assert world.condition(T.PROGRESSING).message == "Attempt 2: starting anew."


@pytest.mark.parametrize(("resume", "shown"), [(False, "-"), (True, "0.47")])
def test_an_attempt_that_begins_anew_shows_no_reward_of_the_one_before(
    resume: bool, shown: str
) -> None:
    world = training(step=17, trainer={"resume": resume})
    world.step(17, reward={"mean": 0.4666}, lastCheckpointStep=17)
    world.live(6)
    world.evict_trainer()
    world.live(4)
    assert world.attempt.number == 2
    assert world.status.columns.reward == shown


def test_disruptions_count_when_the_policy_says_so() -> None:
    world = training(restartPolicy={"maxRestarts": 0, "ignoreDisruptions": False})
    world.evict_trainer()
    world.live(5)
    assert world.phase is Phase.FAILED
    assert world.said(T.FAILED) == ("True", "RestartsExhausted")


def test_exit_143_without_any_sign_of_a_disruption_is_one_all_the_same() -> None:
    world = training()
    world.end_trainer(143, '{"step": 5, "lastCheckpointStep": 5}')
    plan = world.live(1)
    assert world.status.attempts[0].counted is False
    assert (plan.attempt, plan.resume) == (2, True)
    assert world.attempt.first_step == 5


def test_a_trainer_that_failed_before_its_node_was_drained_is_at_fault() -> None:
    world = training()
    world.end_trainer(1, "no")
    world.tick(20)
    pod = world.of(Component.TRAINER)[0]
    world.change(pod, deleting=world.now)
    world.reconcile()
    assert world.status.attempts[0].reason == "TrainerFailed"


def test_an_evicted_pod_without_an_exit_code_is_a_disruption() -> None:
    world = training()
    world.change(
        world.trainer, phase="Failed", message="The node was low on resource: ephemeral-storage."
    )
    world.live(1)
    assert world.status.attempts[0].reason == "TrainerDisrupted"
    assert world.status.last_failure is not None
    assert "low on resource" in world.status.last_failure.message


def test_when_all_restarts_are_used_the_run_fails_and_nothing_of_it_runs() -> None:
    world = training(step=17, restartPolicy={"maxRestarts": 2})
    for step in (18, 19):
        world.end_trainer(137, reason="OOMKilled")
        next_starts(world, step)
    world.end_trainer(137, "CUDA out of memory", reason="OOMKilled")
    world.live(5)
    assert world.phase is Phase.FAILED
    assert [one.counted for one in world.status.attempts] == [True, True, True]
    assert world.said(T.FAILED) == ("True", "RestartsExhausted")
    message = world.condition(T.FAILED).message
    assert message.startswith("The trainer ran out of memory at step 19; restarts 2 of 2 used.")
    assert "trainer.groupSize" in message
    failure = world.status.last_failure
    assert failure is not None
    assert (failure.reason, failure.exit_code, failure.log) == (
        "TrainerOOMKilled",
        137,
        "CUDA out of memory",
    )
    assert all(pod.phase == "Failed" for pod in world.pods.values())
    assert world.status.scorer == "Stopped"
    assert story(world.events)[-1] == ("Warning", "RestartsExhausted")


def test_disruptions_never_use_up_the_restarts() -> None:
    world = training(restartPolicy={"maxRestarts": 0})
    for step in range(2, 8):
        world.evict_trainer()
        next_starts(world, step)
    assert len(world.status.attempts) == 7
    assert not any(one.counted for one in world.status.attempts)


@pytest.mark.parametrize("reason", ["PolicyTooWeak", "InvalidSpec", "RunExists"])
def test_an_end_that_would_repeat_itself_is_not_repeated(reason: str) -> None:
    world = World()
    world.live(5)
    world.end_trainer(1, f'{{"reason": "{reason}", "message": "it says why"}}')
    world.live(3)
    assert world.phase is Phase.FAILED
    assert world.said(T.FAILED) == ("True", reason)
    assert "it says why" in world.condition(T.FAILED).message


def test_attempts_that_come_to_nothing_one_after_the_other_are_slowed() -> None:
    world = World(spec=run_spec(restartPolicy={"maxRestarts": 9}))
    starts: list[float] = []
    for _ in range(5):
        world.live(3)
        while not any(pod.phase == "Running" for pod in world.of(Component.TRAINER)):
            world.live(1)
        starts.append((world.now - world.observe().created).total_seconds())
        world.end_trainer(1, "no")
    gaps = [later - earlier for earlier, later in pairwise(starts)]
    assert gaps == sorted(gaps)
    assert gaps[0] < 6
    assert gaps[-1] > 35


def test_a_lost_node_delays_the_next_attempt_until_its_pod_is_deleted_by_force() -> None:
    world = training(step=17)
    world.step(17, lastCheckpointStep=15)
    world.live(2)
    lost = world.trainer
    world.kubelet = False
    world.evict_trainer()
    world.live(300 + 100, every=10)
    assert world.attempt.number == 1, "the kubelet may still be at it"
    assert lost.name in world.pods
    world.live(40, every=10)
    assert lost.name not in world.pods
    assert (world.status.attempts[0].reason, world.status.attempts[0].counted) == (
        "NodeLost",
        False,
    )
    assert world.attempt.number == 2
    assert world.attempt.resumed
    assert world.attempt.first_step == 15


def test_a_trainer_whose_node_was_deleted_is_told_as_that() -> None:
    """The garbage collector fails such a pod at once, with a condition that says why."""
    world = training(step=17, restartPolicy={"maxRestarts": 0})
    world.change(world.trainer, phase="Failed", ready=False, disrupted=True, node_lost=True)
    world.progress = None
    world.live(3)
    lost = world.status.attempts[0]
    assert (lost.reason, lost.counted) == ("NodeLost", False)
    assert world.attempt.number == 2
    assert world.status.last_failure is not None
    assert world.status.last_failure.message.startswith("The trainer's node is gone at step 17;")


def test_a_job_that_somebody_deleted_is_followed_by_the_next_attempt() -> None:
    world = training()
    world.remove("Job", f"{RUN}-trainer-1")
    plan = world.reconcile()
    assert plan.attempt is None
    world.progress = None
    world.live(4)
    assert world.attempt.number == 2
    assert world.status.attempts[0].reason == "TrainerDisrupted"


def test_a_pod_that_was_deleted_while_nobody_looked_is_a_disruption() -> None:
    world = training()
    pod = world.trainer
    world.delete_pod(pod.name)
    world.progress = None
    world.tick(1)
    world.tick(2)
    assert pod.name not in world.pods
    world.live(2)
    assert world.status.attempts[0].reason == "TrainerDisrupted"


def test_a_lost_status_makes_no_second_trainer() -> None:
    world = World()
    world.lose_status = True
    world.live(3)
    assert [kind for kind, _ in world.children].count("Job") == 1
    assert [one.number for one in world.status.attempts] == [1]


def test_a_status_that_is_lost_whole_is_found_again_in_the_jobs() -> None:
    world = training(step=17, restartPolicy={"maxRestarts": 1})
    world.end_trainer(1, "no")
    next_starts(world, 18)
    world.status = type(world.status)()
    world.live(1)
    assert [(one.number, one.counted) for one in world.status.attempts] == [(1, True), (2, None)]
    world.end_trainer(1, "no")
    world.live(2)
    assert world.phase is Phase.FAILED


def test_a_stale_replay_of_a_finished_run_starts_nothing() -> None:
    world = training()
    old = world.observe()
    world.end_trainer(0)
    world.live(10)
    world.reconcile(old)
    world.reconcile(replace(old, status=type(old.status)()))
    world.reconcile(replace(world.observe(), status=old.status))
    world.live(3)
    assert world.phase is Phase.SUCCEEDED
    assert [pod.phase for pod in world.of(Component.TRAINER)] == ["Succeeded"]
    assert world.of(Component.SCORER) == []


def test_a_pod_of_an_older_attempt_that_lingers_holds_the_next_one_back() -> None:
    world = training()
    pod = world.trainer
    world.end_trainer(1, "no")
    world.live(3)
    assert world.attempt.number == 2
    world.end_trainer(1, "no")
    ghost = replace(pod, name="ghost", uid="ghost", owner_uid=None)
    world.pods["ghost"] = ghost
    plan = world.live(3)
    assert plan.attempt is None
    del world.pods["ghost"]
    world.live(15)
    assert world.attempt.number == 3


def test_an_attempt_of_several_pods_is_over_when_none_of_them_runs() -> None:
    world = training(trainer={"replicas": 2})
    first = world.trainer
    world.pods["second"] = replace(first, name="second", uid="second")
    world.change(first, phase="Failed", exit_code=1, ended=world.now, message="boom", ready=False)
    world.live(2)
    assert world.attempt.number == 1
    assert world.attempt.ended is None
    later = world.now
    world.change(world.pods["second"], phase="Failed", exit_code=143, ended=later)
    world.live(1)
    assert world.status.attempts[0].reason == "TrainerFailed", "the first to end is to blame"
