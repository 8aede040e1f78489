"""When a run is to be looked at again although nothing happens. Pure."""

from __future__ import annotations

from watercolour.api.reasons import Reason
from watercolour.api.status import Phase
from watercolour_operator.lifecycle import (
    deadlines,
    leftovers,
    podfaults,
    replicas,
    restarts,
    teardown,
)
from watercolour_operator.lifecycle.case import OVER, Case, Verdict
from watercolour_operator.lifecycle.replicas import Replicas

#: Shortest wait, in seconds: a deadline that is due is met, not chased.
SHORTEST = 0.25
#: Seconds between two looks at what nobody tells of: a Secret that is missing, a Job without a pod.
MISSING_SECONDS, PODLESS_SECONDS = 10.0, 5.0


def again(case: Case, verdict: Verdict, wanted: Replicas) -> float | None:
    """Seconds to the next look; None waits for an event."""
    if verdict.phase in OVER:
        return _least(*_of_finished(case))
    waits = [case.settings.resync_seconds]
    if verdict.phase is Phase.PENDING and case.observed.missing:
        waits.append(MISSING_SECONDS)
    if verdict.phase in (Phase.COMPLETING, Phase.SUSPENDING) or verdict.reason is Reason.RESTARTING:
        waits.append(_while_ending(case))
    if verdict.active:
        waits += [wait for wait in _of_active(case, wanted) if wait is not None]
    return _least(*waits)


def _least(*waits: float | None) -> float | None:
    known = [max(wait, SHORTEST) for wait in waits if wait is not None]
    return min(known, default=None)


def _of_finished(case: Case) -> list[float | None]:
    if case.status.phase not in OVER:
        # The status that says so is being written; its coming back is an event.
        return [case.settings.poll_seconds]
    waits = [teardown.run_ttl_left(case)]
    if teardown.remaining(case) or leftovers.pods(case):
        left = teardown.ttl_left(case)
        waits.append(left if left is None or left > 0 else _while_ending(case))
    if leftovers.working(case):
        waits.append(_while_ending(case))
    return waits


def _while_ending(case: Case) -> float:
    """Pods tell their end by events; only a pod that never ends has to be waited for."""
    return max(case.settings.poll_seconds, min(5.0, case.settings.force_delete_seconds))


def _of_active(case: Case, wanted: Replicas) -> list[float | None]:
    waits: list[float | None] = [
        deadlines.active_left(case),
        deadlines.startup_left(case),
        wanted.scaled.again_seconds if wanted.scaled else None,
    ]
    pause = restarts.pause_left(case)
    waits.append(pause if pause > 0 else None)
    if case.spec is not None and wanted.scoring:
        waits.append(replicas.awaits_next(case, case.spec))
    waits.append(_ahead(deadlines.step_overdue_left(case)))
    if case.runner is None and case.job is not None and not case.queued:
        # Why a Job makes no pod is no event of ours.
        waits.append(PODLESS_SECONDS)
    if case.runner is not None and case.runner.unschedulable and not case.runner.scheduled:
        waits.append(_ahead(podfaults.volume_left(case.runner, case.now)))
    return waits


def _ahead(left: float | None) -> float | None:
    return left if left is not None and left > 0 else None
