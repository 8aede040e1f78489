"""What a run has used is counted from its pods, and not twice."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.unit.operator.world import START, World, run_spec, training

from watercolour.api.status import Cost, Status
from watercolour_operator import cost
from watercolour_operator.names import Component
from watercolour_operator.observed import Demand, Load, Observed, Pod


def seen(at: float, *pods: Pod, after: Cost | None = None, **more: Any) -> Observed:
    """An observation some seconds after the start, with what was counted so far."""
    world = World(now=START + timedelta(seconds=at))
    world.pods = {pod.name: pod for pod in pods}
    world.status = world.status.model_copy(update={"cost": after})
    return replace(world.observe(), **more)


def pod(component: Component = Component.TRAINER, *, at: float = 0, gpus: int = 1) -> Pod:
    """A pod that got its node some seconds after the start."""
    since = START + timedelta(seconds=at)
    return Pod(
        f"{component}-{at}",
        "u",
        component,
        "Running",
        START,
        scheduled=since,
        started=since,
        ready=True,
        gpus=gpus,
    )


def gpu_seconds(found: Cost | None, component: str = "trainer") -> float:
    """GPU-seconds of a component."""
    assert found is not None
    return found.components[component].gpu_seconds


def test_a_pod_costs_from_its_node_to_its_end() -> None:
    one = pod(at=10, gpus=2)
    assert gpu_seconds(cost.accounted(seen(70, one))) == 120
    over = replace(one, phase="Succeeded", ended=START + timedelta(seconds=40))
    assert gpu_seconds(cost.accounted(seen(5000, over))) == 60


@given(looks=st.lists(st.floats(0.5, 4000), min_size=1, max_size=6))
def test_however_often_one_looks_the_sum_is_the_same(looks: list[float]) -> None:
    at, known = 0.0, None
    one = pod(at=3)
    for wait in looks:
        at += wait
        known = cost.accounted(seen(at, one, after=known))
    whole = cost.accounted(seen(at, one))
    if whole is None:
        assert known is None
    else:
        assert abs(gpu_seconds(known) - gpu_seconds(whole)) < 0.01 * len(looks)


def test_what_ended_while_the_operator_was_away_is_counted_to_its_end() -> None:
    one = pod()
    known = cost.accounted(seen(60, one))
    over = replace(one, phase="Failed", ended=START + timedelta(seconds=90))
    known = cost.accounted(seen(9000, over, after=known))
    assert gpu_seconds(known) == 90
    assert cost.accounted(seen(9999, over, after=known)) == known, "nothing more is used"


def test_a_pod_without_a_node_costs_nothing() -> None:
    waiting = replace(pod(), scheduled=None, phase="Pending")
    assert cost.accounted(seen(600, waiting)) is None


def test_an_evicted_pod_without_an_end_is_not_counted_for_ever() -> None:
    one = pod()
    known = cost.accounted(seen(60, one))
    evicted = replace(one, phase="Failed", ended=None)
    assert cost.accounted(seen(6000, evicted, after=known)) == known


def test_idle_seconds_are_those_without_work() -> None:
    renderer, scorer = pod(Component.RENDERERS, gpus=0), pod(Component.SCORER)
    quiet = seen(
        30,
        renderer,
        scorer,
        loads={renderer.name: Load(2, 0, False)},
        demand=Demand(0, 0, 4),
    )
    found = cost.accounted(quiet)
    assert found is not None
    assert found.components["renderers"].idle_seconds == 30
    assert found.components["scorer"].idle_seconds == 30
    busy = replace(quiet, loads={renderer.name: Load(2, 1, False)}, demand=Demand(1, 1, 0))
    found = cost.accounted(busy)
    assert found is not None
    assert found.components["renderers"].idle_seconds == 0
    assert found.components["scorer"].idle_seconds == 0


def test_unknown_work_is_not_taken_for_idleness() -> None:
    renderer, scorer = pod(Component.RENDERERS, gpus=0), pod(Component.SCORER)
    found = cost.accounted(seen(30, renderer, scorer))
    assert found is not None
    assert found.components["renderers"].idle_seconds == 0
    assert found.components["scorer"].idle_seconds == 0


def test_a_shared_scorer_costs_each_its_share() -> None:
    shared = run_spec(scorer={"backend": "hpsv3", "sharing": "Namespace"})
    scorer = pod(Component.SCORER)
    seen_now = seen(60, scorer, spec=shared, scorer_users=3)
    wanting = replace(seen_now, status=Status(scorer="Ready"))
    assert gpu_seconds(cost.accounted(wanting), "scorer") == 20
    assert cost.accounted(replace(seen_now, status=Status(scorer="Sleeping"))) is None


def test_gpu_minutes_are_those_of_all_components() -> None:
    world = training()
    world.live(600, every=10)
    found = world.status.cost
    assert found is not None
    total = sum(part.gpu_seconds for part in found.components.values())
    assert abs(found.gpu_minutes * 60 - total) < 1
    assert world.status.columns.gpu_minutes == f"{found.gpu_minutes:.0f}"
