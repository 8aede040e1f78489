"""The process between a supervisor and one service, so that no orphan survives either of them.

Usage: ``python -I -S guard.py COMMAND…`` with the read end of a pipe as stdin. SIGTERM is passed on
to the command. When stdin closes – the supervisor wants everything gone, or is gone itself, however
it died – the command and every descendant are killed. When the command ends, what it left behind
is killed and its exit status becomes the guard's.

Being a child subreaper, the guard inherits every descendant whose parent dies: a Chromium that has
outlived its renderer is found and killed as well. Linux only. It imports the standard library
alone, and little of that, because one such process lives beside every service.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import sys

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
KILLED = 128 + signal.SIGKILL


def parents() -> dict[int, int]:
    """Parent of every process on the machine, by pid."""
    found: dict[int, int] = {}
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/stat", "rb") as stat:
                # The name, in parentheses, may hold spaces and parentheses itself.
                found[int(entry)] = int(stat.read().rpartition(b")")[2].split()[1])
        except (OSError, IndexError):
            continue
    return found


def descendants(root: int) -> list[int]:
    """Pids of all children, their children and so on, without the root."""
    children: dict[int, list[int]] = {}
    for pid, parent in parents().items():
        children.setdefault(parent, []).append(pid)
    found: list[int] = []
    waiting = [root]
    while waiting:
        below = children.get(waiting.pop(), [])
        found += below
        waiting += below
    return found


def kill_descendants() -> None:
    """Kill and reap until this process has no child left."""
    while True:
        for pid in descendants(os.getpid()):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def start(command: list[str]) -> int:
    """Pid of the command: its own process group, killed should this guard be killed."""
    pid = os.fork()
    if pid:
        return pid
    try:
        os.setpgid(0, 0)
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        for handled in (signal.SIGTERM, signal.SIGCHLD, signal.SIGINT):
            signal.signal(handled, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, [])
        os.execvp(command[0], command)
    except OSError as error:
        os.write(2, f"cannot start {command[0]}: {error.strerror}\n".encode())
    finally:
        os._exit(127)


def reap(service: int) -> int | None:
    """Reap whatever has ended; the service's exit status once it is among it."""
    status: int | None = None
    while True:
        try:
            pid, code = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return status
        if pid == 0:
            return status
        if pid == service:
            exit_code = os.waitstatus_to_exitcode(code)
            status = exit_code if exit_code >= 0 else 128 - exit_code


def main(command: list[str]) -> int:
    """Start the command, wait for its end or the supervisor's; return the exit status."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)
    woken, wake = os.pipe()
    os.set_blocking(woken, False)
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    # Until the pid is known, a signal waits.
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM, signal.SIGCHLD])
    service = start(command)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.signal(signal.SIGTERM, lambda *_: os.kill(service, signal.SIGTERM))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM, signal.SIGCHLD])
    while True:
        ready, _, _ = select.select([0, woken], [], [])
        if woken in ready:
            os.read(woken, 4096)
        status = reap(service)
        if status is None and 0 in ready and not os.read(0, 1):
            status = KILLED
        if status is not None:
            # From here on the pid may be another's.
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            kill_descendants()
            return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
