"""The operator's metrics, each declared once for the program and for docs/reference.

``python -m watercolour_operator.metrics`` writes docs/reference/operator-metrics.md.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
)
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from watercolour.api.status import Status

PAGE = "docs/reference/operator-metrics.md"
RUN_LABELS = ("namespace", "run")
_QUICK = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_START = (0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)


@dataclass(frozen=True, slots=True)
class Declared:
    """One metric: what it is called, counts and is split by."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    labels: tuple[str, ...]
    words: str
    #: Derived from the runs' statuses when asked for, and gone with its run.
    of_run: bool = False


PHASE = Declared(
    "watercolour_run_phase",
    "gauge",
    (*RUN_LABELS, "phase"),
    "1 for the phase that the run is in.",
    True,
)
STEP = Declared("watercolour_run_step", "gauge", RUN_LABELS, "Optimizer steps done.", True)
STEPS = Declared("watercolour_run_steps", "gauge", RUN_LABELS, "Optimizer steps wanted.", True)
RUN_REWARD = Declared(
    "watercolour_run_reward",
    "gauge",
    RUN_LABELS,
    "Mean reward of the newest step; absent while none is scored.",
    True,
)
RUN_UNSCORED = Declared(
    "watercolour_run_unscored_ratio",
    "gauge",
    RUN_LABELS,
    "Share of rollouts without a value.",
    True,
)
RENDERERS = Declared(
    "watercolour_renderers",
    "gauge",
    (*RUN_LABELS, "state"),
    "Renderer pods that are `desired` and `ready`, and paintings that are in work (`busy`).",
    True,
)
SCORER_IDLE = Declared(
    "watercolour_scorer_idle_seconds_total",
    "counter",
    RUN_LABELS,
    "Seconds for which the run held a scorer that had nothing to score.",
    True,
)
GPU_SECONDS = Declared(
    "watercolour_gpu_seconds_total",
    "counter",
    (*RUN_LABELS, "component"),
    "GPUs times seconds held, by component.",
    True,
)
POD_SECONDS = Declared(
    "watercolour_pod_seconds_total",
    "counter",
    (*RUN_LABELS, "component"),
    "Pods times seconds running, by component.",
    True,
)
ATTEMPTS = Declared(
    "watercolour_run_attempts", "gauge", RUN_LABELS, "Starts of the run's trainer.", True
)
RECONCILE_SECONDS = Declared(
    "watercolour_reconcile_seconds", "histogram", (), "Duration of one look at one run."
)
RECONCILE_ERRORS = Declared(
    "watercolour_reconcile_errors_total",
    "counter",
    ("reason",),
    "Looks that could not do all they had to, by the reason that the run's conditions show.",
)
START_SECONDS = Declared(
    "watercolour_start_seconds",
    "histogram",
    (),
    "Seconds from a run's creation until all its objects were applied.",
)
QUEUE_DEPTH = Declared(
    "watercolour_reconcile_queue_depth", "gauge", (), "Runs that are due to be looked at."
)
LEAKED = Declared(
    "watercolour_leaked_children",
    "gauge",
    (),
    "Objects whose run no longer exists, at the last sweep; `watercolour reap` removes them.",
)
LEASE_HELD = Declared(
    "watercolour_lease_held", "gauge", (), "1 while this process holds the Lease and may write."
)
API_REQUESTS = Declared(
    "watercolour_api_requests_total",
    "counter",
    ("verb", "code"),
    "Calls of the API server by verb and HTTP status; 0 is no answer.",
)
API_SECONDS = Declared(
    "watercolour_api_seconds", "histogram", ("verb",), "Duration of calls of the API server."
)
WATCH_RESTARTS = Declared(
    "watercolour_watch_restarts_total",
    "counter",
    ("kind", "why"),
    "Watches opened again: `ended` by the server, `failed` or silent, `gone` with its place.",
)

#: A metric, the values of its labels after namespace and run, and its value.
Sample = tuple[Declared, tuple[str, ...], float]

DECLARED = tuple(found for found in list(vars().values()) if isinstance(found, Declared))


@dataclass
class Metrics:
    """The operator's own series, and those of the runs it is told of."""

    registry: CollectorRegistry = field(default_factory=CollectorRegistry)
    #: Samples of every run, by namespace and name.
    of_runs: dict[tuple[str, str], tuple[Sample, ...]] = field(
        default_factory=dict[tuple[str, str], "tuple[Sample, ...]"]
    )

    def __post_init__(self) -> None:
        # When a counter was made says nothing that anybody asks.
        disable_created_metrics()
        self.reconcile_seconds = self._histogram(RECONCILE_SECONDS, _QUICK)
        self.reconcile_errors = self._counter(RECONCILE_ERRORS)
        self.start_seconds = self._histogram(START_SECONDS, _START)
        self.queue_depth = self._gauge(QUEUE_DEPTH)
        self.leaked = self._gauge(LEAKED)
        self.lease_held = self._gauge(LEASE_HELD)
        self.api_requests = self._counter(API_REQUESTS)
        self.api_seconds = self._histogram(API_SECONDS, _QUICK)
        self.watch_restarts = self._counter(WATCH_RESTARTS)
        self.registry.register(_OfRuns(self.of_runs))

    def _gauge(self, one: Declared) -> Gauge:
        return Gauge(one.name, one.words, one.labels, registry=self.registry)

    def _counter(self, one: Declared) -> Counter:
        return Counter(one.name, one.words, one.labels, registry=self.registry)

    def _histogram(self, one: Declared, buckets: tuple[float, ...]) -> Histogram:
        return Histogram(one.name, one.words, one.labels, registry=self.registry, buckets=buckets)

    def tell(self, run: tuple[str, str], status: Status) -> None:
        """A run's status is known or new."""
        self.of_runs[run] = tuple(samples(status))

    def forget(self, run: tuple[str, str]) -> None:
        """A run is gone, and its series with it."""
        self.of_runs.pop(run, None)

    def api_call(self, verb: str, code: int, seconds: float) -> None:
        """One call of the API server has ended."""
        self.api_requests.labels(verb, str(code)).inc()
        self.api_seconds.labels(verb).observe(seconds)


@dataclass(eq=False)
class _OfRuns(Collector):
    """Series made from what the runs' statuses say, when they are asked for."""

    of_runs: dict[tuple[str, str], tuple[Sample, ...]]

    def collect(self) -> Iterable[Metric]:
        families = {one.name: _family(one) for one in DECLARED if one.of_run}
        for run, found in list(self.of_runs.items()):
            for one, labels, value in found:
                families[one.name].add_metric([*run, *labels], value)
        return families.values()


def _family(one: Declared) -> GaugeMetricFamily | CounterMetricFamily:
    if one.kind == "counter":
        return CounterMetricFamily(one.name, one.words, labels=one.labels)
    return GaugeMetricFamily(one.name, one.words, labels=one.labels)


def samples(status: Status) -> Iterator[Sample]:
    """What a run's status says in numbers. What is not known gives no sample, never 0."""
    yield PHASE, (status.phase.value,), 1.0
    yield ATTEMPTS, (), float(len(status.attempts))
    if progress := status.progress:
        yield STEP, (), float(progress.step)
        yield STEPS, (), float(progress.steps)
        if progress.reward.mean is not None:
            yield RUN_REWARD, (), progress.reward.mean
        if progress.unscored_rate is not None:
            yield RUN_UNSCORED, (), progress.unscored_rate
    if renderers := status.renderers:
        yield RENDERERS, ("desired",), float(renderers.desired)
        yield RENDERERS, ("ready",), float(renderers.ready)
        yield RENDERERS, ("busy",), float(renderers.busy)
    for component, cost in (status.cost.components if status.cost else {}).items():
        yield GPU_SECONDS, (component,), cost.gpu_seconds
        yield POD_SECONDS, (component,), cost.pod_seconds
        if component == "scorer":
            yield SCORER_IDLE, (), cost.idle_seconds


def page() -> str:
    """The reference page, in Markdown."""
    lines = [
        "# Metrics of the operator",
        "",
        "Generated by `make docs`. Served on the operator's metrics port, 9090. Series of a run go",
        "with the run.",
        "",
        "| name | kind | labels | meaning |",
        "|---|---|---|---|",
    ]
    for one in sorted(DECLARED, key=lambda found: found.name):
        labels = ", ".join(f"`{label}`" for label in one.labels) or "–"
        lines.append(f"| `{one.name}` | {one.kind} | {labels} | {one.words} |")
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    target = Path(sys.argv[1] if len(sys.argv) > 1 else PAGE)
    target.write_text(page(), encoding="utf-8")
