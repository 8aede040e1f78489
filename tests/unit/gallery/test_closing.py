"""The report that a trainer leaves: always there, never in the way."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path

import pytest
from tests.disk import largest_file
from tests.unit.gallery.test_push import painted

from watercolour.api import load
from watercolour.gallery import closing
from watercolour.train import companions

SPEC = load.from_dict({"metadata": {"name": "plain"}}).spec


def train(out: Path, *, fails: bool = False) -> None:
    """What stands where a training is, with the report asked for."""
    with companions.beside(SPEC, out / "run.yaml", out, anew=True, report=True):
        assert not (out / "report.html").exists()
        if fails:
            raise RuntimeError("the training's own")


def test_the_report_lies_in_the_folder_when_the_trainer_ends(tmp_path: Path) -> None:
    train(painted(tmp_path / "run", 3))
    page = (tmp_path / "run" / "report.html").read_text()
    assert page.count("a red poppy") >= 3


def test_a_training_that_fails_leaves_one_too(tmp_path: Path) -> None:
    out = painted(tmp_path / "run", 2)
    with pytest.raises(RuntimeError, match="the training's own"):
        train(out, fails=True)
    assert (out / "report.html").exists()


def test_no_report_is_no_fault_of_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """None finished a step; the process breaks; it cannot even be started."""
    empty = tmp_path / "empty"
    empty.mkdir()
    train(empty)
    out = painted(tmp_path / "run", 2)
    with monkeypatch.context() as broken:
        broken.setattr(companions, "REPORTER", companions.Companion("no.such", frozenset()))
        train(out)
    with monkeypatch.context() as broken:
        broken.setattr(sys, "executable", str(tmp_path / "nothing"))
        train(out)
    assert not list(tmp_path.rglob("*report.html*"))


def test_a_full_disk_leaves_no_half_of_a_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = painted(tmp_path / "run", 2)
    monkeypatch.setattr(closing, "_step_back", contextlib.nullcontext)
    with largest_file(100):
        assert closing.main(["--out", str(out)]) == 3
    assert not list(out.glob("*report.html*"))
    assert closing.main(["--out", str(out)]) == 0
