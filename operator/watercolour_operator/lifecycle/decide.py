"""The decision on a run: one observation in, one plan out."""

from __future__ import annotations

from watercolour.api.status import Status
from watercolour_operator import status as statuses
from watercolour_operator.lifecycle import case as cases
from watercolour_operator.lifecycle import checks, replicas, teardown, waking
from watercolour_operator.lifecycle.case import Case, Verdict
from watercolour_operator.lifecycle.replicas import Replicas
from watercolour_operator.observed import Observed
from watercolour_operator.plan import Plan
from watercolour_operator.settings import Settings


def decide(observed: Observed, settings: Settings) -> Plan:
    """What is to be so after this reconcile.

    The same observation gives the same plan, so it is safe to carry out twice, or half, or late.
    Nothing is created once the run is being deleted.
    """
    case = cases.of(observed, settings)
    if observed.deleting is not None:
        return _farewell(case)
    verdict = checks.verdict(case)
    wanted = replicas.of(case, verdict)
    status = statuses.of(case, verdict, wanted)
    return _plan(case, verdict, wanted, status)


def _plan(case: Case, verdict: Verdict, wanted: Replicas, status: Status) -> Plan:
    scaled = wanted.scaled
    run_left = teardown.run_ttl_left(case)
    return Plan(
        status=status,
        active=verdict.active,
        spec=case.spec,
        hold=verdict.hold,
        attempt=verdict.attempt.number if verdict.attempt else None,
        resume=_resumes(verdict),
        env=wanted.env,
        scorer=wanted.scorer,
        judge=wanted.judge,
        renderers=wanted.renderers,
        remove=teardown.removals(case, verdict),
        drain=scaled.drain if scaled else (),
        undrain=scaled.undrain if scaled else (),
        deletion_costs=scaled.deletion_costs if scaled else {},
        delete_run=run_left is not None and run_left <= 0,
        again_seconds=waking.again(case, verdict, wanted),
    )


def _resumes(verdict: Verdict) -> bool:
    """Whether the trainer looks for a checkpoint: in every attempt that does not begin anew."""
    attempt = verdict.attempt
    return attempt is not None and attempt.number > 1 and attempt.resumed is not False


def _farewell(case: Case) -> Plan:
    """The run is being deleted: GPUs go first, garbage collection takes the rest."""
    verdict = Verdict(
        case.status.phase, checks.running(case).reason, "The run is being deleted.", hold=True
    )
    gone = not case.observed.pods and not case.observed.children
    return Plan(
        status=case.status,
        active=False,
        spec=case.spec,
        hold=True,
        remove=teardown.removals(case, verdict),
        again_seconds=None if gone else case.settings.poll_seconds,
    )
