"""Programs that a test session starts; none outlives it, not even one ended by SIGKILL."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

# The kernel sends the death signal when the *thread* that started the child ends, so all children
# are started from one thread that lives as long as the process.
_spawner = ThreadPoolExecutor(max_workers=1, thread_name_prefix="spawner")


@dataclass
class Program:
    """A running child and the file that holds what it printed."""

    name: str
    log: Path
    process: subprocess.Popen[bytes]

    @property
    def pid(self) -> int:
        """Its process id."""
        return self.process.pid

    def alive(self) -> bool:
        """Whether it still runs."""
        return self.process.poll() is None

    def tail(self, lines: int = 30) -> str:
        """The end of what it printed, for an error message."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])

    def stop(self, sig: signal.Signals = signal.SIGTERM, grace: float = 5.0) -> int:
        """Signal it, kill it after `grace` seconds, and return its exit code. Harmless twice."""
        if self.alive():
            self.process.send_signal(sig)
        try:
            return self.process.wait(grace)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()


def start(
    name: str,
    command: Sequence[str | Path],
    log: Path,
    *,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> Program:
    """Start a child that the kernel kills when this process dies; `log` gets its output."""

    def spawn() -> subprocess.Popen[bytes]:
        with log.open("ab") as output:
            return subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", "--", *map(str, command)],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=dict(env) if env is not None else os.environ.copy(),
                cwd=cwd,
                start_new_session=True,
            )

    return Program(name, log, _spawner.submit(spawn).result())


def free_ports(count: int) -> list[int]:
    """Ports of 127.0.0.1 that nothing listens on at the moment."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()


def wait_until(condition: Callable[[], bool], timeout: float) -> bool:
    """Poll what no one announces (the end of another's process), for at most `timeout` seconds."""
    give_up = time.monotonic() + timeout
    while not condition():
        if time.monotonic() > give_up:
            return False
        time.sleep(0.02)
    return True
