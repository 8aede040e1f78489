"""Pages that die while they hold much memory: a sketch's fault only if it was that sketch's."""

from __future__ import annotations

import asyncio
import os
import signal

import pytest
from tests.browser.conftest import Server
from tests.browser.sketches import HONEST, sketch
from tests.browser.test_isolation import GROUPS
from tests.browser.test_survival import until

from watercolour.render import procfs
from watercolour.render.dispatcher import Dispatcher
from watercolour.render.result import SketchFault

MIB = 2**20


SPIN = " for (let i = 0; i < 4e8; i++) x += i % 7;"


def holding(*mib: int) -> str:
    """A sketch that takes so much memory, step by step, with some CPU seconds after each."""
    steps = (
        f" for (let i = 0; i < {each // 64}; i++) all.push(new Uint8Array(2 ** 26).fill(1));{SPIN}"
        for each in mib
    )
    return sketch(f"const all = []; window.all = all; let x = 0;{''.join(steps)}")


def largest_page(server: Server) -> tuple[int, int]:
    """Bytes and id of the largest page's process."""
    pages = (pid for pid in procfs.descendants(server.browser()) if procfs.kind(pid) == "renderer")
    return max((procfs.resident_bytes(pid) or 0, pid) for pid in pages)


async def test_a_large_page_that_somebody_kills_costs_one_retry(
    server: Server, client: Dispatcher
) -> None:
    before = await client.render(HONEST, seed=1)
    job = asyncio.create_task(client.render(holding(512), seed=1, deadline_s=300, cpu_budget_s=100))
    await until(lambda: largest_page(server)[0] > 500 * MIB, 60)
    os.kill(largest_page(server)[1], signal.SIGKILL)
    assert (await job).painting == before.painting


@pytest.mark.skipif(not GROUPS, reason="needs control groups")
async def test_who_fills_the_browsers_group_unseen_is_told_so(
    server: Server, client: Dispatcher
) -> None:
    before = await client.render(HONEST, seed=1)
    job = asyncio.create_task(
        client.render(holding(512, 4096), seed=1, deadline_s=300, cpu_budget_s=100)
    )
    await until(lambda: largest_page(server)[0] > 500 * MIB, 120)
    # The renderer cannot look while it is stopped: then only the kernel's limit holds.
    server.process.send_signal(signal.SIGSTOP)
    try:
        await until(lambda: largest_page(server)[0] < 500 * MIB, 120)
    finally:
        server.process.send_signal(signal.SIGCONT)
    with pytest.raises(SketchFault, match=r"sketch_oom: The sketch used 1[0-9]{3} MiB"):
        await job
    assert (await client.render(HONEST, seed=1, fresh=True)).painting == before.painting
