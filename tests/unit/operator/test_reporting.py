"""A transition is told at once; what changes by itself is told now and then."""

from __future__ import annotations

import math
from typing import Any

import pytest

from watercolour.api.reasons import Reason
from watercolour.api.status import (
    ArtifactsStatus,
    ComponentCost,
    Condition,
    ConditionType,
    Cost,
    LastFailure,
    Phase,
    Progress,
    QueueProgress,
    RenderersStatus,
    ScalingDecision,
    Status,
)
from watercolour_operator.reporting import as_kept, due_in

READY = Condition(
    type=ConditionType.TRAINER_READY,
    status="True",
    reason=Reason.READY,
    message="It trains.",
    last_transition_time="2026-01-01T00:00:00Z",
)
OLD = Status(
    phase=Phase.RUNNING,
    conditions=(READY,),
    progress=Progress(step=3, steps=9, eta_seconds=60),
    renderers=RenderersStatus(desired=2, ready=2, busy=1),
    cost=Cost(gpu_minutes=1, components={"trainer": ComponentCost(gpu_seconds=60)}),
)
SUMS: list[dict[str, Any]] = [
    {"cost": Cost(gpu_minutes=2)},
    {"renderers": RenderersStatus(desired=2, ready=2, busy=2)},
    {"progress": Progress(step=3, steps=9, eta_seconds=50)},
    {"progress": Progress(step=3, steps=9, eta_seconds=60, queue=QueueProgress(queued=4))},
    {"last_demand_time": "2026-01-01T00:00:00Z"},
]
WORDS: list[dict[str, Any]] = [
    {"progress": Progress(step=4, steps=9, eta_seconds=60)},
    {"conditions": (READY.model_copy(update={"message": "It trains on node-3."}),)},
    {"artifacts": ArtifactsStatus(last_checkpoint_step=3)},
]
TRANSITIONS: list[dict[str, Any]] = [
    {"phase": Phase.FAILED},
    {"observed_generation": 2},
    {"scorer": "Ready"},
    {"progress": None},
    {"conditions": (READY.model_copy(update={"status": "False"}),)},
    {"last_failure": LastFailure(reason=Reason.TRAINER_FAILED)},
    {"renderers": RenderersStatus(desired=3, ready=2, busy=1)},
    {
        "renderers": RenderersStatus(
            desired=2, ready=2, busy=1, decision=ScalingDecision(desired=2, reason="Steady")
        )
    },
]


def test_nothing_new_is_not_told() -> None:
    assert due_in(OLD, OLD.model_copy(), math.inf) is None


@pytest.mark.parametrize("change", TRANSITIONS)
def test_a_transition_is_told_at_once(change: dict[str, Any]) -> None:
    assert due_in(OLD, OLD.model_copy(update=change), 0.0) == 0.0


@pytest.mark.parametrize("change", WORDS)
def test_a_step_waits_five_seconds(change: dict[str, Any]) -> None:
    new = OLD.model_copy(update=change)
    assert due_in(OLD, new, 2.0) == 3.0
    assert due_in(OLD, new, 5.0) == 0.0


@pytest.mark.parametrize("change", SUMS)
def test_what_adds_up_waits_five_minutes(change: dict[str, Any]) -> None:
    new = OLD.model_copy(update=change)
    assert due_in(OLD, new, 10.0) == 290.0
    assert due_in(OLD, new, 300.0) == 0.0


def test_a_write_of_which_nothing_is_known_is_long_ago() -> None:
    assert due_in(OLD, OLD.model_copy(update=SUMS[0]), math.inf) == 0.0


def test_what_a_definition_does_not_keep_is_nothing_new() -> None:
    lacking = ("status.activeSeconds", "status.renderers.decision", "status.conditions.message")
    decision = ScalingDecision(desired=2, reason="Steady")
    renderers = RenderersStatus(desired=2, ready=2, busy=1, decision=decision)
    told = OLD.model_copy(update={"active_seconds": 5.0, "renderers": renderers})
    read_back = as_kept(told, lacking)
    assert due_in(read_back, told, math.inf) == 0
    assert due_in(read_back, as_kept(told, lacking), math.inf) is None
    further = told.model_copy(update={"phase": Phase.FAILED})
    assert due_in(read_back, as_kept(further, lacking), math.inf) == 0
    assert as_kept(told, ()) is told
