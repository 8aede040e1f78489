"""How many renderer pods a run has and which go first. Pure: the same input, the same decision.

Up at once: a render that waits costs the trainer's GPU. Up for announced renders as long before the
first is due as pods of this run take to start: earlier they would idle. Down late and by degrees: a
pod is let go when as many have been needless for ``idleSeconds``, at most ``SHARE`` of them a
decision, and never before it has been drained and has nothing left to paint. While the demand is
not known, nothing changes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from watercolour.api.reasons import Reason
from watercolour_operator.observed import Demand, Pod
from watercolour_operator.scaling import victims
from watercolour_operator.scaling.terms import Memory, ScalingInput, ScalingResult

#: Largest share of the pods that one decision begins to drain.
SHARE = 0.5

#: Parts of idleSeconds in which the most needed pods are remembered: a pod that is needless is
#: let go after idleSeconds and at most one part more.
PARTS = 4

#: Seconds that a start may take longer than the slowest of the last ones, late looks included.
MARGIN_SECONDS = 5.0

#: Seconds without an answer of the environment that are no reason for alarm.
PATIENCE_SECONDS = 10.0


def decide(seen: ScalingInput) -> ScalingResult:
    """The decision on the renderer pods of a running run."""
    scaling = seen.scaling
    if scaling.mode == "Fixed":
        return _towards(seen, scaling.max, Reason.FIXED_SIZE, f"Fixed at max={scaling.max}.")
    if scaling.mode != "Queue":
        return _followed(seen)
    if seen.demand is None:
        return _held(seen)
    return _queue(seen, seen.demand)


def needed(seen: ScalingInput, demand: Demand, within: float = math.inf) -> int:
    """Pods that the demand asks for, before min and max.

    Announced renders count if the first of them is due ``within`` so many seconds.
    """
    renders = demand.queued + demand.inflight
    renders += demand.announced if demand.due_seconds <= within else 0
    return math.ceil(renders / (seen.scaling.per_pod or seen.slots))


def _start_seconds(seen: ScalingInput) -> float | None:
    """How long pods take to start, by those that have been ready; else as it was known before."""
    starts = [
        (pod.readied - pod.created).total_seconds()
        for pod in victims.active(seen.pods)
        if pod.readied is not None
    ]
    return max(starts, default=seen.memory.start_seconds)


def _clamped(seen: ScalingInput, pods: int) -> int:
    # A minimum above the maximum is refused with the specification; here the maximum wins.
    return min(max(pods, seen.scaling.min), seen.scaling.max)


@dataclass(frozen=True, slots=True)
class _Stock:
    """The pods as they count for the decision."""

    pods: tuple[Pod, ...]
    wanted: int
    #: Pods that get no work any more.
    draining: tuple[str, ...]

    @property
    def working(self) -> int:
        """Replicas that take work or will."""
        return max(self.wanted, len(self.pods)) - len(self.draining)

    @property
    def settled(self) -> bool:
        """Whether the ReplicaSet owes no deletion."""
        return len(self.pods) <= self.wanted


def _stock(seen: ScalingInput) -> _Stock:
    pods = victims.active(seen.pods)
    draining = [pod.name for pod in pods if (load := seen.loads.get(pod.name)) and load.draining]
    return _Stock(pods, seen.wanted or 0, tuple(draining))


def _queue(seen: ScalingInput, demand: Demand) -> ScalingResult:
    """Mode Queue, the demand being known."""
    stock, start = _stock(seen), _start_seconds(seen)
    memory = Memory(heard=True, start_seconds=start)
    lead = math.inf if start is None else start + MARGIN_SECONDS
    raw = needed(seen, demand, lead)
    need = _clamped(seen, raw)
    if need > stock.working:
        asked = f"{demand.queued} waiting, {demand.inflight} painting, {demand.announced} announced"
        return _raised(seen, stock, need, memory, _up(seen, raw), f"Renders: {asked}.")
    # Nearly as much is spent by letting a pod go and starting another as by letting it idle.
    near = lead + (start or 0.0) + seen.scaling.idle_seconds
    need = max(need, min(_clamped(seen, needed(seen, demand, near)), stock.working))
    memory = _remember(seen, memory, need, stock.working)
    keep = _kept(memory, need, stock.working)
    keep = max(keep, stock.working - math.ceil(stock.working * SHARE))
    # Above the maximum, which has been lowered then, nothing is waited for.
    result = _lowered(seen, stock, need, min(keep, seen.scaling.max), memory)
    if result.reason is not Reason.STEADY:
        return result
    if stock.working > need:
        words = f"{need} of {stock.working} pods are needed; the others go when they have been "
        words += f"idle for {seen.scaling.idle_seconds:g} s."
        return replace(result, reason=Reason.COOLING_DOWN, message=words, again_seconds=_part(seen))
    if raw > need:
        return replace(result, reason=Reason.AT_MAXIMUM, message=_at_maximum(seen))
    if raw < needed(seen, demand):
        words = f"Pods for {demand.announced} announced renders start {lead:g} s before these come."
        wait = demand.due_seconds - lead
        return replace(result, message=words, again_seconds=wait)
    if raw == 0:
        words = f"Nothing is to be painted; min={need} pods stay."
        return replace(result, reason=Reason.AT_MINIMUM, message=words)
    return result


def _up(seen: ScalingInput, raw: int) -> Reason:
    return Reason.AT_MAXIMUM if raw > seen.scaling.max else Reason.SCALED_UP


def _at_maximum(seen: ScalingInput) -> str:
    return f"More renders wait than max={seen.scaling.max} pods answer for."


def _held(seen: ScalingInput) -> ScalingResult:
    """The demand is not known: as many pods as there are, and at least the minimum."""
    stock, memory = _stock(seen), seen.memory
    since = memory.blind_since or seen.now
    memory = replace(memory, blind_since=since)
    held = max(stock.wanted, min(seen.scaling.min, seen.scaling.max))
    dark = (seen.now - since).total_seconds()
    if not memory.heard:
        reason, words = Reason.POD_STARTING, "The environment has not told its demand yet."
    elif dark < PATIENCE_SECONDS:
        reason, words = Reason.STEADY, "The environment missed an answer; the pods stay."
    else:
        reason = Reason.SCALING_DEGRADED
        words = f"The environment does not tell its demand; {held} pods stay until it does. "
        words += "See EnvReady, and whether the operator may reach the environment's port."
        # What was needed meanwhile is not known, so no pod counts as needless.
        memory = replace(memory, surplus_since=None, surplus_peaks=())
    later = max(PATIENCE_SECONDS - dark, 0.0) or None
    return ScalingResult(held, held, reason, words, memory, again_seconds=later)


def _followed(seen: ScalingInput) -> ScalingResult:
    """Modes External, HPA and KEDA: somebody else says how many."""
    mode = seen.scaling.mode
    if seen.replicas is not None:
        words = f"Mode {mode}: renderers.replicas={seen.replicas}"
        need = _clamped(seen, seen.replicas)
        if need != seen.replicas:
            words += f", held to min={seen.scaling.min} and max={seen.scaling.max}"
        words += "."
        return _towards(seen, need, Reason.EXTERNALLY_SCALED, words)
    pods = victims.active(seen.pods)
    wanted = seen.wanted or 0
    words = f"Mode {mode}: the Deployment's replicas belong to somebody else."
    return ScalingResult(
        None,
        wanted,
        Reason.EXTERNALLY_SCALED,
        words,
        seen.memory,
        # The one thing that can be done for the pods: those that paint go last.
        deletion_costs=victims.costs(pods, (), seen.loads),
    )


def _towards(seen: ScalingInput, need: int, reason: Reason, words: str) -> ScalingResult:
    """A number that is given: there at once, and down without waiting for idleSeconds."""
    stock = _stock(seen)
    if need > stock.working:
        return _raised(seen, stock, need, seen.memory, reason, words)
    result = _lowered(seen, stock, need, need, seen.memory)
    if result.reason is Reason.DRAINING:
        return replace(result, message=f"{words} {result.message}")
    return replace(result, reason=reason, message=words)


def _raised(
    seen: ScalingInput, stock: _Stock, need: int, memory: Memory, reason: Reason, words: str
) -> ScalingResult:
    """More pods: drained ones are called back first, then replicas are added.

    A drained pod is called back only when the ReplicaSet owes no deletion; else the pod might be
    the one that goes, with new work in its hands.
    """
    back = stock.draining[: need - stock.working] if stock.settled else ()
    staying = {name for name in stock.draining if name not in back}
    staying = {name for name in staying if _workless(seen, stock, name)}
    pods = f"{need} pods wanted, {stock.working} before."
    if reason is Reason.AT_MAXIMUM:
        pods = f"{pods} {_at_maximum(seen)}"
    return ScalingResult(
        max(stock.wanted, need),
        need,
        reason,
        f"{words} {pods}",
        memory,
        undrain=back,
        deletion_costs=_costs(seen, stock, staying) if stock.draining else {},
    )


def _lowered(
    seen: ScalingInput, stock: _Stock, need: int, keep: int, memory: Memory
) -> ScalingResult:
    """Go towards ``keep`` working pods: drain what is too many, let go what has nothing to do.

    ``need`` of them are needed now. Where the ReplicaSet still owes deletions, replicas may have
    to rise again for them.
    """
    surplus = max(stock.working - keep, 0)
    missing = min(surplus, max(stock.wanted - len(stock.pods), 0))
    chosen = _chosen(seen, stock, surplus - missing)
    drain = tuple(pod.name for pod in chosen if not victims.unstarted(pod))
    going = {*stock.draining, *(pod.name for pod in chosen)}
    safe = {name for name in going if _workless(seen, stock, name)}
    most = max(stock.wanted, len(stock.pods))
    floor = max(most - missing - len(going), len(stock.pods) - victims.removable(stock.pods, safe))
    replicas = max(min(stock.wanted, floor), need)
    desired = min(most - missing - len(going), replicas)
    fallen = stock.wanted - replicas
    painting = sum(1 for name in going if (load := seen.loads.get(name)) and load.busy)
    if fallen > 0:
        reason, words = Reason.SCALED_DOWN, f"{fallen} needless pods go, {replicas} stay."
    elif going and desired < stock.wanted:
        reason = Reason.DRAINING
        words = f"{len(going)} pods get no new work and go; {painting} of them still paint."
    else:
        reason, words = Reason.STEADY, f"{desired} pods match the work."
    return ScalingResult(
        replicas,
        desired,
        reason,
        words,
        memory,
        drain=drain,
        deletion_costs=_costs(seen, stock, safe) if going else {},
    )


def _chosen(seen: ScalingInput, stock: _Stock, count: int) -> Sequence[Pod]:
    """Pods that go, in the ReplicaSet's own order as far as their work allows it."""
    silent_idle = seen.demand is not None and seen.demand.inflight == 0

    def key(pod: Pod) -> tuple[bool, int, bool, float, str]:
        load = seen.loads.get(pod.name)
        if victims.unstarted(pod):
            work = -1
        elif load is None:
            # Silent, and perhaps painting: only when nobody paints is it known to be idle.
            work = 0 if silent_idle else seen.slots + 1
        else:
            work = load.busy
        return not victims.unstarted(pod), work, pod.ready, -pod.created.timestamp(), pod.name

    free = [pod for pod in stock.pods if pod.name not in stock.draining]
    return sorted(free, key=key)[:count]


def _workless(seen: ScalingInput, stock: _Stock, name: str) -> bool:
    """Whether a pod that is to go has nothing to paint and gets nothing more."""
    pod = next(pod for pod in stock.pods if pod.name == name)
    if victims.unstarted(pod):
        return True
    load = seen.loads.get(name)
    if load is not None:
        return load.draining and load.busy == 0
    # It does not answer. The environment's word has to do: nobody paints, and this pod, being
    # unready, gets no work, or there is none to be given.
    demand = seen.demand
    if demand is None or demand.inflight:
        return False
    return not pod.ready or demand.queued + demand.announced == 0


def _costs(seen: ScalingInput, stock: _Stock, safe: set[str]) -> dict[str, int]:
    # What has not started stands first anyway, and may yet have to stay.
    drained = {pod.name for pod in stock.pods if pod.name in safe and not victims.unstarted(pod)}
    return victims.costs(stock.pods, drained, seen.loads)


def _part(seen: ScalingInput) -> float:
    return seen.scaling.idle_seconds / PARTS


def _remember(seen: ScalingInput, memory: Memory, need: int, working: int) -> Memory:
    """Take this moment's need into the peaks of the last idleSeconds, while pods are needless."""
    if need >= working:
        return memory
    since, peaks = seen.memory.surplus_since, seen.memory.surplus_peaks
    if since is None or not peaks:
        return replace(memory, surplus_since=seen.now, surplus_peaks=(need,))
    parts = max(int((seen.now - since).total_seconds() / _part(seen)), 0)
    if parts:
        # Parts in which nobody looked count as the moments around them.
        fill = max(peaks[-1], need)
        peaks = (*peaks, *(fill,) * min(parts - 1, PARTS), need)[-PARTS - 1 :]
    else:
        peaks = (*peaks[:-1], max(peaks[-1], need))
    return replace(memory, surplus_since=_later(since, parts * _part(seen)), surplus_peaks=peaks)


def _later(since: datetime, seconds: float) -> datetime:
    return since + timedelta(seconds=seconds)


def _kept(memory: Memory, need: int, working: int) -> int:
    """Pods that were needed at some moment of the last idleSeconds."""
    if len(memory.surplus_peaks) <= PARTS:
        return working
    return max(need, *memory.surplus_peaks)
