"""Processes that tell others of a run while it trains. None of them can harm it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from watercolour import logs
from watercolour.api.spec import RunSpec

log = logs.get(__name__)

#: Variables that hold secrets; each process gets its own alone.
SECRETS = frozenset({"HF_TOKEN", "WATERCOLOUR_PUSH_TOKEN", "TRACKIO_WRITE_TOKEN"})
#: Seconds that they may take to send what is left: after the last step, and when the run was
#: stopped before, where whoever stopped it waits.
CLOSING_SECONDS, STOPPED_SECONDS = 300.0, 30.0


@dataclass(frozen=True)
class Companion:
    """A process that reads a run's folder, and ends soon after its standard input has ended."""

    module: str
    secrets: frozenset[str]


TRACKER = Companion("watercolour.train.track", frozenset({"TRACKIO_WRITE_TOKEN"}))
PUSHER = Companion("watercolour.gallery.push", frozenset({"HF_TOKEN", "WATERCOLOUR_PUSH_TOKEN"}))
#: Starts when the others are to end: it shows what there is then.
REPORTER = Companion("watercolour.gallery.closing", frozenset())


def wanted(spec: RunSpec) -> list[Companion]:
    """Those that a specification asks for."""
    asked = {TRACKER: spec.tracking.trackio, PUSHER: spec.artifacts.hub}
    return [companion for companion, how in asked.items() if how is not None]


@contextmanager
def beside(
    spec: RunSpec, spec_file: Path, out: Path, *, anew: bool, report: bool = False
) -> Generator[None]:
    """Keep them beside the block.

    Args:
        spec: the run's.
        spec_file: the file that it came from.
        out: the run's folder.
        anew: this is no attempt that goes on from another.
        report: leave report.html in the folder, however the block ends.
    """
    words = ["--spec", str(spec_file), "--out", str(out), *(["--anew"] if anew else [])]
    running = [_start(companion, words, os.environ) for companion in wanted(spec)]
    seconds = STOPPED_SECONDS
    try:
        yield
        seconds = CLOSING_SECONDS
    finally:
        if report:
            running += _last(out)
        _close(running, seconds)


def _last(out: Path) -> list[subprocess.Popen[bytes]]:
    try:
        return [_start(REPORTER, ["--out", str(out)], os.environ)]
    except OSError as error:
        log.warning("no report: %s", error)
        return []


def _start(
    companion: Companion, words: list[str], env: Mapping[str, str]
) -> subprocess.Popen[bytes]:
    hidden = SECRETS - companion.secrets
    return subprocess.Popen(
        [sys.executable, "-m", companion.module, *words],
        stdin=subprocess.PIPE,
        # A Ctrl-C at the terminal is the trainer's to answer.
        start_new_session=True,
        env={name: value for name, value in env.items() if name not in hidden},
    )


def _close(running: list[subprocess.Popen[bytes]], seconds: float) -> None:
    """Let them send what is left, all at the same time."""
    until = time.monotonic() + seconds
    for process in running:
        assert process.stdin is not None
        process.stdin.close()
    for process in running:
        try:
            process.wait(max(0.0, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            log.warning("%s takes longer than %d s and is ended", process.args, seconds)
            process.kill()
            process.wait()
