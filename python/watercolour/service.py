"""What every server process of the project does alike: bind, announce, serve, stop.

A parent that starts a server on port 0 learns the address from the announce file, which is
written, whole, once the socket listens.
"""

from __future__ import annotations

import argparse
import asyncio
import errno
import json
import os
import signal
import socket
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

import uvicorn
from fastapi import FastAPI

from watercolour.api.errors import InfrastructureError, InputError, WatercolourError
from watercolour.api.reasons import Reason

#: Seconds that open requests get after SIGTERM before their connections are closed.
GRACE_SECONDS = 10

#: The same, once they have been waited for already.
DRAINED_SECONDS = 1

#: How often a draining server looks whether a second signal has come.
LOOK_SECONDS = 0.1

#: Waits, for a limited time, until a server's work is done.
Drain = Callable[[], Awaitable[None]]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add --host, --port and --announce."""
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument(
        "--announce", type=Path, help="file that receives {url, pid} once the socket listens"
    )


def listen(host: str, port: int) -> socket.socket:
    """A bound TCP socket.

    Raises:
        InputError: the port is taken (PortInUse).
        InfrastructureError: the address cannot be bound for another cause.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((host, port))
    except OSError as error:
        bound.close()
        if error.errno == errno.EADDRINUSE:
            raise InputError(
                Reason.PORT_IN_USE,
                f"--port={port}: another process listens on {host}:{port}.",
                remedy="Choose another port, or 0 for a free one.",
                field="port",
                value=port,
            ) from error
        raise InfrastructureError(
            Reason.INTERNAL_ERROR, f"cannot listen on {host}:{port}: {error.strerror}."
        ) from error
    return bound


def listen_at(path: Path) -> socket.socket:
    """A bound Unix socket for this user alone, in the place of one that a dead process has left.

    Unlike an address it is found from every network namespace that sees the file.

    Raises:
        InfrastructureError: it cannot be made there.
    """
    bound = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        path.unlink(missing_ok=True)
        bound.bind(str(path))
        path.chmod(0o600)
    except OSError as error:
        bound.close()
        raise InfrastructureError(
            Reason.INTERNAL_ERROR, f"cannot listen at {path}: {error.strerror}."
        ) from error
    return bound


def announce(path: Path, url: str) -> None:
    """Write the address atomically: a reader sees nothing or all of it."""
    part = path.with_name(f".{path.name}.{os.getpid()}")
    part.write_text(json.dumps({"url": url, "pid": os.getpid()}) + "\n")
    part.replace(path)


class _Server(uvicorn.Server):
    """Announces once uvicorn has finished its start-up; SIGTERM is an order and no failure."""

    def __init__(
        self,
        config: uvicorn.Config,
        path: Path | None,
        url: str,
        drain: Drain | None,
        *,
        refuses: bool,
    ) -> None:
        super().__init__(config)
        self._path = path
        self._url = url
        self._drain = drain
        self._refuses = refuses

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started and self._path is not None:
            announce(self._path, self._url)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        if self._drain is not None:
            if not self._refuses:
                # Nobody listens from here on, so that clients wait for the server that comes next.
                for server in self.servers:
                    server.close()
            await self._drained(self._drain)
        await super().shutdown(sockets)

    async def _drained(self, drain: Drain) -> None:
        """Wait until the work is done, or a second signal says not to."""
        draining = asyncio.ensure_future(drain())
        while not draining.done() and not self.force_exit:
            await asyncio.wait({draining}, timeout=LOOK_SECONDS)
        draining.cancel()

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        with super().capture_signals():
            yield
            # uvicorn would now die of the signal that it has obeyed.
            self._captured_signals = [
                number for number in self._captured_signals if number != signal.SIGTERM
            ]


def serve(
    app: FastAPI,
    args: argparse.Namespace,
    *,
    websockets: bool = False,
    grace_seconds: int = GRACE_SECONDS,
    drain: Drain | None = None,
    refuses: bool = False,
    bound: socket.socket | None = None,
    also: Sequence[socket.socket] = (),
) -> None:
    """Serve until SIGTERM or SIGINT, then let open requests end for up to ``grace_seconds``.

    It returns after SIGTERM; after SIGINT it raises what an interrupted program raises. ``drain``
    takes the place of that grace: it is awaited while sockets are open and nobody listens, or, with
    ``refuses``, while who comes late still gets an answer, which has to say no. ``bound`` is what
    :func:`listen` made for these arguments, if that had to be done before; ``also`` are further
    sockets to serve.

    Raises:
        KeyboardInterrupt: SIGINT ended it.
        InputError: the port is taken (PortInUse).
        WatercolourError: the application gave up.
    """
    bound = bound or listen(args.host, args.port)
    host = f"[{args.host}]" if ":" in args.host else args.host
    url = f"http://{host}:{bound.getsockname()[1]}"
    config = uvicorn.Config(
        app,
        ws="websockets-sansio" if websockets else "none",
        ws_max_size=64 * 2**20,
        log_config=None,
        access_log=False,
        timeout_graceful_shutdown=grace_seconds if drain is None else DRAINED_SECONDS,
    )
    app.state.server = _Server(config, args.announce, url, drain, refuses=refuses)
    try:
        app.state.server.run(sockets=[bound, *also])
    finally:
        for each in (bound, *also):
            each.close()
    failure: WatercolourError | None = getattr(app.state, "failure", None)
    if failure is not None:
        raise failure


def give_up(app: FastAPI, error: WatercolourError) -> None:
    """End the server from inside, with an error that ``serve`` then raises.

    For what can never heal, such as weights that do not load: a process that has ended tells its
    parent at once, and one that answers 503 for ever does not.
    """
    app.state.failure = error
    server: _Server | None = getattr(app.state, "server", None)
    if server is not None:
        server.should_exit = True
