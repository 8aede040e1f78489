"""What of a run still works or holds something. Pure."""

from __future__ import annotations

from watercolour_operator.lifecycle import attempts
from watercolour_operator.lifecycle.case import Case
from watercolour_operator.names import Component
from watercolour_operator.observed import Pod


def shares_scorer(case: Case) -> bool:
    """Whether the scorer stays after this run, because another that is at work has it too.

    That one sees by itself that it sleeps; to delete it would be to fight it. Runs that wait or are
    suspended see to nothing, so between them the scorer would stay on.
    """
    shared = case.spec is not None and case.spec.scorer.sharing == "Namespace"
    return shared and case.observed.scorer_kept_elsewhere


def pods(case: Case) -> tuple[Pod, ...]:
    """The run's pods, without those of a scorer that belongs to others too."""
    shared = shares_scorer(case)
    return tuple(
        pod for pod in case.observed.pods if not (shared and pod.component is Component.SCORER)
    )


def working(case: Case) -> tuple[Pod, ...]:
    """The run's pods that are not over, terminating ones included."""
    return tuple(pod for pod in pods(case) if attempts.alive(pod))


def job_at_work(case: Case) -> bool:
    """Whether a Job of the trainer could still make a pod."""
    jobs = attempts.trainer_jobs(case.observed).values()
    return any(job.finished is None and not job.deleting for job in jobs)
