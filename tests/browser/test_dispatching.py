"""The dispatcher and real renderers: what is painted, by whom, and what survives a storm."""

from __future__ import annotations

import asyncio
from pathlib import Path

import httpx
import pytest
from tests.browser.conftest import PYTHON, Server, patient, start, stop
from tests.browser.sketches import HONEST, sketch
from tests.browser.storm import calm, ends, renderers, storm
from tests.browser.test_survival import until, until_busy

from watercolour.render.dispatcher import Dispatcher, Outcome

ENDLESS = sketch("while (true);")


async def test_two_renderers_paint_the_same_and_one_that_drains_loses_no_job(
    tmp_path: Path,
) -> None:
    folders = [tmp_path / name for name in ("one", "two")]
    for folder in folders:
        folder.mkdir()
    one, two = (start(folder, "--slots", "1") for folder in folders)
    try:
        async with patient(one, two) as dispatcher:
            await until(lambda: dispatcher.slots == 2, 120)
            jobs = [
                asyncio.create_task(dispatcher.render(HONEST, seed=1, fresh=True, client=name))
                for name in "abab"
            ]
            first = await jobs[0]
            async with httpx.AsyncClient(timeout=60) as http:
                await http.post(f"{one.url}/v1/drain")
            painted = await asyncio.gather(*jobs)
        counts = dispatcher.counts
    finally:
        for server in (one, two):
            stop(server)
    assert {each.painting for each in painted} == {first.painting}
    assert counts.ended[Outcome.PAINTED] == counts.jobs == 4
    assert counts.attempts[Outcome.BUSY] == 0


async def test_a_cancelled_job_gives_its_slot_to_the_next(
    server: Server, client: Dispatcher
) -> None:
    endless = asyncio.create_task(client.render(ENDLESS, seed=1, cpu_budget_s=600, deadline_s=600))
    await until_busy(server.url)
    endless.cancel()
    with pytest.raises(asyncio.CancelledError):
        await endless
    assert (await client.render(HONEST, seed=1, fresh=True)).shapes == 3
    assert (client.inflight, client.queued) == (0, 0)


async def test_in_a_storm_every_job_ends_once_and_no_sketch_is_blamed(tmp_path: Path) -> None:
    with renderers(tmp_path, PYTHON, 2, 1) as among:
        during = await storm(among, [HONEST] * 60, ends(3), seed=1)
        after = await calm(among, [HONEST] * 10)
    assert during.faults == []
    assert (during.jobs, during.counts.jobs, sum(during.counts.ended.values())) == (60, 60, 60)
    assert during.counts.ended[Outcome.PAINTED] == during.painted >= 36
    assert during.counts.ended[Outcome.INFRASTRUCTURE] == during.infrastructure.total()
    assert during.kills.total() >= 15
    assert set(during.kills) == {"browser", "renderer", "gpu-process", "worker"}
    assert (after.painted, after.jobs) == (10, 10)
