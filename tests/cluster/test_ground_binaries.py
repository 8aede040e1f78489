"""Programs are made once, by one process at a time, whatever happens to it."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.cluster.ground import binaries, clusters, processes

SCRIPT = Path(binaries.__file__)
# A Go tool that notes each build, builds until the file `go` is there, and writes a program.
GO = """#!/bin/sh
case "$1" in
  env) echo go1.26.8 ;;
  list) echo one; echo two ;;
  build)
    echo $$ >> {notes}/builds
    while [ ! -e {notes}/go ]; do sleep 0.02; done
    while [ "$1" != -o ]; do shift; done
    echo program > "$2" ;;
esac
"""


@pytest.fixture
def tool(tmp_path: Path) -> dict[str, str]:
    """An environment with that Go tool and an empty cache."""
    path = tmp_path / "bin" / "go"
    path.parent.mkdir()
    path.write_text(GO.format(notes=tmp_path))
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    search = f"{path.parent}:{os.environ['PATH']}"
    return {**os.environ, "PATH": search, "WATERCOLOUR_CACHE": str(tmp_path / "cache")}


def begin(tool: Mapping[str, str]) -> subprocess.Popen[str]:
    command = [sys.executable, str(SCRIPT), "kwok"]
    return subprocess.Popen(command, env=tool, stderr=subprocess.PIPE, text=True)


def builds(tmp_path: Path) -> list[int]:
    notes = tmp_path / "builds"
    return [int(line) for line in notes.read_text().split()] if notes.exists() else []


def test_who_comes_second_waits_and_builds_nothing(tool: dict[str, str], tmp_path: Path) -> None:
    first = begin(tool)
    assert processes.wait_until(lambda: len(builds(tmp_path)) == 1, 20)
    second = begin(tool)
    assert second.stderr is not None
    assert any("waiting for another's build" in line for line in second.stderr)
    (tmp_path / "go").touch()
    assert (first.wait(20), second.wait(20)) == (0, 0)
    assert len(builds(tmp_path)) == 1
    [program] = (tmp_path / "cache").glob("cluster/kwok-*/kwok")
    assert program.read_text() == "program\n"


def test_killed_build_is_taken_over(tool: dict[str, str], tmp_path: Path) -> None:
    first = begin(tool)
    assert processes.wait_until(lambda: len(builds(tmp_path)) == 1, 20)
    second = begin(tool)
    first.kill()
    first.wait()
    os.kill(builds(tmp_path)[0], signal.SIGKILL)
    assert processes.wait_until(lambda: len(builds(tmp_path)) == 2, 20)
    (tmp_path / "go").touch()
    assert second.wait(20) == 0
    kept = [path.name for path in (tmp_path / "cache" / "cluster").iterdir() if path.is_dir()]
    assert len(kept) == 1
    assert kept[0].startswith("kwok-")


def test_another_go_version_is_another_program(
    monkeypatch: pytest.MonkeyPatch, tool: dict[str, str], tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", tool["PATH"])
    before = binaries.folder("kwok")
    go = tmp_path / "bin" / "go"
    go.write_text(go.read_text().replace("go1.26.8", "go1.27.0"))
    assert binaries.folder("kwok") != before


def test_programs_of_one_module_have_a_folder_each(
    monkeypatch: pytest.MonkeyPatch, tool: dict[str, str]
) -> None:
    monkeypatch.setenv("PATH", tool["PATH"])
    assert binaries.folder("keda") != binaries.folder("keda-adapter")


def test_missing_go_is_named_with_its_remedy(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(binaries.BinariesMissing, match=r"Go 1\.26 or newer is missing: install it"):
        binaries.folder("kube")


def test_named_folder_without_a_program_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "kwok").touch(mode=0o755)
    monkeypatch.setenv(clusters.NAMED, str(tmp_path))
    with pytest.raises(binaries.BinariesMissing, match=r"lacks kube-apiserver, .*kubectl"):
        clusters.resolve(print)
