"""When the next attempt begins, and with what. Pure."""

from __future__ import annotations

from watercolour.api.spec import RunSpec
from watercolour.api.status import Attempt, Phase
from watercolour_operator.lifecycle import endings
from watercolour_operator.lifecycle.case import Case
from watercolour_operator.times import seconds_between, stamp

#: Seconds before the third attempt in a row that came to nothing; then twice as long each time.
FIRST_PAUSE = 10.0
LONGEST_PAUSE = 300.0


def pause_left(case: Case) -> float:
    """Seconds before the next attempt may begin; 0 or less when it may."""
    newest = case.newest
    vain = _vain(case.ledger.attempts)
    if newest is None or vain < 2:
        return 0.0
    pause = min(FIRST_PAUSE * 2.0 ** min(vain - 2, 10), LONGEST_PAUSE)
    waited = seconds_between(newest.ended, case.now)
    return pause - (waited if waited is not None else pause)


def _vain(attempts: tuple[Attempt, ...]) -> int:
    """Attempts at the end of the list that came to nothing, one after the other."""
    vain = 0
    for attempt in reversed(attempts):
        stepped = attempt.last_step is not None and attempt.last_step > (attempt.first_step or 0)
        if stepped or attempt.ended is None or attempt.reason in endings.WANTED:
            break
        vain += 1
    return vain


def more_steps_wanted(case: Case) -> bool:
    """Whether spec.trainer.steps was raised above what the trainer was told before it finished.

    Only until the run counts as done: a succeeded run stays so.
    """
    told = _told(case)
    if case.spec is None or told is None or not case.spec.trainer.resume:
        return False
    done = case.status.phase in (Phase.COMPLETING, Phase.SUCCEEDED)
    return not done and case.spec.trainer.steps > told


def _told(case: Case) -> int | None:
    """Steps that the trainer of the newest attempt wanted to make."""
    ending, progress = case.ledger.ending, case.status.progress
    if ending is not None and ending.words.steps is not None:
        return ending.words.steps
    return progress.steps if progress is not None and progress.steps > 0 else None


def next_attempt(case: Case, spec: RunSpec) -> Attempt:
    """The record of the attempt that begins now."""
    newest, checkpoint = case.newest, case.ledger.checkpoint
    number = newest.number + 1 if newest else 1
    anew = number == 1 or not spec.trainer.resume
    return Attempt(
        number=number,
        # A checkpoint that was never heard of may be there all the same.
        resumed=False if anew else (True if checkpoint is not None else None),
        # In a queue its clock stands until it is let in.
        started=None if spec.queue_name else stamp(case.now),
        first_step=0 if anew else checkpoint,
    )
