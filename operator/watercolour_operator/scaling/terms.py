"""What the scaling of renderers is decided from, and what the decision says. Values only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from watercolour.api.reasons import Reason
from watercolour.api.workers import Scaling
from watercolour_operator.observed import Demand, Load, Pod


@dataclass(frozen=True, slots=True)
class Memory:
    """What one decision leaves to the next; it lives in the run's status and changes seldom."""

    #: Whether the environment has ever told its demand.
    heard: bool = False
    #: Since when it has not answered; None while it does.
    blind_since: datetime | None = None
    #: When the newest entry of ``surplus_peaks`` began; None while all pods are needed.
    surplus_since: datetime | None = None
    #: Most pods that were needed in each part of idleSeconds, the newest last.
    surplus_peaks: tuple[int, ...] = ()
    #: Seconds from a pod's creation to its readiness, of the slowest of the pods that were ready
    #: last; None while none ever was.
    start_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class ScalingInput:
    """All that the number of renderer pods depends on, at one moment."""

    now: datetime
    #: The specification's `renderers.scaling`, `renderers.slots` and `renderers.replicas`.
    scaling: Scaling
    slots: int
    replicas: int | None = None
    #: The renderer Deployment's spec.replicas; None when there is no Deployment yet.
    wanted: int | None = None
    #: None when the environment did not answer.
    demand: Demand | None = None
    #: The renderer pods, the terminating ones included.
    pods: tuple[Pod, ...] = ()
    #: By pod name; pods that did not answer are missing.
    loads: Mapping[str, Load] = field(default_factory=dict[str, Load])
    memory: Memory = field(default_factory=Memory)


@dataclass(frozen=True, slots=True)
class ScalingResult:
    """The decision on the renderer pods."""

    #: The Deployment's spec.replicas; None leaves the field to whoever owns it.
    replicas: int | None
    #: Pods wanted in the end, once those that are to go have finished: what status shows.
    desired: int
    reason: Reason
    #: Why, in a sentence for a person.
    message: str
    #: To be kept in status for the next decision.
    memory: Memory
    #: Pods that get no new work from now on (POST /v1/drain).
    drain: tuple[str, ...] = ()
    #: Drained pods that are needed after all (DELETE /v1/drain).
    undrain: tuple[str, ...] = ()
    #: Pod-deletion-cost by pod name, where it differs from what the pod has.
    deletion_costs: Mapping[str, int] = field(default_factory=dict[str, int])
    #: Decide again after so many seconds even if nothing happens.
    again_seconds: float | None = None

    @property
    def degraded(self) -> bool:
        """Whether the number of pods holds because the demand is not known."""
        return self.reason is Reason.SCALING_DEGRADED
