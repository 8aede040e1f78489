"""What holds for the scaling of renderers whatever happens, on the model of a ReplicaSet."""

from __future__ import annotations

import random
from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from watercolour.api.workers import Scaling
from watercolour_operator.scaling.model import Render, World
from watercolour_operator.scaling.policy import PARTS
from watercolour_operator.scaling.rules import Hpa, Ours


@dataclass
class Case:
    """A cluster, a rule and what happens to them."""

    scaling: Scaling
    slots: int
    world: World
    #: Seconds in which the environment does not answer.
    dark: tuple[float, float]
    #: Share of looks that the operator misses (it restarts), and of renderers that stay mute.
    missed: float
    mute: float


@st.composite
def bursts(draw: st.DrawFn) -> list[Render]:
    renders: list[Render] = []
    at = 0.0
    for _ in range(draw(st.integers(1, 3))):
        at += draw(st.floats(0, 150))
        announced = draw(st.none() | st.floats(0, 60))
        # The trainer may be wrong about when they come, either way.
        wrong = draw(st.just(0.0) | st.floats(-60, 120))
        longest = draw(st.floats(1, 90))
        for _ in range(draw(st.integers(1, 24))):
            arrives = at + draw(st.floats(0, 30))
            renders.append(
                Render(
                    arrives,
                    seconds=draw(st.floats(0.5, longest)),
                    announced=None if announced is None else at - announced,
                    due=at + wrong,
                )
            )
    return renders


@st.composite
def cases(draw: st.DrawFn, *, mute: bool = False) -> Case:
    most = draw(st.integers(1, 12))
    scaling = Scaling(
        min=draw(st.integers(0, most)),
        max=most,
        per_pod=draw(st.none() | st.integers(1, 4)),
        idle_seconds=draw(st.floats(2, 60)),
    )
    slots = draw(st.integers(1, 3))
    world = World(
        draw(bursts()),
        slots=slots,
        cold_start=draw(st.floats(6, 30)),
        lag=draw(st.floats(0, 2)),
        rng=random.Random(draw(st.integers(0, 2**32))),
    )
    dark = draw(st.floats(0, 200))
    return Case(
        scaling,
        slots,
        world,
        (dark, dark + draw(st.floats(0, 60))),
        missed=draw(st.floats(0, 0.3)),
        mute=draw(st.floats(0, 0.3)) if mute else 0.0,
    )


def longest_way_down(case: Case) -> float:
    """Seconds from the last painting to the smallest number of pods."""
    halvings = case.scaling.max.bit_length() + 1
    looks = 2 + case.world.lag / 2 + 1
    return (
        case.scaling.idle_seconds * (1 + 2 / PARTS) + case.world.cold_start + halvings * 4 * looks
    )


@settings(max_examples=150, deadline=None)
@given(cases())
def test_no_pod_dies_that_paints_and_the_bounds_hold(case: Case) -> None:
    world, rule = case.world, Ours(case.scaling, case.slots)
    low = case.scaling.min
    chance = random.Random(1)
    end = None
    while end is None or world.now < end + longest_way_down(case):
        rule.blind = case.dark[0] <= world.now < case.dark[1]
        if end is not None or chance.random() >= case.missed:
            held = world.wanted
            rule(world)
            assert world.wanted <= case.scaling.max
            if world.now:
                assert world.wanted >= low
            if rule.blind:
                assert world.wanted >= held
        world.step()
        assert world.kills == 0
        assert len(world.workers) <= case.scaling.max
        if end is None and world.over and world.now >= case.dark[1]:
            end = world.now
    assert world.over
    assert (world.wanted, len(world.workers)) == (low, low)


@settings(max_examples=60, deadline=None)
@given(cases(mute=True), st.integers(0, 2**32))
def test_renderers_that_do_not_answer_are_let_go_in_the_end(case: Case, seed: int) -> None:
    """Nothing tells that they are drained, so what they paint may be lost; the pods are not."""
    world, rule = case.world, Ours(case.scaling, case.slots)
    chance = random.Random(seed)
    mute: set[str] = set()
    known: set[str] = set()
    end = None
    while end is None or world.now < end + longest_way_down(case):
        for worker in world.workers:
            if worker.name not in known:
                known.add(worker.name)
                if chance.random() < case.mute:
                    mute.add(worker.name)
        rule.silent = mute
        rule(world)
        world.step()
        if end is None and world.over:
            end = world.now
    assert (world.wanted, len(world.workers)) == (case.scaling.min, case.scaling.min)


@settings(max_examples=150, deadline=None)
@given(
    count=st.integers(1, 24),
    seconds=st.floats(1, 120),
    spread=st.floats(0, 1),
    announced=st.none() | st.floats(0, 60),
    most=st.integers(1, 12),
    idle=st.floats(2, 90),
    seed=st.integers(0, 2**32),
)
def test_a_burst_turns_the_number_of_pods_once(
    count: int,
    seconds: float,
    spread: float,
    announced: float | None,
    most: int,
    idle: float,
    seed: int,
) -> None:
    chance = random.Random(seed)
    at = 100.0
    renders = [
        Render(
            at,
            seconds * (1 - spread * chance.random()),
            None if announced is None else at - announced,
        )
        for _ in range(count)
    ]
    world = World(renders, lag=2.0, rng=chance)
    rule = Ours(Scaling(min=0, max=most, idle_seconds=idle), 1)
    turns, direction, before = 0, 1, 0
    # A single pod may have to paint them all, one after the other.
    until = at + 600 + count * seconds + 10 * idle
    while world.now < until and not (world.over and not world.workers and world.now > at):
        rule(world)
        if world.wanted != before:
            now = 1 if world.wanted > before else -1
            turns += now != direction
            direction, before = now, world.wanted
        world.step()
    assert world.over
    assert world.wanted == 0
    assert turns == 1


def test_the_model_does_kill_what_paints() -> None:
    """A rule that lowers replicas without a drain meets the order of the real ReplicaSet."""
    renders = [Render(0, 10), Render(0, 10), *(Render(0, 200) for _ in range(6))]
    world, rule = World(renders), Hpa(per_pod=1, most=8, stabilization=0)
    while not world.over:
        rule(world)
        world.step()
    assert world.kills > 0
