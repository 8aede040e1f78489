"""Start the processes of one training on this machine, and end as they end.

One process a GPU. The first of each machine answers on the given port; the first of all writes the
run's files. A signal is passed on to all. When one fails, the others, which would wait for it for
ever, get a little while to fail by themselves and are then ended.
"""

from __future__ import annotations

import faulthandler
import json
import logging
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from watercolour import logs
from watercolour.api.reasons import Reason
from watercolour.api.spec import RunSpec
from watercolour.train import last_words

log = logs.get(__name__)

PROGRAM = (sys.executable, "-m", "watercolour.train.run")
#: Where the processes of several pods meet; those of one take a free port.
PORT = 29_500
#: Seconds in which the others may end by themselves after one has failed, and after SIGTERM.
OTHERS_SECONDS, KILL_SECONDS = 20.0, 10.0


@dataclass
class _Child:
    rank: int
    process: subprocess.Popen[bytes]
    #: Readable once the process has ended.
    ended: int
    words: Path


def needed(spec: RunSpec, env: Mapping[str, str]) -> bool:
    """Whether this process is to start others instead of training itself."""
    return spec.trainer.processes * spec.trainer.replicas > 1 and "RANK" not in env


def run(
    arguments: Sequence[str],
    spec: RunSpec,
    termination_log: Path | None,
    program: Sequence[str] = PROGRAM,
) -> int:
    """Start the processes and wait for them; the exit status of the one that failed, or 0.

    Args:
        arguments: of the trainer's command line, given to each process.
        spec: the run's, for the number of processes and pods.
        termination_log: receives the last words of the process that ended the training.
        program: what is started.
    """
    with tempfile.TemporaryDirectory(prefix="watercolour-") as folder:
        children: list[_Child] = []

        def pass_on(number: int, _frame: FrameType | None) -> None:
            for child in children:
                child.process.send_signal(number)

        before = {n: signal.signal(n, pass_on) for n in (signal.SIGTERM, signal.SIGINT)}
        try:
            for local in range(spec.trainer.processes):
                child = _start(arguments, spec, local, Path(folder), program)
                # At once: a signal that comes now is passed on to it.
                children.append(child)
            first = _wait(children)
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
        if first.words.exists():
            last_words.write(termination_log, json.loads(first.words.read_text(encoding="utf-8")))
        return _status(first)


def program(main: Callable[[], int]) -> NoReturn:
    """Be a process of a training: run to the exit status, and end with it.

    A crash in native code says where in Python it came from. One of several processes ends at once,
    without taking Python apart: threads of torch's outlive the group that they served, and one that
    calls Python meanwhile aborts the process, so that an attempt that was over would count as one
    that crashed.
    """
    faulthandler.enable()
    status = main()
    if "RANK" in os.environ:
        logging.shutdown()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
    sys.exit(status)


def environment(spec: RunSpec, local: int, env: Mapping[str, str]) -> dict[str, str]:
    """What torch.distributed reads, for a process by its number on this machine."""
    count, pods = spec.trainer.processes, spec.trainer.replicas
    pod = int(env.get("JOB_COMPLETION_INDEX", "0"))
    return {
        "RANK": str(pod * count + local),
        "LOCAL_RANK": str(local),
        "WORLD_SIZE": str(pods * count),
        "LOCAL_WORLD_SIZE": str(count),
        "MASTER_ADDR": env.get("MASTER_ADDR", "127.0.0.1"),
        "MASTER_PORT": env.get("MASTER_PORT", str(PORT)),
    }


def _start(
    arguments: Sequence[str], spec: RunSpec, local: int, folder: Path, program: Sequence[str]
) -> _Child:
    if spec.trainer.replicas == 1 and local == 0:
        os.environ["MASTER_PORT"] = str(_free_port())
    words = folder / f"words-{local}"
    own = ["--termination-log", str(words)]
    if local:
        own += ["--port", "0", "--announce", str(folder / f"announce-{local}")]
    ranked = environment(spec, local, os.environ)
    process = subprocess.Popen([*program, *arguments, *own], env={**os.environ, **ranked})
    return _Child(int(ranked["RANK"]), process, os.pidfd_open(process.pid), words)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait(children: list[_Child]) -> _Child:
    """Wait for all; the one that failed, or the lowest rank."""
    running, failed = list(children), list[_Child]()
    until: float | None = None
    killed = False
    while running:
        left = None if until is None else max(0.0, until - time.monotonic())
        ready: list[Any]
        ready, _, _ = select.select([child.ended for child in running], [], [], left)
        for child in [child for child in running if child.ended in ready]:
            running.remove(child)
            child.process.wait()
            os.close(child.ended)
            if child.process.returncode:
                failed.append(child)
        if failed and until is None:
            until = time.monotonic() + OTHERS_SECONDS
        elif running and until is not None and not ready and time.monotonic() >= until:
            for child in running:
                log.error("rank %d waits for one that has failed; it is ended", child.rank)
                child.process.send_signal(signal.SIGKILL if killed else signal.SIGTERM)
            killed, until = True, time.monotonic() + KILL_SECONDS
    return _cause(failed) if failed else children[0]


def _cause(failed: Sequence[_Child]) -> _Child:
    """The one whose failure the others followed: it says why, or had no time to say anything."""
    return next((child for child in failed if _reason(child) != Reason.INTERNAL_ERROR), failed[0])


def _reason(child: _Child) -> str | None:
    if not child.words.exists():
        return None
    return json.loads(child.words.read_text(encoding="utf-8"))["reason"]


def _status(child: _Child) -> int:
    code = child.process.returncode
    return code if code >= 0 else 128 - code
