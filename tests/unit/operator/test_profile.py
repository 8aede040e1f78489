"""The renderers' seccomp profile: what it allows, and how it gets onto a node."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from watercolour_operator import profile

FILE = Path(__file__).parents[3] / "charts" / "watercolour" / "files" / "chromium-seccomp.json"
PROFILE: dict[str, Any] = json.loads(FILE.read_text())
#: What Chromium needs to put its renderers into namespaces of their own.
SANDBOX = {"chroot", "clone", "clone3", "setns", "unshare"}
#: What would open the kernel, the node or other processes, and no page needs.
CLOSED = {
    "acct", "add_key", "bpf", "delete_module", "finit_module", "fsmount", "fsopen", "init_module",
    "io_uring_enter", "io_uring_register", "io_uring_setup", "ioperm", "iopl", "kcmp", "kexec_load",
    "keyctl", "mount", "move_mount", "open_by_handle_at", "open_tree", "perf_event_open",
    "pivot_root", "reboot", "request_key", "settimeofday", "swapon", "syslog", "umount2",
    "userfaultfd", "vhangup",
}  # fmt: skip


def allowed(*, by_argument: bool) -> set[str]:
    """Calls that are allowed always, or for some arguments."""
    return {
        name
        for rule in PROFILE["syscalls"]
        for name in rule["names"]
        if rule["action"] == "SCMP_ACT_ALLOW" and bool(rule.get("args")) is by_argument
    }


def test_what_is_not_named_is_refused() -> None:
    assert PROFILE["defaultAction"] == "SCMP_ACT_ERRNO"
    assert {rule["action"] for rule in PROFILE["syscalls"]} == {"SCMP_ACT_ALLOW"}


def test_the_sandboxs_calls_are_allowed_whatever_their_arguments_and_named_once() -> None:
    assert allowed(by_argument=False) >= SANDBOX
    # A second rule for one of them would make its meaning depend on the runtime.
    named = [name for rule in PROFILE["syscalls"] for name in rule["names"]]
    assert [name for name in named if name in SANDBOX] == sorted(SANDBOX)


def test_what_opens_the_kernel_stays_closed() -> None:
    either = allowed(by_argument=False) | allowed(by_argument=True)
    assert not CLOSED & either
    assert {"execve", "mmap", "futex", "openat", "read", "write"} <= either


def test_no_architecture_is_named_so_that_only_the_nodes_own_is_allowed() -> None:
    assert "architectures" not in PROFILE


def test_a_profile_is_written_whole_and_readable_for_the_kubelet(tmp_path: Path) -> None:
    target = tmp_path / "chromium.json"
    assert profile.install(FILE, target) is True
    assert target.read_bytes() == FILE.read_bytes()
    assert target.stat().st_mode & 0o777 == 0o644
    assert list(tmp_path.iterdir()) == [target]


def test_a_profile_that_is_there_is_left_alone(tmp_path: Path) -> None:
    target = tmp_path / "chromium.json"
    profile.install(FILE, target)
    before = target.stat().st_ino
    assert profile.install(FILE, target) is False
    assert target.stat().st_ino == before


def test_an_older_profile_is_replaced_in_one_step(tmp_path: Path) -> None:
    target = tmp_path / "chromium.json"
    target.write_text("{}")
    with target.open() as opened:
        assert profile.install(FILE, target) is True
        # Who has the old file open reads it to its end.
        assert opened.read() == "{}"
    assert target.read_bytes() == FILE.read_bytes()


def test_a_broken_profile_never_replaces_a_whole_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, target = tmp_path / "broken.json", tmp_path / "chromium.json"
    source.write_text('{"defaultAction": ')
    target.write_text("{}")
    assert profile.main(["--from", str(source), "--to", str(target)]) == 3
    assert "cannot install" in capsys.readouterr().err
    assert target.read_text() == "{}"


def test_a_folder_that_cannot_be_written_is_an_error_in_words(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "missing" / "chromium.json"
    assert profile.main(["--from", str(FILE), "--to", str(target)]) == 3
    assert str(target) in capsys.readouterr().err


def test_the_sleeper_takes_sigterm_and_ends_well() -> None:
    # Held back from before the line, so that it cannot come too early; the sleeper takes it.
    code = (
        "import signal, sys; from watercolour_operator import profile\n"
        "signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})\n"
        "print(flush=True); sys.exit(profile.main(['--sleep']))"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as sleeper:
        assert sleeper.stdout is not None
        sleeper.stdout.readline()
        os.kill(sleeper.pid, signal.SIGTERM)
        assert sleeper.wait(30) == 0
