"""A little cluster in memory that carries plans out, with one run in it and a clock of its own.

It plays what a control plane does with the run's objects: Deployments and Jobs make pods, a
scheduler gives them nodes, a kubelet starts them, deleted pods end when their grace is over. What
the trainer does is told by the test.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from watercolour.api import servers
from watercolour.api.spec import RunSpec
from watercolour.api.status import Attempt, Condition, ConditionType, Phase, Progress, Status
from watercolour_operator import events, names
from watercolour_operator.events import Event
from watercolour_operator.lifecycle import decide
from watercolour_operator.names import Component
from watercolour_operator.observed import Child, Demand, Load, Observed, Pod, Trouble
from watercolour_operator.plan import Plan
from watercolour_operator.settings import Settings

START = datetime(2026, 9, 1, 12, 0, tzinfo=UTC)
RUN, UID = "peonies", "run-uid"
#: Seconds of grace in the pod templates.
GRACE = {Component.TRAINER: 300.0}
OTHER_GRACE = 5.0


def run_spec(**fields: Any) -> RunSpec:
    """A specification with a scorer on a GPU, from the fields that YAML has."""
    published: dict[str, Any] = {"scorer": {"backend": "hpsv3"}, "judge": {"backend": "none"}}
    published["recipe"] = {"name": "hps-only"}
    return RunSpec.model_validate(published | fields)


def story(events: list[Event]) -> list[tuple[str, str]]:
    """Events without their words."""
    return [(event.type, event.reason.value) for event in events]


@dataclass
class World:
    """One run and its cluster."""

    spec: RunSpec | None = field(default_factory=run_spec)
    settings: Settings = field(default_factory=Settings)
    now: datetime = START
    status: Status = field(default_factory=Status)
    children: dict[tuple[str, str], Child] = field(default_factory=dict[tuple[str, str], Child])
    pods: dict[str, Pod] = field(default_factory=dict[str, Pod])
    foreign: tuple[Child, ...] = ()
    missing: tuple[str, ...] = ()
    trouble: Trouble | None = None
    progress: Progress | None = None
    demand: Demand | None = field(default_factory=lambda: Demand(0, 0, 0))
    loads: dict[str, Load] = field(default_factory=dict[str, Load])
    started_with: RunSpec | None = None
    spec_problem: str | None = None
    generation: int = 1
    deleting: datetime | None = None
    wanted_elsewhere: bool = False
    kept_elsewhere: bool = False
    sharers: tuple[tuple[str, str], ...] = ()
    #: GPU nodes have room; images can be pulled; kubelets answer.
    room: bool = True
    kubelet: bool = True
    #: Names of pods whose node is silent.
    silent: set[str] = field(default_factory=set[str])
    events: list[Event] = field(default_factory=list[Event])
    removed: list[str] = field(default_factory=list[str])
    #: The next status is lost on its way to the API server.
    lose_status: bool = False
    #: Told every plan and the observation that it was made from.
    watchers: list[Callable[[Observed, Plan], None]] = field(
        default_factory=list[Callable[[Observed, Plan], None]]
    )
    run_deleted: bool = False
    _serial: int = 0

    # What the operator sees and does.

    def observe(self) -> Observed:
        """All that can be seen now."""
        return Observed(
            now=self.now,
            namespace="studio",
            name=RUN,
            uid=UID,
            generation=self.generation,
            created=START,
            spec=self.spec,
            spec_problem=self.spec_problem,
            status=self.status,
            deleting=self.deleting,
            children=tuple(self.children.values()),
            pods=tuple(self.pods.values()),
            foreign=self.foreign,
            progress=self.progress,
            demand=self.demand if self.ready(Component.ENV) else None,
            loads={name: load for name, load in self.loads.items() if name in self.pods},
            missing=self.missing,
            trouble=self.trouble,
            started_with=self.started_with,
            scorer_wanted_elsewhere=self.wanted_elsewhere,
            scorer_kept_elsewhere=self.kept_elsewhere,
            scorer_sharers=self.sharers,
        )

    def reconcile(self, seen: Observed | None = None) -> Plan:
        """One look, from now or from an older observation, carried out."""
        observed = seen or self.observe()
        plan = decide(observed, self.settings)
        for watch in self.watchers:
            watch(observed, plan)
        self._carry_out(observed, plan)
        return plan

    def live(self, seconds: float, *, every: float = 1.0) -> Plan:
        """Let time pass, with a look after every second."""
        plan = self.reconcile()
        for _ in range(round(seconds / every)):
            self.tick(every)
            plan = self.reconcile()
        return plan

    def _carry_out(self, observed: Observed, plan: Plan) -> None:
        for gone in plan.remove:
            self.remove(gone.kind, gone.name, gone.grace_seconds)
        if plan.delete_run:
            self.run_deleted = True
        if not plan.hold and plan.active:
            self._apply(observed, plan)
        for name in plan.drain:
            self._drain(name, True)
        for name in plan.undrain:
            self._drain(name, False)
        for name, cost in plan.deletion_costs.items():
            if name in self.pods:
                self.change(self.pods[name], deletion_cost=cost)
        self._write(observed, plan.status)

    def _drain(self, name: str, draining: bool) -> None:
        if name in self.loads:
            self.loads[name] = replace(self.loads[name], draining=draining)

    def _write(self, observed: Observed, new: Status) -> None:
        if self.lose_status:
            self.lose_status = False
            return
        if observed.status != self.status:
            # Made from an older version: the API server answers 409.
            return
        # As it comes back from the API server.
        text = new.model_dump_json(by_alias=True, exclude_none=True)
        self.events += events.between(self.status, new)
        self.status = Status.model_validate_json(text, by_alias=True)

    def _apply(self, observed: Observed, plan: Plan) -> None:
        assert plan.spec is not None
        self.started_with = plan.spec
        self._ensure("NetworkPolicy", f"{RUN}-default", None)
        self._ensure("ConfigMap", names.config(RUN), None)
        self._ensure("PersistentVolumeClaim", names.claim(RUN), None)
        self._deploy(Component.ENV, plan.env)
        self._deploy(Component.RENDERERS, plan.renderers)
        if servers.runs_scorer(plan.spec):
            self._deploy(Component.SCORER, plan.scorer)
        if servers.runs_judge(plan.spec):
            self._deploy(Component.JUDGE, plan.judge)
        if plan.attempt is not None:
            self._start_job(observed, plan.attempt, queued=plan.spec.queue_name is not None)

    def _start_job(self, observed: Observed, number: int, *, queued: bool) -> None:
        name = names.trainer_job(RUN, number)
        if not any(child.kind == "Job" and child.name == name for child in observed.children):
            self._ensure("Job", name, Component.TRAINER, attempt=number, suspended=queued)

    def _ensure(self, kind: str, name: str, component: Component | None, **more: Any) -> Child:
        key = (kind, name)
        if key not in self.children:
            self.children[key] = Child(
                kind,
                name,
                self._uid(name),
                1,
                self.now,
                owner_uid=UID,
                component=component,
                **more,
            )
        return self.children[key]

    def _deploy(self, component: Component, replicas: int | None) -> None:
        child = self._ensure("Deployment", names.child(RUN, component), component, wanted=0)
        if replicas is not None:
            self.children["Deployment", child.name] = replace(child, wanted=replicas)

    def remove(self, kind: str, name: str, grace: float | None = None) -> None:
        """Delete an object; a Job's and a Deployment's pods follow with their own grace."""
        self.removed.append(name)
        if kind == "Pod":
            self.delete_pod(name, grace)
            return
        child = self.children.pop((kind, name), None)
        if child is None:
            return
        for pod in list(self.pods.values()):
            if pod.owner_uid == child.uid:
                self.delete_pod(pod.name, None)

    def delete_pod(self, name: str, grace: float | None = None) -> None:
        """Ask a pod to go; one without grace, or that is over, goes at once."""
        pod = self.pods.get(name)
        if pod is None or (grace is None and pod.deleting):
            return  # garbage collection passes over what is going
        own = GRACE.get(pod.component, OTHER_GRACE) if grace is None else grace
        if own == 0 or pod.phase in ("Succeeded", "Failed") or pod.scheduled is None:
            del self.pods[name]
            if pod.phase not in ("Succeeded", "Failed"):
                self._lost_pod(pod)
            return
        since = pod.deleting or self.now
        self.pods[name] = replace(pod, deleting=since, grace_seconds=own)

    # What the cluster does by itself.

    def tick(self, seconds: float = 1.0) -> None:
        """Let time pass and every controller do its work."""
        self.now += timedelta(seconds=seconds)
        for pod in list(self.pods.values()):
            self._play(pod)
        for child in list(self.children.values()):
            if child.kind == "Deployment":
                self._play_deployment(child)
            elif child.kind == "Job":
                self._play_job(child)
        for pod in list(self.pods.values()):
            self._schedule(pod)

    def _play(self, pod: Pod) -> None:
        asked = pod.deleting
        if pod.name in self.silent:
            return
        if asked is not None and self.kubelet:
            trains = pod.component is Component.TRAINER
            # The trainer writes its checkpoint and ends within two seconds; others at once.
            if self.now - asked >= timedelta(seconds=2 if trains else 1):
                del self.pods[pod.name]
                self._lost_pod(pod)
        elif pod.phase == "Pending" and pod.scheduled and not pod.waiting_reason and self.kubelet:
            running = replace(pod, phase="Running", started=self.now, ready=True, readied=self.now)
            self.pods[pod.name] = running
            if pod.component is Component.RENDERERS:
                self.loads.setdefault(pod.name, Load(2, 0, draining=False))

    def _lost_pod(self, pod: Pod) -> None:
        """The Job controller counts a pod that went before it had ended as failed."""
        for key, child in self.children.items():
            if child.uid == pod.owner_uid and child.kind == "Job" and not child.suspended:
                self.children[key] = replace(child, finished=child.finished or "Failed")

    def _play_deployment(self, child: Child) -> None:
        owned = [pod for pod in self.pods.values() if pod.owner_uid == child.uid]
        staying = [pod for pod in owned if pod.deleting is None]
        for _ in range((child.wanted or 0) - len(staying)):
            self._make_pod(child)
        surplus = len(staying) - (child.wanted or 0)
        for pod in sorted(staying, key=lambda pod: pod.deletion_cost or 0)[: max(surplus, 0)]:
            self.delete_pod(pod.name)

    def _play_job(self, child: Child) -> None:
        owned = [pod for pod in self.pods.values() if pod.owner_uid == child.uid]
        if child.suspended:
            for pod in owned:
                self.delete_pod(pod.name)
        elif child.finished is None and not owned:
            self._make_pod(child)
        for pod in owned:
            if pod.phase in ("Succeeded", "Failed") and child.finished is None:
                finished = "Complete" if pod.phase == "Succeeded" else "Failed"
                self.children["Job", child.name] = replace(child, finished=finished)

    def _make_pod(self, child: Child) -> None:
        assert child.component is not None
        gpus = 1 if child.component in (Component.TRAINER, Component.SCORER) else 0
        name = f"{child.name}-{self._uid('')}"
        self.pods[name] = Pod(
            name,
            self._uid(name),
            child.component,
            "Pending",
            self.now,
            attempt=child.attempt,
            owner_uid=child.uid,
            gpus=gpus,
        )

    def _schedule(self, pod: Pod) -> None:
        if pod.scheduled is not None or pod.phase != "Pending":
            return
        if pod.gpus and not self.room:
            words = "0/3 nodes are available: 3 Insufficient nvidia.com/gpu."
            self.pods[pod.name] = replace(pod, unschedulable=words)
            return
        self.pods[pod.name] = replace(pod, scheduled=self.now, node="node-3", unschedulable=None)

    def _uid(self, name: str) -> str:
        self._serial += 1
        return f"{name}#{self._serial}" if name else f"{self._serial}"

    # What a test looks at or brings about.

    def of(self, component: Component) -> list[Pod]:
        """A component's pods."""
        return [pod for pod in self.pods.values() if pod.component is component]

    def ready(self, component: Component) -> int:
        """How many of a component's pods are ready."""
        return sum(pod.ready and pod.deleting is None for pod in self.of(component))

    @property
    def trainer(self) -> Pod:
        """The trainer's pod that is not over."""
        return next(
            pod for pod in self.of(Component.TRAINER) if pod.phase in ("Pending", "Running")
        )

    def change(self, pod: Pod, **fields: Any) -> None:
        """Change what is seen of a pod."""
        self.pods[pod.name] = replace(self.pods[pod.name], **fields)

    def step(self, step: int, **figures: Any) -> None:
        """The trainer answers that it has done so many steps."""
        steps = self.spec.trainer.steps if self.spec else 80
        self.progress = Progress.model_validate({"step": step, "steps": steps, **figures})

    def end_trainer(self, code: int, message: str = "", *, reason: str = "Error") -> None:
        """The trainer's container ends by itself."""
        phase = "Succeeded" if code == 0 else "Failed"
        said = "Completed" if code == 0 else reason
        self.change(
            self.trainer,
            phase=phase,
            exit_code=code,
            ended=self.now,
            ended_reason=said,
            message=message,
            ready=False,
        )
        self.progress = None

    def evict_trainer(self) -> None:
        """The cluster takes the trainer's pod away: preemption, drain, eviction."""
        pod = self.trainer
        self.change(pod, disrupted=True)
        self.delete_pod(pod.name)
        self.progress = None

    def edit(self, **fields: Any) -> None:
        """Somebody changes the specification."""
        assert self.spec is not None
        whole = self.spec.model_dump(mode="json", by_alias=True, exclude_unset=True)
        self.spec = RunSpec.model_validate(whole | fields)
        self.generation += 1

    def condition(self, kind: ConditionType) -> Condition:
        """A condition that must be there."""
        found = self.status.condition(kind)
        assert found is not None, kind
        return found

    def said(self, kind: ConditionType) -> tuple[str, str]:
        """A condition's status and reason."""
        found = self.condition(kind)
        return found.status, found.reason

    @property
    def phase(self) -> Phase:
        """The phase in the status."""
        return self.status.phase

    @property
    def attempt(self) -> Attempt:
        """The newest attempt in the status."""
        return self.status.attempts[-1]


def training(step: int = 1, **fields: Any) -> World:
    """A world whose run has made steps, with the scorer up."""
    world = World(spec=run_spec(**fields))
    world.live(5)
    world.step(step)
    world.live(3)
    assert world.phase is Phase.RUNNING, world.status
    return world
