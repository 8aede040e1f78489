"""Browsers' folders: gone with their owners, and never before them."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from watercolour.render import homes

LIVE = """
import sys, time
from watercolour.render import homes
with homes.claimed(None) as home:
    (home / "profile").mkdir()
    print(home, flush=True)
    sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def _own_temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)


@contextmanager
def living() -> Generator[tuple[subprocess.Popen[str], Path]]:
    """Another process that lives in a folder until its standard input ends."""
    with subprocess.Popen(
        [sys.executable, "-c", LIVE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        yield process, Path(process.stdout.readline().strip())
        process.kill()


def test_a_killed_owners_folder_is_removed_and_a_live_ones_is_kept(tmp_path: Path) -> None:
    with living() as (killed, abandoned), living() as (_, kept):
        assert homes.sweep() == []
        killed.send_signal(signal.SIGKILL)
        killed.wait(10)
        assert abandoned.is_dir()
        assert homes.sweep() == [abandoned]
        assert not abandoned.exists()
        assert (kept / "profile").is_dir()


def test_an_owner_that_ends_well_leaves_nothing(tmp_path: Path) -> None:
    with homes.claimed(None) as home:
        assert homes.sweep() == []
        assert home.is_dir()
    assert list(tmp_path.iterdir()) == []


def test_what_may_not_be_a_browsers_is_left_alone(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / homes.OWNER).touch()
    (tmp_path / f"{homes.PREFIX}link").symlink_to(elsewhere)
    (tmp_path / f"{homes.PREFIX}new").mkdir()
    planted = tmp_path / f"{homes.PREFIX}planted"
    planted.mkdir()
    (planted / homes.OWNER).symlink_to(elsewhere / homes.OWNER)
    assert homes.sweep() == []
    assert len(list(tmp_path.iterdir())) == 4
