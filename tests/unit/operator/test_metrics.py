"""The operator's metrics: declared once, true to the status, gone with their run."""

from __future__ import annotations

from pathlib import Path

from prometheus_client import generate_latest

from watercolour.api.status import ComponentCost, Cost, Phase, Progress, RewardProgress, Status
from watercolour_operator import metrics
from watercolour_operator.metrics import Metrics

ROOT = Path(__file__).parents[3]
RUN = ("studio", "peonies")


def text(told: Metrics) -> str:
    return generate_latest(told.registry).decode()


def test_the_reference_page_is_fresh() -> None:
    assert (ROOT / metrics.PAGE).read_text(encoding="utf-8") == metrics.page()


def test_a_runs_series_go_with_it() -> None:
    told = Metrics()
    told.tell(RUN, Status(phase=Phase.RUNNING))
    assert 'watercolour_run_phase{namespace="studio",phase="Running",run="peonies"} 1.0' in text(
        told
    )
    told.forget(RUN)
    assert "peonies" not in text(told)


def test_what_is_not_known_has_no_series() -> None:
    told = Metrics()
    told.tell(RUN, Status(phase=Phase.RUNNING, progress=Progress(step=3, steps=9)))
    assert "watercolour_run_reward{" not in text(told)
    reward = RewardProgress(mean=0.0)
    told.tell(RUN, Status(progress=Progress(step=3, steps=9, reward=reward)))
    assert 'watercolour_run_reward{namespace="studio",run="peonies"} 0.0' in text(told)


def test_an_idle_scorer_shows() -> None:
    told = Metrics()
    scorer = ComponentCost(gpu_seconds=60, pod_seconds=60, idle_seconds=41)
    told.tell(RUN, Status(cost=Cost(components={"scorer": scorer})))
    idle = 'watercolour_scorer_idle_seconds_total{namespace="studio",run="peonies"} 41.0'
    assert idle in text(told)


def test_every_declared_metric_is_served() -> None:
    told = Metrics()
    told.api_call("get", 200, 0.1)
    served = text(told)
    assert [one.name for one in metrics.DECLARED if f"# TYPE {one.name} " not in served] == []
