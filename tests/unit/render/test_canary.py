"""The canary, on real sockets."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys

import pytest

from watercolour.api.errors import InputError
from watercolour.api.reasons import Reason
from watercolour.render import canary, procfs
from watercolour.render.canary import OPEN_SECONDS, Canary

#: Whether a process of this user can have a network of its own here.
POSSIBLE = subprocess.run(["unshare", "--user", "--net", "true"], check=False).returncode == 0


@pytest.fixture(autouse=True)
def brisk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Try again at once."""
    monkeypatch.setattr(canary, "AGAIN_SECONDS", 0.0)
    monkeypatch.setattr(canary, "SHUT_AGAIN_SECONDS", 0.0)


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("10.96.0.1:443", ("10.96.0.1", 443)),
        ("[fd00::1]:443", ("fd00::1", 443)),
        ("fd00::1:443", ("fd00::1", 443)),
    ],
)
def test_an_address_has_a_host_and_a_port(text: str, address: tuple[str, int]) -> None:
    assert canary.parse(text) == address


@pytest.mark.parametrize("text", ["", "10.96.0.1", ":443", "10.96.0.1:https", "10.96.0.1:70000"])
def test_what_is_no_address_is_named(text: str) -> None:
    with pytest.raises(InputError, match=f"--canary-address={text}"):
        canary.parse(text)


async def test_a_listener_is_reached_and_a_closed_port_is_not() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        outpost = canary.outpost("127.0.0.1", port)
        assert await outpost.reached()
    assert not await outpost.reached()


def test_a_listener_that_drops_connections_is_not_reached(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A full backlog drops what comes, as a network policy does."""
    monkeypatch.setattr(canary, "CONNECT_SECONDS", 0.05)
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        host, port = listener.getsockname()
        waiting = [socket.socket() for _ in range(8)]
        for one in waiting:
            one.setblocking(False)
            one.connect_ex((host, port))
        assert not canary.connects(host, port)
        for one in waiting:
            one.close()


async def test_work_is_forbidden_until_the_address_is_out_of_reach() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        bird = Canary("Required")
        assert bird.forbids
        watching = asyncio.create_task(canary.watch(bird, canary.outpost("127.0.0.1", port)))
        async with asyncio.timeout(20):
            while bird.open_since is None:  # noqa: ASYNC110 - another task changes it
                await asyncio.sleep(0)
        assert bird.forbids
    async with asyncio.timeout(20):
        while bird.forbids:  # noqa: ASYNC110 - another task changes it
            await asyncio.sleep(0)
    assert bird.refuses is None
    watching.cancel()
    await asyncio.gather(watching, return_exceptions=True)


def test_one_failure_is_not_enough() -> None:
    """The network of a new pod fails before it is up, and is open before it is shut."""
    bird = Canary("Required")
    for connected, forbids in ((False, True), (True, True), (False, True), (False, False)):
        bird.tried(connected=connected)
        assert bird.forbids == forbids


def test_an_open_network_is_a_reason_only_after_a_while() -> None:
    now = 100.0
    bird = Canary("Required", clock=lambda: now)
    bird.tried(connected=True)
    assert (bird.forbids, bird.refuses) == (True, None)
    now += OPEN_SECONDS
    bird.tried(connected=True)
    assert bird.refuses is Reason.NETWORK_POLICY_NOT_ENFORCED
    for _ in range(2):
        bird.tried(connected=False)
    assert (bird.forbids, bird.refuses) == (False, None)


def test_a_network_that_opens_later_stops_the_work() -> None:
    bird = Canary("Required")
    for _ in range(2):
        bird.tried(connected=False)
    assert not bird.forbids
    bird.tried(connected=True)
    assert bird.forbids


@pytest.mark.parametrize("mode", ["Warn", "Off"])
def test_only_a_required_canary_forbids(mode: canary.Mode) -> None:
    bird = Canary(mode, clock=lambda: 0.0)
    bird.tried(connected=True)
    assert (bird.forbids, bird.refuses) == (False, None)


async def test_an_open_network_is_warned_of(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(canary, "OPEN_SECONDS", 0.0)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        outpost = canary.outpost("127.0.0.1", listener.getsockname()[1])
        watching = asyncio.create_task(canary.watch(Canary("Warn"), outpost))
        async with asyncio.timeout(20):
            while not caplog.records:  # noqa: ASYNC110 - another task changes it
                await asyncio.sleep(0)
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
    assert "NetworkPolicyNotEnforced" in caplog.text
    assert "Work is taken all the same." in caplog.text


async def test_a_canary_that_cannot_be_tried_any_more_forbids_work(
    caplog: pytest.LogCaptureFixture,
) -> None:
    bird = Canary("Required")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
    before = set(procfs.children(os.getpid()))
    outpost = canary.outpost("127.0.0.1", port)
    (child,) = set(procfs.children(os.getpid())) - before
    watching = asyncio.create_task(canary.watch(bird, outpost))
    async with asyncio.timeout(20):
        while bird.forbids:  # noqa: ASYNC110 - another task changes it
            await asyncio.sleep(0)
        os.kill(child, signal.SIGKILL)
        await watching
    assert bird.forbids
    assert "cannot be tried any more" in caplog.text


#: Binds a port of its own, makes an outpost and moves to a network of its own; then says whether
#: the outpost, and whether the process itself, reaches the port that its argument names.
AWAY = """
import asyncio, sys
from watercolour.render import canary, netns
outpost = canary.outpost("127.0.0.1", int(sys.argv[1]))
assert netns.enter() is None
print(asyncio.run(outpost.reached()), canary.connects("127.0.0.1", int(sys.argv[1])))
"""


@pytest.mark.skipif(not POSSIBLE, reason="needs network namespaces")
def test_an_outpost_tries_from_the_network_that_the_renderer_has_left() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = str(listener.getsockname()[1])
        told = subprocess.run([sys.executable, "-c", AWAY, port], capture_output=True, text=True)
    assert told.stdout.split() == ["True", "False"], told.stderr
