"""One renderer with one slot, and a canary on the loopback that its browser sees."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio
from tests.browser.conftest import Server, start, stop
from tests.security.attack import HONEST

from watercolour.render import procfs

#: Seeds every painting here.
SEED = 3

#: A name below a domain that is reserved for this (RFC 6761).
NAME = "canary.test"

CANARY = Path(__file__).with_name("canary.py")

#: Gives the renderer a resolver that asks the canary.
RESOLVER = 'mount --bind "$0" /etc/resolv.conf && exec "$@"'


@dataclass(frozen=True)
class Answer:
    """What came of one sketch.

    Attributes:
        end: ``painted``, a violation's code, or the status with the reason.
        painting: PNG; empty if there is none.
        said: every text of the answer that the sketch may have had a hand in.
        body: the answer as it came.
    """

    end: str
    painting: bytes
    said: str
    body: dict[str, Any]


@dataclass
class Canary:
    """The canary, moved to wherever the browser's network is."""

    folder: Path
    process: subprocess.Popen[str] | None = None
    host: str = ""
    names: bool = False
    network: str = ""
    _log: Path = field(default_factory=Path)

    def settle(self, browser: int) -> None:
        """Be in the network of the process, unless that is done already."""
        network = os.readlink(f"/proc/{browser}/ns/net")
        if network == self.network:
            return
        self.leave()
        self._log = self.folder / f"canary-{network.strip('net:[]')}.log"
        self._log.touch()
        command = [sys.executable, str(CANARY), str(self._log)]
        self.process = subprocess.Popen(
            [*entering(browser), *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        told = json.loads(self.process.stdout.readline())
        self.host, self.names, self.network = f"127.0.0.1:{told['port']}", told["names"], network

    def leave(self) -> None:
        """End it."""
        if self.process is not None:
            assert self.process.stdin is not None
            self.process.stdin.close()
            self.process.wait(10)
            self.process = None

    def seen(self) -> list[dict[str, str]]:
        """Whatever came to it."""
        return [json.loads(line) for line in self._log.read_text().splitlines()]

    def forget(self) -> None:
        """Forget what came to it."""
        self._log.write_text("")


def entering(process: int) -> list[str]:
    """The beginning of a command that shall run in the network of that process."""
    own, its = os.readlink("/proc/self/ns/net"), os.readlink(f"/proc/{process}/ns/net")
    if own == its:
        return []
    same_user = os.readlink("/proc/self/ns/user") == os.readlink(f"/proc/{process}/ns/user")
    user = [] if same_user else ["--user", "--preserve-credentials"]
    return ["nsenter", f"--target={process}", *user, "--net", "--"]


@dataclass
class Stage:
    """The renderer, its client, the canary and the honest painting."""

    server: Server
    http: httpx.AsyncClient
    canary: Canary
    temporary: Path
    clean: bytes = b""

    async def paint(self, sketch: str, *, cpu_s: float = 15.0, deadline_s: float = 300.0) -> Answer:
        """One painting of a sketch, made anew."""
        body = {
            "sketch": sketch,
            "seed": SEED,
            "deadline_s": deadline_s,
            "cpu_budget_s": cpu_s,
            "fresh": True,
        }
        response = await self.http.post(f"{self.server.url}/v1/render", json=body)
        answer = response.json()
        said = [*answer.get("js_errors", []), (answer.get("violation") or {}).get("message", "")]
        end = f"{response.status_code} {answer.get('reason')}"
        if response.status_code == 200:
            end = "painted"
        elif response.status_code == 422:
            end = answer["violation"]["code"]
        painting = base64.b64decode(answer.get("painting", ""))
        return Answer(end, painting, "\n".join(said), answer)

    def browsers(self) -> list[int]:
        """Processes below the renderer, its own helpers included."""
        return procfs.descendants(self.server.process.pid)


@pytest.fixture(scope="module")
def temporary() -> Iterator[Path]:
    """Where the renderer keeps its temporary files: a folder of its own, open as /tmp is."""
    with tempfile.TemporaryDirectory(prefix="wc-security-", dir="/tmp") as name:
        folder = Path(name)
        folder.chmod(0o1777)
        yield folder


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, temporary: Path) -> Iterator[Server]:
    """One renderer with one slot, so that consecutive sketches share a page."""
    folder = tmp_path_factory.mktemp("renderer")
    resolver = folder / "resolv.conf"
    resolver.write_text("nameserver 127.0.0.1\noptions timeout:1 attempts:1\n")
    root = os.geteuid() == 0 and shutil.which("unshare")
    wrapper = ("unshare", "--mount", "sh", "-c", RESOLVER, str(resolver)) if root else ()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", str(temporary))
        running = start(folder, "--slots", "1", wrapper=wrapper)
    yield running
    stop(running)


@pytest.fixture(scope="module")
def canary(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Canary]:
    """A canary for the renderer's browser."""
    made = Canary(tmp_path_factory.mktemp("canary"))
    yield made
    made.leave()


_clean: dict[int, bytes] = {}


@pytest_asyncio.fixture
async def stage(server: Server, canary: Canary, temporary: Path) -> AsyncIterator[Stage]:
    """All of it, with the honest painting known and the canary near the browser."""
    async with httpx.AsyncClient(timeout=400, trust_env=False) as http:
        made = Stage(server, http, canary, temporary)
        key = server.process.pid
        if key not in _clean:
            first = await made.paint(HONEST)
            assert first.end == "painted", first.body
            _clean[key] = first.painting
        made.clean = _clean[key]
        canary.settle(server.browser())
        canary.forget()
        yield made
