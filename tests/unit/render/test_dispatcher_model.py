"""The dispatcher against a model of it, under random jobs, failures, deaths, joins and leaves.

Everything between the two is real: sockets, HTTP, the event loop. After each step the machine waits
until the dispatcher has done all that it can do, which it has to do in time.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, TypeVar
from unittest.mock import patch

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule
from tests.unit.render import stage
from tests.unit.render.stage import Answer, Stage, reply

from watercolour.api.errors import InfrastructureError
from watercolour.render import client, fleet
from watercolour.render.client import NotUnderstood
from watercolour.render.dispatcher import Dispatcher, Outcome
from watercolour.render.queue import Closing
from watercolour.render.result import Painted, SketchFault

T = TypeVar("T")

#: Seconds in which the dispatcher has to do what it can, on a machine that is busy.
PATIENCE = 60.0

BRISK = {
    "LOOK_SECONDS": 0.004,
    "AWAY_SECONDS": 0.002,
    "AWAY_SECONDS_MOST": 0.004,
    "REST_SECONDS": 0.002,
    "REST_SECONDS_MOST": 0.004,
    "FULL_SECONDS": 0.002,
    "FIND_SECONDS": 0.004,
    "LOOK_TIMEOUT_SECONDS": PATIENCE,
}

ANSWERS: dict[str, Answer] = {
    "painted": stage.painted(),
    "fault": stage.fault(),
    "trouble": stage.trouble(),
    "late": stage.trouble("RenderDeadline"),
    "broken": None,
    "drains": stage.drains(),
    "busy": stage.busy(),
    "malformed": stage.malformed(),
}
FAILURES = ("trouble", "late", "broken")

#: Which of those that there are.
WHICH = st.integers(0, 999)

ENDS: dict[str, type[object]] = {
    "painted": Painted,
    "fault": SketchFault,
    "malformed": NotUnderstood,
    "failed": InfrastructureError,
    "cancelled": asyncio.CancelledError,
}


@dataclass(eq=False)
class Job:
    """What the model knows of a job.

    Attributes:
        sent: how often it came to a renderer.
        failed_on: the renderer on which its first attempt failed.
        end: how it has to have ended; None while it has not.
        mark: times that each client had come to a renderer when this one was first seen waiting.
        overtaken: others may have gone first, while it was on its way to a renderer that had died.
    """

    name: str
    client: str
    task: asyncio.Task[Painted]
    sent: int = 0
    failed_on: Stage | None = None
    end: str | None = None
    mark: dict[str, int] | None = None
    overtaken: bool = False


@dataclass
class Names:
    """Who the renderers are."""

    stages: list[Stage] = field(default_factory=list[Stage])

    async def __call__(self) -> frozenset[str]:
        return frozenset(one.url for one in self.stages)


class Machine(RuleBasedStateMachine):
    """Clients, renderers and the dispatcher between them, on one event loop."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.exits = ExitStack()
        for name, seconds in BRISK.items():
            self.exits.enter_context(patch.object(fleet, name, seconds))
        self.exits.enter_context(patch.object(client, "CONNECT_SECONDS", PATIENCE))
        self.names = Names()
        self.stages: list[Stage] = []
        self.dead: list[Stage] = []
        #: Jobs of a stage's ``asked`` that the model knows of: some come before anybody settles.
        self.counted: dict[Stage, int] = {}
        self.jobs: list[Job] = []
        self.turns: dict[str, int] = dict.fromkeys("abc", 0)
        self.dispatcher = Dispatcher(find=self.names, wait_s=None, absence_s=None)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.loop.run_until_complete(work)

    @initialize(slots=st.integers(1, 3))
    def begin(self, slots: int) -> None:
        self.run(self.dispatcher.__aenter__())
        self.join(slots)

    # What happens. Draws never depend on the state, which differs a little from time to time.

    @rule(slots=st.integers(1, 3))
    def join(self, slots: int) -> None:
        if len(self.stages) < 4:
            one = Stage(slots=slots)
            self.run(one.open())
            self.stages.append(one)
            self.names.stages.append(one)
            self.settle()

    @rule(which=WHICH)
    def leave(self, which: int) -> None:
        for one in chosen(self.names.stages, which):
            self.names.stages.remove(one)
            self.settle()

    @rule(which=WHICH)
    def die(self, which: int) -> None:
        for one in chosen([each for each in self.stages if each not in self.dead], which):
            held = [job for job in self.jobs if self.place(job) is one]
            self.dead.append(one)
            self.run(one.close())
            for job in held:
                self.fail(job, one)
            self.settle(fair=False)

    @rule(which=WHICH)
    def rise(self, which: int) -> None:
        for one in chosen(self.dead, which):
            self.run(one.open(int(one.url.rpartition(":")[2])))
            self.dead.remove(one)
            self.settle()

    @rule(which=WHICH, draining=st.booleans())
    def drain(self, which: int, draining: bool) -> None:
        for one in chosen(self.stages, which):
            one.draining = draining
            self.settle()

    @rule(client=st.sampled_from("abc"), number=st.integers(1, 3))
    def submit(self, client: str, number: int) -> None:
        for _ in range(number):
            name = f"{client}{len(self.jobs)}"
            work = self.dispatcher.render(name, seed=1, client=client)
            self.jobs.append(Job(name, client, self.loop.create_task(work)))
            # The task begins, and takes its place in the line, before the next one.
            self.run(asyncio.sleep(0))
        self.settle()

    @rule(which=WHICH)
    def cancel(self, which: int) -> None:
        for job in chosen(self.open(), which):
            place = self.place(job)
            if place is not None:
                place.forgotten.add(job.name)
            job.task.cancel()
            job.end = "cancelled"
            self.settle()

    @rule(which=WHICH, kind=st.sampled_from(sorted(ANSWERS)))
    def answer(self, which: int, kind: str) -> None:
        for job in chosen([each for each in self.open() if self.place(each)], which):
            one = self.place(job)
            assert one is not None
            reply(one, ANSWERS[kind], job.name)
            if kind in FAILURES:
                self.fail(job, one)
            elif kind in ENDS:
                job.end = kind
            # Who has just failed does not serve for a moment, so others need not go there.
            self.settle(shaken=one if kind in FAILURES else None)

    # What the model makes of it.

    def fail(self, job: Job, one: Stage) -> None:
        if job.failed_on is not None:
            job.end = "failed"
        job.failed_on = one

    def open(self) -> list[Job]:
        return [job for job in self.jobs if job.end is None]

    def place(self, job: Job) -> Stage | None:
        """The renderer that has the job."""
        names = {asked.sketch: one for one in self.stages for asked in one.painting}
        return names.get(job.name)

    def waiting(self) -> list[Job]:
        return [job for job in self.open() if self.place(job) is None]

    def serving(self) -> list[Stage]:
        return [one for one in self.names.stages if one not in self.dead and not one.draining]

    def done(self) -> bool:
        """Whether the dispatcher knows what there is to know, and has done what it can."""
        painting = sum(len(one.painting) for one in self.stages)
        serving = self.serving()
        if any(asked.sketch in one.forgotten for one in self.stages for asked in one.painting):
            return False
        if self.dispatcher.slots != sum(one.slots for one in serving):
            return False
        if self.dispatcher.inflight != painting or any(
            job.end is not None and not job.task.done() for job in self.jobs
        ):
            return False
        for job in self.waiting():
            others = [one for one in serving if one is not job.failed_on]
            if any(len(one.painting) < one.slots for one in others or serving):
                return False
        return True

    def settle(self, *, fair: bool = True, shaken: Stage | None = None) -> None:
        served = [one for one in self.serving() if one is not shaken]

        async def wait() -> None:
            end = time.monotonic() + PATIENCE
            while not self.done():
                assert time.monotonic() < end, "a job waits although it could be painted"
                await asyncio.sleep(0.001)

        self.run(wait())
        for one in self.stages:
            for name in one.asked[self.counted.get(one, 0) :]:
                job = next(each for each in self.jobs if each.name == name)
                job.sent += 1
                self.turns[job.client] += 1
                elsewhere = [each for each in served if each is not one]
                assert job.failed_on is not one or not set(elsewhere) & set(self.serving())
            self.counted[one] = len(one.asked)
        self.check(fair=fair)

    def check(self, *, fair: bool) -> None:
        counts = self.dispatcher.counts
        waiting = self.waiting()
        for one in self.stages:
            assert one.most <= one.slots, "a renderer got more than its slots"
        for job in self.jobs:
            assert job.task.done() == (job.end is not None), job
            if job.end is not None:
                assert type(how(job.task)) is ENDS[job.end], (job, how(job.task))
        assert counts.jobs == len(self.jobs)
        assert (self.dispatcher.queued, self.dispatcher.inflight) == (
            len(waiting),
            len(self.open()) - len(waiting),
        )
        assert sum(counts.ended.values()) == len(self.jobs) - len(self.open())
        for job in waiting:
            later = [each for each in self.jobs[self.jobs.index(job) + 1 :] if each.sent]
            job.overtaken = job.overtaken or not fair
            if not (job.sent or job.overtaken):
                assert job.client not in {each.client for each in later}, "out of order"
            if job.mark is None or not fair or job.failed_on is not None:
                job.mark = dict(self.turns)
            own = self.turns[job.client] - job.mark[job.client]
            for other, turns in self.turns.items():
                if other != job.client:
                    assert turns - job.mark[other] <= own + 1, "a client was passed over"
        for job in self.open():
            if job not in waiting:
                job.mark = None

    def teardown(self) -> None:
        async def close() -> None:
            await self.dispatcher.close()
            for one in self.stages:
                await one.close()

        self.run(close())
        for job in self.open():
            assert isinstance(how(job.task), Closing)
        ends = [job.end or "failed" for job in self.jobs]
        assert self.dispatcher.counts.ended == {
            Outcome.PAINTED: ends.count("painted"),
            Outcome.SKETCH_FAULT: ends.count("fault"),
            Outcome.INFRASTRUCTURE: ends.count("failed") + ends.count("malformed"),
            Outcome.CANCELLED: ends.count("cancelled"),
        }
        self.exits.close()
        self.loop.close()


def chosen(among: Sequence[T], which: int) -> Sequence[T]:
    """One of them, if there is any."""
    return [among[which % len(among)]] if among else []


def how(task: asyncio.Task[Painted]) -> object:
    """What a task that is done brought."""
    if task.cancelled():
        return asyncio.CancelledError()
    return task.exception() or task.result()


TestDispatcher = Machine.TestCase
#: What fails is not made smaller: each attempt would wait as long again for what never comes.
TestDispatcher.settings = settings(
    phases=[phase for phase in Phase if phase is not Phase.shrink],
    max_examples=20,
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
