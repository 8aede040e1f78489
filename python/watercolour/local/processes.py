"""Service processes of a run: start, wait until ready, restart, stop, leave nothing behind."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

import httpx

from watercolour.api.errors import InfrastructureError, InputError, WatercolourError
from watercolour.api.reasons import Reason

GUARD = Path(__file__).with_name("guard.py")
#: How often an announce file or /readyz is looked at; a death wakes the wait at once.
LOOK_SECONDS = 0.05
#: What a guard gets to kill and reap everything below it.
KILL_SECONDS = 20.0
LOG_TAIL_LINES = 12
LAST_WORDS_LINES = 4
#: Whose error it is, which the component's name already says.
_PROGRAM = re.compile(r"^watercolour(\.[\w.]+)?: ")


@dataclass(frozen=True)
class Service:
    """How to start one component.

    ``command`` lacks ``--port`` and ``--announce``, which are added at every start.
    """

    name: str
    command: tuple[str, ...]
    restarts: int = 0
    stop_seconds: float = 15.0


@dataclass
class Process:
    """A started service with its guard."""

    service: Service
    guard: subprocess.Popen[bytes]
    pidfd: int
    log: Path
    log_start: int
    announce: Path
    url: str = ""
    restarts_left: int = 0
    log_kept: bool = True
    exit_code: int | None = None


def package_root() -> Path:
    """Folder that holds ``python/watercolour`` in a checkout, or site-packages' parent."""
    return Path(__file__).resolve().parents[3]


def renderer_python(chosen: Path | None = None) -> Path:
    """The interpreter of the renderer's environment.

    Looked for as ``.venv-render`` beside the package's checkout and beside the running environment;
    else it is the running one, if that holds the browser driver.

    Raises:
        InfrastructureError: there is none (BrowserMissing).
    """
    folders = (package_root(), Path(sys.prefix).parent)
    candidates = (
        [chosen] if chosen else [folder / ".venv-render" / "bin" / "python" for folder in folders]
    )
    for candidate in candidates:
        if candidate.exists():
            return candidate
    if chosen is None and importlib.util.find_spec("pyppeteer") is not None:
        return Path(sys.executable)
    raise InfrastructureError(
        Reason.BROWSER_MISSING,
        f"the renderer's environment is missing: no {candidates[0]}.",
        remedy="Run `make setup`, or name its interpreter with --renderer-python.",
    )


def tail(path: Path, start: int = 0, lines: int = LOG_TAIL_LINES) -> str:
    """The last lines of a log, from byte ``start`` on; empty when there are none."""
    try:
        with path.open("rb") as log:
            size = log.seek(0, os.SEEK_END)
            log.seek(max(start, size - 16_384))
            text = log.read().decode("utf-8", errors="replace")
    except FileNotFoundError:
        return ""
    return "\n".join(text.splitlines()[-lines:])


@dataclass
class Supervisor:
    """Owns every process of a run. Leaving the ``with`` block ends all of them.

    Each service lives under a guard (:mod:`watercolour.local.guard`) in a session of its own, so
    Ctrl-C at the terminal reaches this process alone, and the death of this process, even by
    SIGKILL, ends them all.

    Args:
        folder: gets ``<component>.log`` files and the announce files while starting.
        kept: whether the folder outlives this object, so that errors may point to it.
    """

    folder: Path
    kept: bool = True
    processes: dict[str, Process] = field(default_factory=dict[str, Process])
    restarted: dict[str, int] = field(default_factory=dict[str, int])

    def __enter__(self) -> Self:
        self.folder.mkdir(parents=True, exist_ok=True)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill()

    def start(self, service: Service) -> Process:
        """Start a service and return at once."""
        process = self._launch(service, port=0)
        process.restarts_left = service.restarts
        self.processes[service.name] = process
        return process

    def _launch(self, service: Service, port: int) -> Process:
        log = self.folder / f"{service.name}.log"
        announce = self.folder / f".{service.name}.announce"
        announce.unlink(missing_ok=True)
        command = [
            *(sys.executable, "-I", "-S", str(GUARD)),
            *service.command,
            *("--port", str(port), "--announce", str(announce)),
        ]
        with log.open("ab") as out:
            log_start = out.tell()
            guard = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env={**os.environ, "PYTHONUNBUFFERED": "1"},
            )
        pidfd = os.pidfd_open(guard.pid)
        return Process(service, guard, pidfd, log, log_start, announce, log_kept=self.kept)

    def wait_announced(self, names: Iterable[str], deadline_s: float) -> None:
        """Wait until each of the services has written its address, however short its life is.

        Raises:
            WatercolourError: one died (ComponentDied) or the deadline passed.
        """
        end = time.monotonic() + deadline_s
        for name in names:
            process = self.processes[name]
            while not process.url:
                ended = self.poll(process) is not None
                if process.announce.exists():
                    process.url = json.loads(process.announce.read_text())["url"]
                    process.announce.unlink()
                elif ended:
                    raise death(process)
                else:
                    self._pause(process, end, "has not started to listen", deadline_s)

    def wait_ready(self, names: Iterable[str], deadline_s: float) -> None:
        """Wait until each of the services answers 200 on /readyz.

        Raises:
            WatercolourError: one died (ComponentDied) or the deadline passed.
        """
        names = tuple(names)
        end = time.monotonic() + deadline_s
        self.wait_announced(names, deadline_s)
        with httpx.Client(timeout=5.0, trust_env=False) as http:
            for name in names:
                process = self.processes[name]
                while (said := _readiness(http, process.url)) != "ready":
                    self._require_alive(process)
                    self._pause(process, end, f"is not ready ({said})", deadline_s)

    def _pause(self, process: Process, end: float, state: str, deadline_s: float) -> None:
        if time.monotonic() > end:
            raise InfrastructureError(
                Reason.COMPONENT_DIED,
                f"{process.service.name} {state} after {deadline_s:.0f} s.",
                remedy=f"See {process.log}.",
            )
        self.wait(LOOK_SECONDS, [process])

    def _require_alive(self, process: Process) -> None:
        if self.poll(process) is not None:
            raise death(process)

    def poll(self, process: Process) -> int | None:
        """Exit status of the service, once it and all it started are gone; None while it lives."""
        if process.exit_code is None:
            process.exit_code = process.guard.poll()
            if process.exit_code is not None:
                os.close(process.pidfd)
                _close_stdin(process)
        return process.exit_code

    def wait(self, seconds: float, among: Iterable[Process] | None = None) -> None:
        """Wait for that long, or until one of the processes (default: any) ends."""
        poller = select.poll()
        for process in self.processes.values() if among is None else among:
            if self.poll(process) is None:
                poller.register(process.pidfd, select.POLLIN)
        poller.poll(max(0.0, seconds) * 1000)

    def restart_dead(self, names: Iterable[str]) -> list[str]:
        """Start again, at the same port, whichever of the named services has ended.

        Returns:
            The names of the services that were started again.

        Raises:
            WatercolourError: one has no restart left (ComponentDied).
        """
        again: list[str] = []
        for name in names:
            process = self.processes[name]
            if self.poll(process) is None:
                continue
            if not process.restarts_left:
                raise death(process)
            fresh = self._launch(process.service, port=int(process.url.rpartition(":")[2]))
            fresh.url = process.url
            fresh.restarts_left = process.restarts_left - 1
            self.processes[name] = fresh
            self.restarted[name] = self.restarted.get(name, 0) + 1
            again.append(name)
        return again

    def terminate(self, name: str) -> None:
        """Ask one service to end (SIGTERM). Returns at once."""
        process = self.processes[name]
        if self.poll(process) is None:
            process.guard.send_signal(signal.SIGTERM)

    def stop(self, names: Iterable[str]) -> None:
        """End services one after the other: SIGTERM, wait, and kill the tree when it is slow."""
        for name in names:
            if name not in self.processes:
                continue
            process = self.processes[name]
            self.terminate(name)
            end = time.monotonic() + process.service.stop_seconds
            while self.poll(process) is None and time.monotonic() < end:
                self.wait(end - time.monotonic(), [process])
            self._kill([process])

    def kill(self) -> None:
        """End every process at once. Harmless when repeated."""
        self._kill(list(self.processes.values()))

    def _kill(self, processes: list[Process]) -> None:
        for process in processes:
            _close_stdin(process)
        end = time.monotonic() + KILL_SECONDS
        for process in processes:
            while self.poll(process) is None and time.monotonic() < end:
                self.wait(end - time.monotonic(), [process])
            if self.poll(process) is None:
                # The guard hangs on a process that the kernel cannot end; its service dies with it.
                process.guard.kill()
                process.guard.wait()
                self.poll(process)
            process.announce.unlink(missing_ok=True)


def _close_stdin(process: Process) -> None:
    """The guard takes the end of its stdin as the order to kill."""
    if process.guard.stdin is not None:
        process.guard.stdin.close()


def death(process: Process) -> WatercolourError:
    """The error that tells of a component's end, with what it said last.

    A component that finds the input at fault says so and exits with status 1, as commands do; one
    that breaks ends with a traceback.
    """
    code = process.exit_code or 0
    text = tail(process.log, process.log_start)
    said = last_words(text)
    broken = "Traceback (most recent call last)" in text
    if code in (InputError.exit_code, InfrastructureError.exit_code) and said and not broken:
        kind = InputError if code == InputError.exit_code else InfrastructureError
        reason, words = _reason(said.splitlines()[-1])
        log = f"(Its log is {process.log}.)" if process.log_kept else ""
        return kind(reason, f"{process.service.name}: {words}", remedy=log)
    how = f"was killed by signal {code - 128}" if code > 128 else f"ended with exit status {code}"
    shown = "".join(f"\n  {line}" for line in said.splitlines())
    return InfrastructureError(
        Reason.COMPONENT_DIED,
        f"{process.service.name} {how}{f'; its log is {process.log}' if process.log_kept else ''}."
        + (f" It said last:{shown}" if said else ""),
    )


def _reason(line: str) -> tuple[Reason, str]:
    """A reason that leads the line and the rest, or COMPONENT_DIED and the whole line."""
    head, colon, rest = line.partition(": ")
    if colon and head in set(Reason):
        return Reason(head), rest
    return Reason.COMPONENT_DIED, line


def last_words(text: str) -> str:
    """The end of a log for a person: of structured lines the messages alone."""
    lines: list[str] = []
    for line in text.splitlines():
        try:
            record = json.loads(line)
        except ValueError:
            lines.append(line)
            continue
        said = record.get("message") if isinstance(record, dict) else None
        lines.append(str(said) if said else line)
    return "\n".join(_PROGRAM.sub("", line) for line in lines[-LAST_WORDS_LINES:])


def _readiness(http: httpx.Client, url: str) -> str:
    """'ready', or what the service says instead."""
    try:
        reply = http.get(f"{url}/readyz")
    except httpx.TransportError as error:
        return type(error).__name__
    return "ready" if reply.status_code == 200 else f"{reply.status_code}: {detail(reply.text)}"


def detail(body: str) -> str:
    """The sentence in problem details (RFC 9457), or the body as it is, shortened."""
    try:
        said = json.loads(body)
    except ValueError:
        said = None
    if isinstance(said, dict) and "detail" in said:
        return str(said["detail"])
    return body[:200]
