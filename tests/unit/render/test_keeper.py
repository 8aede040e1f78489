"""A keeper and a browser that is a small program: nothing of it survives its guardians."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from watercolour.render import cgroup, keeper, procfs

ROOT = os.geteuid() == 0
PARENT = cgroup.prepare() if ROOT else "not root"

#: Leaves a process in a session of its own whose parent has ended, as Chromium does.
SCATTERED = """
(setsid sh -c 'sleep 600 & touch one; sleep 600' &)
(setsid sh -c 'touch two; exec sleep 600' &)
while ! [ -e one -a -e two ]; do sleep 0.01; done
touch ready
exec sleep 600
"""


@contextmanager
def kept(
    home: Path, script: str, **more: Any
) -> Generator[tuple[subprocess.Popen[bytes], int, list[int]]]:
    """A keeper, its browser's process id, and every process below it once they are ready."""
    home.mkdir(exist_ok=True)
    if more.get("user") is not None:
        for folder in (home, *home.parents):
            if folder.owner() == "root" and folder.stat().st_mode & 0o777 == 0o700:
                folder.chmod(0o711)
        os.chown(home, more["user"], more["user"])
    order = keeper.Order(
        ["/bin/sh", "-c", script], {"PATH": "/usr/bin:/bin", "HOME": str(home)}, str(home), **more
    )
    process = subprocess.Popen(
        [sys.executable, "-I", "-m", keeper.__name__, order.encoded()],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert process.stdout is not None
    try:
        browser = int(process.stdout.readline())
        until(lambda: (home / "ready").exists() or process.poll() is not None)
        yield process, browser, procfs.descendants(process.pid)
    finally:
        if process.poll() is None:
            process.communicate(timeout=60)


def until(condition: Callable[[], object]) -> None:
    """Wait for something that another process does."""
    give_up = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < give_up
        time.sleep(0.01)


def running(pids: list[int]) -> list[int]:
    """Those that have neither ended nor wait to be reaped."""
    return [pid for pid in pids if procfs.kind(pid)]


def close(process: subprocess.Popen[bytes]) -> int:
    """End the renderer's side; the keeper's exit status."""
    assert process.stdin is not None
    process.stdin.close()
    return process.wait(60)


def test_when_the_renderer_goes_everything_goes(tmp_path: Path) -> None:
    with kept(tmp_path / "home", SCATTERED) as (process, browser, family):
        assert browser in family
        assert len(family) >= 4
        assert close(process) == 128 + signal.SIGKILL
        assert running(family) == []
        assert not (tmp_path / "home").exists()


def test_when_the_browser_ends_the_rest_is_killed_and_the_folder_is_the_renderers(
    tmp_path: Path,
) -> None:
    script = SCATTERED.replace("exec sleep 600", 'read line <"$HOME/end"; exit 7')
    (tmp_path / "home").mkdir()
    os.mkfifo(tmp_path / "home" / "end")
    with kept(tmp_path / "home", script) as (process, _, family):
        with (tmp_path / "home" / "end").open("w") as end:
            end.write("now\n")
        assert process.wait(60) == 7
        assert running(family) == []
        assert (tmp_path / "home").exists()


def test_when_the_keeper_is_killed_the_kernel_kills_the_browser(tmp_path: Path) -> None:
    with kept(tmp_path / "home", "touch ready; exec sleep 600") as (process, browser, _):
        process.kill()
        process.wait(10)
        until(lambda: running([browser]) == [])


def test_a_keeper_outlives_what_is_meant_for_others(tmp_path: Path) -> None:
    with kept(tmp_path / "home", "touch ready; exec sleep 600") as (process, browser, _):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            process.send_signal(number)
        assert running([browser, process.pid]) == [browser, process.pid]
        # Were one of the signals deadly, it would have come before the end of the input.
        assert close(process) == 128 + signal.SIGKILL


def test_who_lost_his_parent_is_reaped(tmp_path: Path) -> None:
    script = "(sh -c 'sleep 0' & echo $! >zombie); (sleep 0.01 &) ; touch ready; exec sleep 600"
    with kept(tmp_path / "home", script) as (process, browser, _):
        until(lambda: procfs.children(process.pid) == [browser])


def test_a_browser_that_cannot_be_started_is_named(tmp_path: Path) -> None:
    order = keeper.Order(["/nonexistent/chromium"], {}, str(tmp_path))
    command = [sys.executable, "-I", "-m", keeper.__name__, order.encoded()]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.wait(60) == 127
        assert process.stderr is not None
        assert process.stderr.read() == b"/nonexistent/chromium: No such file or directory\n"


def status(pid: int) -> dict[str, str]:
    """The kernel's words on a process."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


@pytest.mark.skipif(not ROOT, reason="needs root")
def test_root_gives_the_browser_no_right_of_his(tmp_path: Path) -> None:
    with kept(tmp_path / "home", "touch ready; exec sleep 600", user=65534) as (_, browser, _):
        said = status(browser)
    assert (said["Uid"], said["Gid"]) == ("\t".join(["65534"] * 4),) * 2
    assert said["Groups"] == ""
    rights = {said[name] for name in ("CapInh", "CapPrm", "CapEff", "CapAmb")}
    assert rights == {"0" * 16}


def test_a_browser_leads_its_group_and_holds_nothing_of_the_keepers(tmp_path: Path) -> None:
    with kept(tmp_path / "home", "touch ready; exec sleep 600") as (_, browser, _):
        assert os.getpgid(browser) == browser
        assert os.getsid(browser) == browser
        held = {os.readlink(each) for each in Path(f"/proc/{browser}/fd").iterdir()}
        assert not any(name.startswith("pipe:") for name in held)
        assert os.readlink(f"/proc/{browser}/cwd") == str(tmp_path / "home")


def test_the_browsers_files_and_processes_are_bounded(tmp_path: Path) -> None:
    script = "touch ready; exec sleep 600"
    with kept(tmp_path / "home", script, processes=500) as (_, browser, _):
        wanted = {**keeper.LIMITS, resource.RLIMIT_NPROC: 500}
        assert {which: resource.prlimit(browser, which) for which in wanted} == {
            which: (most, most) for which, most in wanted.items()
        }


@pytest.mark.skipif(isinstance(PARENT, str), reason=f"no control groups: {PARENT}")
def test_the_browser_lives_in_its_group_and_takes_it_along(tmp_path: Path) -> None:
    assert isinstance(PARENT, cgroup.Parent)
    name = f"{cgroup.PREFIX}keeper-{os.getpid()}"
    with cgroup.made(PARENT, name, memory_bytes=2**29, processes=64) as group:
        folders = [str(folder) for folder in group.folders]
        with kept(
            tmp_path / "home", SCATTERED, version=group.version, folders=folders, user=65534
        ) as (process, _, _):
            until(lambda: set(group.members()) == set(procfs.descendants(process.pid)))
            assert len(group.members()) >= 4
            close(process)
            assert not any(folder.exists() for folder in group.folders)
