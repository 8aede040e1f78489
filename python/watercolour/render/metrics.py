"""The renderer's metrics: base units, in a registry of their own."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

PREFIX = "watercolour_render_"

#: Outcomes of a request that are no violation code and no reason.
OUTCOMES = ("painted", "cached", "busy", "refused", "malformed", "gone")

#: Bounds of the histogram of a painting's seconds, warm and small to slow and large.
SECONDS = (0.1, 0.2, 0.3, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 5.0, 7.5, 10.0, 20.0, 30.0, 60.0, 120.0)

#: Bounds of the histogram of a painting's memory, in bytes.
MEMORY = tuple(mib * 2**20 for mib in (128, 160, 192, 224, 256, 320, 384, 448, 512, 640, 768, 900))


class Metrics:
    """What ``/metrics`` shows. One painting is observed once; an answer from the cache is not."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        counter, gauge = self._counter, self._gauge
        self.requests = counter(
            "requests",
            f"Requests by outcome: {', '.join(OUTCOMES)}, a violation's code or a reason",
            "outcome",
        )
        self.seconds = Histogram(
            f"{PREFIX}seconds",
            "Wall seconds of a painting, waiting for its slot included",
            registry=self.registry,
            buckets=SECONDS,
        )
        self.memory = Histogram(
            f"{PREFIX}peak_memory_bytes",
            "Highest resident memory of the page's process during a painting",
            registry=self.registry,
            buckets=MEMORY,
        )
        self.phases = counter("phase_seconds", "Wall seconds of paintings by phase", "phase")
        self.cpu = counter("cpu_seconds", "CPU seconds that paintings were charged with")
        self.per_shape = gauge(
            "seconds_per_shape", "CPU seconds for each filled shape of the last painting"
        )
        self.warm = gauge("warm_slots", "Slots that are not being replaced")
        self.busy = gauge("busy_slots", "Slots that paint")
        self.ready = gauge("ready", "1 while work is taken, else 0")
        self.sandboxed = gauge("sandboxed", "1 if Chromium's own sandbox is on, else 0")
        self.isolation = gauge(
            "isolation",
            "1 if the layer holds in full, else 0: network of its own, sandbox, limits by cgroup",
            "layer",
        )
        self.launches = gauge("browser_launches", "Browsers started")
        self.retried = gauge("retries", "Paintings begun again after a crash")
        self.recycled = gauge(
            "pages_recycled", "Pages replaced, by cause: taint, count, age, memory", "cause"
        )

    def _counter(self, name: str, words: str, *labels: str) -> Counter:
        return Counter(f"{PREFIX}{name}", words, labels, registry=self.registry)

    def _gauge(self, name: str, words: str, *labels: str) -> Gauge:
        return Gauge(f"{PREFIX}{name}", words, labels, registry=self.registry)
