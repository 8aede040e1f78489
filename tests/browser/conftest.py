"""A renderer of its own, as a process, for every test module that asks for one."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio

from watercolour.render import procfs
from watercolour.render.dispatcher import Dispatcher

ROOT = Path(__file__).parents[2]
PYTHON = ROOT / ".venv-render" / "bin" / "python"


@dataclass(frozen=True)
class Server:
    """A renderer's process and its address."""

    process: subprocess.Popen[bytes]
    url: str

    def browser(self) -> int:
        """The browser process's id."""
        return next(
            pid for pid in procfs.descendants(self.process.pid) if procfs.kind(pid) == "browser"
        )


def patient(*servers: Server) -> Dispatcher:
    """A dispatcher that lets a browser on a busy machine take its time to start."""
    return Dispatcher([each.url for each in servers], absence_s=180)


def start(folder: Path, *options: str, wrapper: tuple[str, ...] = ()) -> Server:
    """A renderer that listens; the browser may still be starting. The wrapper runs it."""
    announce = folder / "renderer.json"
    command = [
        *wrapper,
        str(PYTHON),
        "-m",
        "watercolour.render.service",
        "--announce",
        str(announce),
    ]
    with (folder / "renderer.log").open("wb") as log:
        process = subprocess.Popen([*command, *options], stdout=log, stderr=log)
    give_up = time.monotonic() + 180
    while not announce.exists():
        if process.poll() is not None or time.monotonic() > give_up:
            process.kill()
            pytest.fail((folder / "renderer.log").read_text())
        time.sleep(0.05)
    return Server(process, json.loads(announce.read_text())["url"])


def stop(server: Server) -> None:
    """End it as an operator would."""
    if server.process.poll() is None:
        server.process.send_signal(signal.SIGTERM)
    server.process.wait(30)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One renderer with one slot, so that consecutive sketches share a page."""
    running = start(tmp_path_factory.mktemp("renderer"), "--slots", "1")
    yield running
    stop(running)


@pytest_asyncio.fixture
async def client(server: Server) -> AsyncIterator[Dispatcher]:
    """A client of the module's renderer."""
    async with patient(server) as opened:
        yield opened


def alive(pids: list[int]) -> list[int]:
    """Those that still run; a zombie does not."""
    return [pid for pid in pids if os.path.exists(f"/proc/{pid}") and procfs.kind(pid)]
