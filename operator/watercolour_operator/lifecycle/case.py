"""One run as the checks see it: what was observed, and what follows from it by counting."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from watercolour.api.reasons import Reason
from watercolour.api.spec import RunSpec
from watercolour.api.status import Attempt, Phase, Status
from watercolour_operator.lifecycle import attempts, specs
from watercolour_operator.lifecycle.attempts import Ledger
from watercolour_operator.observed import Child, Observed, Pod
from watercolour_operator.settings import Settings

#: Phases that are never left.
OVER = (Phase.SUCCEEDED, Phase.FAILED)


@dataclass(frozen=True, slots=True)
class Case:
    """All that a check may look at."""

    observed: Observed
    settings: Settings
    #: The specification in force; None when it is invalid and the start's is not known.
    spec: RunSpec | None
    #: Fixed fields that were changed in vain.
    changed: tuple[str, ...]
    ledger: Ledger

    @property
    def now(self) -> datetime:
        """The moment of the observation."""
        return self.observed.now

    @property
    def status(self) -> Status:
        """The status as it was last written."""
        return self.observed.status

    @property
    def newest(self) -> Attempt | None:
        """The newest attempt."""
        return self.ledger.newest

    @property
    def begun(self) -> bool:
        """Whether anything of the run has ever been started."""
        return self.newest is not None

    @property
    def job(self) -> Child | None:
        """The newest attempt's Job."""
        jobs = attempts.trainer_jobs(self.observed)
        return jobs.get(self.newest.number) if self.newest else None

    @property
    def runner(self) -> Pod | None:
        """The newest attempt's pod that trains or will."""
        newest = self.newest
        if newest is None or newest.ended is not None:
            return None
        return attempts.runner(self.observed, newest.number)

    @property
    def queued(self) -> bool:
        """Whether a queue holds the trainer back."""
        return self.job is not None and self.job.suspended and self.job.finished is None

    @property
    def stepped(self) -> bool:
        """Whether the newest attempt, still open, has made a step."""
        newest = self.newest
        if newest is None or newest.ended is not None or newest.last_step is None:
            return False
        return newest.last_step > (newest.first_step or 0)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a check found: where the run stands, and why."""

    phase: Phase
    reason: Reason
    #: A sentence for a person: the fact, what happens next, what to do.
    message: str
    #: The attempt whose trainer is wanted, with its record; None wants no trainer.
    attempt: Attempt | None = None
    #: Nothing is created or changed, only removed.
    hold: bool = False

    @property
    def active(self) -> bool:
        """Whether the run's parts are wanted."""
        return self.phase in (Phase.STARTING, Phase.RUNNING)


def of(observed: Observed, settings: Settings) -> Case:
    """Count what was observed."""
    spec, changed = specs.in_force(observed)
    ledger = attempts.up_to_date(observed, spec, settings.force_delete_seconds)
    return Case(observed, settings, spec, changed, ledger)
