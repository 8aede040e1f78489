"""How long a run may take: to its first step, and in all. Pure."""

from __future__ import annotations

from watercolour_operator.lifecycle.case import Case
from watercolour_operator.times import seconds_between

#: Steps' durations after which a step counts as overdue, and the least wait in seconds.
OVERDUE_STEPS = 5.0
OVERDUE_LEAST = 120.0


def active_seconds(case: Case) -> float:
    """Seconds that the run was active: suspended and queued time left out."""
    return case.ledger.active_seconds + (running_seconds(case) or 0.0)


def running_seconds(case: Case) -> float | None:
    """Seconds since the newest attempt started; None if it has not, or is over."""
    newest = case.newest
    if newest is None or newest.ended is not None:
        return None
    return seconds_between(newest.started, case.now)


def active_left(case: Case) -> float | None:
    """Seconds until the active deadline; None without one, or while its clock stands."""
    limit = case.spec.active_deadline_seconds if case.spec else None
    if limit is None or running_seconds(case) is None:
        return None
    return limit - active_seconds(case)


def startup_left(case: Case) -> float | None:
    """Seconds until the start-up deadline; None when it does not apply.

    Every attempt has to make its first step in time: what does not start holds GPUs for nothing. A
    trainer that is ready and only does not answer on /progress is given the benefit of the doubt.
    """
    running = running_seconds(case)
    if running is None or case.stepped or case.spec is None or case.queued:
        return None
    if case.runner is not None and case.runner.ready and case.observed.progress is None:
        return None
    return case.spec.startup_deadline_seconds - running


def step_overdue_left(case: Case) -> float | None:
    """Seconds until the next step is overdue; None when the usual duration is not known."""
    usual, since = _usual_step(case), _since_last_step(case)
    if usual is None or since is None:
        return None
    return max(OVERDUE_STEPS * usual, OVERDUE_LEAST) - since


def silent(case: Case) -> bool:
    """Whether a trainer that makes steps has not been heard for longer than a step or two take.

    One that is only late with an answer, because it holds the interpreter, is not silent.
    """
    since = _since_last_step(case)
    if case.runner is None or case.observed.progress is not None or since is None:
        return False
    return since > max(2 * (_usual_step(case) or 0.0), OVERDUE_LEAST)


def _usual_step(case: Case) -> float | None:
    """Seconds of a step by the trainer's own estimate; None when it gave none."""
    progress = case.status.progress
    if progress is None or progress.eta_seconds is None or progress.step >= progress.steps:
        return None
    return progress.eta_seconds / (progress.steps - progress.step)


def _since_last_step(case: Case) -> float | None:
    progress = case.status.progress
    if progress is None or not case.stepped:
        return None
    return seconds_between(progress.last_step_time, case.now)
