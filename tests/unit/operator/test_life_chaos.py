"""Whatever befalls a run, and in whatever order: what is true all the same."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.unit.operator.world import World, run_spec

from watercolour.api.status import Phase
from watercolour_operator.lifecycle import decide
from watercolour_operator.names import Component
from watercolour_operator.observed import Demand, Observed
from watercolour_operator.plan import Plan

P = Phase
#: The edges that a phase may move along.
EDGES = {
    P.PENDING: {P.STARTING, P.SUSPENDED},
    P.STARTING: {P.RUNNING, P.SUSPENDING, P.COMPLETING, P.SUCCEEDED, P.FAILED},
    P.RUNNING: {P.STARTING, P.SUSPENDING, P.COMPLETING, P.SUCCEEDED, P.FAILED},
    P.SUSPENDING: {P.SUSPENDED, P.STARTING, P.COMPLETING, P.SUCCEEDED, P.FAILED, P.RUNNING},
    # Back, when what is there was made by a look whose status was lost.
    P.SUSPENDED: {P.STARTING, P.SUSPENDING},
    P.COMPLETING: {P.SUCCEEDED},
    P.SUCCEEDED: set[Phase](),
    P.FAILED: set[Phase](),
}
OVER = (P.SUCCEEDED, P.FAILED)
MAX_RESTARTS = 2


class Life(RuleBasedStateMachine):
    """A run, its cluster, and everything that can go wrong with both."""

    world: World
    seen: list[Observed]

    @initialize(
        queue=st.sampled_from([False, False, True]),
        limit=st.sampled_from([None, None, 400]),
        minimum=st.sampled_from([0, 1]),
    )
    def begin(self, queue: bool, limit: int | None, minimum: int) -> None:
        fields: dict[str, object] = {
            "restartPolicy": {"maxRestarts": MAX_RESTARTS},
            "startupDeadlineSeconds": 300,
            "scorer": {"backend": "hpsv3", "idleTimeoutSeconds": 20},
            "renderers": {"scaling": {"min": minimum, "max": 4, "idleSeconds": 4}},
            "cleanup": {"ttlSeconds": 30},
        }
        if queue:
            fields["queueName"] = "gpus"
        if limit is not None:
            fields["activeDeadlineSeconds"] = limit
        self.world = World(spec=run_spec(**fields))
        self.world.watchers.append(self._check)
        self.seen = []
        self.steps = 0
        self.last = P.PENDING
        self._look()

    @rule(steps=st.integers(1, 20))
    def it_trains(self, steps: int) -> None:
        """All is well for some seconds, whatever was before."""
        self.world.room = self.world.kubelet = True
        self.the_queue_admits()
        for _ in range(5):
            self.world.tick()
            self._look()
        if self._runs():
            self.the_trainer_steps(steps, True)
            self._look()

    @rule(seconds=st.integers(1, 8), looks=st.sampled_from([True, True, False]))
    def time_passes(self, seconds: int, looks: bool) -> None:
        for _ in range(seconds):
            self.world.tick()
            if looks:
                self._look()

    @rule()
    def a_minute_passes(self) -> None:
        for _ in range(12):
            self.world.tick(5)
            self._look()

    @rule()
    def somebody_looks(self) -> None:
        self._look()

    @rule(ago=st.integers(1, 3))
    def somebody_looks_at_an_older_picture(self, ago: int) -> None:
        """A cache that is behind; the writing of its status is refused, its plan carried out."""
        if len(self.seen) >= ago:
            self.world.reconcile(self.seen[-ago])

    @rule()
    def the_next_status_is_lost(self) -> None:
        self.world.lose_status = True

    @precondition(lambda self: self._runs())
    @rule(steps=st.integers(1, 20), saved=st.booleans())
    def the_trainer_steps(self, steps: int, saved: bool) -> None:
        self.steps += steps
        figures = {"lastCheckpointStep": self.steps} if saved else {}
        self.world.step(self.steps, **figures)

    @precondition(lambda self: self._runs())
    @rule(code=st.sampled_from([1, 3, 137, 143, 0]), memory=st.booleans())
    def the_trainer_ends(self, code: int, memory: bool) -> None:
        oom = memory and code == 137
        self.world.end_trainer(code, reason="OOMKilled" if oom else "Error")

    @precondition(lambda self: self._runs())
    @rule()
    def the_trainer_is_evicted(self) -> None:
        self.world.evict_trainer()

    @precondition(lambda self: self._runs())
    @rule()
    def the_trainer_pod_is_deleted(self) -> None:
        self.world.delete_pod(self.world.trainer.name)

    @rule(component=st.sampled_from([Component.ENV, Component.SCORER, Component.RENDERERS]))
    def a_helper_dies(self, component: Component) -> None:
        for pod in self.world.of(component)[:1]:
            self.world.delete_pod(pod.name)

    @rule(alive=st.booleans())
    def kubelets_come_and_go(self, alive: bool) -> None:
        self.world.kubelet = alive

    @rule(room=st.booleans())
    def room_comes_and_goes(self, room: bool) -> None:
        self.world.room = room

    @rule()
    def the_queue_admits(self) -> None:
        for key, child in self.world.children.items():
            if child.kind == "Job" and child.suspended:
                self.world.children[key] = replace(child, suspended=False)

    @rule(suspend=st.booleans())
    def somebody_suspends_or_resumes(self, suspend: bool) -> None:
        assert self.world.spec is not None
        if self.world.spec.suspend is not suspend:
            self.world.edit(suspend=suspend)

    @rule(queued=st.integers(0, 8), announced=st.integers(0, 4), known=st.booleans())
    def the_demand_changes(self, queued: int, announced: int, known: bool) -> None:
        self.world.demand = Demand(queued, 0, announced) if known else None

    @rule(busy=st.integers(0, 2))
    def renderers_are_busy(self, busy: int) -> None:
        for name, load in list(self.world.loads.items()):
            self.world.loads[name] = type(load)(load.slots, busy, load.draining)

    def _runs(self) -> bool:
        pods = self.world.of(Component.TRAINER)
        return any(pod.phase == "Running" and pod.deleting is None for pod in pods)

    def _look(self) -> None:
        observed = self.world.observe()
        self.seen = [*self.seen[-2:], observed]
        self.world.reconcile(observed)

    def _check(self, observed: Observed, plan: Plan) -> None:
        """What is true of every plan, whatever it was made from."""
        status = plan.status
        assert decide(observed, self.world.settings) == plan, "the same picture, the same plan"
        if not plan.active:
            assert (plan.scorer, plan.judge, plan.env, plan.attempt) == (0, 0, 0, None)
        assert sum(1 for one in status.attempts if one.counted) <= MAX_RESTARTS + 1
        assert sum(1 for one in status.attempts if one.ended is None) <= 1
        numbers = [one.number for one in status.attempts]
        assert numbers == sorted(set(numbers))
        before = observed.status.phase
        assert status.phase is before or status.phase in EDGES[before], (before, status.phase)
        self._check_renderers(observed, plan)

    def _check_renderers(self, observed: Observed, plan: Plan) -> None:
        """While there is an environment to paint for, no renderer that paints is taken away."""
        wanted = next(
            (
                child.wanted or 0
                for child in observed.children
                if child.kind == "Deployment" and child.component is Component.RENDERERS
            ),
            0,
        )
        pods = [pod for pod in observed.of(Component.RENDERERS) if pod.deleting is None]
        busy = sum(
            load.busy > 0 for pod in pods if (load := observed.loads.get(pod.name)) is not None
        )
        if plan.env and plan.renderers is not None and plan.renderers < wanted:
            assert plan.renderers >= min(busy, wanted)

    @invariant()
    def never_two_trainers(self) -> None:
        """Two pods of two attempts never run at the same time."""
        if not hasattr(self, "world"):
            return
        running = {
            pod.attempt
            for pod in self.world.of(Component.TRAINER)
            if pod.phase in ("Pending", "Running")
        }
        assert len(running) <= 1, running

    @invariant()
    def what_is_over_stays_over(self) -> None:
        if not hasattr(self, "world"):
            return
        if self.last in OVER:
            assert self.world.phase is self.last
        self.last = self.world.phase

    def teardown(self) -> None:
        """Left alone, the run comes to rest, and what it says of itself is so."""
        world = self.world
        world.kubelet, world.lose_status = True, False
        for _ in range(40):
            world.tick(2)
            self._look()
        for _ in range(30):
            world.tick(20)
            self._look()
        alive = [pod for pod in world.pods.values() if pod.phase not in ("Succeeded", "Failed")]
        if world.phase in OVER:
            assert [kind for kind, _ in world.children] in ([], ["PersistentVolumeClaim"])
            assert not alive
        elif world.phase is P.SUSPENDED:
            assert not alive
        else:
            assert world.phase in (P.STARTING, P.RUNNING, P.PENDING), world.phase
        trains = [pod for pod in alive if pod.component is Component.TRAINER and pod.scheduled]
        if not trains:
            assert not [pod for pod in alive if pod.component is Component.SCORER]


TestLife = Life.TestCase
TestLife.settings = settings(
    max_examples=25,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
