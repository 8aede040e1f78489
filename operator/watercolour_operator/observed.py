"""What is known of one run and its surroundings at one moment. Values only, no judgement.

``None`` means "not known" or "not there" throughout, and never 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from watercolour.api.reasons import Reason
from watercolour.api.spec import RunSpec
from watercolour.api.status import Progress, Status
from watercolour_operator.names import Component


@dataclass(frozen=True, slots=True)
class Pod:
    """A pod of the run, as far as decisions need it."""

    name: str
    uid: str
    component: Component
    phase: Literal["Pending", "Running", "Succeeded", "Failed", "Unknown"]
    created: datetime
    attempt: int | None = None
    #: Its number among the pods of a Job that has several; None of a Job that has one.
    index: int | None = None
    #: Job or ReplicaSet behind it.
    owner_uid: str | None = None
    node: str | None = None
    #: When the scheduler bound it to a node; None while it waits.
    scheduled: datetime | None = None
    #: The scheduler's own words while it waits.
    unschedulable: str | None = None
    ready: bool = False
    #: When it was ready for the first time, as far as that was seen; None before.
    readied: datetime | None = None
    #: When deletion was asked for; the pod is Terminating.
    deleting: datetime | None = None
    #: Seconds that it may take to end once its deletion was asked for.
    grace_seconds: float = 0.0
    #: Asked to go by the cluster, not by its own fault: condition DisruptionTarget.
    disrupted: bool = False
    #: Taken away because its node is gone.
    node_lost: bool = False
    #: Taken away because its node has a taint that it does not tolerate: it is silent, or cleared.
    tainted: bool = False
    #: Phase, reason and words of the main container, whichever state it is in.
    waiting_reason: str | None = None
    exit_code: int | None = None
    #: The container's termination reason, such as OOMKilled, Error or Completed.
    ended_reason: str | None = None
    #: Termination message, waiting message or pod message: the pod's own words.
    message: str = ""
    started: datetime | None = None
    ended: datetime | None = None
    restarts: int = 0
    gpus: int = 0
    ip: str | None = None
    deletion_cost: int | None = None


@dataclass(frozen=True, slots=True)
class Child:
    """An object of the run other than a pod."""

    kind: str
    name: str
    uid: str
    generation: int
    created: datetime
    #: Uid in the controlling owner reference; None when it has none.
    owner_uid: str | None = None
    component: Component | None = None
    attempt: int | None = None
    deleting: bool = False
    #: Deployments: wanted and ready pods. ``wanted`` is spec.replicas.
    wanted: int | None = None
    ready: int | None = None
    #: Jobs.
    suspended: bool = False
    finished: Literal["Complete", "Failed"] | None = None
    #: Claims: Pending, Bound, Lost.
    phase: str | None = None
    #: Words of a condition that says why it cannot go on (quota, FailedCreate, claim lost).
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Demand:
    """The environment's render queue, as `GET /v1/demand` tells it."""

    queued: int
    inflight: int
    announced: int
    #: Seconds until the first of the announced renders is expected; 0 is at any moment.
    due_seconds: float = 0.0
    #: Paintings that wait for a scorer which is away or asleep.
    scoring: int = 0


@dataclass(frozen=True, slots=True)
class Load:
    """A renderer's own word, as `GET /v1/load` tells it."""

    slots: int
    busy: int
    draining: bool
    #: Why it takes no work, such as NetworkPolicyNotEnforced.
    refuses: Reason | None = None


@dataclass(frozen=True, slots=True)
class Trouble:
    """Something that kept the operator from its work at the last attempt."""

    reason: Reason
    #: A sentence for a person: the object, the verb or the limit, and the remedy.
    message: str
    #: Whether trying again without a change can help.
    transient: bool


@dataclass(frozen=True, slots=True)
class Observed:
    """One run and its surroundings at one moment."""

    now: datetime
    namespace: str
    name: str
    uid: str
    generation: int
    created: datetime
    #: None when the stored specification breaks a rule; ``spec_problem`` then says which.
    spec: RunSpec | None
    status: Status
    spec_problem: str | None = None
    deleting: datetime | None = None
    children: tuple[Child, ...] = ()
    pods: tuple[Pod, ...] = ()
    #: Objects of our names that belong to somebody else, most often an older run of the name.
    foreign: tuple[Child, ...] = ()
    #: What the trainer's /progress said, and when; None when it did not answer.
    progress: Progress | None = None
    #: None when the environment did not answer: the source is blind.
    demand: Demand | None = None
    #: By pod name; pods that did not answer are missing.
    loads: Mapping[str, Load] = field(default_factory=dict[str, Load])
    #: Secrets and claims that the specification names and the cluster lacks.
    missing: tuple[str, ...] = ()
    #: Why it is not known whether something is missing; None when all could be asked.
    unasked: Trouble | None = None
    trouble: Trouble | None = None
    #: What the run was started with, from its ConfigMap; None before that or if unreadable.
    started_with: RunSpec | None = None
    #: Another run of the namespace wants the same shared scorer now: its ``status.scorer`` is
    #: Ready or Starting.
    scorer_wanted_elsewhere: bool = False
    #: Another run of the namespace that names the same shared scorer is at work, and so keeps its
    #: Deployment as it should be.
    scorer_kept_elsewhere: bool = False
    #: Runs of the namespace that want the same shared scorer now, this one included.
    scorer_users: int = 1
    #: Name and uid of the other runs of the namespace that name the same shared scorer and are not
    #: over; all of them own it, so that it goes with the last.
    scorer_sharers: tuple[tuple[str, str], ...] = ()

    def of(self, component: Component) -> tuple[Pod, ...]:
        """The pods of one component, oldest first."""
        found = (pod for pod in self.pods if pod.component is component)
        return tuple(sorted(found, key=lambda pod: (pod.created, pod.name)))
