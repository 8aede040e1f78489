"""What is to be so after this reconcile: the decision between observation and manifests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from watercolour.api.spec import RunSpec
from watercolour.api.status import Status


@dataclass(frozen=True, slots=True)
class Removal:
    """An object that has to go, and how long its pods may take."""

    kind: str
    name: str
    #: Seconds of grace for its pods; None leaves the pods' own.
    grace_seconds: int | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """The decision on one run.

    ``remove`` is carried out first and in order, because it gives GPUs back; then everything that
    is wanted is applied; then ``drain``, ``undrain``, ``deletion_costs`` and at last ``status``.
    """

    #: The status to be written, whole; conditions keep their transition times.
    status: Status
    #: False: the run is over, suspended or invalid, and only what is kept remains applied.
    active: bool
    #: What the manifests are built from: the specification, with the fixed fields of the start.
    spec: RunSpec | None = None
    #: Nothing is created or changed, only removed: the run is over, suspended, invalid, being
    #: deleted, or waits for an older one of its name.
    hold: bool = False
    #: Attempt whose Job is wanted; None wants no trainer. A Job that was observed is never
    #: applied again: its template cannot change.
    attempt: int | None = None
    #: Whether that attempt goes on from a checkpoint, if there is one.
    resume: bool = False
    env: int = 0
    scorer: int = 0
    judge: int = 0
    #: Renderer pods; None leaves the field to whoever owns it (External, HPA, KEDA).
    renderers: int | None = 0
    remove: tuple[Removal, ...] = ()
    #: Renderer pods that get no new work from now on.
    drain: tuple[str, ...] = ()
    #: Drained renderer pods that are needed after all.
    undrain: tuple[str, ...] = ()
    #: Pod-deletion-cost by renderer pod: the idle go first.
    deletion_costs: Mapping[str, int] = field(default_factory=dict[str, int])
    #: The run itself is to be deleted: its TTL is over.
    delete_run: bool = False
    #: Look again after so many seconds even if nothing happens; None waits for an event.
    again_seconds: float | None = None
