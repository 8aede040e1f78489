"""One look at one run: observe → decide → remove, apply, drain → status → events.

Level-triggered: nothing here depends on having seen an event, and every step may be repeated after
a crash at any call. What could not be done is told in the status and tried again.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from watercolour.api.reasons import Reason
from watercolour.api.status import Phase, Status
from watercolour.logs import get
from watercolour_operator import desired, events, lifecycle, reporting
from watercolour_operator.cluster import errors, skew
from watercolour_operator.cluster.api import Raw
from watercolour_operator.cluster.errors import ApiError, NameTaken, WriteRefused
from watercolour_operator.cluster.kinds import BY_NAME
from watercolour_operator.cluster.reduce import Run
from watercolour_operator.cluster.store import Key, Store
from watercolour_operator.cluster.write import Writer
from watercolour_operator.metrics import Metrics
from watercolour_operator.names import DELETION_COST, Component, trainer_job
from watercolour_operator.observe import Observer, shared_digest, status_of
from watercolour_operator.observed import Observed, Trouble
from watercolour_operator.plan import Plan
from watercolour_operator.polls import Sources
from watercolour_operator.settings import Settings

log = get(__name__)

#: Seconds between two looks at a run whose objects have not been listed yet.
UNLISTED_SECONDS = 0.2


class Stale(Exception):
    """The cluster is further than our caches; they know better now, so look again."""


@dataclass
class Memory:
    """What is kept of a run between two looks. All of it may be lost."""

    uid: str
    trouble: Trouble | None = None
    #: What its objects were last built from, once all of them have been applied.
    applied: object = None
    #: When its status was written last, by the monotonic clock.
    written: float = float("-inf")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a look came to."""

    #: Look again after so many seconds; None waits for an event.
    again: float | None = None
    trouble: Trouble | None = None
    #: Seconds that the API server asked to be left alone.
    retry_after: float | None = None


@dataclass
class World:
    """All that a look needs."""

    settings: Settings
    store: Store
    observer: Observer
    writer: Writer
    sources: Sources
    metrics: Metrics
    memories: dict[Key, Memory] = field(default_factory=dict[Key, Memory])

    def memory(self, run: Run) -> Memory:
        """What is kept of the run; another run of its name had its own."""
        key = (run.namespace, run.name)
        known = self.memories.get(key)
        if known is None or known.uid != run.uid:
            known = self.memories[key] = Memory(run.uid)
        return known

    def forget(self, key: Key) -> None:
        """A run is gone, and with it all that was kept of it."""
        self.metrics.forget(key)
        known = self.memories.pop(key, None)
        if known is not None:
            self.observer.remembered.forget(known.uid)


async def reconcile(world: World, key: Key) -> Outcome:
    """Bring one run a step further, and say when to look again.

    Raises:
        ApiError: the run could not be observed, or its status not be written.
        WriteRefused: the Lease is not surely held any more.
    """
    run = world.store.runs.get(key)
    if run is None:
        world.forget(key)
        return Outcome()
    memory = world.memory(run)
    blind = world.store.blind(run.namespace)
    if blind is not None:
        return await _blind(world, run, blind)
    observed = await world.observer.observe(run, memory.trouble)
    plan = lifecycle.decide(observed, world.settings)
    try:
        await _look_before_ending(world, run, observed, plan)
        await _tell_before_ending(world, run, observed, plan)
        trouble, retry_after = await _carry_out(world, run, observed, plan)
    except Stale:
        return Outcome(again=0.0)
    trouble = trouble or observed.unasked or skew.trouble(world.writer.lacking)
    memory.trouble = trouble
    if trouble != observed.trouble:
        plan = lifecycle.decide(replace(observed, trouble=trouble), world.settings)
    due = await _report(world, run, observed.status, _with_job(world, run, plan))
    waits = [seconds for seconds in (plan.again_seconds, due) if seconds is not None]
    return Outcome(min(waits, default=None), trouble, retry_after)


async def _carry_out(
    world: World, run: Run, observed: Observed, plan: Plan
) -> tuple[Trouble | None, float | None]:
    """Do what the plan says; returns the first thing that was in the way."""
    failures: list[ApiError | NameTaken] = []
    for gone in plan.remove:
        try:
            kind = BY_NAME[gone.kind]
            await world.writer.remove(run, kind, gone.name, gone.grace_seconds)
        except ApiError as error:
            # The next one may hold a GPU too.
            failures.append(error)
    try:
        if plan.delete_run:
            await world.writer.delete_run(run)
        elif not (plan.hold or run.deleting or failures):
            await _apply(world, run, observed, plan)
    except (ApiError, NameTaken) as error:
        failures.append(error)
    if not failures:
        return None, None
    first = failures[0]
    if isinstance(first, ApiError) and errors.is_ending(first):
        # Its namespace goes, and the run with it: there is nobody to be told.
        return observed.trouble, None
    return errors.trouble(first), first.retry_after if isinstance(first, ApiError) else None


async def _apply(world: World, run: Run, observed: Observed, plan: Plan) -> None:
    """Make the objects what they should be, and steer the renderers."""
    memory, basis = world.memory(run), _basis(observed, plan)
    shared = shared_digest(run, observed.spec)
    # To build a run's objects takes longer than all the rest of a look.
    if memory.applied != basis or not world.writer.settled(run, shared):
        first = memory.applied is None and not observed.status.attempts
        memory.applied = None
        await _apply_all(world, run, observed, plan)
        memory.applied = basis
        if first:
            age = time.time() - run.created.timestamp()
            world.metrics.start_seconds.observe(max(0.0, age))
    await _steer_renderers(world, run, observed, plan)


def _basis(observed: Observed, plan: Plan) -> object:
    """All that the manifests are built from, settings aside."""
    there = frozenset((child.kind, child.name) for child in observed.children)
    foreign = frozenset((child.kind, child.name) for child in observed.foreign)
    parts = (plan.env, plan.scorer, plan.judge, plan.renderers)
    start = (plan.active, plan.attempt, plan.resume)
    changed = plan.spec != observed.spec
    return (observed.generation, changed, start, parts, observed.scorer_sharers, there, foreign)


async def _apply_all(world: World, run: Run, observed: Observed, plan: Plan) -> None:
    # What was fixed at the start counts as it was then.
    observed = replace(observed, spec=plan.spec or observed.spec)
    manifests = desired.manifests(observed, plan, world.settings)
    lacking = world.writer.lacks(run, manifests)
    if lacking:
        await _look_before_creating(world, run, lacking)
    await world.writer.apply(run, manifests)
    for gone in desired.surplus(observed, manifests) if plan.active else ():
        await world.writer.remove(run, BY_NAME[gone.kind], gone.name, gone.grace_seconds)


async def _look_before_creating(world: World, run: Run, lacking: Sequence[Raw]) -> None:
    """Ask the API server itself before anything is created: the caches may be behind.

    Raises:
        Stale: the run is gone, going or changed, or pods of its trainer may still run.
    """
    fresh = await world.writer.fresh_run(run)
    if fresh is None or fresh.deleting or fresh.spec != run.spec or fresh.status != run.status:
        raise Stale
    if not any(found["kind"] == "Job" for found in lacking):
        return
    running = await world.writer.fresh_pods(run, Component.TRAINER)
    # One of the same attempt means that its Job was there already, whoever has taken it away.
    if any(pod.phase in ("Pending", "Running") for pod in running):
        raise Stale


async def _look_before_ending(world: World, run: Run, observed: Observed, plan: Plan) -> None:
    """Ask the API server itself before a training is ended or given up for good.

    The caches may not know yet that its trainer is done, and afterwards nobody could tell.

    Raises:
        Stale: a pod of the trainer is further than it was known to be.
    """
    fails = plan.status.phase is Phase.FAILED and observed.status.phase is not Phase.FAILED
    ends = any(gone.kind == "Job" for gone in plan.remove)
    if run.deleting or not (fails or ends):
        return
    try:
        pods = await world.writer.fresh_pods(run, Component.TRAINER)
    except ApiError as error:
        # What holds GPUs must not wait for an answer.
        log.warning("ended unseen: %s", error)
        return
    known = {(pod.uid, pod.phase) for pod in observed.of(Component.TRAINER)}
    if any((pod.uid, pod.phase) not in known for pod in pods):
        raise Stale


async def _tell_before_ending(world: World, run: Run, observed: Observed, plan: Plan) -> None:
    """Name the trainer's Jobs in the status before they are taken away: afterwards nobody could.

    Raises:
        ApiError: the API server is out of breath; the Job waits until its record is safe.
    """
    told = {attempt.job for attempt in observed.status.attempts}
    going = {gone.name for gone in plan.remove if gone.kind == "Job"}
    jobs = {child.uid for child in observed.children if child.kind == "Job" and child.name in going}
    if run.deleting or jobs <= told:
        return
    known = observed.status.model_copy(update={"attempts": plan.status.attempts})
    try:
        await world.writer.status(run, reporting.as_written(known))
    except ApiError as error:
        if error.status in (404, 409):
            await world.writer.fresh_run(run)
            raise Stale from error
        if errors.trouble(error).reason is Reason.API_UNAVAILABLE:
            raise
        # Who may never write a status must not hold GPUs for it.
        log.warning("ended untold: %s", error)


def _with_job(world: World, run: Run, plan: Plan) -> Status:
    """The status, with the Job that this look has made in the newest attempt's record.

    Else a Job that is deleted before the next look would have been there unknown to anybody, and
    its attempt be made twice.
    """
    status = plan.status
    if plan.attempt is None or not status.attempts or status.attempts[-1].job is not None:
        return status
    key = (run.namespace, run.name)
    made = world.store.entry(key, "Job", trainer_job(run.name, plan.attempt))
    if made is None or made.run_uid != run.uid or status.attempts[-1].number != plan.attempt:
        return status
    newest = status.attempts[-1].model_copy(update={"job": made.record.uid})
    return status.model_copy(update={"attempts": (*status.attempts[:-1], newest)})


async def _steer_renderers(world: World, run: Run, observed: Observed, plan: Plan) -> None:
    """Tell renderers to take no more work or to take it again, and say which are to go first."""
    pods = {pod.name: pod for pod in observed.of(Component.RENDERERS)}
    for name, cost in plan.deletion_costs.items():
        if name in pods and pods[name].deletion_cost != cost:
            await world.writer.annotate_pod(run, name, DELETION_COST, str(cost))
    for name in plan.drain:
        if name in pods:
            await world.sources.drain(run.namespace, run.name, pods[name])
    for name in plan.undrain:
        if name in pods:
            await world.sources.undrain(run.namespace, run.name, pods[name])


async def _report(world: World, seen: Run, old: Status, new: Status) -> float | None:
    """Write the status if it is time, then the events.

    Returns the seconds until the next write is due; None when nothing is left to be told.
    """
    key = (seen.namespace, seen.name)
    run = world.store.runs.get(key)
    # Another run of the name may have come since: what was seen is not true of it.
    if run is None or run.uid != seen.uid:
        return None
    world.metrics.tell(key, new)
    memory = world.memory(run)
    # What is not kept would seem new at every look.
    kept = reporting.as_kept(new, world.writer.lacking)
    due = reporting.due_in(old, kept, time.monotonic() - memory.written)
    if due is None or due > 0:
        return due
    try:
        sums = reporting.only_sums(old, kept)
        await world.writer.status(run, reporting.as_written(new), quiet=sums)
    except ApiError as error:
        if error.status not in (404, 409):
            raise
        # What was to be written is decided anew, from what the run has become.
        await world.writer.fresh_run(run)
        return 0.0
    memory.written = time.monotonic()
    for event in events.between(old, kept):
        await world.writer.event(run, event)
    return None


async def tell(world: World, seen: Run, trouble: Trouble) -> None:
    """Say in the run's status what broke a look off; what the server does not take is logged."""
    run = world.store.runs.get((seen.namespace, seen.name))
    if run is None or run.uid != seen.uid:
        return
    try:
        await _blind(world, run, trouble)
    except (ApiError, WriteRefused) as error:
        log.warning("the status cannot say so: %s", error)
    except Exception:
        # What broke the look off may break this too, and must not stand in other runs' way.
        log.exception("the status cannot say so")


async def _blind(world: World, run: Run, trouble: Trouble) -> Outcome:
    """Not all can be seen: nothing is decided, for what is not seen may well be there."""
    if trouble.reason is Reason.API_UNAVAILABLE:
        # The first lists are on their way, or the API server is: nobody could act on it.
        return Outcome(again=UNLISTED_SECONDS)
    memory = world.memory(run)
    memory.trouble = trouble
    old = status_of(run)
    new = reporting.troubled(old, trouble, run.generation, datetime.now(UTC))
    await _report(world, run, old, new)
    return Outcome(trouble=trouble)
