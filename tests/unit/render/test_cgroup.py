"""Control groups: which folder is whose, and, where there are any, what the kernel does."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Literal

import pytest

from watercolour.render import cgroup

PARENT = cgroup.prepare() if os.geteuid() == 0 else "not root"
needs_groups = pytest.mark.skipif(isinstance(PARENT, str), reason=f"no control groups: {PARENT}")
MIB = 2**20

V2 = "29 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"
V1 = (
    "30 23 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
    "31 23 0:28 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
    "32 23 0:29 /box /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n"
    "33 23 0:30 / /proc rw - proc proc rw\n"
)


def parent() -> cgroup.Parent:
    """Where this machine lets groups be made."""
    assert isinstance(PARENT, cgroup.Parent)
    return PARENT


@pytest.mark.parametrize(
    ("mounts", "own", "found"),
    [
        (V2, "0::/user.slice/a\n", {"": "/sys/fs/cgroup/user.slice/a"}),
        (V2, "0::/\n", {"": "/sys/fs/cgroup"}),
        (
            V1,
            "9:pids:/box/one\n8:memory:/m\n3:cpu,cpuacct:/\n0::/\n",
            {
                "pids": "/sys/fs/cgroup/pids/one",
                "memory": "/sys/fs/cgroup/memory/m",
                "cpu": "/sys/fs/cgroup/cpu,cpuacct",
                "cpuacct": "/sys/fs/cgroup/cpu,cpuacct",
            },
        ),
        (V1, "9:pids:/boxes\n", {}),
        ("", "0::/\n", {}),
    ],
    ids=["version 2", "at its root", "version 1", "mounted from elsewhere", "not mounted"],
)
def test_a_processs_folders_are_found(mounts: str, own: str, found: dict[str, str]) -> None:
    assert cgroup.folders(mounts, own) == {name: Path(path) for name, path in found.items()}


def hierarchy(folder: Path, members: list[int], handed: str = "") -> Path:
    """A group of version 2 as files show it."""
    folder.mkdir(parents=True)
    (folder / "cgroup.controllers").write_text("cpu memory pids\n")
    (folder / "cgroup.subtree_control").write_text(f"{handed}\n")
    (folder / "cgroup.procs").write_text("".join(f"{pid}\n" for pid in members))
    return folder


def test_a_process_alone_in_its_group_moves_down_and_hands_the_controllers_on(
    tmp_path: Path,
) -> None:
    own = hierarchy(tmp_path / "own", [os.getpid()])
    assert cgroup._delegated(own) == cgroup.Parent(2, (own,))  # pyright: ignore[reportPrivateUsage]
    assert (own / cgroup.WORKER / "cgroup.procs").read_text() == "0"
    assert (own / "cgroup.subtree_control").read_text() == "+memory +pids"


def test_a_group_with_other_members_is_left_as_it_is_for_the_next_that_hands_on(
    tmp_path: Path,
) -> None:
    above = hierarchy(tmp_path / "above", [], "memory pids")
    own = hierarchy(above / "own", [1, os.getpid()])
    assert cgroup._delegated(own) == cgroup.Parent(2, (above,))  # pyright: ignore[reportPrivateUsage]
    assert (own / "cgroup.subtree_control").read_text() == "\n"
    (above / "cgroup.subtree_control").write_text("memory\n")
    assert cgroup._delegated(own) is None  # pyright: ignore[reportPrivateUsage]


#: Joins the group whose folders the arguments name, then does what the rest of the script says.
INSIDE = """
import os, sys
from pathlib import Path
from watercolour.render import cgroup
cgroup.Group(int(sys.argv[1]), tuple(map(Path, sys.argv[2:]))).join()
"""


def inside(group: cgroup.Group, script: str) -> subprocess.Popen[str]:
    """A process in the group."""
    return subprocess.Popen(
        [
            *(sys.executable, "-c", INSIDE + textwrap.dedent(script)),
            *(str(group.version), *map(str, group.folders)),
        ],
        stdout=subprocess.PIPE,
        text=True,
    )


NAME = f"{cgroup.PREFIX}test-{os.getpid()}"


@needs_groups
def test_the_kernel_ends_who_takes_too_much_memory_and_counts_it() -> None:
    with cgroup.made(parent(), NAME, memory_bytes=128 * MIB, processes=64) as group:
        assert inside(group, "bytearray(64 * 2**20)").wait(60) == 0
        before = group.memory()
        assert before is not None
        assert (before.limit, before.kills, before.full) == (128 * MIB, 0, 0)
        assert before.used < 64 * MIB
        assert inside(group, "bytearray(256 * 2**20)").wait(60) == -signal.SIGKILL
        after = group.memory()
        assert after is not None
        assert (after.kills, after.full) == (1, 1)
        group.forget()
        forgotten = group.memory()
        assert forgotten is not None
        assert (forgotten.kills, forgotten.full) == (1, int(group.version == 2))
    assert group.memory() is None


@needs_groups
def test_a_kill_for_memory_that_is_wanting_above_it_is_not_put_down_to_its_own_limit() -> None:
    with cgroup.made(parent(), NAME, memory_bytes=128 * MIB, processes=64) as outer:
        if outer.version == 2:
            (outer.folders[0] / "cgroup.subtree_control").write_text("+memory +pids")
        inner = cgroup.Group(outer.version, tuple(each / "inner" for each in outer.folders))
        for folder in inner.folders:
            folder.mkdir()
        limit = "memory.max" if inner.version == 2 else "memory.limit_in_bytes"
        (inner.folders[0] / limit).write_text(str(512 * MIB))
        assert inside(inner, "bytearray(256 * 2**20)").wait(60) == -signal.SIGKILL
        found = inner.memory()
        assert inner.remove()
    assert found is not None
    assert (found.kills, found.full) == (1, 0)


@pytest.mark.parametrize(
    ("version", "files"),
    [
        (
            2,
            {
                "memory.max": "1000\n",
                "memory.current": "400\n",
                "memory.events": "low 0\nhigh 0\nmax 9\noom 2\noom_kill 3\noom_group_kill 0\n",
            },
        ),
        (
            1,
            {
                "memory.limit_in_bytes": "1000\n",
                "memory.usage_in_bytes": "400\n",
                "memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n",
                "memory.max_usage_in_bytes": "996\n",
            },
        ),
    ],
)
def test_its_memory_is_read_from_either_versions_files(
    tmp_path: Path, version: Literal[1, 2], files: dict[str, str]
) -> None:
    for name, said in files.items():
        (tmp_path / name).write_text(said)
    group = cgroup.Group(version, (tmp_path,))
    assert group.memory() == cgroup.Memory(1000, 400, kills=3, full=2 if version == 2 else 0)
    if version == 1:
        (tmp_path / "memory.memsw.max_usage_in_bytes").write_text("1000\n")
        assert group.memory() == cgroup.Memory(1000, 400, kills=3, full=1)


@needs_groups
def test_no_process_more_can_be_started_than_allowed() -> None:
    script = """
    try:
        for _ in range(8):
            if os.fork() == 0:
                os.execv("/bin/sleep", ["sleep", "60"])
    except BlockingIOError:
        print("refused", flush=True)
    """
    with cgroup.made(parent(), NAME, memory_bytes=512 * MIB, processes=4) as group:
        process = inside(group, script)
        assert process.stdout is not None
        assert process.stdout.readline() == "refused\n"
        assert len(group.members()) <= 4


@needs_groups
def test_a_group_goes_with_everybody_in_it() -> None:
    script = """
    import signal
    if os.fork() == 0:
        os.setsid()
    os.write(1, b"in\\n")
    signal.pause()
    """
    with cgroup.made(parent(), NAME, memory_bytes=512 * MIB, processes=64) as group:
        process = inside(group, script)
        assert process.stdout is not None
        assert [process.stdout.readline() for _ in range(2)] == ["in\n", "in\n"]
        members = group.members()
        assert len(members) == 2
    assert process.wait(10) == -signal.SIGKILL
    assert not any(folder.exists() for folder in group.folders)


OWNER = """
import sys
from pathlib import Path
from watercolour.render import cgroup
parent = cgroup.Parent(int(sys.argv[1]), tuple(map(Path, sys.argv[3:])))
with cgroup.made(parent, sys.argv[2], memory_bytes=2**29, processes=64):
    print("made", flush=True)
    sys.stdin.read()
"""


@needs_groups
def test_a_killed_owners_group_is_removed_and_a_living_ones_is_kept() -> None:
    names = [f"{NAME}-{which}" for which in ("killed", "living")]
    owners = [
        subprocess.Popen(
            [
                *(sys.executable, "-c", OWNER, str(parent().version)),
                *(name, *map(str, parent().folders)),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for name in names
    ]
    try:
        for owner in owners:
            assert owner.stdout is not None
            assert owner.stdout.readline() == "made\n"
        assert not set(cgroup.sweep(parent())) & set(names)
        owners[0].kill()
        owners[0].wait(10)
        assert set(cgroup.sweep(parent())) & set(names) == {names[0]}
        assert not any((folder / names[0]).exists() for folder in parent().folders)
        assert all((folder / names[1]).exists() for folder in parent().folders)
    finally:
        for owner in owners:
            owner.communicate("")
    assert not any((folder / names[1]).exists() for folder in parent().folders)
