"""Cells of bench/scaling_node.py, what came of them, and how that is shown."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, replace
from typing import Any

from watercolour.api.workers import Scaling
from watercolour_operator.scaling.simulate import load

#: Seconds between bursts from which on ours takes at most so much of the HPA's pod-seconds.
FAR, MOST = 300.0, 0.5
Json = dict[str, Any]


@dataclass(frozen=True)
class Cell:
    """What is measured at once.

    Attributes:
        trace: a shipped one, or a file.
        gap: seconds from burst to burst; None for the trace's own times.
        bursts: how many of its bursts.
        mode: who scales.
        max: most renderers.
        cpu: cores of a renderer.
        shapes: of a sketch; what its painting costs.
        min: least renderers; an HPA keeps one at least.
        announce: seconds before a burst at which it is announced, as trainers do; 0 does not.
        idle_seconds: after which the operator and KEDA let a needless renderer go.
        build: of the images; empty where they are not known.
    """

    trace: str
    gap: float | None
    bursts: int
    mode: str
    max: int
    cpu: float
    shapes: int
    min: int = 0
    announce: float = 0.0
    idle_seconds: float = Scaling().idle_seconds
    build: str = ""

    @property
    def name(self) -> str:
        """Its run's."""
        return f"{self.mode}-{self.trace}".lower()

    @property
    def key(self) -> str:
        """Its name in the file of what was measured."""
        return json.dumps(asdict(self), sort_keys=True)

    def arrivals(self) -> list[tuple[float, list[float]]]:
        """Seconds at which each burst begins, and its sketches' seconds from then on."""
        found: dict[int, list[float]] = {}
        for burst, at, _ in load(self.trace).renders:
            found.setdefault(burst, []).append(at)
        several = [sorted(each) for each in found.values()][: self.bursts]
        return [
            (
                each[0] - several[0][0] if self.gap is None else number * self.gap,
                [at - each[0] for at in each],
            )
            for number, each in enumerate(several)
        ]


@dataclass(frozen=True)
class Outcome:
    """A cell's figures; seconds throughout, None where nothing was painted."""

    burst_seconds: float
    p95_wait_seconds: float | None
    pod_seconds: float
    most_pods: int
    busy_kills: int
    #: Sketches that came back without a painting, and pods that did not end by themselves.
    unpainted: int
    forced: int
    burst_each: tuple[float, ...]
    #: Seconds of those in which another cell painted as well.
    beside_seconds: float


def table(outcomes: dict[Cell, Outcome]) -> str:
    """For people: a line a cell."""
    head = (
        "trace        gap    mode    done    p95 wait  pod-s/burst  most pods  busy kills  beside"
    )
    lines = [head]
    for cell, one in outcomes.items():
        gap = "own" if cell.gap is None else f"{cell.gap:.0f} s"
        wait = "-" if one.p95_wait_seconds is None else f"{one.p95_wait_seconds:.1f} s"
        lines.append(
            f"{cell.trace:12} {gap:6} {cell.mode:6} {one.burst_seconds:6.1f} s {wait:>9}"
            f" {one.pod_seconds:12,.0f} {one.most_pods:10} {one.busy_kills:11}"
            f" {one.beside_seconds:5.0f} s"
            + (f"  {one.unpainted} unpainted" if one.unpainted else "")
        )
    return "\n".join(lines)


def summary(outcomes: dict[Cell, Outcome]) -> Json:
    """The line of JSON: pod-seconds of the last trace and gap, ours and the cheaper rival's."""
    last = list(outcomes)[-1]
    same = {
        c.mode: one for c, one in outcomes.items() if (c.trace, c.gap) == (last.trace, last.gap)
    }
    ours = same.get("Queue")
    rivals = {mode: one.pod_seconds for mode, one in same.items() if mode != "Queue"}
    rival = min(rivals, key=lambda mode: rivals[mode]) if rivals else None
    theirs = None if rival is None else rivals[rival]
    return {
        "bench": "scaling_node",
        "ours": ours and ours.pod_seconds,
        "theirs": theirs,
        "ratio": round(theirs / ours.pod_seconds, 2) if ours and theirs is not None else None,
        "unit": "pod-seconds a burst",
        "n": last.bursts,
        "conditions": {
            "trace": last.trace,
            "gap": last.gap,
            "theirs": rival,
            "cores": os.cpu_count(),
            "cells": [asdict(cell) | asdict(one) for cell, one in outcomes.items()],
        },
    }


def misses(outcomes: dict[Cell, Outcome]) -> list[str]:
    """What is not as it has to be: a render lost, too many pod-seconds between far bursts."""
    found: list[str] = []
    for cell, ours in outcomes.items():
        if cell.mode != "Queue":
            continue
        where = f"{cell.trace}, {'own times' if cell.gap is None else f'{cell.gap:.0f} s'}"
        if ours.busy_kills:
            found.append(f"{where}: {ours.busy_kills} renders were lost with their renderer")
        hpa = outcomes.get(replace(cell, mode="HPA"))
        if hpa and cell.gap is not None and cell.gap >= FAR:
            share = ours.pod_seconds / hpa.pod_seconds
            if share > MOST:
                found.append(f"{where}: {share:.2f} of the HPA's pod-seconds, at most {MOST}")
    return found
