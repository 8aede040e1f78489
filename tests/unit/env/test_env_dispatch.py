"""The render queue."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from tests.unit.env.edges import Edge, renderer, serving

from watercolour.api.errors import InfrastructureError
from watercolour.api.reasons import Reason
from watercolour.env import dispatch
from watercolour.env.dispatch import RenderQueue


@pytest.fixture(autouse=True)
def brisk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look again at once instead of in half a second."""
    monkeypatch.setattr(dispatch, "LOOK_AWAY_SECONDS", 0.01)
    monkeypatch.setattr(dispatch, "FIND_SECONDS", 0.01)


async def until(true: Callable[[], bool]) -> None:
    """Let others run until something is true."""
    async with asyncio.timeout(20):
        while not true():  # noqa: ASYNC110 - what changes is a number in another thread
            await asyncio.sleep(0.001)


class Jobs:
    """Jobs that hold their slot until they are let go, and the order in which they got it."""

    def __init__(self, queue: RenderQueue) -> None:
        self.queue = queue
        self.begun: list[str] = []
        self.urls: list[str] = []
        self.changed = asyncio.Condition()
        self.holds: dict[str, asyncio.Event] = {}

    def start(self, client: str, name: str) -> asyncio.Task[None]:
        self.holds[name] = asyncio.Event()
        return asyncio.create_task(self._run(client, name))

    async def _run(self, client: str, name: str) -> None:
        async with self.queue.slot(client) as url:
            async with self.changed:
                self.begun.append(name)
                self.urls.append(url)
                self.changed.notify_all()
            await self.holds[name].wait()

    async def until(self, count: int) -> None:
        async with self.changed:
            await asyncio.wait_for(
                self.changed.wait_for(lambda: len(self.begun) >= count), timeout=20
            )


async def test_no_more_jobs_run_than_the_renderers_have_slots() -> None:
    with serving(renderer(2)) as one, serving(renderer(1)) as two:
        async with RenderQueue([one.url, two.url]) as queue:
            jobs = Jobs(queue)
            tasks = [jobs.start("a", str(n)) for n in range(5)]
            await jobs.until(3)
            assert (queue.inflight, queue.queued, queue.slots) == (3, 2, 3)
            assert sorted(jobs.urls) == sorted([one.url, one.url, two.url])
            for hold in jobs.holds.values():
                hold.set()
            await asyncio.gather(*tasks)
            assert (queue.inflight, queue.queued) == (0, 0)


async def test_the_least_busy_renderer_gets_the_job() -> None:
    with serving(renderer(2)) as one, serving(renderer(4)) as two:
        async with RenderQueue([one.url, two.url]) as queue:
            await until(lambda: queue.slots == 6)
            jobs = Jobs(queue)
            tasks = [jobs.start("a", str(n)) for n in range(6)]
            await jobs.until(6)
            for hold in jobs.holds.values():
                hold.set()
            await asyncio.gather(*tasks)
    assert jobs.urls == [one.url, two.url, two.url, one.url, two.url, two.url]


async def test_clients_take_turns() -> None:
    with serving(renderer(1)) as edge:
        async with RenderQueue([edge.url]) as queue:
            jobs = Jobs(queue)
            tasks = [jobs.start("greedy", "g0")]
            await jobs.until(1)
            tasks += [jobs.start("greedy", f"g{n}") for n in range(1, 4)]
            await asyncio.sleep(0)
            tasks += [jobs.start("late", "l0"), jobs.start("late", "l1")]
            await asyncio.sleep(0)
            for hold in jobs.holds.values():
                hold.set()
            await asyncio.gather(*tasks)
    assert jobs.begun == ["g0", "g1", "l0", "g2", "l1", "g3"]


async def test_jobs_wait_for_a_renderer_that_is_not_there_yet() -> None:
    edge: Edge = renderer(1)
    edge.gets["/v1/load"] = (503, {})
    with serving(edge):
        async with RenderQueue([edge.url]) as queue:
            jobs = Jobs(queue)
            task = jobs.start("a", "one")
            await until(lambda: edge.looks >= 3)
            assert (queue.queued, queue.inflight, queue.ready) == (1, 0, False)
            edge.gets["/v1/load"] = (200, {"slots": 1, "busy": 0, "draining": False})
            await jobs.until(1)
            assert queue.ready
            jobs.holds["one"].set()
            await task


class Names:
    """Who the renderers are, as a name server that can fail tells it."""

    def __init__(self, *urls: str) -> None:
        self.found: frozenset[str] | None = frozenset(urls)
        self.asked = 0

    async def __call__(self) -> frozenset[str] | None:
        self.asked += 1
        return self.found

    async def heard(self) -> None:
        """Until the present answer has been taken in."""
        asked = self.asked
        await until(lambda: self.asked >= asked + 2)


async def test_renderers_come_and_go_while_jobs_wait() -> None:
    names, left = Names(), list[str]()
    with serving(renderer(1)) as one, serving(renderer(1)) as two:
        async with RenderQueue(find=names, left=left.append) as queue:
            jobs = Jobs(queue)
            tasks = [jobs.start("a", str(n)) for n in range(3)]
            await names.heard()
            assert (queue.queued, queue.ready, queue.finds) == (3, False, True)
            names.found = frozenset({one.url})
            await jobs.until(1)
            names.found = frozenset({two.url})
            await jobs.until(2)
            assert jobs.urls == [one.url, two.url]
            assert (queue.inflight, queue.slots, left) == (2, 1, [])
            jobs.holds["0"].set()
            await until(lambda: left == [one.url])
            assert queue.urls == (two.url,)
            jobs.holds["1"].set()
            await jobs.until(3)
            assert jobs.urls[2] == two.url
            jobs.holds["2"].set()
            await asyncio.gather(*tasks)


async def test_a_renderer_that_is_named_again_before_it_is_done_takes_jobs_again() -> None:
    names, left = Names(), list[str]()
    with serving(renderer(2)) as edge:
        names.found = frozenset({edge.url})
        async with RenderQueue(find=names, left=left.append) as queue:
            jobs = Jobs(queue)
            first = jobs.start("a", "first")
            await jobs.until(1)
            names.found = frozenset()
            await names.heard()
            second = jobs.start("a", "second")
            await names.heard()
            assert (queue.queued, queue.slots, queue.ready) == (1, 0, False)
            names.found = frozenset({edge.url})
            await jobs.until(2)
            for hold in jobs.holds.values():
                hold.set()
            await asyncio.gather(first, second)
            assert left == []


async def test_a_name_that_cannot_be_looked_up_changes_nothing() -> None:
    names = Names()
    with serving(renderer(1)) as edge:
        names.found = frozenset({edge.url})
        async with RenderQueue(find=names) as queue:
            await until(lambda: queue.ready)
            names.found = None
            await names.heard()
            assert queue.ready


async def test_a_renderer_that_refuses_work_gets_no_job() -> None:
    edge = renderer(1)
    refuses = {"slots": 1, "busy": 0, "draining": False, "refuses": "NetworkPolicyNotEnforced"}
    edge.gets["/v1/load"] = (200, refuses)
    with serving(edge):
        async with RenderQueue([edge.url]) as queue:
            await until(lambda: edge.looks >= 3)
            assert not queue.ready


async def test_a_draining_renderer_gets_no_job() -> None:
    edge = renderer(1)
    edge.gets["/v1/load"] = (200, {"slots": 1, "busy": 0, "draining": True})
    with serving(edge):
        async with RenderQueue([edge.url]) as queue:
            jobs = Jobs(queue)
            task = jobs.start("a", "one")
            await until(lambda: edge.looks >= 3)
            assert jobs.begun == []
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert queue.queued == 0


async def test_a_renderer_found_away_is_asked_before_it_gets_another_job() -> None:
    edge = renderer(1)
    with serving(edge):
        async with RenderQueue([edge.url]) as queue:

            async def fail() -> None:
                async with queue.slot("a"):
                    raise InfrastructureError(Reason.RENDERER_UNAVAILABLE, "away")

            with pytest.raises(InfrastructureError):
                await fail()
            assert not queue.ready
            assert queue.inflight == 0
            async with queue.slot("a"):
                assert queue.ready


async def test_a_cancelled_job_gives_its_slot_back() -> None:
    with serving(renderer(1)) as edge:
        async with RenderQueue([edge.url]) as queue:
            jobs = Jobs(queue)
            holder, waiter = jobs.start("a", "holder"), jobs.start("a", "waiter")
            await jobs.until(1)
            waiter.cancel()
            holder.cancel()
            await asyncio.gather(holder, waiter, return_exceptions=True)
            assert (queue.inflight, queue.queued) == (0, 0)
            last = jobs.start("a", "last")
            jobs.holds["last"].set()
            await last


async def test_a_job_cancelled_in_the_moment_of_its_turn_leaks_no_slot() -> None:
    with serving(renderer(1)) as edge:
        async with RenderQueue([edge.url]) as queue:
            jobs = Jobs(queue)
            holder = jobs.start("a", "holder")
            await jobs.until(1)
            waiter = jobs.start("a", "waiter")
            await asyncio.sleep(0)
            jobs.holds["holder"].set()
            # One turn of the loop: the slot is handed over, the waiter has not woken yet.
            await asyncio.sleep(0)
            assert (queue.queued, queue.inflight, jobs.begun) == (0, 1, ["holder"])
            waiter.cancel()
            await asyncio.gather(holder, waiter, return_exceptions=True)
            assert queue.inflight == 0
