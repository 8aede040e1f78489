"""What shuts a browser in, seen from outside: its network, its user, its group, its keeper."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests import refusing
from tests.browser.conftest import PYTHON, Server, alive, patient, start, stop
from tests.browser.sketches import HONEST, sketch
from tests.browser.test_survival import until, until_answer, until_busy

from watercolour.render import cgroup, procfs

ROOT = os.geteuid() == 0
GROUPS = ROOT and not isinstance(cgroup.prepare(), str)
POSSIBLE = subprocess.run(["unshare", "--user", "--net", "true"], check=False).returncode == 0
LOOP = sketch("while (true);")
REFUSING = (sys.executable, refusing.__file__)

needs_namespaces = pytest.mark.skipif(not POSSIBLE, reason="needs network namespaces")


async def isolation(url: str) -> dict[str, Any]:
    """What a renderer that is ready says of it, by ``/readyz`` and by ``/metrics``."""
    async with httpx.AsyncClient(base_url=url, timeout=60) as http:
        await until_answer(http, "/readyz", lambda answer: answer.status_code == 200)
        found: dict[str, Any] = (await http.get("/readyz")).json()["isolation"]
        shown = (await http.get("/metrics")).text
    for layer, holds in (
        ("network", found["network"] == "own"),
        ("sandbox", found["sandbox"] == "on"),
        ("limits", found["limits"] == "cgroup"),
    ):
        assert f'watercolour_render_isolation{{layer="{layer}"}} {float(holds)}' in shown
    return found


def text(pid: int, name: str) -> str:
    """One of the kernel's files on a process."""
    return Path(f"/proc/{pid}/{name}").read_text()


def status(pid: int) -> dict[str, str]:
    """The kernel's words on a process."""
    lines = text(pid, "status").splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def family(server: Server) -> list[int]:
    """The browser and everything below it."""
    return [server.browser(), *procfs.descendants(server.browser())]


def left(home: Path, groups: str) -> list[Path]:
    """What exists of a browser's folder and of the groups that its cgroup file named."""
    names = [line.split(":")[2] for line in groups.splitlines() if cgroup.PREFIX in line]
    found = [each for name in names for each in Path("/sys/fs/cgroup").glob(f"*{name}")]
    return [each for each in (home, *found) if each.exists()]


async def test_the_renderer_says_which_layers_hold(server: Server) -> None:
    found = await isolation(server.url)
    assert found["network"] == ("own" if POSSIBLE else "host")
    assert found["sandbox"] == "on"
    assert found["limits"] == ("cgroup" if GROUPS else "rlimits")


async def test_no_process_of_the_browser_has_a_right(server: Server) -> None:
    await isolation(server.url)
    told = [status(pid) for pid in family(server)]
    assert len(told) > 4
    assert "0" not in {word for one in told for word in one["Uid"].split()}
    assert {one["Groups"] for one in told} <= {"", "65534"}
    # Chromium's own sandbox gives a zygote capabilities in a namespace in which there is nothing.
    assert status(server.browser())["CapEff"] == status(server.browser())["CapPrm"] == "0" * 16


@needs_namespaces
async def test_worker_and_browser_see_a_loopback_and_nothing_else(server: Server) -> None:
    await isolation(server.url)
    for pid in (server.process.pid, server.browser()):
        assert os.readlink(f"/proc/{pid}/ns/net") != os.readlink("/proc/self/ns/net")
        lines = text(pid, "net/dev").splitlines()[2:]
        assert [line.partition(":")[0].strip() for line in lines] == ["lo"]
        routes = text(pid, "net/route").splitlines()[1:]
        assert routes == []


@pytest.mark.skipif(not GROUPS, reason="needs control groups")
async def test_the_browser_lives_in_a_group_of_its_own(server: Server) -> None:
    await isolation(server.url)
    for pid in family(server):
        assert cgroup.PREFIX in text(pid, "cgroup")
    assert cgroup.PREFIX not in text(server.process.pid, "cgroup")


async def test_a_killed_keeper_costs_one_retry_and_leaves_nothing(server: Server) -> None:
    async with patient(server) as client:
        quiet = await client.render(HONEST, seed=5, fresh=True)
        old = family(server)
        keeper = int(status(old[0])["PPid"])
        looping = asyncio.create_task(
            client.render(LOOP, seed=1, deadline_s=60, cpu_budget_s=2, fresh=True)
        )
        await until_busy(server.url)
        os.kill(keeper, signal.SIGKILL)
        await until(lambda: not alive(old), 60)
        (ended,) = await asyncio.gather(looping, return_exceptions=True)
        assert "sketch_timeout" in str(ended)
        again = await client.render(HONEST, seed=5, fresh=True)
    assert again.painting == quiet.painting
    # The new keeper is the one child that there is: nobody waits to be reaped.
    children = procfs.children(server.process.pid)
    assert [procfs.kind(pid) for pid in children] == ["other"]


async def test_a_killed_worker_leaves_no_process_no_folder_and_no_group(tmp_path: Path) -> None:
    running = start(tmp_path, "--slots", "1")
    try:
        await isolation(running.url)
        old = procfs.descendants(running.process.pid)
        home = Path(os.readlink(f"/proc/{running.browser()}/cwd"))
        groups = text(running.browser(), "cgroup")
        async with patient(running) as client:
            job = asyncio.create_task(client.render(LOOP, seed=1, deadline_s=90, cpu_budget_s=90))
            await until_busy(running.url)
            running.process.kill()
            running.process.wait(10)
            await until(lambda: not alive(old), 60)
            job.cancel()  # It would wait for another renderer.
            await asyncio.gather(job, return_exceptions=True)
    finally:
        stop(running)
    assert left(home, groups) == []


@needs_namespaces
async def test_without_new_namespaces_it_paints_in_the_machines_network_and_says_so(
    tmp_path: Path,
) -> None:
    # Chromium's sandbox is made of namespaces as well.
    running = start(tmp_path, "--slots", "1", "--allow-unsandboxed", wrapper=REFUSING)
    try:
        found = await isolation(running.url)
        logged = (tmp_path / "renderer.log").read_text()
    finally:
        stop(running)
    assert (found["network"], found["sandbox"]) == ("host", "off")
    assert found["remarks"]["network"] == "Operation not permitted"
    assert logged.count("no network namespace") == 1


def test_without_new_namespaces_it_ends_if_one_is_required() -> None:
    ended = subprocess.run(
        [
            *(*REFUSING, str(PYTHON), "-m", "watercolour.render.service"),
            *("--network-namespace", "Required"),
        ],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert ended.returncode == 3
    assert "NetworkNamespaceUnavailable" in ended.stderr.splitlines()[-1]


@needs_namespaces
@pytest.mark.skipif(not ROOT, reason="only root may enter another's network")
def test_it_drains_from_inside_its_own_network(tmp_path: Path) -> None:
    """There a kubelet runs the command before SIGTERM, and no port is open."""
    at = str(tmp_path / "drain.sock")
    server = start(tmp_path, "--slots", "1", "--drain-socket", at)
    try:
        asyncio.run(isolation(server.url))
        there = ("nsenter", f"--target={server.process.pid}", "--net")
        drain = (str(PYTHON), "-m", "watercolour.render.drain", "--seconds", "5", "--socket", at)
        done = subprocess.run([*there, *drain], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")
        assert httpx.get(f"{server.url}/v1/load").json()["draining"]
    finally:
        stop(server)
