"""The conditions of a run: for each its status, a reason and a sentence for a person. Pure.

The sentence says the fact, what happens next, and what to do, as far as there is something to do.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from watercolour.api import servers
from watercolour.api.reasons import Reason
from watercolour.api.spec import RunSpec
from watercolour.api.status import Condition, ConditionType, Phase
from watercolour_operator.lifecycle import (
    attempts,
    checks,
    deadlines,
    leftovers,
    podfaults,
    replicas,
    teardown,
)
from watercolour_operator.lifecycle.case import OVER, Case, Verdict
from watercolour_operator.lifecycle.podfaults import TITLES
from watercolour_operator.lifecycle.replicas import Replicas
from watercolour_operator.names import Component
from watercolour_operator.observed import Pod
from watercolour_operator.times import seconds_between, span, stamp

#: Share of unscored rollouts above which a run counts as degraded, and rollouts' least steps.
UNSCORED_RATE = 0.1

Truth = Literal["True", "False", "Unknown"]


@dataclass(frozen=True, slots=True)
class Said:
    """A condition without its times."""

    status: Truth
    reason: Reason
    message: str


TYPES = {
    Component.TRAINER: ConditionType.TRAINER_READY,
    Component.RENDERERS: ConditionType.RENDERERS_READY,
    Component.ENV: ConditionType.ENV_READY,
    Component.SCORER: ConditionType.SCORER_READY,
    Component.JUDGE: ConditionType.JUDGE_READY,
}


def of(case: Case, verdict: Verdict, wanted: Replicas) -> tuple[Condition, ...]:
    """All conditions, in the order of their types; times are kept where the status is."""
    said: dict[ConditionType, Said | None] = {
        TYPES[component]: _component(case, verdict, wanted, component) for component in Component
    }
    said |= {
        ConditionType.PROGRESSING: _progressing(case, verdict),
        ConditionType.DEGRADED: _degraded(case, verdict, wanted),
        ConditionType.COMPLETE: _complete(verdict),
        ConditionType.FAILED: _failed(verdict),
        ConditionType.SUSPENDED: _suspended(case, verdict),
        ConditionType.CLEANED_UP: _cleaned_up(case, verdict),
    }
    found = ((kind, said.get(kind)) for kind in ConditionType)
    return tuple(_timed(kind, new, case) for kind, new in found if new is not None)


def _timed(kind: ConditionType, new: Said, case: Case) -> Condition:
    old = case.status.condition(kind)
    kept = old is not None and old.status == new.status
    return Condition(
        type=kind,
        status=new.status,
        reason=new.reason.value,
        message=new.message,
        last_transition_time=old.last_transition_time if old and kept else stamp(case.now),
        observed_generation=case.observed.generation,
    )


def _component(case: Case, verdict: Verdict, wanted: Replicas, component: Component) -> Said:
    if case.spec is not None and component not in _deployed(case.spec):
        return Said("True", Reason.NOT_NEEDED, _elsewhere(component))
    if not verdict.active:
        return _inactive(case, verdict, component)
    fault = podfaults.of(case, component)
    if component is Component.TRAINER:
        return _trainer(case, verdict)
    if fault is not None:
        return Said("False", fault.reason, fault.message)
    if component in (Component.SCORER, Component.JUDGE):
        return _helper(case, wanted, component)
    if component is Component.RENDERERS:
        return _renderers(case, wanted)
    return _counted(case, component, wanted.env)


def _deployed(spec: RunSpec) -> frozenset[Component]:
    """The components that have pods of the run's own."""
    found = {Component.TRAINER, Component.RENDERERS, Component.ENV}
    if servers.runs_scorer(spec):
        found.add(Component.SCORER)
    if servers.runs_judge(spec):
        found.add(Component.JUDGE)
    return frozenset(found)


def _elsewhere(component: Component) -> str:
    return f"The run needs no {TITLES[component]} of its own."


def _inactive(case: Case, verdict: Verdict, component: Component) -> Said:
    title = TITLES[component].capitalize()
    if verdict.phase is Phase.PENDING:
        words = f"{title} not started; the condition Progressing says what the run waits for."
        return Said("False", verdict.reason, words)
    left = [pod for pod in case.observed.of(component) if attempts.alive(pod)]
    verb = "are" if component is Component.RENDERERS else "is"
    words = f"{title} {verb} being stopped." if left else f"{title} stopped."
    return Said("False", Reason.STOPPED, words)


def _trainer(case: Case, verdict: Verdict) -> Said:
    pod = case.runner
    fault = podfaults.of(case, Component.TRAINER)
    if verdict.reason in (Reason.QUEUED, Reason.RESTARTING, Reason.INVALID_SPEC) and pod is None:
        return Said("False", verdict.reason, verdict.message)
    if fault is not None:
        return Said("False", fault.reason, fault.message)
    if pod is None:
        return Said("False", Reason.POD_STARTING, "The trainer's pod is being made.")
    if pod.deleting is not None:
        words = "The trainer's pod is ending; the next attempt starts when it is gone."
        return Said("False", Reason.TRAINER_DISRUPTED, words)
    if pod.scheduled is None:
        return Said("False", Reason.POD_STARTING, "The trainer's pod waits for the scheduler.")
    node = f" on {pod.node}" if pod.node else ""
    if not pod.ready and case.stepped:
        words = f"The trainer{node} is not ready any more: it is ending, or too busy to answer."
        return Said("False", Reason.PROGRESS_UNKNOWN, words)
    if not pod.ready:
        holds = f"{pod.gpus} GPU{'s' if pod.gpus > 1 else ''}" if pod.gpus else "The trainer's pod"
        helpers = _helpers(case)
        return Said("False", Reason.TRAINER_SCHEDULED, f"{holds}{node}; {helpers}starting.")
    return Said("True", Reason.READY, f"The trainer runs{node}.")


def _helpers(case: Case) -> str:
    deployed = _deployed(case.spec) if case.spec else frozenset[Component]()
    names = [part.value for part in (Component.SCORER, Component.JUDGE) if part in deployed]
    return " and ".join(names) + " " if names else ""


def _helper(case: Case, wanted: Replicas, component: Component) -> Said:
    """Scorer and judge: off, asleep, starting or ready."""
    number = wanted.scorer if component is Component.SCORER else wanted.judge
    title = TITLES[component].capitalize()
    if number:
        return _counted(case, component, number)
    if replicas.scheduled(case) is None:
        words = f"{title} starts when the trainer has a node, and not earlier."
        return Said("False", Reason.IDLE, words)
    return Said("True", Reason.IDLE, f"{title} sleeps: nothing is to be scored. Demand wakes it.")


def _renderers(case: Case, wanted: Replicas) -> Said:
    blind = wanted.scaled is not None and wanted.scaled.degraded
    number = wanted.scaled.desired if wanted.scaled else wanted.renderers or 0
    if number == 0 and not blind:
        words = "No renderer is wanted: nothing is to be painted. Demand wakes them."
        return Said("True", Reason.IDLE, words)
    return _counted(case, Component.RENDERERS, number)


def _counted(case: Case, component: Component, number: int) -> Said:
    pods = tuple(pod for pod in case.observed.of(component) if attempts.alive(pod))
    ready = sum(pod.ready and pod.deleting is None for pod in pods)
    title = TITLES[component].capitalize()
    if number == 0:
        return Said("False", Reason.IDLE, f"{title} is not wanted yet.")
    lost = _lost(pods) if ready < number else ""
    if lost:
        several = component is Component.RENDERERS
        words = f"{ready} of {number} renderers ready." if several else f"{title} starting."
        return Said("False", Reason.NODE_LOST, f"{words} {lost}")
    if component is Component.RENDERERS:
        words = f"{ready} of {number} renderers ready."
        done = ready >= number
        if not done:
            words += _unready(pods)
        return Said("True" if done else "False", Reason.READY if done else _STARTING, words)
    if ready >= number:
        return Said("True", Reason.READY, f"{title} ready.")
    return Said("False", _STARTING, f"{title} starting.")


def _lost(pods: tuple[Pod, ...]) -> str:
    """Which pods are replaced because of their nodes; empty when none is."""
    gone = [pod for pod in pods if pod.deleting is not None and pod.tainted]
    if not gone:
        return ""
    nodes = ", ".join(sorted({pod.node for pod in gone if pod.node}))
    which = ", ".join(pod.name for pod in gone)
    return f"{which}: taken off {nodes}, which is silent or is being cleared; others take over."


def _unready(pods: tuple[Pod, ...]) -> str:
    """What the oldest pod that is not ready does, in its own words; empty when there is none."""
    waiting = (pod for pod in pods if not pod.ready and pod.deleting is None)
    pod = next(waiting, None)
    if pod is None:
        return " The others are being made."
    if pod.started is not None and pod.waiting_reason is None:
        since = f"{stamp(pod.started)} and does not call itself ready; its log says why"
        return f" {pod.name} runs since {since}."
    if pod.scheduled is None:
        return f" {pod.name} waits for a node."
    why = f" ({pod.waiting_reason})" if pod.waiting_reason else ""
    return f" {pod.name} starts on {pod.node}{why}."


_STARTING = Reason.POD_STARTING


def _progressing(case: Case, verdict: Verdict) -> Said:
    trouble = case.observed.trouble
    if verdict.phase is Phase.PENDING or verdict.reason is Reason.INVALID_SPEC:
        return Said("False", verdict.reason, verdict.message)
    if verdict.phase in (*OVER, Phase.COMPLETING, Phase.SUSPENDING, Phase.SUSPENDED):
        return Said("False", verdict.reason, verdict.message + _asked_too_late(case, verdict))
    if trouble is not None and verdict.phase is Phase.STARTING:
        return Said("False", trouble.reason, trouble.message)
    if verdict.phase is Phase.STARTING:
        return _on_the_way(case, verdict)
    if deadlines.silent(case):
        words = "The trainer runs but does not answer on /progress; the last figures are shown."
        return Said("Unknown", Reason.PROGRESS_UNKNOWN, words)
    left = deadlines.step_overdue_left(case)
    if left is not None and left <= 0:
        words = "No step ended within five times the usual duration. "
        fault = podfaults.first(case)
        words += fault.message if fault else "See the conditions that are False, and its log."
        return Said("False", Reason.STEP_OVERDUE, words)
    return Said("True", verdict.reason, verdict.message)


def _on_the_way(case: Case, verdict: Verdict) -> Said:
    if verdict.reason in (Reason.RESTARTING, Reason.QUEUED):
        return Said("False", verdict.reason, verdict.message)
    if _unheard(case):
        words = "The trainer is ready but does not answer on /progress, so nothing is known of its "
        words += "steps. See whether the operator may reach its port."
        return Said("Unknown", Reason.PROGRESS_UNKNOWN, words)
    attempt = verdict.attempt
    if attempt is not None and attempt.number > 1 and attempt.resumed is not False:
        return Said("True", Reason.RESUMED, verdict.message)
    return Said("True", Reason.STARTED, verdict.message)


def _asked_too_late(case: Case, verdict: Verdict) -> str:
    """That steps which were raised after the end are passed over; empty when none were."""
    wanted = case.spec.trainer.steps if case.spec else 0
    told = case.status.progress.steps if case.status.progress else 0
    if verdict.phase is not Phase.SUCCEEDED or not 0 < told < wanted:
        return ""
    return (
        f" trainer.steps={wanted} came after the end and is passed over: what is done stays done. "
        "Make a new run that starts from this one's adapter."
    )


def _unheard(case: Case) -> bool:
    """Whether a trainer that has been ready for a while has never answered."""
    ready = case.status.condition(ConditionType.TRAINER_READY)
    if case.observed.progress is not None or ready is None or ready.status != "True":
        return False
    since = seconds_between(ready.last_transition_time, case.now)
    return case.runner is not None and since is not None and since > deadlines.OVERDUE_LEAST


Look = Callable[[Case, Verdict, Replicas], Said | None]


def _degraded(case: Case, verdict: Verdict, wanted: Replicas) -> Said:
    for look in DEGRADED if verdict.active else ():
        said = look(case, verdict, wanted)
        if said is not None:
            return said
    return Said("False", Reason.HEALTHY, _well(case, verdict))


def _well(case: Case, verdict: Verdict) -> str:
    """That nothing is wrong with what runs, and where to read what is wrong all the same."""
    if verdict.phase is Phase.FAILED:
        return "Nothing runs any more; the condition Failed says why."
    if verdict.phase is Phase.PENDING and verdict.hold:
        return "Nothing has started; the condition Progressing says what it waits for."
    if not verdict.active:
        return "Nothing is known to be wrong."
    broken = (TYPES[part] for part in Component if podfaults.of(case, part) is not None)
    waits = next(broken, None)
    if waits is None:
        return "Nothing is known to be wrong."
    return f"Nothing that has started is known to be wrong; the start waits: see {waits}."


def _by_trouble(case: Case, verdict: Verdict, wanted: Replicas) -> Said | None:
    trouble = case.observed.trouble
    return Said("True", trouble.reason, trouble.message) if trouble else None


def _by_specification(case: Case, verdict: Verdict, wanted: Replicas) -> Said | None:
    if case.observed.spec is None:
        words = (case.observed.spec_problem or "The specification breaks a rule").rstrip(".")
        words += ". The run goes on with what it was started with; correct the specification."
        return Said("True", Reason.INVALID_SPEC, words)
    if case.changed:
        fields = ", ".join(case.changed)
        words = f"{fields} changed after the start and is passed over. Change it back, or make a "
        return Said("True", Reason.IMMUTABLE_FIELD, words + "new run.")
    return None


def _by_surroundings(case: Case, verdict: Verdict, wanted: Replicas) -> Said | None:
    fault = podfaults.storage(case)
    if fault is not None:
        return Said("True", fault.reason, fault.message)
    if case.observed.missing:
        listed = ", ".join(case.observed.missing)
        words = (
            f"No longer in the namespace: {listed}. What runs goes on; a new pod would not start."
        )
        return Said("True", checks.reason_for_missing(case.observed.missing), words)
    return None


def _by_pods(case: Case, verdict: Verdict, wanted: Replicas) -> Said | None:
    """A broken part of a run that trains; before the first step its own condition says it."""
    if verdict.phase is not Phase.RUNNING:
        return None
    fault = podfaults.first(case)
    return Said("True", fault.reason, fault.message) if fault else None


def _by_scaling(case: Case, verdict: Verdict, wanted: Replicas) -> Said | None:
    scaled = wanted.scaled
    return Said("True", scaled.reason, scaled.message) if scaled and scaled.degraded else None


def _by_rollouts(case: Case, verdict: Verdict, wanted: Replicas) -> Said | None:
    progress = case.observed.progress or case.status.progress
    rate = progress.unscored_rate if progress else None
    if rate is None or rate <= UNSCORED_RATE or verdict.phase is not Phase.RUNNING:
        return None
    words = f"{rate:.0%} of the rollouts are unscored, more than {UNSCORED_RATE:.0%}; they teach "
    words += "nothing. A condition that is False or the environment's log says why."
    return Said("True", Reason.UNSCORED_RATE_HIGH, words)


DEGRADED: tuple[Look, ...] = (
    _by_trouble,
    _by_specification,
    _by_surroundings,
    _by_pods,
    _by_scaling,
    _by_rollouts,
)


def _complete(verdict: Verdict) -> Said | None:
    if verdict.phase is not Phase.SUCCEEDED:
        return None
    return Said("True", Reason.SUCCEEDED, verdict.message)


def _failed(verdict: Verdict) -> Said | None:
    if verdict.phase is not Phase.FAILED:
        return None
    return Said("True", verdict.reason, verdict.message)


def _suspended(case: Case, verdict: Verdict) -> Said | None:
    if verdict.phase in (Phase.SUSPENDING, Phase.SUSPENDED):
        done = verdict.phase is Phase.SUSPENDED
        return Said("True" if done else "False", verdict.reason, verdict.message)
    if case.status.condition(ConditionType.SUSPENDED) is None:
        return None
    if verdict.active:
        return Said("False", Reason.RESUMED, "The run is active again.")
    return Said("False", Reason.STOPPED, "The run is over.")


def _cleaned_up(case: Case, verdict: Verdict) -> Said | None:
    if verdict.phase not in OVER:
        return None
    left = teardown.remaining(case)
    if not left and not leftovers.pods(case):
        return Said("True", Reason.CLEANED_UP, "Nothing is left but the files and this status.")
    kept = case.spec.cleanup.ttl_seconds if case.spec else 0
    stays = "what else was made for it stays"
    if case.observed.of(Component.TRAINER):
        stays = "the trainer's finished pod and its log stay"
    words = f"GPUs are given back; {stays} for {span(kept)}."
    return Said("False", Reason.CLEANING_UP, words)
