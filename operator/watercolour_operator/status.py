"""The status of a run: assembled from a verdict. Pure.

It is a function of the observation alone, and of the moment only in what adds up by itself: nothing
else changes between two looks at a run in which nothing happens.
"""

from __future__ import annotations

from watercolour.api import columns, servers
from watercolour.api.reasons import Reason
from watercolour.api.status import (
    ArtifactsStatus,
    Attempt,
    Phase,
    Progress,
    QueueProgress,
    RenderersStatus,
    ScalingDecision,
    Status,
)
from watercolour_operator import conditions, cost, names
from watercolour_operator.lifecycle import attempts, failures, memory, replicas, words
from watercolour_operator.lifecycle.case import Case, Verdict
from watercolour_operator.lifecycle.replicas import Replicas
from watercolour_operator.names import Component
from watercolour_operator.times import stamp


def of(case: Case, verdict: Verdict, wanted: Replicas) -> Status:
    """The whole status."""
    old = case.status
    status = Status(
        phase=verdict.phase,
        observed_generation=case.observed.generation,
        conditions=conditions.of(case, verdict, wanted),
        progress=_progress(case, verdict),
        renderers=_renderers(case, verdict, wanted),
        scorer=_scorer(case, verdict, wanted),
        cost=cost.accounted(case.observed),
        attempts=_attempts(case, verdict),
        active_seconds=round(case.ledger.active_seconds, 3),
        last_demand_time=stamp(wanted.last_demand) if wanted.last_demand else None,
        artifacts=_artifacts(case),
        last_failure=failures.last_failure(case, verdict),
    )
    steps = case.spec.trainer.steps if case.spec else (old.progress.steps if old.progress else 0)
    return status.model_copy(update={"columns": columns.of(status, steps)})


def _attempts(case: Case, verdict: Verdict) -> tuple[Attempt, ...]:
    known = case.ledger.attempts
    new = verdict.attempt
    return (*known, new) if new and (not known or new.number > known[-1].number) else known


def _progress(case: Case, verdict: Verdict) -> Progress | None:
    """What is known of the training; a run that has ended has no time left and no queue."""
    known = _known(case, verdict)
    if known is None or verdict.phase not in (Phase.SUCCEEDED, Phase.FAILED):
        return known
    return known.model_copy(update={"eta_seconds": None, "queue": None})


def _known(case: Case, verdict: Verdict) -> Progress | None:
    """The trainer's own figures; the last known ones while it does not answer."""
    old, heard, newest = case.status.progress, case.observed.progress, verdict.attempt
    steps = case.spec.trainer.steps if case.spec else (old.steps if old else 0)
    old = old or Progress(step=0, steps=steps)
    fresh = newest is not None and newest is not case.newest
    if fresh and newest is not None:
        if newest.resumed is False:
            # Nothing of what was reached before is true of an attempt that begins anew.
            return Progress(step=0, steps=steps)
        # What lies behind the checkpoint is done again.
        begins = {"step": newest.first_step or 0, "steps": steps, "eta_seconds": None}
        return old.model_copy(update=begins)
    pod = case.runner
    if heard is None or pod is None or pod.started is None:
        return _last_words(case, old)
    begun = newest.first_step if newest and newest.first_step else 0
    step = max(heard.step, begun)
    moved = step != old.step or old.last_step_time is None
    changes: dict[str, object] = {
        "step": step,
        "steps": heard.steps or steps,
        "last_step_time": stamp(case.now) if moved and step > begun else old.last_step_time,
        "queue": _queue(case),
    }
    if heard.reward.mean is None and heard.reward.best is None and step == begun:
        # A resumed trainer knows no reward before its first step.
        changes["reward"] = old.reward
    return _known_fields(heard).model_copy(update=changes)


def _known_fields(heard: Progress) -> Progress:
    """Without what /progress says beyond the status: the schema would prune it."""
    extra = heard.model_extra
    if not extra:
        return heard
    kept = {name: getattr(heard, name) for name in type(heard).model_fields}
    return Progress.model_construct(**kept)


def _last_words(case: Case, old: Progress) -> Progress:
    """The figures as the trainer's last words or its attempt's record leave them."""
    newest = case.newest
    reached = newest.last_step if newest else None
    gone_back = newest is not None and newest.ended is None and newest.number > 1
    if reached is None or (reached <= old.step and not gone_back):
        return old
    return old.model_copy(update={"step": max(reached, old.step)})


def _queue(case: Case) -> QueueProgress | None:
    demand = case.observed.demand
    if demand is None:
        return None
    return QueueProgress(queued=demand.queued, inflight=demand.inflight, announced=demand.announced)


def _renderers(case: Case, verdict: Verdict, wanted: Replicas) -> RenderersStatus:
    old = case.status.renderers or RenderersStatus()
    pods = [pod for pod in case.observed.of(Component.RENDERERS) if attempts.alive(pod)]
    ready = sum(pod.ready and pod.deleting is None for pod in pods)
    loads = case.observed.loads
    scaled = wanted.scaled
    decision = memory.noted(scaled, old.decision, case.now) if scaled else _stopped(old, verdict)
    desired = scaled.desired if scaled else 0
    return RenderersStatus(
        desired=desired,
        ready=ready,
        busy=sum(loads[pod.name].busy for pod in pods if pod.name in loads),
        replicas=sum(pod.deleting is None for pod in pods),
        selector=f"{names.RUN_UID}={case.observed.uid},{names.COMPONENT}={Component.RENDERERS}",
        summary=f"{ready}/{desired}",
        decision=decision,
    )


def _stopped(old: RenderersStatus, verdict: Verdict) -> ScalingDecision | None:
    """A decision of an active run says nothing about one that is not."""
    if verdict.active or old.decision is None:
        return old.decision
    return ScalingDecision(desired=0, reason=Reason.STOPPED.value, time=old.decision.time)


def _scorer(case: Case, verdict: Verdict, wanted: Replicas) -> str | None:
    """Ready, Starting, Sleeping or Stopped; None for a run without a scorer in the cluster."""
    if case.spec is None or not servers.runs_scorer(case.spec):
        return None if case.spec is not None else case.status.scorer
    if not verdict.active or replicas.scheduled(case) is None:
        return "Stopped"
    if not wanted.scoring:
        return "Sleeping"
    pods = case.observed.of(Component.SCORER)
    return "Ready" if any(pod.ready and pod.deleting is None for pod in pods) else "Starting"


def _artifacts(case: Case) -> ArtifactsStatus | None:
    old, spec = case.status.artifacts, case.spec
    if spec is None:
        return old
    ending = case.ledger.ending
    said = ending.words.best if ending else None
    progress = case.observed.progress
    extra = (progress.model_extra or {}) if progress else {}
    best = said or words.best(extra.get("bestRollout")) or (old.best if old else None)
    return ArtifactsStatus(
        claim=spec.artifacts.claim or names.claim(case.observed.name),
        path=f"{spec.artifacts.path}/{case.observed.name}",
        last_checkpoint_step=case.ledger.checkpoint,
        best=best,
    )
