"""The decision on the number of renderers, row by row."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from watercolour.api.reasons import Reason
from watercolour.api.workers import Scaling
from watercolour_operator.names import Component
from watercolour_operator.observed import Demand, Load, Pod
from watercolour_operator.scaling import Memory, ScalingInput, decide
from watercolour_operator.scaling.policy import MARGIN_SECONDS, PARTS, PATIENCE_SECONDS
from watercolour_operator.scaling.victims import COST_BUSY, COST_GOING

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
IDLE = 60.0
NOTHING = Demand(0, 0, 0)
#: The window of idleSeconds is full and nothing was needed in it.
NEEDLESS = Memory(heard=True, surplus_since=NOW, surplus_peaks=(0,) * (PARTS + 1))


def pod(name: str, **more: Any) -> Pod:
    plain: dict[str, Any] = {
        "uid": name,
        "component": Component.RENDERERS,
        "phase": "Running",
        "created": NOW - timedelta(minutes=9),
        "owner_uid": "rs",
        "node": "n",
        "ready": True,
        "started": NOW - timedelta(minutes=8),
    }
    return Pod(name=name, **plain | more)


def pending(name: str) -> Pod:
    return pod(name, phase="Pending", node=None, ready=False, started=None)


def load(busy: int = 0, *, draining: bool = False) -> Load:
    return Load(2, busy, draining)


def seen(pods: list[Pod] | None = None, **more: Any) -> ScalingInput:
    pods = pods or []
    plain: dict[str, Any] = {
        "now": NOW,
        "scaling": Scaling(min=0, max=8, idle_seconds=IDLE),
        "slots": 2,
        "wanted": len(pods),
        "demand": NOTHING,
        "pods": tuple(pods),
        "loads": {one.name: load() for one in pods if one.started},
        "memory": Memory(heard=True),
    }
    return ScalingInput(**plain | more)


@pytest.mark.parametrize(
    ("demand", "replicas", "reason"),
    [
        (NOTHING, 0, Reason.AT_MINIMUM),
        (Demand(1, 0, 0), 1, Reason.SCALED_UP),
        (Demand(2, 1, 2), 3, Reason.SCALED_UP),
        (Demand(0, 0, 16), 8, Reason.SCALED_UP),
        (Demand(60, 0, 4), 8, Reason.AT_MAXIMUM),
    ],
)
def test_the_pods_are_there_at_once(demand: Demand, replicas: int, reason: Reason) -> None:
    result = decide(seen(demand=demand))
    assert (result.replicas, result.desired, result.reason) == (replicas, replicas, reason)


#: Pods took 20 s to start, so those for announced renders start 25 s ahead.
STARTS = Memory(heard=True, start_seconds=20)
LEAD = 20 + MARGIN_SECONDS


@pytest.mark.parametrize(
    ("memory", "due", "replicas"),
    [
        (STARTS, LEAD + 1, 0),
        (STARTS, LEAD, 4),
        (STARTS, 0.0, 4),
        # How long a pod takes is not known before one has started.
        (Memory(heard=True), 900.0, 4),
    ],
)
def test_pods_start_as_long_before_announced_renders_as_a_start_takes(
    memory: Memory, due: float, replicas: int
) -> None:
    demand = Demand(0, 0, 8, due_seconds=due)
    result = decide(seen(demand=demand, memory=memory))
    assert result.replicas == replicas
    if not replicas:
        assert result.again_seconds == due - LEAD
        assert "8 announced renders start 25 s before" in result.message


def test_what_waits_is_painted_at_once_whatever_is_due_later() -> None:
    demand = Demand(3, 1, 8, due_seconds=300.0)
    assert decide(seen(demand=demand, memory=STARTS)).replicas == 2


def test_how_long_a_start_takes_is_learnt_from_the_slowest_that_is_ready() -> None:
    def started(name: str, seconds: float) -> Pod:
        return pod(name, created=NOW, readied=NOW + timedelta(seconds=seconds))

    pods = [started("a", 12), started("b", 31), pod("c", ready=False)]
    assert decide(seen(pods, memory=STARTS)).memory.start_seconds == 31
    assert decide(seen([], memory=STARTS)).memory.start_seconds == 20
    assert decide(seen([], demand=None, memory=STARTS)).memory.start_seconds == 20


def test_a_pod_stays_for_what_is_due_before_another_could_have_started() -> None:
    pods = [pod(name) for name in "abcd"]
    memory, near = replace(NEEDLESS, start_seconds=20), LEAD + 20 + IDLE
    for count, due, going in ((8, near, 0), (8, near + 1, 2), (4, near, 2), (4, LEAD, 2)):
        demand = Demand(0, 0, count, due_seconds=due)
        assert len(decide(seen(pods, demand=demand, memory=memory)).drain) == going


def test_per_pod_overrules_the_slots() -> None:
    scaling = Scaling(max=8, per_pod=4)
    assert decide(seen(demand=Demand(8, 0, 0), scaling=scaling)).replicas == 2


def test_a_minimum_stays_without_demand() -> None:
    scaling = Scaling(min=2, max=8)
    assert decide(seen(scaling=scaling)).replicas == 2
    steady = decide(seen([pod("a"), pod("b")], scaling=scaling))
    assert (steady.replicas, steady.reason) == (2, Reason.AT_MINIMUM)


def test_needless_pods_stay_until_they_were_needless_for_idle_seconds() -> None:
    pods, memory, now = [pod(name) for name in "abcd"], Memory(heard=True), NOW
    while True:
        result = decide(seen(pods, now=now, memory=memory))
        if result.drain:
            break
        assert (result.replicas, result.reason) == (4, Reason.COOLING_DOWN)
        memory, now = result.memory, now + timedelta(seconds=2)
    waited = (now - NOW).total_seconds()
    assert IDLE <= waited <= IDLE * (1 + 1 / PARTS) + 2


def test_a_moment_of_need_within_idle_seconds_keeps_the_pods() -> None:
    pods = [pod(name) for name in "abcd"]
    memory = replace(NEEDLESS, surplus_peaks=(0, 0, 3, 0, 0))
    result = decide(seen(pods, memory=memory))
    assert len(result.drain) == 1
    assert result.desired == 3


def test_at_most_half_the_pods_begin_to_go_at_once() -> None:
    result = decide(seen([pod(name) for name in "abcde"], memory=NEEDLESS))
    assert len(result.drain) == 3
    assert (result.replicas, result.reason) == (5, Reason.DRAINING)


def test_the_idle_are_drained_before_the_busy_and_the_unready_before_the_ready() -> None:
    pods = [pod("busy"), pod("idle"), pod("raw", ready=False), pending("new")]
    loads = {"busy": load(1), "idle": load(), "raw": load()}
    order: list[str] = []
    for count in (1, 2, 3):
        result = decide(
            seen(
                pods,
                loads=loads,
                scaling=Scaling(mode="Fixed", max=4 - count),
                demand=Demand(0, 1, 0),
            )
        )
        assert result.replicas is not None
        gone = {*result.drain, *(["new"] if result.replicas < 4 else [])}
        order += sorted(gone - set(order))
    assert order == ["new", "raw", "idle"]


def test_a_pod_that_paints_is_let_go_only_after_its_last_painting() -> None:
    pods = [pod("a", deletion_cost=COST_GOING), pod("b")]
    scaling = Scaling(mode="Fixed", max=1)
    for busy, replicas in ((2, 2), (1, 2), (0, 1)):
        loads = {"a": load(busy, draining=True), "b": load(1)}
        result = decide(seen(pods, loads=loads, scaling=scaling, demand=Demand(0, 3, 0)))
        assert (result.replicas, result.desired) == (replicas, 1)


def test_replicas_fall_only_when_the_drained_pod_surely_goes_first() -> None:
    """Without its cost, or with a painting pod that has lost its readiness, another would go."""
    scaling = Scaling(mode="Fixed", max=1)
    loads = {"a": load(draining=True), "b": load(1)}

    def replicas(*pods: Pod) -> int | None:
        return decide(seen(list(pods), loads=loads, scaling=scaling)).replicas

    marked = pod("a", deletion_cost=COST_GOING)
    assert replicas(marked, pod("b")) == 1
    assert replicas(pod("a"), pod("b")) == 2
    assert replicas(marked, pod("b", ready=False)) == 2
    assert replicas(marked, pod("b", owner_uid="another ReplicaSet")) == 2
    costs = decide(seen([pod("a"), pod("b")], loads=loads, scaling=scaling)).deletion_costs
    assert costs == {"a": COST_GOING, "b": COST_BUSY}


def test_an_idle_pod_is_drained_before_it_may_go_however_cheap_it_is() -> None:
    """Idle now is not idle for ever: only a drained pod gets nothing more."""
    pods = [pod("a", deletion_cost=COST_GOING), pod("b")]
    result = decide(seen(pods, scaling=Scaling(mode="Fixed", max=1)))
    assert (result.replicas, len(result.drain)) == (2, 1)


def test_deletions_that_are_owed_are_taken_back_for_what_is_needed_now() -> None:
    pods = [pending(name) for name in "abcd"]
    result = decide(seen(pods, wanted=1, demand=Demand(6, 0, 0)))
    assert (result.replicas, result.desired) == (3, 3)


def test_pods_that_nothing_runs_in_go_without_a_drain() -> None:
    pods = [pod("a"), pending("b"), pod("c", ready=False, waiting_reason="ImagePullBackOff")]
    result = decide(seen(pods, scaling=Scaling(mode="Fixed", max=1)))
    assert (result.replicas, result.drain) == (1, ())


def test_replicas_that_have_no_pod_yet_go_first() -> None:
    result = decide(seen([pod("a"), pod("b")], wanted=6, scaling=Scaling(mode="Fixed", max=2)))
    assert (result.replicas, result.drain) == (2, ())


def test_drained_pods_are_called_back_before_new_ones_are_made() -> None:
    pods = [pod(name, deletion_cost=COST_GOING) for name in "ab"]
    loads = {"a": load(1, draining=True), "b": load(draining=True)}
    result = decide(seen(pods, loads=loads, demand=Demand(5, 1, 0)))
    assert (result.replicas, result.undrain) == (3, ("a", "b"))
    assert result.deletion_costs == {"a": COST_BUSY, "b": 0}


def test_no_pod_is_called_back_while_the_replica_set_owes_a_deletion() -> None:
    pods = [pod(name, deletion_cost=COST_GOING) for name in "ab"]
    loads = {name: load(draining=True) for name in "ab"}
    result = decide(seen(pods, loads=loads, wanted=1, demand=Demand(4, 0, 0)))
    assert (result.replicas, result.undrain) == (2, ())


def test_terminating_and_ended_pods_are_not_counted() -> None:
    pods = [pod("a"), pod("b", deleting=NOW), pod("c", phase="Failed")]
    result = decide(seen(pods, wanted=1, demand=Demand(2, 0, 0)))
    assert (result.replicas, result.reason) == (1, Reason.STEADY)


def test_a_blind_source_holds_and_says_so_after_a_while() -> None:
    pods, memory = [pod("a"), pod("b")], NEEDLESS
    for dark, reason in (
        (0.0, Reason.STEADY),
        (PATIENCE_SECONDS - 1, Reason.STEADY),
        (PATIENCE_SECONDS, Reason.SCALING_DEGRADED),
        (3600.0, Reason.SCALING_DEGRADED),
    ):
        now = NOW + timedelta(seconds=dark)
        result = decide(seen(pods, now=now, memory=memory, demand=None))
        assert (result.replicas, result.drain, result.reason) == (2, (), reason)
        assert result.degraded == (reason is Reason.SCALING_DEGRADED)
        memory = result.memory
    seeing = decide(seen(pods, now=NOW + timedelta(seconds=3602), memory=memory))
    assert (seeing.replicas, seeing.drain, seeing.reason) == (2, (), Reason.COOLING_DOWN)
    assert seeing.memory.blind_since is None


def test_an_environment_that_still_starts_is_no_alarm() -> None:
    memory = Memory(blind_since=NOW - timedelta(hours=1))
    result = decide(seen(demand=None, memory=memory, scaling=Scaling(min=2), wanted=None))
    assert (result.replicas, result.reason) == (2, Reason.POD_STARTING)


def test_a_lowered_maximum_is_reached_without_waiting() -> None:
    pods = [pod(name) for name in "abcd"]
    result = decide(seen(pods, scaling=Scaling(max=3), demand=Demand(9, 0, 0)))
    assert (len(result.drain), result.desired) == (1, 3)


@pytest.mark.parametrize("mode", ["External", "HPA", "KEDA"])
def test_another_scaler_keeps_the_field_and_paintings_are_dear(mode: Any) -> None:
    pods = [pod("a"), pod("b")]
    loads = {"a": load(1), "b": load()}
    result = decide(seen(pods, scaling=Scaling(mode=mode), loads=loads, demand=None))
    assert (result.replicas, result.desired) == (None, 2)
    assert result.reason is Reason.EXTERNALLY_SCALED
    assert result.deletion_costs == {"a": COST_BUSY}


def test_a_number_written_from_outside_is_followed_within_the_bounds() -> None:
    scaling = Scaling(mode="External", min=1, max=4)
    assert decide(seen(scaling=scaling, replicas=3)).replicas == 3
    result = decide(seen(scaling=scaling, replicas=9))
    assert result.replicas == 4
    assert "renderers.replicas=9, held to min=1 and max=4." in result.message
    down = decide(seen([pod(name) for name in "abc"], scaling=scaling, replicas=0))
    assert (down.replicas, len(down.drain), down.desired) == (3, 2, 1)


def test_silent_pods_go_only_when_nobody_paints() -> None:
    pods = [pod("a"), pod("mute", ready=False, deletion_cost=COST_GOING)]
    scaling = Scaling(mode="Fixed", max=1)
    for inflight, replicas in ((1, 2), (0, 1)):
        demand = Demand(0, inflight, 0)
        loads = {"a": load(1)}
        result = decide(seen(pods, loads=loads, scaling=scaling, demand=demand))
        assert result.replicas == replicas
