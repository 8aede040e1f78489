"""`watercolour report`: the page, the strip, and runs by name."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.cli.conftest import Call
from tests.unit.gallery import fake_run


def test_a_report_is_written_and_named(call: Call, tmp_path: Path) -> None:
    folder = fake_run.make(tmp_path / "dawn", steps=2)
    got = call("report", folder, "--json")
    assert got.status == 0
    assert got.json == {"out": str(folder / "report.html"), "steps": 2, "rollouts": 16}
    assert (folder / "report.html").is_file()


def test_a_run_is_found_by_its_name(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_run.make(tmp_path / "runs" / "dawn", steps=1)
    monkeypatch.chdir(tmp_path)
    assert call("report", "dawn").status == 0


def test_a_strip_is_written_beside_no_report(call: Call, tmp_path: Path) -> None:
    folder = fake_run.make(tmp_path / "dawn", steps=2)
    assert call("report", folder, "--strip", tmp_path / "strip.png").status == 0
    assert (tmp_path / "strip.png").read_bytes().startswith(b"\x89PNG")
    assert not (folder / "report.html").exists()


def test_an_output_that_cannot_be_written_is_told(call: Call, tmp_path: Path) -> None:
    folder = fake_run.make(tmp_path / "dawn", steps=1)
    (tmp_path / "file").touch()
    got = call("report", folder, "--strip", tmp_path / "file" / "strip.png")
    assert got.status == 1
    assert "strip.png: cannot be written" in got.err


def test_a_damaged_file_is_warned_of_on_stderr(call: Call, tmp_path: Path) -> None:
    folder = fake_run.make(tmp_path / "dawn", steps=2)
    first = sorted((folder / "rollouts").iterdir())[0]
    first.write_bytes(first.read_bytes()[:99])
    got = call("report", folder, "--json")
    assert got.status == 0
    assert got.json["steps"] == 1
    assert first.name in got.err


# pool
