"""The dispatcher between its clients and renderers whose answers the test gives."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.unit.render import stage
from tests.unit.render.stage import Stage, reply, staged, until

from watercolour.api.errors import InfrastructureError
from watercolour.api.reasons import Reason
from watercolour.render import fleet
from watercolour.render.client import NotUnderstood
from watercolour.render.dispatcher import ENDS, Dispatcher, Outcome
from watercolour.render.queue import Closing
from watercolour.render.result import Painted, SketchFault


@pytest.fixture(autouse=True)
def brisk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look again, and rest, for a moment only."""
    for name in ("LOOK_SECONDS", "AWAY_SECONDS", "REST_SECONDS", "FULL_SECONDS", "FIND_SECONDS"):
        monkeypatch.setattr(fleet, name, 0.01)
    for name in ("AWAY_SECONDS_MOST", "REST_SECONDS_MOST"):
        monkeypatch.setattr(fleet, name, 0.02)


def opened(*stages: Stage, **options: Any) -> Dispatcher:
    patience: dict[str, Any] = {"wait_s": None, "absence_s": None}
    return Dispatcher([one.url for one in stages], **patience | options)


def start(renderers: Dispatcher, sketch: str, client: str = "a") -> asyncio.Task[Painted]:
    return asyncio.create_task(renderers.render(sketch, seed=1, client=client))


async def ended(job: asyncio.Task[Painted]) -> Painted | BaseException:
    return (await asyncio.gather(job, return_exceptions=True))[0]


def ends(renderers: Dispatcher) -> tuple[int, ...]:
    """Painted, sketch's faults, infrastructure, cancelled; checked against the jobs."""
    counts = renderers.counts
    assert sum(counts.ended.values()) + renderers.queued + renderers.inflight == counts.jobs
    return tuple(counts.ended[outcome] for outcome in ENDS)


async def test_no_more_jobs_run_than_the_renderers_have_slots() -> None:
    one, two = Stage(slots=2), Stage(slots=1)
    async with staged(one, two), opened(one, two) as renderers:
        jobs = [start(renderers, str(n)) for n in range(5)]
        await until(lambda: len(one.painting) + len(two.painting) == 3)
        assert (renderers.inflight, renderers.queued, renderers.slots) == (3, 2, 3)
        assert (len(one.painting), len(two.painting)) == (2, 1)
        one.play = two.play = lambda asked: stage.painted()
        for each in (one, one, two):
            reply(each, stage.painted())
        await asyncio.gather(*jobs)
        assert (renderers.inflight, renderers.queued) == (0, 0)
        assert ends(renderers) == (5, 0, 0, 0)


async def test_the_least_busy_renderer_gets_the_job() -> None:
    one, two = Stage(slots=2), Stage(slots=4)
    async with staged(one, two), opened(one, two) as renderers:
        await until(lambda: renderers.slots == 6)
        jobs = [start(renderers, str(n)) for n in range(6)]
        await until(lambda: len(one.painting) + len(two.painting) == 6)
        assert (sorted(one.asked), sorted(two.asked)) == (["0", "3"], ["1", "2", "4", "5"])
        for job in jobs:
            job.cancel()
        await asyncio.gather(*jobs, return_exceptions=True)


async def test_clients_take_turns() -> None:
    only = Stage()
    async with staged(only), opened(only) as renderers:
        jobs = [start(renderers, "g0", "greedy")]
        await until(lambda: only.painting)
        jobs += [start(renderers, f"g{n}", "greedy") for n in range(1, 4)]
        await asyncio.sleep(0)
        jobs += [start(renderers, f"l{n}", "late") for n in range(2)]
        await until(lambda: renderers.queued == 5)
        only.play = lambda asked: stage.painted()
        reply(only, stage.painted())
        await asyncio.gather(*jobs)
    assert only.asked == ["g0", "g1", "l0", "g2", "l1", "g3"]


@pytest.mark.parametrize("reason", ["BrowserCrashed", "RenderDeadline", "InternalError"])
async def test_a_failure_of_the_infrastructure_is_tried_once_more_elsewhere(reason: str) -> None:
    one, two = Stage(), Stage()
    async with staged(one, two), opened(one, two) as renderers:
        await until(lambda: renderers.slots == 2)
        job = start(renderers, "x")
        await until(lambda: one.painting)
        reply(one, stage.trouble(reason))
        await until(lambda: two.painting)
        reply(two, stage.trouble(reason))
        error = await ended(job)
        assert isinstance(error, InfrastructureError)
        assert error.reason == reason
        assert (one.asked, two.asked, ends(renderers)) == (["x"], ["x"], (0, 0, 1, 0))
        assert renderers.counts.attempts[Outcome.INFRASTRUCTURE] == 2


async def test_the_second_attempt_waits_for_the_other_renderer() -> None:
    one, two = Stage(), Stage()
    async with staged(one, two), opened(one, two) as renderers:
        await until(lambda: renderers.slots == 2)
        failing, other = start(renderers, "failing"), start(renderers, "other")
        await until(lambda: one.painting and two.painting)
        reply(one, stage.trouble())
        third = start(renderers, "third")
        await until(lambda: one.painting)
        assert one.asked == ["failing", "third"]
        reply(two, stage.painted())
        await until(lambda: two.painting)
        assert two.asked == ["other", "failing"]
        reply(one, stage.painted())
        reply(two, stage.painted())
        await asyncio.gather(failing, other, third)


async def test_a_lone_renderer_gets_the_second_attempt_once_it_is_well_again() -> None:
    only = Stage()
    async with staged(only), opened(only) as renderers:
        job = start(renderers, "x")
        await until(lambda: only.painting)
        port = int(only.url.rpartition(":")[2])
        await only.close()
        await until(lambda: not renderers.ready)
        assert (renderers.queued, renderers.inflight) == (1, 0)
        await only.open(port)
        await until(lambda: only.painting)
        reply(only, stage.painted())
        assert (await job).painting == b"png"


async def test_a_faulty_sketch_is_not_tried_again() -> None:
    one, two = Stage(play=lambda asked: stage.fault()), Stage(play=lambda asked: stage.fault())
    async with staged(one, two), opened(one, two) as renderers:
        with pytest.raises(SketchFault) as caught:
            await renderers.render("x", seed=1)
        assert set(caught.value.timings) == {"queue", "render"}
        assert (one.asked + two.asked, ends(renderers)) == (["x"], (0, 1, 0, 0))


async def test_a_malformed_request_is_not_tried_again_and_harms_nobody() -> None:
    one, two = (Stage(play=lambda asked: stage.malformed()) for _ in range(2))
    async with staged(one, two), opened(one, two) as renderers:
        for _ in range(2):
            with pytest.raises(NotUnderstood):
                await renderers.render("x", seed=1)
        assert (len(one.asked + two.asked), ends(renderers)) == (2, (0, 0, 2, 0))
        assert renderers.ready


async def test_a_renderer_without_its_own_sandbox_is_not_asked_twice() -> None:
    only = Stage(play=lambda asked: stage.trouble("SandboxUnavailable"))
    async with staged(only), opened(only) as renderers:
        with pytest.raises(InfrastructureError):
            await renderers.render("x", seed=1)
        assert only.asked == ["x"]


@pytest.mark.parametrize("refusal", [stage.busy(), stage.drains()])
async def test_a_job_that_is_not_taken_costs_no_attempt(refusal: stage.Answer) -> None:
    answers = [refusal] * 3 + [stage.trouble(), stage.painted()]
    only = Stage(play=lambda asked: answers.pop(0))
    async with staged(only), opened(only) as renderers:
        await renderers.render("x", seed=1)
        assert (len(only.asked), ends(renderers)) == (5, (1, 0, 0, 0))


async def test_a_job_that_was_not_taken_keeps_its_place() -> None:
    only = Stage(slots=1)
    async with staged(only), opened(only) as renderers:
        first = start(renderers, "first")
        await until(lambda: only.painting)
        second = start(renderers, "second")
        await until(lambda: renderers.queued == 1)
        only.play = lambda asked: stage.painted()
        reply(only, stage.busy())
        await asyncio.gather(first, second)
    assert only.asked == ["first", "first", "second"]


async def test_a_full_renderer_is_not_asked_again_and_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fleet, "FULL_SECONDS", 60.0)
    only = Stage(play=lambda asked: (429, {}, {"Retry-After": "60"}))
    async with staged(only), opened(only) as renderers:
        jobs = [start(renderers, str(n)) for n in range(3)]
        await until(lambda: only.asked)
        looks = only.looks
        await until(lambda: only.looks > looks + 3)
        assert (len(only.asked), renderers.queued) == (1, 3)
        for job in jobs:
            job.cancel()
        await asyncio.gather(*jobs, return_exceptions=True)


async def test_jobs_wait_for_a_renderer_that_is_not_there_yet() -> None:
    only = Stage(unready="RendererUnavailable", play=lambda asked: stage.painted())
    async with staged(only), opened(only) as renderers:
        job = start(renderers, "x")
        await until(lambda: only.looks >= 3)
        assert (renderers.queued, renderers.inflight, renderers.ready) == (1, 0, False)
        only.unready = None
        await job
        assert renderers.ready


async def test_without_any_renderer_a_job_waits_no_longer_than_it_may() -> None:
    only = Stage(unready="RendererUnavailable")
    async with staged(only), opened(only, absence_s=0.05) as renderers:
        with pytest.raises(InfrastructureError, match="no renderer took the job") as caught:
            await renderers.render("x", seed=1)
        assert caught.value.reason is Reason.RENDERER_UNAVAILABLE
        assert ends(renderers) == (0, 0, 1, 0)


async def test_a_renderer_that_refuses_all_work_says_why() -> None:
    only = Stage(unready="SandboxUnavailable")
    async with staged(only), opened(only, absence_s=0.05) as renderers:
        await until(lambda: only.looks > 1)
        with pytest.raises(InfrastructureError, match="unready: Sandbox") as caught:
            await renderers.render("x", seed=1)
        assert caught.value.reason is Reason.SANDBOX_UNAVAILABLE
        assert only.asked == []


async def test_a_job_waits_for_a_slot_no_longer_than_it_may() -> None:
    only = Stage()
    async with staged(only), opened(only, wait_s=0.05) as renderers:
        await until(lambda: renderers.ready)
        holder = start(renderers, "holder")
        await until(lambda: only.painting)
        with pytest.raises(InfrastructureError, match="no renderer had a free slot") as caught:
            await renderers.render("x", seed=1)
        assert caught.value.reason is Reason.RENDERER_UNAVAILABLE
        reply(only, stage.painted())
        await holder
        assert ends(renderers) == (1, 0, 1, 0)


async def test_a_draining_renderer_is_passed_over() -> None:
    one, two = Stage(draining=True), Stage(play=lambda asked: stage.painted())
    async with staged(one, two), opened(one, two) as renderers:
        await asyncio.gather(*(renderers.render(str(n), seed=1) for n in range(4)))
        assert one.asked == []


class Names:
    """Who the renderers are, as a name server that can fail tells it."""

    def __init__(self, *stages: Stage) -> None:
        self.found: frozenset[str] | None = frozenset(one.url for one in stages)
        self.asked = 0

    async def __call__(self) -> frozenset[str] | None:
        self.asked += 1
        return self.found

    async def heard(self) -> None:
        """Until the present answer has been taken in."""
        asked = self.asked
        await until(lambda: self.asked >= asked + 2)


async def test_renderers_come_and_go_while_jobs_wait() -> None:
    one, two = Stage(), Stage()
    async with staged(one, two):
        names = Names()
        async with opened(find=names) as renderers:
            jobs = [start(renderers, str(n)) for n in range(3)]
            await names.heard()
            assert (renderers.queued, renderers.ready, renderers.finds) == (3, False, True)
            names.found = frozenset({one.url})
            await until(lambda: one.painting)
            names.found = frozenset({two.url})
            await until(lambda: two.painting)
            assert (renderers.inflight, renderers.slots) == (2, 1)
            reply(one, stage.painted())
            await until(lambda: renderers.urls == (two.url,))
            reply(two, stage.painted())
            await until(lambda: two.painting)
            reply(two, stage.painted())
            await asyncio.gather(*jobs)
    assert (one.asked, two.asked) == (["0"], ["1", "2"])


async def test_a_renderer_that_is_named_again_before_it_is_done_takes_jobs_again() -> None:
    only = Stage(slots=2)
    async with staged(only):
        names = Names(only)
        async with opened(find=names) as renderers:
            first = start(renderers, "first")
            await until(lambda: only.painting)
            names.found = frozenset()
            await names.heard()
            second = start(renderers, "second")
            await names.heard()
            assert (renderers.queued, renderers.slots, renderers.ready) == (1, 0, False)
            names.found = frozenset({only.url})
            await until(lambda: len(only.painting) == 2)
            reply(only, stage.painted())
            reply(only, stage.painted())
            await asyncio.gather(first, second)


async def test_a_name_that_cannot_be_looked_up_changes_nothing() -> None:
    only = Stage()
    async with staged(only):
        names = Names(only)
        async with opened(find=names) as renderers:
            await until(lambda: renderers.ready)
            names.found = None
            await names.heard()
            assert renderers.ready


async def test_a_cancelled_job_frees_its_slot_at_once() -> None:
    only = Stage()
    async with staged(only), opened(only) as renderers:
        holder, waiter = start(renderers, "holder"), start(renderers, "waiter")
        await until(lambda: only.painting and renderers.queued == 1)
        holder.cancel()
        await until(lambda: [one.sketch for one in only.painting] == ["waiter"])
        waiter.cancel()
        await asyncio.gather(holder, waiter, return_exceptions=True)
        assert (renderers.inflight, renderers.queued) == (0, 0)
        assert ends(renderers) == (0, 0, 0, 2)


async def test_a_job_cancelled_in_the_moment_of_its_turn_leaks_no_slot() -> None:
    only = Stage()
    async with staged(only), opened(only) as renderers:
        await until(lambda: renderers.ready)
        for turns in range(8):
            job = start(renderers, "x")
            for _ in range(turns):
                await asyncio.sleep(0)
            job.cancel()
            await ended(job)
            assert (renderers.inflight, renderers.queued) == (0, 0)
        job = start(renderers, "last")
        await until(lambda: [one.sketch for one in only.painting] == ["last"])
        reply(only, stage.painted())
        await job


async def test_a_slow_job_is_not_sent_twice_by_itself() -> None:
    one, two = Stage(), Stage()
    async with staged(one, two), opened(one, two) as renderers:
        await until(lambda: renderers.slots == 2)
        job = start(renderers, "x")
        await until(lambda: one.painting)
        looks = two.looks
        await until(lambda: two.looks > looks + 5)
        assert two.asked == []
        reply(one, stage.painted())
        await job


async def test_the_first_of_two_copies_counts_and_the_other_is_cancelled() -> None:
    one, two = Stage(), Stage()
    async with staged(one, two), opened(one, two, hedge_s=0.02) as renderers:
        await until(lambda: renderers.slots == 2)
        job = start(renderers, "x")
        await until(lambda: one.painting and two.painting)
        assert (renderers.queued, renderers.inflight) == (0, 2)
        reply(two, stage.painted())
        await job
        await until(lambda: not one.painting)
        counts = renderers.counts
        assert (counts.hedges_won, counts.hedges_lost, ends(renderers)) == (1, 0, (1, 0, 0, 0))
        assert counts.attempts[Outcome.CANCELLED] == 1


async def test_a_copy_takes_no_slot_that_somebody_waits_for() -> None:
    one, two = Stage(), Stage()
    async with staged(one, two), opened(one, two, hedge_s=0.02) as renderers:
        await until(lambda: renderers.slots == 2)
        jobs = [start(renderers, str(n)) for n in range(3)]
        await until(lambda: one.painting and two.painting)
        looks = two.looks
        await until(lambda: two.looks > looks + 5)
        reply(two, stage.painted())
        await until(lambda: two.painting)
        assert two.asked == ["1", "2"]
        reply(two, stage.painted())
        await until(lambda: two.painting)
        assert two.asked == ["1", "2", "0"]
        reply(one, stage.trouble())
        reply(two, stage.painted())
        await asyncio.gather(*jobs)
        assert two.asked == ["1", "2", "0"]
        counts = renderers.counts
        assert (counts.hedges_won, counts.hedges_lost, ends(renderers)) == (1, 0, (3, 0, 0, 0))


async def test_two_failing_copies_are_both_attempts() -> None:
    one, two = Stage(), Stage()
    async with staged(one, two), opened(one, two, hedge_s=0.02) as renderers:
        await until(lambda: renderers.slots == 2)
        job = start(renderers, "x")
        await until(lambda: one.painting and two.painting)
        reply(one, stage.trouble())
        reply(two, stage.trouble())
        assert isinstance(await ended(job), InfrastructureError)
        assert (one.asked, two.asked) == (["x"], ["x"])
        assert (renderers.counts.hedges_won, renderers.counts.hedges_lost) == (0, 1)


async def test_draining_lets_end_what_is_painted_and_refuses_the_rest() -> None:
    only = Stage()
    async with staged(only), opened(only) as renderers:
        painted, waiting = start(renderers, "painted"), start(renderers, "waiting")
        await until(lambda: only.painting and renderers.queued == 1)
        drained = asyncio.create_task(renderers.drain(60))
        assert isinstance(await ended(waiting), Closing)
        with pytest.raises(Closing):
            await renderers.render("late", seed=1)
        assert not drained.done()
        reply(only, stage.painted())
        assert (await drained, (await painted).shapes) == (True, 3)
        assert (only.asked, ends(renderers)) == (["painted"], (1, 0, 2, 0))


async def test_what_is_painted_beyond_the_deadline_is_given_up_as_infrastructure() -> None:
    only = Stage()
    async with staged(only), opened(only) as renderers:
        job = start(renderers, "x")
        await until(lambda: only.painting)
        assert await renderers.drain(0.02) is False
        assert isinstance(await ended(job), Closing)
        assert ends(renderers) == (0, 0, 1, 0)
        await until(lambda: not only.painting)


def test_a_dispatcher_needs_somebody_to_ask() -> None:
    with pytest.raises(ValueError, match="URL"):
        Dispatcher([])
