"""How many pods each part of an active run has: the environment, scorer, judge and renderers. Pure.

The trainer's GPU is the scarce thing, and the scorer's the dear one. So scorer and judge are off
until the trainer's pod has a node, sleep when nothing was there to score for idleTimeoutSeconds,
and wake on announced demand. Without a trainer renderers have nothing to paint and no minimum.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from watercolour.api import servers
from watercolour.api.reasons import Reason
from watercolour.api.spec import RunSpec
from watercolour.api.status import RenderersStatus
from watercolour_operator import scaling
from watercolour_operator.lifecycle import memory, podfaults
from watercolour_operator.lifecycle.case import Case, Verdict
from watercolour_operator.names import Component
from watercolour_operator.observed import Demand
from watercolour_operator.scaling import ScalingInput, ScalingResult
from watercolour_operator.times import moment, seconds_between

#: Longest time, in seconds, between two notes of the demand in the status.
NOTE_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Replicas:
    """Pods wanted, and what the decision was made of."""

    env: int = 0
    scorer: int = 0
    judge: int = 0
    renderers: int | None = 0
    #: Whether the run itself wants its scorer now; a shared one may be on for others.
    scoring: bool = False
    scaled: ScalingResult | None = None
    #: When something was last there to be scored; to be kept in the status.
    last_demand: datetime | None = None


def of(case: Case, verdict: Verdict) -> Replicas:
    """The pods that an active run wants; none of a run that is not."""
    spec = case.spec
    if not verdict.active or spec is None:
        return Replicas(last_demand=moment(case.status.last_demand_time))
    shared = spec.scorer.sharing == "Namespace" and case.observed.scorer_wanted_elsewhere
    if case.queued or verdict.reason is Reason.QUEUED:
        return Replicas(
            scorer=int(servers.runs_scorer(spec) and shared),
            renderers=_unowned(spec),
            last_demand=moment(case.status.last_demand_time),
        )
    last_demand = _demand_noted(case, spec)
    scoring = _awake(case, spec, last_demand)
    scored = servers.runs_scorer(spec)
    scaled = _scaled(case, spec)
    return Replicas(
        env=1,
        scorer=int(scored and (scoring or shared)),
        judge=int(servers.runs_judge(spec) and scoring),
        renderers=scaled.replicas,
        scoring=scored and scoring,
        scaled=scaled,
        last_demand=last_demand,
    )


def _unowned(spec: RunSpec) -> int | None:
    """No renderers, or no word on them where somebody else writes their number."""
    return 0 if spec.renderers.scaling.mode in ("Queue", "Fixed") else None


def scheduled(case: Case) -> datetime | None:
    """When the trainer's pod got its node; None while it has none."""
    pod = case.runner
    return pod.scheduled if pod is not None and pod.deleting is None else None


def awaits_next(case: Case, spec: RunSpec) -> float | None:
    """Seconds until the scorer goes to sleep if nothing is to be scored; None if it is off."""
    since = scheduled(case)
    if since is None or not _awake(case, spec, moment(case.status.last_demand_time)):
        return None
    quiet = seconds_between(_latest(since, moment(case.status.last_demand_time)), case.now) or 0.0
    return _patience(spec) - quiet


def _demand_noted(case: Case, spec: RunSpec) -> datetime | None:
    """When demand was last seen; noted now and then, so that it rarely writes a status."""
    noted = moment(case.status.last_demand_time)
    if not total(case.observed.demand):
        return noted
    since = seconds_between(noted, case.now)
    return case.now if since is None or since >= _note_every(spec) else noted


def _note_every(spec: RunSpec) -> float:
    return min(NOTE_SECONDS, spec.scorer.idle_timeout_seconds / 10)


def _patience(spec: RunSpec) -> float:
    """Seconds of quiet before sleep: idleTimeoutSeconds at least, however old the note."""
    return spec.scorer.idle_timeout_seconds + _note_every(spec)


def total(demand: Demand | None) -> int:
    """All that will be or has to be scored; 0 also when nothing is known."""
    if demand is None:
        return 0
    return demand.queued + demand.inflight + demand.announced + demand.scoring


def _awake(case: Case, spec: RunSpec, last_demand: datetime | None) -> bool:
    """Whether there is something to score, or was lately; unknown demand changes nothing."""
    since = scheduled(case)
    if since is None or podfaults.of(case, Component.TRAINER) is not None:
        # A trainer whose image cannot be pulled has a node too, and may never want a score.
        return False
    if total(case.observed.demand):
        return True
    quiet = seconds_between(_latest(since, last_demand), case.now) or 0.0
    if quiet <= _patience(spec):
        return True
    return case.observed.demand is None and _is_on(case)


def _is_on(case: Case) -> bool:
    return any(
        child.component in (Component.SCORER, Component.JUDGE)
        and child.kind == "Deployment"
        and bool(child.wanted)
        for child in case.observed.children
    )


def _latest(since: datetime, noted: datetime | None) -> datetime:
    return since if noted is None else max(since, noted)


def _scaled(case: Case, spec: RunSpec) -> ScalingResult:
    """The scaling's decision; without a trainer on a node there is no minimum."""
    wish = spec.renderers.scaling
    if scheduled(case) is None and wish.mode in ("Queue", "Fixed"):
        wish = wish.model_copy(update={"mode": "Queue", "min": 0})
    old = case.status.renderers or RenderersStatus()
    seen = ScalingInput(
        now=case.now,
        scaling=wish,
        slots=spec.renderers.slots,
        replicas=spec.renderers.replicas,
        wanted=_deployed(case),
        demand=case.observed.demand,
        pods=case.observed.of(Component.RENDERERS),
        loads=case.observed.loads,
        memory=memory.recalled(old.decision),
    )
    return scaling.decide(seen)


def _deployed(case: Case) -> int | None:
    for child in case.observed.children:
        if child.kind == "Deployment" and child.component is Component.RENDERERS:
            return child.wanted
    return None
