"""The renderer's canary: one address that must not be reachable, tried before any work is taken.

A NetworkPolicy alone leaves a new pod open for about 0.7 s (measured), and on a cluster whose
network enforces none for ever. So a renderer tries to reach the address, again and again, until it
is refused or gets no answer; and looks again now and then.
"""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from watercolour import logs
from watercolour.api.errors import InputError
from watercolour.api.reasons import Reason

log = logs.get(__name__)

Mode = Literal["Required", "Warn", "Off"]

#: Seconds in which a connection comes, if it comes: within a cluster it takes a millisecond.
CONNECT_SECONDS = 0.5
#: Seconds between two tries while the address is reached, and once it is not.
AGAIN_SECONDS, SHUT_AGAIN_SECONDS = 0.2, 60.0
#: Failures in a row that count as shut: the network of a new pod fails before it is up.
SHUT_IN_A_ROW = 2
#: Seconds of reaching it after which no policy is to be hoped for.
OPEN_SECONDS = 5.0


def parse(text: str) -> tuple[str, int]:
    """Host and port of ``IP:PORT``; an IPv6 address with or without brackets.

    Raises:
        InputError: it is not of that form.
    """
    host, _, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise InputError(
            Reason.INVALID_INPUT,
            f"--canary-address={text}: not an address and a port.",
            remedy="Name one that the network policy forbids, such as 10.96.0.1:443.",
            field="canary-address",
            value=text,
        )
    return host, int(port)


@dataclass(frozen=True)
class Outpost:
    """A child that stays in the network it was made in and tries the address from there.

    The renderer itself may move to a network of its own, from which nothing can be reached and the
    network policy of a pod cannot be told from a missing one.

    Attributes:
        host, port: the address.
    """

    host: str
    port: int
    line: socket.socket

    async def reached(self) -> bool:
        """Whether a TCP connection can be made, tried now.

        Raises:
            ConnectionError: the child has gone.
        """
        loop = asyncio.get_running_loop()
        await loop.sock_sendall(self.line, b"?")
        answer = await loop.sock_recv(self.line, 1)
        if not answer:
            raise ConnectionResetError("the canary's process has gone")
        return answer == b"1"


def outpost(host: str, port: int) -> Outpost:
    """Start the child, before this process has threads; it ends when this process does."""
    here, there = socket.socketpair()
    if os.fork() == 0:
        try:
            # Nothing that this process holds open is held open by the child.
            os.closerange(3, there.fileno())
            os.closerange(there.fileno() + 1, os.sysconf("SC_OPEN_MAX"))
            os.setsid()
            while there.recv(1):
                there.send(b"1" if connects(host, port) else b"0")
        except OSError:
            pass  # The renderer has gone: so does this.
        finally:
            os._exit(0)
    there.close()
    here.setblocking(False)
    return Outpost(host, port, here)


def connects(host: str, port: int) -> bool:
    """Whether a TCP connection can be made within :data:`CONNECT_SECONDS`."""
    try:
        socket.create_connection((host, port), CONNECT_SECONDS).close()
    except OSError:
        return False
    return True


@dataclass
class Canary:
    """What is known of the address.

    Attributes:
        mode: what follows from reaching it.
        open_since: since when it is reached, by ``clock``; None while it is not.
        shut: it was refused, or did not answer, when last tried.
    """

    mode: Mode = "Off"
    open_since: float | None = None
    shut: bool = False
    clock: Callable[[], float] = time.monotonic
    _failures: int = field(default=0)

    @property
    def forbids(self) -> bool:
        """Whether no work may be taken now."""
        return self.mode == "Required" and not self.shut

    @property
    def refuses(self) -> Reason | None:
        """Why no work is ever to be expected; None while it may still come, or does."""
        if not self.forbids or self.open_since is None:
            return None
        lasted = self.clock() - self.open_since
        return Reason.NETWORK_POLICY_NOT_ENFORCED if lasted >= OPEN_SECONDS else None

    def tried(self, *, connected: bool) -> None:
        """Take in a try."""
        if connected:
            self._failures, self.shut = 0, False
            if self.open_since is None:
                self.open_since = self.clock()
            return
        self.open_since = None
        self._failures += 1
        self.shut = self._failures >= SHUT_IN_A_ROW


async def watch(canary: Canary, outpost: Outpost) -> None:
    """Try the address for ever; not at all in mode Off.

    Should the outpost's process be killed, nothing more is known, and that forbids work as an open
    network does.
    """
    warned = False
    while canary.mode != "Off":
        before = canary.shut
        try:
            connected = await outpost.reached()
        except ConnectionError as error:
            log.error("the canary cannot be tried any more: %s", error)
            canary.shut = False
            return
        canary.tried(connected=connected)
        if canary.shut and not before:
            log.info("%s:%d is out of reach, as it has to be", outpost.host, outpost.port)
        elif not canary.shut and (before or (_long_open(canary) and not warned)):
            warned = True
            log.warning(
                "%s: %s:%d can be reached: the cluster's network enforces no policy. %s",
                Reason.NETWORK_POLICY_NOT_ENFORCED,
                outpost.host,
                outpost.port,
                "No work is taken." if canary.mode == "Required" else "Work is taken all the same.",
            )
        await asyncio.sleep(SHUT_AGAIN_SECONDS if canary.shut else AGAIN_SECONDS)


def _long_open(canary: Canary) -> bool:
    since = canary.open_since
    return since is not None and canary.clock() - since >= OPEN_SECONDS
