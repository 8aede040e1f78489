from __future__ import annotations

import json
import os
import re
import select
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from watercolour.api import InfrastructureError, InputError
from watercolour.local import processes
from watercolour.local.guard import descendants
from watercolour.local.processes import Process, Service, Supervisor

STAND_IN = Path(__file__).with_name("stand_in.py")
DEADLINE = 30.0


def service(mode: str = "serve", *, restarts: int = 0, stop_seconds: float = 10.0) -> Service:
    command = (sys.executable, str(STAND_IN), mode)
    return Service(mode, command, restarts=restarts, stop_seconds=stop_seconds)


@pytest.fixture
def supervisor(tmp_path: Path) -> Iterator[Supervisor]:
    with Supervisor(tmp_path / "logs") as running:
        yield running


def child_of(process: Process) -> int:
    """Pid of the process that the stand-in left behind."""
    found = re.findall(r"child=(\d+)", process.log.read_text())
    return int(found[-1])


def service_pid(process: Process) -> int:
    """Pid of the service itself: the guard's only child."""
    return descendants(process.guard.pid)[0]


def gone(pid: int, within_s: float = DEADLINE) -> bool:
    """Whether the process ends in time; the kernel wakes us, nothing is polled."""
    try:
        pidfd = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([pidfd], [], [], within_s)[0])
    finally:
        os.close(pidfd)


def test_a_ready_service_is_reached_at_its_announced_address(supervisor: Supervisor) -> None:
    supervisor.start(service())
    supervisor.wait_ready(["serve"], DEADLINE)
    url = supervisor.processes["serve"].url
    assert httpx.get(f"{url}/readyz", trust_env=False).status_code == 200


def test_stopping_kills_what_the_service_left_behind(supervisor: Supervisor) -> None:
    process = supervisor.start(service())
    supervisor.wait_announced(["serve"], DEADLINE)
    child = child_of(process)
    supervisor.stop(["serve"])
    assert process.exit_code == 128 + signal.SIGTERM
    assert not descendants(os.getpid())
    assert gone(child, 0)


def test_a_service_deaf_to_sigterm_is_killed(supervisor: Supervisor) -> None:
    process = supervisor.start(service("deaf", stop_seconds=0.2))
    supervisor.wait_announced(["deaf"], DEADLINE)
    supervisor.stop(["deaf"])
    assert process.exit_code == 128 + signal.SIGKILL
    assert gone(child_of(process), 0)


def test_stopping_twice_is_harmless(supervisor: Supervisor) -> None:
    supervisor.start(service())
    supervisor.wait_announced(["serve"], DEADLINE)
    supervisor.stop(["serve", "never started"])
    supervisor.stop(["serve"])
    supervisor.kill()


def test_a_killed_service_is_restarted_at_the_same_address(supervisor: Supervisor) -> None:
    process = supervisor.start(service(restarts=1))
    supervisor.wait_ready(["serve"], DEADLINE)
    url, child = process.url, child_of(process)
    os.kill(service_pid(process), signal.SIGKILL)
    assert gone(process.guard.pid)
    assert gone(child, 0), "the guard ends only after everything below it"
    assert supervisor.restart_dead(["serve"]) == ["serve"]
    supervisor.wait_ready(["serve"], DEADLINE)
    assert supervisor.processes["serve"].url == url
    assert supervisor.restarted == {"serve": 1}


def test_restarts_are_bounded(supervisor: Supervisor) -> None:
    process = supervisor.start(service(restarts=0))
    supervisor.wait_ready(["serve"], DEADLINE)
    os.kill(service_pid(process), signal.SIGKILL)
    assert gone(process.guard.pid)
    with pytest.raises(InfrastructureError, match="serve was killed by signal 9") as caught:
        supervisor.restart_dead(["serve"])
    assert caught.value.reason == "ComponentDied"


def test_nothing_is_restarted_while_all_live(supervisor: Supervisor) -> None:
    supervisor.start(service(restarts=5))
    supervisor.wait_announced(["serve"], DEADLINE)
    assert supervisor.restart_dead(["serve"]) == []


def test_death_ends_the_wait_at_once_with_the_last_words(supervisor: Supervisor) -> None:
    supervisor.start(service("die"))
    with pytest.raises(InfrastructureError, match=r"status 7;[^\n]*\n  no browser here"):
        # Not the deadline but the death ends it: the deadline is longer than any test may run.
        supervisor.wait_ready(["die"], 36_000)


def test_a_component_that_blames_the_input_is_an_input_error(supervisor: Supervisor) -> None:
    supervisor.start(service("refuse"))
    with pytest.raises(InputError, match=r"^refuse: spec\.x=1: wrong\. \(Its"):
        supervisor.wait_ready(["refuse"], 36_000)


def test_a_service_that_stays_unready_is_an_error_that_says_so(supervisor: Supervisor) -> None:
    supervisor.start(service("loading"))
    supervisor.wait_announced(["loading"], DEADLINE)
    with pytest.raises(InfrastructureError, match=r"loading is not ready \(503: loading\)"):
        supervisor.wait_ready(["loading"], 0.2)


def test_a_missing_interpreter_is_told(supervisor: Supervisor) -> None:
    supervisor.start(Service("ghost", ("/nowhere/python",)))
    with pytest.raises(InfrastructureError, match="cannot start /nowhere/python: No such file"):
        supervisor.wait_ready(["ghost"], DEADLINE)


def test_an_error_in_the_block_leaves_no_process(tmp_path: Path) -> None:
    def crash() -> None:
        with Supervisor(tmp_path) as running:
            running.start(service())
            running.wait_announced(["serve"], DEADLINE)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        crash()
    assert not descendants(os.getpid())


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_nothing_outlives_a_supervisor_that_is_killed(tmp_path: Path, number: int) -> None:
    script = textwrap.dedent(
        f"""
        import signal, sys
        from pathlib import Path
        from watercolour.local.processes import Service, Supervisor
        with Supervisor(Path({str(tmp_path)!r})) as running:
            running.start(Service("serve", (sys.executable, {str(STAND_IN)!r}, "deaf")))
            running.wait_announced(["serve"], {DEADLINE})
            print("up", flush=True)
            signal.pause()
        """
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) as supervising:
        assert supervising.stdout is not None
        assert supervising.stdout.readline() == b"up\n"
        below = descendants(supervising.pid)
        assert len(below) == 3, "guard, service and the service's child"
        supervising.send_signal(number)
    assert all(gone(pid) for pid in below)


def test_a_killed_guard_takes_its_service_with_it(supervisor: Supervisor) -> None:
    process = supervisor.start(service())
    supervisor.wait_announced(["serve"], DEADLINE)
    pid = service_pid(process)
    os.kill(process.guard.pid, signal.SIGKILL)
    assert gone(pid)
    os.kill(child_of(process), signal.SIGKILL)


def test_last_words_of_structured_logs_are_the_messages() -> None:
    assert processes.last_words("watercolour.env.server: gone.") == "gone."

    lines = [json.dumps({"level": "info", "message": "a"}), "plain", json.dumps([1]), "{broken"]
    assert processes.last_words("\n".join(lines)) == "a\nplain\n[1]\n{broken"


def test_problem_details_are_told_as_a_sentence() -> None:
    assert processes.detail('{"title": "x", "detail": "still loading"}') == "still loading"
    assert processes.detail("plain") == "plain"
    assert processes.detail('{"renderer": false}') == '{"renderer": false}'


def test_the_tail_of_a_log_starts_at_the_last_start(tmp_path: Path) -> None:
    log = tmp_path / "x.log"
    log.write_text("old\n")
    start = log.stat().st_size
    with log.open("a") as out:
        out.write("new\n")
    assert processes.tail(log, start) == "new"
    assert processes.tail(tmp_path / "absent") == ""


def test_a_chosen_renderer_environment_must_exist(tmp_path: Path) -> None:
    with pytest.raises(InfrastructureError, match="make setup"):
        processes.renderer_python(tmp_path / "python")
    assert processes.renderer_python(Path(sys.executable)) == Path(sys.executable)


def test_waiting_returns_when_a_process_ends(supervisor: Supervisor) -> None:
    process = supervisor.start(service("die"))
    began = time.monotonic()
    supervisor.wait(36_000)
    assert supervisor.poll(process) == 7
    assert time.monotonic() - began < 36_000
