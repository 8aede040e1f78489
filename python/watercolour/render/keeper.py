"""The process between a renderer and one browser, so that nothing of it survives either of them.

Usage: ``python -I -m watercolour.render.keeper ORDER`` with the read end of a pipe as stdin, where
ORDER is an :class:`Order` as JSON. It starts the browser unprivileged, writes its process id to
stdout, and waits. When the browser ends, or stdin closes – the renderer wants it gone, or is gone
itself, however it died – every process that is left of the browser is killed and reaped; with
stdin closed its control group and its folder go as well. Being a child subreaper, the keeper
inherits every process whose parent dies: none gets away, whatever group, session or namespace
Chromium has put it into. Should the keeper itself be killed, the kernel kills the browser, and the
renderer does the rest.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import resource
import select
import shutil
import signal
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal

from watercolour.render import cgroup, procfs

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36

#: Bounds of every process of the browser. Address space is not among them: Chromium reserves
#: terabytes. Files are pipes, sockets, shared memory; a file holds a buffer or a profile's data.
LIMITS = {
    resource.RLIMIT_CORE: 0,
    resource.RLIMIT_FSIZE: 2**30,
    resource.RLIMIT_NOFILE: 8192,
}

_LIBC = ctypes.CDLL(None)


@dataclass(frozen=True)
class Order:
    """What to start and how.

    Attributes:
        command: the browser's.
        environment: all of it.
        home: its folder, which is removed if the renderer dies before it.
        user: user and group id to start it as; None for this process's own.
        version, folders: its control group, if there are folders.
        processes: how many its user may have in its user namespace; None for no bound.
    """

    command: list[str]
    environment: dict[str, str]
    home: str
    user: int | None = None
    version: Literal[1, 2] = 2
    folders: list[str] = field(default_factory=list[str])
    processes: int | None = None

    def encoded(self) -> str:
        """As the keeper's argument."""
        return json.dumps(asdict(self))

    def group(self) -> cgroup.Group | None:
        """Its control group."""
        if not self.folders:
            return None
        return cgroup.Group(self.version, tuple(map(Path, self.folders)))


def become_subreaper() -> None:
    """From now on, processes below this one whose parent dies become its children."""
    _LIBC.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def start(order: Order) -> int:
    """Start the browser; its process id, which is its group's as well."""
    keeper = os.getpid()
    browser = os.fork()
    if browser:
        return browser
    try:
        _become(order, keeper)
        os.execve(order.command[0], order.command, order.environment)
    except OSError as error:
        os.write(2, f"{order.command[0]}: {error.strerror}\n".encode())
    finally:
        os._exit(127)


def _become(order: Order, keeper: int) -> None:
    """In the child: bounded, unprivileged, alone, and mortal.

    Raises:
        OSError: the kernel refuses.
    """
    group = order.group()
    if group is not None:
        group.join()
    limits = dict(LIMITS)
    if order.processes is not None:
        limits[resource.RLIMIT_NPROC] = order.processes
    for which, most in limits.items():
        allowed = resource.getrlimit(which)[1]
        most = most if allowed == resource.RLIM_INFINITY else min(most, allowed)
        resource.setrlimit(which, (most, most))
    if order.user is not None:
        os.setgroups([])
        os.setresgid(order.user, order.user, order.user)
        os.setresuid(order.user, order.user, order.user)
    os.setsid()
    for number in (signal.SIGCHLD, signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(number, signal.SIG_DFL)
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(nothing, 1)
    os.chdir(order.home)
    # After the change of user, which takes it away.
    _LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != keeper:
        os._exit(127)


def wait(browser: int, woken: int) -> tuple[int | None, bool]:
    """Reap until the browser has ended or stdin is closed.

    Returns:
        The browser's exit status, None while it runs; whether the renderer has gone.
    """
    while True:
        ready, _, _ = select.select([0, woken], [], [])
        if woken in ready:
            os.read(woken, 4096)
        gone = 0 in ready and not os.read(0, 1)
        status = _reaped(browser)
        if status is not None or gone:
            return status, gone


def _reaped(browser: int) -> int | None:
    """Reap whatever has ended; the browser's exit status once it is among it."""
    status: int | None = None
    with contextlib.suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG)) != (0, 0):
            if ended[0] == browser:
                code = os.waitstatus_to_exitcode(ended[1])
                status = code if code >= 0 else 128 - code
    return status


def bury() -> None:
    """Kill and reap until this process has no child left."""
    with contextlib.suppress(ChildProcessError):
        while True:
            for pid in procfs.descendants(os.getpid()):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            os.waitpid(-1, 0)
            while os.waitpid(-1, os.WNOHANG) != (0, 0):
                pass


def main(argument: str) -> int:
    """Keep one browser; its exit status."""
    order = Order(**json.loads(argument))
    become_subreaper()
    woken, wake = os.pipe()
    os.set_blocking(woken, False)
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    browser = start(order)
    os.write(1, f"{browser}\n".encode())
    status, gone = wait(browser, woken)
    group = order.group()
    if group is not None:
        group.kill()
    bury()
    if gone:
        if group is not None:
            group.remove()
        shutil.rmtree(order.home, ignore_errors=True)
    return 128 + signal.SIGKILL if status is None else status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
