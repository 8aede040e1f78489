"""With the gate switched off, no hostile sketch does harm."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import pytest
from tests.browser.conftest import alive
from tests.security.attack import BREACH, HONEST, Attack
from tests.security.catalogue import ATTACKS, label
from tests.security.conftest import NAME, Stage, entering

#: Bytes that a browser's own folder holds at most: profile, caches, no more.
FOLDER_LIMIT = 64 * 2**20

RUN = [attack for attack in ATTACKS if attack.browser]


@pytest.mark.parametrize("attack", RUN, ids=label)
async def test_it_does_no_harm_without_the_gate(stage: Stage, attack: Attack) -> None:
    sketch = attack.for_browser(stage.canary.host, NAME)
    processes = len(alive(stage.browsers()))
    first = await stage.paint(sketch, cpu_s=attack.cpu_s)
    assert first.end in attack.ends, first.said
    assert BREACH not in first.said
    assert len(first.said) < 20_000
    first.said.encode()  # well formed: others have to store it
    if attack.twin and first.end == "painted":
        assert first.painting == stage.clean, first.said
    if attack.steady:
        again = await stage.paint(sketch, cpu_s=attack.cpu_s)
        assert (again.end, again.painting) == (first.end, first.painting)
        assert BREACH not in again.said
    after = await stage.paint(HONEST)
    assert after.end == "painted", after.body
    assert after.painting == stage.clean
    assert after.body["js_errors"] == []
    assert stage.canary.seen() == []
    assert len(alive(stage.browsers())) <= processes + 2
    assert left_behind(stage) == []


def left_behind(stage: Stage) -> list[str]:
    """What a sketch has put on the disk, if it is told by name, by place or by size."""
    home = [path for path in stage.temporary.iterdir() if path.name.startswith("watercolour-")]
    odd = [str(path) for path in stage.temporary.iterdir() if path not in home]
    sizes = {path: path.stat().st_size for path in home[0].rglob("*") if path.is_file()}
    odd += [str(path) for path in sizes if path.name.startswith(("core", "remains"))]
    return odd + ([f"{sum(sizes.values())} bytes"] if sum(sizes.values()) > FOLDER_LIMIT else [])


ASKS = """
import socket, sys
host, port = sys.argv[1].split(":")
with socket.create_connection((host, int(port)), 5) as sent:
    sent.sendall(b"GET /control HTTP/1.1\\r\\n\\r\\n")
    sent.recv(99)
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as thrown:
    thrown.sendto(b"control", (host, int(port)))
    thrown.sendto(b"control", (host, 53))
"""


async def test_the_canary_sees_who_comes_from_the_browsers_network(stage: Stage) -> None:
    browser = stage.server.browser()
    command = [*entering(browser), sys.executable, "-c", ASKS, stage.canary.host]
    await asyncio.to_thread(subprocess.run, command, check=True, timeout=60)
    seen = {entry["kind"] for entry in stage.canary.seen()}
    assert {"connection", "request", "datagram"} <= seen
    assert "name" in seen or not stage.canary.names
    stage.canary.forget()
