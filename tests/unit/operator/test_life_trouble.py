"""What a run tells when a part of it cannot start, or starts and does not run well."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.operator.world import RUN, World, run_spec, story, training

from watercolour.api.reasons import Reason
from watercolour.api.status import ConditionType, Phase
from watercolour_operator.lifecycle import podfaults
from watercolour_operator.names import Component
from watercolour_operator.observed import Load, Trouble
from watercolour_operator.times import stamp

T = ConditionType


def test_an_unschedulable_trainer_starts_no_scorer_and_no_renderer() -> None:
    world = World(room=False, spec=run_spec(renderers={"scaling": {"min": 2}}))
    world.live(30)
    assert world.said(T.TRAINER_READY) == ("False", "Unschedulable")
    message = world.condition(T.TRAINER_READY).message
    assert "Insufficient nvidia.com/gpu" in message
    assert world.of(Component.SCORER) == []
    assert world.of(Component.RENDERERS) == []
    assert world.said(T.SCORER_READY)[0] == "False"
    assert ("Warning", "Unschedulable") in story(world.events)
    world.room = True
    world.live(3)
    assert len(world.of(Component.SCORER)) == 1
    assert len(world.of(Component.RENDERERS)) == 2


def test_what_does_not_start_in_time_fails_and_gives_its_gpus_back() -> None:
    world = World(spec=run_spec(startupDeadlineSeconds=60))
    world.live(2)
    world.change(
        world.trainer,
        phase="Pending",
        ready=False,
        started=None,
        waiting_reason="ImagePullBackOff",
        message='Back-off pulling image "watercolour/trainer:9"',
    )
    world.live(20)
    assert world.said(T.TRAINER_READY) == ("False", "ImageUnavailable")
    assert world.phase is Phase.STARTING
    world.live(45)
    assert world.phase is Phase.FAILED
    assert world.said(T.FAILED) == ("True", "StartupDeadlineExceeded")
    assert "watercolour/trainer:9" in world.condition(T.FAILED).message
    world.live(5)
    assert world.pods == {}


def test_a_broken_renderer_before_the_first_step_is_named_by_the_deadline() -> None:
    world = World(spec=run_spec(startupDeadlineSeconds=60, renderers={"scaling": {"min": 1}}))
    world.live(3)
    world.step(0)
    renderer = world.of(Component.RENDERERS)[0]
    world.change(renderer, phase="Pending", ready=False, waiting_reason="InvalidImageName")
    world.live(61)
    assert world.said(T.FAILED) == ("True", "StartupDeadlineExceeded")
    assert "renderers" in world.condition(T.FAILED).message


def test_a_part_that_only_takes_too_long_is_named_by_the_deadline() -> None:
    world = World(spec=run_spec(startupDeadlineSeconds=60))
    world.live(3)
    world.change(world.trainer, ready=False)
    world.live(61)
    assert world.said(T.FAILED) == ("True", "StartupDeadlineExceeded")
    message = world.condition(T.FAILED).message
    assert "TrainerReady was False: 1 GPU on node-3" in message
    assert world.status.last_failure is not None
    assert world.status.last_failure.message == message
    world.live(60)
    assert "finished pod" not in world.condition(T.CLEANED_UP).message, "it has none"


def test_a_run_whose_start_waits_does_not_call_itself_well() -> None:
    world = World()
    world.live(3)
    assert world.condition(T.DEGRADED).message == "Nothing is known to be wrong."
    world.change(world.trainer, ready=False, waiting_reason="ImagePullBackOff")
    world.live(1)
    assert world.said(T.DEGRADED) == ("False", "Healthy")
    assert "the start waits: see TrainerReady" in world.condition(T.DEGRADED).message


def test_a_trainer_that_only_does_not_answer_is_not_failed_by_the_deadline() -> None:
    world = World(spec=run_spec(startupDeadlineSeconds=60))
    world.live(100)
    assert world.phase is Phase.STARTING
    world.step(0)
    world.live(2)
    assert world.phase is Phase.FAILED


WAITING = [
    ("ErrImagePull", "ImageUnavailable"),
    ("ImagePullBackOff", "ImageUnavailable"),
    ("InvalidImageName", "ImageUnavailable"),
    ("CreateContainerConfigError", "ContainerConfigInvalid"),
    ("RunContainerError", "ContainerConfigInvalid"),
]


@pytest.mark.parametrize(("waiting", "reason"), WAITING)
@pytest.mark.parametrize("component", [Component.TRAINER, Component.ENV, Component.SCORER])
def test_a_pod_that_cannot_start_is_told_at_once(
    waiting: str, reason: str, component: Component
) -> None:
    world = World()
    world.live(3)
    pod = world.of(component)[0]
    words = 'secret "hub" not found'
    world.change(
        pod, phase="Pending", ready=False, started=None, waiting_reason=waiting, message=words
    )
    world.reconcile()
    kind = {"trainer": T.TRAINER_READY, "env": T.ENV_READY, "scorer": T.SCORER_READY}[component]
    assert world.said(kind) == ("False", reason)
    assert words in world.condition(kind).message
    assert ("Warning", reason) in story(world.events)


def test_a_renderer_that_reaches_the_network_says_so() -> None:
    world = training(renderers={"scaling": {"min": 1}})
    pod = world.of(Component.RENDERERS)[0]
    world.change(pod, ready=False)
    world.loads[pod.name] = Load(2, 0, False, refuses=Reason.NETWORK_POLICY_NOT_ENFORCED)
    world.reconcile()
    assert world.said(T.RENDERERS_READY) == ("False", "NetworkPolicyNotEnforced")
    assert world.said(T.DEGRADED) == ("True", "NetworkPolicyNotEnforced")


def test_a_renderer_that_never_gets_ready_is_named() -> None:
    world = training(renderers={"scaling": {"mode": "Fixed", "max": 4}})
    world.live(2)
    oldest, *others = sorted(pod.name for pod in world.of(Component.RENDERERS))
    for name in (oldest, *others):
        world.change(world.pods[name], ready=False)
    world.live(1)
    since = world.pods[oldest].started
    assert since is not None
    said = world.condition(T.RENDERERS_READY).message
    assert said == (
        f"0 of 4 renderers ready. {oldest} runs since {stamp(since)} and does not call itself "
        "ready; its log says why."
    )
    world.live(100, every=10)
    assert world.condition(T.RENDERERS_READY).message == said, "nothing new is nothing to write"
    world.change(world.pods[oldest], started=None, waiting_reason="ContainerCreating")
    world.reconcile()
    assert f"{oldest} starts on node-3 (ContainerCreating)." in (
        world.condition(T.RENDERERS_READY).message
    )
    world.change(world.pods[oldest], scheduled=None, waiting_reason=None)
    world.reconcile()
    assert f"{oldest} waits for a node." in world.condition(T.RENDERERS_READY).message


def test_a_component_in_a_crash_loop_degrades_a_run_that_trains() -> None:
    world = training()
    env = world.of(Component.ENV)[0]
    world.change(
        env, ready=False, waiting_reason="CrashLoopBackOff", restarts=4, exit_code=1, message="boom"
    )
    world.reconcile()
    assert world.said(T.DEGRADED) == ("True", "CrashLoop")
    assert "boom" in world.condition(T.DEGRADED).message
    assert world.phase is Phase.RUNNING


def test_a_volume_that_is_not_there_is_told_as_storage() -> None:
    world = World(room=False)
    world.live(2)
    words = 'persistentvolumeclaim "peonies-artifacts" not found'
    world.change(world.trainer, unschedulable=words)
    plan = world.reconcile()
    assert world.said(T.TRAINER_READY) == ("False", "PodStarting"), "it may be on its way"
    assert plan.again_seconds is not None
    assert plan.again_seconds <= podfaults.VOLUME_SECONDS
    world.tick(20)
    world.change(world.trainer, unschedulable=words)
    world.reconcile()
    assert world.said(T.TRAINER_READY) == ("False", "StorageUnavailable")
    assert "kubectl describe pvc" in world.condition(T.TRAINER_READY).message


def test_a_quota_that_refuses_the_trainer_pod_is_told_in_its_own_words() -> None:
    world = World()
    world.reconcile()
    key = ("Job", f"{RUN}-trainer-1")
    words = 'pods "x" is forbidden: exceeded quota: gpus, requested: nvidia.com/gpu=1'
    world.children[key] = replace(world.children[key], problem=words)
    world.reconcile()
    assert world.said(T.TRAINER_READY) == ("False", "QuotaExceeded")
    assert "exceeded quota: gpus" in world.condition(T.TRAINER_READY).message


def test_trouble_of_the_last_look_is_told_and_forgotten() -> None:
    world = training()
    words = "The operator may not create jobs; add the verb to its role."
    world.trouble = Trouble(Reason.PERMISSION_DENIED, words, transient=False)
    world.reconcile()
    assert world.said(T.DEGRADED) == ("True", "PermissionDenied")
    assert story(world.events)[-1] == ("Warning", "PermissionDenied")
    world.trouble = None
    world.reconcile()
    assert world.said(T.DEGRADED) == ("False", "Healthy")


def test_a_claim_that_lost_its_volume_degrades() -> None:
    world = training()
    key = ("PersistentVolumeClaim", f"{RUN}-artifacts")
    world.children[key] = replace(world.children[key], phase="Lost")
    world.reconcile()
    assert world.said(T.DEGRADED) == ("True", "StorageUnavailable")


def test_secrets_in_a_pods_words_are_not_repeated() -> None:
    world = training()
    world.end_trainer(1, "OSError: 401 for token=hf_abcdefghijklmnopqrst at https://me:pw@hub/x")
    world.live(2)
    text = world.status.model_dump_json() + "".join(event.message for event in world.events)
    assert "hf_abcdefghijklmnopqrst" not in text
    assert "me:pw" not in text
    assert "OSError: 401" in text


def test_renderers_of_a_silent_node_are_replaced_at_once_and_go_later() -> None:
    world = training(renderers={"scaling": {"min": 1}})
    world.live(3)
    (lost,) = world.of(Component.RENDERERS)
    world.silent.add(lost.name)
    world.change(lost, ready=False, tainted=True, node="node-9")
    world.delete_pod(lost.name)
    world.reconcile()
    assert world.said(T.RENDERERS_READY) == ("False", "NodeLost")
    message = world.condition(T.RENDERERS_READY).message
    assert message.startswith("0 of 1 renderers ready.")
    assert f"{lost.name}: taken off node-9" in message
    assert story(world.events).count(("Warning", "NodeLost")) == 1
    world.live(3)
    assert world.said(T.RENDERERS_READY) == ("True", "Ready")
    assert world.status.renderers is not None
    assert (world.status.renderers.ready, world.status.renderers.replicas) == (1, 1)
    assert lost.name in world.pods
    world.live(140, every=5)
    assert lost.name not in world.pods, "a Deployment that changes would wait for it"
    assert world.phase is Phase.RUNNING
    assert story(world.events).count(("Warning", "NodeLost")) == 1


def test_a_pod_that_is_asked_to_go_by_its_own_deployment_tells_of_no_lost_node() -> None:
    world = training(renderers={"scaling": {"min": 1}})
    world.live(3)
    (going,) = world.of(Component.RENDERERS)
    world.silent.add(going.name)
    world.change(going, ready=False)
    world.delete_pod(going.name)
    world.reconcile()
    assert world.said(T.RENDERERS_READY) == ("False", "PodStarting")


def test_a_renderer_that_outlasted_its_grace_is_not_asked_again_when_the_run_ends() -> None:
    world = training(renderers={"scaling": {"min": 1}})
    world.live(3)
    (lost,) = world.of(Component.RENDERERS)
    world.silent.add(lost.name)
    world.change(lost, ready=False, tainted=True)
    world.delete_pod(lost.name, 80)
    world.live(100, every=5)
    world.end_trainer(0)
    world.live(60, every=5)
    assert world.phase is Phase.COMPLETING
    assert lost.name not in world.removed, "its time would begin anew"
    world.live(60, every=5)
    assert lost.name not in world.pods
    assert world.phase is Phase.SUCCEEDED
