"""Three rules that scale the renderers of a modelled cluster: ours, HPA's and KEDA's.

The rivals follow their documentation and default timings, with the environment's queue as their
metric (waiting and painting renders, ``perPod`` a pod) and a minimum of 0.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from watercolour.api.workers import Scaling
from watercolour_operator.scaling.model import World
from watercolour_operator.scaling.policy import decide
from watercolour_operator.scaling.terms import Memory, ScalingInput, ScalingResult

#: A rule looks at the world once a second and changes what it wants changed.
Rule = Callable[[World], None]

#: HPA: seconds between two syncs, age of its metric, tolerance, growth a sync.
SYNC_SECONDS, SCRAPE_SECONDS, TOLERANCE = 15.0, 15.0, 0.1
GROWTH_SHARE, GROWTH_PODS = 1.0, 4
#: HPA: seconds of past recommendations whose highest counts when it goes down.
STABILIZATION_SECONDS = 300.0
#: KEDA: seconds between two polls while there is no pod, and without demand before there is none.
POLL_SECONDS, COOLDOWN_SECONDS = 30.0, 300.0


@dataclass
class Ours:
    """The operator's own loop around :func:`decide`."""

    scaling: Scaling
    slots: int
    period: float = 2.0
    #: Renderers that do not answer the operator, and whether the environment does not.
    silent: Collection[str] = ()
    blind: bool = False
    memory: Memory = field(default_factory=Memory)
    result: ScalingResult | None = None
    _next: float = 0.0

    def __call__(self, world: World) -> None:
        """Look, decide and carry out, once a period."""
        if world.now < self._next:
            return
        self._next = world.now + self.period
        loads = world.loads()
        result = decide(
            ScalingInput(
                now=world.clock(),
                scaling=self.scaling,
                slots=self.slots,
                wanted=world.wanted,
                demand=None if self.blind else world.demand(),
                pods=world.pods(),
                loads={name: load for name, load in loads.items() if name not in self.silent},
                memory=self.memory,
            )
        )
        self.memory, self.result = result.memory, result
        # The order of a reconcile: replicas first, so what it drains now goes a look later.
        if result.replicas is not None:
            world.scale(result.replicas)
        for names, draining in ((result.drain, True), (result.undrain, False)):
            for name in names:
                worker = world.worker(name)
                if worker is not None and name in loads and name not in self.silent:
                    worker.draining = draining
        for name, cost in result.deletion_costs.items():
            worker = world.worker(name)
            if worker is not None:
                worker.cost = cost


@dataclass
class Hpa:
    """The HorizontalPodAutoscaler with an external metric; sizes between ``least`` and ``most``."""

    per_pod: int
    most: int
    least: int = 0
    stabilization: float = STABILIZATION_SECONDS
    #: When it syncs next.
    syncs: float = 0.0
    _metrics: deque[tuple[float, int]] = field(default_factory=deque[tuple[float, int]])
    _wishes: deque[tuple[float, int]] = field(default_factory=deque[tuple[float, int]])

    def __call__(self, world: World) -> None:
        """Take the metric in every second; act on an old one at every sync."""
        self.measure(world)
        if world.now < self.syncs:
            return
        self.syncs = world.now + SYNC_SECONDS
        world.scale(self.wish(world))

    def measure(self, world: World) -> None:
        """Keep the metric for as long as it takes to arrive."""
        self._metrics.append((world.now, busy(world)))
        while len(self._metrics) > 1 and self._metrics[1][0] <= world.now - SCRAPE_SECONDS / 2:
            self._metrics.popleft()

    def wish(self, world: World) -> int:
        """Pods wanted: by the metric as of half a scrape ago, its highest recent wish, and pace."""
        metric, have = self._metrics[0][1], world.wanted
        wish = math.ceil(metric / self.per_pod)
        if have and abs(metric / (self.per_pod * have) - 1) <= TOLERANCE:
            wish = have
        wish = min(max(wish, self.least), self.most)
        self._wishes.append((world.now, wish))
        while self._wishes[0][0] < world.now - self.stabilization:
            self._wishes.popleft()
        if wish < have:
            return min(have, max(past for _, past in self._wishes))
        return min(wish, have + max(math.ceil(have * GROWTH_SHARE), GROWTH_PODS))


@dataclass
class Keda:
    """KEDA: it starts the first pod and stops the last one; between them its HPA rules."""

    per_pod: int
    most: int
    cooldown: float = COOLDOWN_SECONDS
    stabilization: float = STABILIZATION_SECONDS
    _hpa: Hpa = field(init=False)
    _poll: float = 0.0
    _active: float = 0.0

    def __post_init__(self) -> None:
        self._hpa = Hpa(self.per_pod, self.most, least=1, stabilization=self.stabilization)

    def __call__(self, world: World) -> None:
        """Poll for the first and the last pod; leave the rest to the HPA."""
        if world.now >= self._poll:
            self._poll = world.now + POLL_SECONDS
            if busy(world):
                self._active = world.now
                if world.wanted == 0:
                    world.scale(1)
                    self._hpa.syncs = world.now + SYNC_SECONDS
            elif world.wanted and world.now - self._active >= self.cooldown:
                world.scale(0)
        if world.wanted:
            self._hpa(world)
        else:
            self._hpa.measure(world)


def busy(world: World) -> int:
    """The metric: renders that wait or are painted."""
    demand = world.demand()
    return demand.queued + demand.inflight
