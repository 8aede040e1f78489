"""What bench/scaling_node.py counts, without a node."""

from __future__ import annotations

import json
from typing import Any

import pytest
from bench.on_node import Pods, begun
from bench.scaling_cells import Cell, Outcome, misses, summary
from bench.scaling_node import LOST, autoscaler, beside, shared, specification

from watercolour.api.spec import WatercolourRun

CELL = Cell("published-8", 60.0, 2, "Queue", 8, 0.2, 5)
OUTCOME = Outcome(10.0, 2.0, 100.0, 8, 0, 0, 0, (10.0, 10.0), 0.0)


def pod(uid: str, start: str | None, ended: str | None = None, code: int = 0) -> dict[str, Any]:
    """A pod as the API server shows it, times of a day's first minute."""
    status: dict[str, Any] = {}
    if start is not None:
        status["startTime"] = f"1970-01-01T00:00:{start}Z"
    if ended is not None:
        state = {"terminated": {"finishedAt": f"1970-01-01T00:00:{ended}Z", "exitCode": code}}
        status["containerStatuses"] = [{"state": state}]
    return {"metadata": {"uid": uid}, "status": status}


def test_pod_counts_from_its_start_to_its_own_end() -> None:
    pods = Pods()
    pods.see([pod("a", None), pod("b", "05")], 6.0)
    assert pods.seconds(0.0, 30.0) == 25.0  # the one without a node has not begun
    pods.see([pod("a", "10"), pod("b", "05", ended="20", code=137)], 22.0)
    pods.see([pod("a", "10")], 25.0)
    assert pods.lives["b"].end == 20.0  # not the moment in which it was missed
    assert pods.lives["b"].code == 137
    assert pods.seconds(0.0, 30.0) == 15.0 + 20.0
    assert pods.seconds(12.0, 18.0) == 12.0  # what lies outside costs nothing
    assert pods.most == 2


def test_pod_that_vanished_ended_when_it_was_missed() -> None:
    pods = Pods()
    pods.see([pod("a", "01")], 2.0)
    pods.see([], 9.0)
    pods.see([], 20.0)
    assert pods.seconds(0.0, 30.0) == 8.0


def test_gap_takes_the_place_of_a_traces_own_times() -> None:
    begins, offsets = zip(*CELL.arrivals(), strict=True)
    assert begins == (0.0, 60.0)
    assert offsets == ([0.0] * 8, [0.0] * 8)
    own = Cell("published-8", None, 3, "Queue", 8, 0.2, 5)
    assert [begin for begin, _ in own.arrivals()] == [0.0, 960.0, 1920.0]
    fast = Cell("fast", None, 2, "Queue", 8, 0.2, 5).arrivals()
    assert all(each[0] == 0.0 and each == sorted(each) for _, each in fast)
    assert len(fast[0][1]) == 16


@pytest.mark.parametrize("mode", ["Queue", "HPA", "KEDA"])
def test_every_mode_is_a_run_that_the_platform_accepts(mode: str) -> None:
    cell = Cell("published-8", 60.0, 2, mode, 8, 0.2, 5)
    made = WatercolourRun.model_validate(specification(cell, "watercolour/operator:1"))
    scaling = made.spec.renderers.scaling
    assert scaling.mode == {"HPA": "External"}.get(mode, mode)
    assert scaling.max == 8
    assert (made.spec.renderers.replicas is not None) == (mode == "HPA")


def test_hpa_asks_for_the_cpu_of_the_run_and_has_its_defaults() -> None:
    cell = Cell("published-8", 60.0, 2, "HPA", 8, 0.2, 5)
    spec = autoscaler(cell)["spec"]
    made = specification(cell, "watercolour/operator:1")
    assert spec["scaleTargetRef"]["name"] == made["metadata"]["name"] == "hpa-published-8"
    resource = spec["metrics"][0]["resource"]
    assert resource["name"] == "cpu"
    # 80 % of what a renderer may use.
    assert resource["target"]["averageValue"] == "160m"
    assert made["spec"]["renderers"]["resources"]["limits"]["cpu"] == "200m"
    assert "behavior" not in spec


def test_lost_renders_are_those_that_a_renderer_did_not_answer() -> None:
    text = (
        "# HELP watercolour_render_attempts_total Renders\n"
        'watercolour_render_attempts_total{outcome="busy"} 7.0\n'
        'watercolour_render_attempts_total{outcome="infrastructure"} 2.0\n'
    )
    found = LOST.search(text)
    assert found is not None
    assert float(found[1]) == 2.0


def test_cells_share_the_node_where_their_gap_leaves_room() -> None:
    def of(gap: float | None, mode: str = "Queue", trace: str = "published-8") -> Cell:
        return Cell(trace, gap, 2, mode, 8, 0.2, 5)

    cells = [of(300.0), of(60.0), of(60.0, "HPA"), of(300.0, "HPA"), of(300.0, "KEDA"), of(None)]
    heavy = [of(300.0, trace="burst-64"), of(300.0, "HPA", "burst-64")]
    rare = [of(900.0, mode, "burst-64") for mode in ("Queue", "HPA", "KEDA")]
    assert shared([*cells, of(900.0), *heavy, *rare]) == [
        [heavy[0]],
        [heavy[1]],
        rare[:2],
        rare[2:],
        [cells[5]],
        [cells[1]],
        [cells[2]],
        [cells[0], cells[3], cells[4]],
        [of(900.0)],
    ]


def test_seconds_beside_another_cell_count_once() -> None:
    spans = {"a": [(0.0, 10.0), (50.0, 60.0)], "b": [(5.0, 8.0)], "c": [(6.0, 12.0), (80.0, 90.0)]}
    assert beside("a", spans) == 5.0
    assert beside("b", spans) == 3.0
    assert beside("c", spans) == 4.0
    assert beside("a", {"a": [(0.0, 10.0)]}) == 0.0


def test_last_line_compares_with_the_cheaper_rival_and_none_is_not_0() -> None:
    rivals = {"HPA": 300.0, "KEDA": 200.0}
    alone = {CELL: OUTCOME}
    line = summary(alone)
    assert (line["ours"], line["theirs"], line["ratio"]) == (100.0, None, None)
    for mode, cost in rivals.items():
        cell = Cell("published-8", 60.0, 2, mode, 8, 0.2, 5)
        alone[cell] = Outcome(20.0, 2.0, cost, 8, 0, 0, 0, (20.0, 20.0), 0.0)
    line = summary(alone)
    assert (line["ours"], line["theirs"], line["ratio"]) == (100.0, 200.0, 2.0)
    assert line["conditions"]["theirs"] == "KEDA"


def test_what_misses_a_bound_is_told() -> None:
    def told(gap: float | None, ours: float, theirs: float, lost: int = 0) -> list[str]:
        cells = {mode: Cell("published-8", gap, 2, mode, 8, 0.2, 5) for mode in ("Queue", "HPA")}
        costs = {"Queue": (ours, lost), "HPA": (theirs, 9)}
        return misses(
            {
                cells[mode]: Outcome(20.0, 2.0, cost, 8, kills, 0, 0, (20.0,), 0.0)
                for mode, (cost, kills) in costs.items()
            }
        )

    assert told(300.0, 500.0, 1000.0) == []
    assert told(60.0, 900.0, 1000.0) == []
    assert told(None, 900.0, 1000.0) == []
    assert told(300.0, 540.0, 1000.0) == [
        "published-8, 300 s: 0.54 of the HPA's pod-seconds, at most 0.5"
    ]
    assert told(60.0, 1.0, 1000.0, lost=1) == [
        "published-8, 60 s: 1 renders were lost with their renderer"
    ]


def test_run_that_is_refused_ends_the_wait_with_its_reason() -> None:
    def answering(*conditions: dict[str, str]) -> bool:
        run = json.dumps({"status": {"conditions": conditions}} if conditions else {})
        return begun(lambda *_: run, "queue")

    assert not answering()
    assert not answering({"type": "EnvReady", "status": "False", "reason": "PodStarting"})
    assert answering({"type": "EnvReady", "status": "True", "reason": "Ready"})
    refused = {"type": "Progressing", "status": "False", "reason": "InvalidSpec"}
    with pytest.raises(RuntimeError, match="no such field"):
        answering({**refused, "message": "spec.trainer.x: no such field."})
