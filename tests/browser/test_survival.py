"""Browsers that are killed, workers that are killed, and what is left of them: nothing."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import time
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
from tests.browser.conftest import Server, alive, patient, start, stop
from tests.browser.sketches import HONEST, sketch

from watercolour.render import procfs
from watercolour.render.dispatcher import Dispatcher

SLOW = sketch("const end = 30e6; let x = 0; for (let i = 0; i < 40 * end; i++) x += i % 7;")


async def until(condition: Callable[[], object], seconds: float = 30) -> None:
    """Wait for something that another process does."""
    give_up = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < give_up
        await asyncio.sleep(0.02)


async def until_answer(
    http: httpx.AsyncClient, path: str, right: Callable[[httpx.Response], bool]
) -> None:
    """Ask a server until it answers as it is to."""
    give_up = time.monotonic() + 180
    while not right(await http.get(path)):
        assert time.monotonic() < give_up
        await asyncio.sleep(0.02)


async def until_busy(url: str) -> None:
    """Wait until a renderer paints."""
    async with httpx.AsyncClient(base_url=url) as http:
        await until_answer(http, "/v1/load", lambda answer: answer.json()["busy"] > 0)


async def test_a_browser_killed_between_renders_is_started_again(
    server: Server, client: Dispatcher
) -> None:
    before = await client.render(HONEST, seed=1, fresh=True)
    old = [server.browser(), *procfs.descendants(server.browser())]
    os.kill(server.browser(), signal.SIGKILL)
    after = await client.render(HONEST, seed=1, fresh=True)
    assert after.painting == before.painting
    await until(lambda: not alive(old))


async def test_a_browser_killed_during_a_render_costs_one_retry(
    server: Server, client: Dispatcher
) -> None:
    quiet = await client.render(SLOW, seed=1, fresh=True)
    job = asyncio.create_task(client.render(SLOW, seed=1, fresh=True))
    async with httpx.AsyncClient() as http:
        for _ in range(500):
            if (await http.get(f"{server.url}/v1/load")).json()["busy"]:
                break
    await asyncio.sleep(0.2)
    os.kill(server.browser(), signal.SIGKILL)
    assert (await job).painting == quiet.painting


async def test_a_killed_page_costs_one_retry(server: Server, client: Dispatcher) -> None:
    quiet = await client.render(SLOW, seed=1, fresh=True)
    job = asyncio.create_task(client.render(SLOW, seed=1, fresh=True))
    await asyncio.sleep(0.3)
    for pid in procfs.descendants(server.browser()):
        if procfs.kind(pid) == "renderer":
            os.kill(pid, signal.SIGKILL)
    assert (await job).painting == quiet.painting


@pytest.mark.parametrize("body", [HONEST, sketch("while (true);")], ids=["idle", "looping"])
async def test_a_killed_worker_leaves_no_orphan(tmp_path: Path, body: str) -> None:
    running = start(tmp_path, "--slots", "1")
    try:
        async with patient(running) as client:
            await client.render(HONEST, seed=1)
            job = asyncio.create_task(client.render(body, seed=1, deadline_s=30, cpu_budget_s=60))
            await asyncio.sleep(0.3)
            family = procfs.descendants(running.process.pid)
            assert any(procfs.kind(pid) == "renderer" for pid in family)
            running.process.kill()
            running.process.wait(10)
            await until(lambda: not alive(family))
            job.cancel()  # It would wait for another renderer.
            await asyncio.gather(job, return_exceptions=True)
    finally:
        stop(running)


async def test_sigterm_ends_the_worker_and_its_browser(tmp_path: Path) -> None:
    running = start(tmp_path, "--slots", "1")
    async with patient(running) as client:
        await client.render(HONEST, seed=1)
    family = procfs.descendants(running.process.pid)
    stop(running)
    assert running.process.returncode == 0
    await until(lambda: not alive(family))


async def test_sigterm_lets_the_painting_end_and_its_answer_arrive(tmp_path: Path) -> None:
    running = start(tmp_path, "--slots", "1", "--grace-seconds", "62")
    async with patient(running) as client:
        await client.render(HONEST, seed=1)
        job = asyncio.create_task(client.render(SLOW, seed=1, deadline_s=60, cpu_budget_s=60))
        await until_busy(running.url)
        running.process.send_signal(signal.SIGTERM)
        painted = await job
    assert painted.painting.startswith(b"\x89PNG")
    stop(running)
    assert running.process.returncode == 0


async def test_a_draining_renderer_stays_ready_takes_no_job_and_can_be_called_back(
    tmp_path: Path,
) -> None:
    running = start(tmp_path, "--slots", "1")
    try:
        async with httpx.AsyncClient(timeout=60, base_url=running.url) as http:

            async def render(seed: int) -> httpx.Response:
                return await http.post("/v1/render", json={"sketch": HONEST, "seed": seed})

            assert (await render(1)).status_code == 200
            assert (await http.post("/v1/drain")).json()["draining"] is True
            refused, ready = await render(2), await http.get("/readyz")
            assert (refused.status_code, ready.status_code) == (503, 200)
            assert refused.json()["reason"] == "RendererUnavailable"
            assert refused.json()["taken"] is False
            assert (await http.delete("/v1/drain")).json()["draining"] is False
            assert (await render(2)).status_code == 200
    finally:
        stop(running)


async def test_no_work_is_taken_while_the_canary_reaches_what_it_must_not(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as forbidden:
        port = forbidden.getsockname()[1]
        running = start(
            tmp_path, "--network-canary", "Required", "--canary-address", f"127.0.0.1:{port}"
        )
        async with httpx.AsyncClient(timeout=60, base_url=running.url) as http:

            async def refuses() -> str | None:
                return (await http.get("/v1/load")).json()["refuses"]

            async with asyncio.timeout(60):
                while await refuses() != "NetworkPolicyNotEnforced":
                    assert (await http.get("/readyz")).status_code == 503
                    await asyncio.sleep(0.1)
            ready = await http.get("/readyz")
            assert (ready.status_code, ready.json()["reason"]) == (
                503,
                "NetworkPolicyNotEnforced",
            )
            refused = await http.post("/v1/render", json={"sketch": HONEST, "seed": 1})
            assert refused.status_code == 503
            forbidden.close()
            await until_answer(http, "/readyz", lambda answer: answer.status_code == 200)
            painted = await http.post("/v1/render", json={"sketch": HONEST, "seed": 1})
            assert painted.status_code == 200
    stop(running)


def owner_and_command(pid: int) -> tuple[int, bytes]:
    """User id and arguments of a process."""
    place = Path(f"/proc/{pid}")
    return place.stat().st_uid, (place / "cmdline").read_bytes()


async def test_the_browser_runs_unprivileged_in_its_own_sandbox(
    server: Server, client: Dispatcher
) -> None:
    await client.render(HONEST, seed=1)
    below = [server.browser(), *procfs.descendants(server.browser())]
    family = [owner_and_command(pid) for pid in alive(below)]
    assert len(family) > 4
    assert not any(b"--no-sandbox" in command for _, command in family)
    assert 0 not in {owner for owner, _ in family}


async def test_a_dying_graphics_process_is_never_the_sketch_s_fault(tmp_path: Path) -> None:
    running = start(tmp_path, "--slots", "1")
    answers: list[tuple[int, object]] = []
    over = asyncio.Event()

    async def strike() -> None:
        # Later and later after the one before: while a page is opened, warmed, and painted on.
        for tenths in range(24):
            await asyncio.sleep(tenths / 10)
            for pid in procfs.descendants(running.process.pid):
                if procfs.kind(pid) == "gpu-process":
                    os.kill(pid, signal.SIGKILL)
        over.set()

    try:
        async with httpx.AsyncClient(timeout=120, base_url=running.url) as http:
            striking = asyncio.create_task(strike())
            while not over.is_set():
                job = {"sketch": HONEST, "seed": len(answers), "deadline_s": 60}
                answer = await http.post("/v1/render", json=job)
                answers.append((answer.status_code, answer.json().get("violation")))
            await striking
    finally:
        stop(running)
    assert {status for status, _ in answers} <= {200, 503}, answers
