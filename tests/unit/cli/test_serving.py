"""`watercolour renderer` becomes the renderer's service, with the options as they were given."""

from __future__ import annotations

from pathlib import Path

import pytest

from watercolour import cli
from watercolour.local import processes


def test_the_command_becomes_the_service_with_the_given_options(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    became: list[list[str]] = []
    monkeypatch.setattr("os.execv", lambda path, words: became.append([path, *words[1:]]))
    assert cli.status(["renderer", "--port", "8080", "--slots", "4", "--help"]) == 0
    words = ["--port", "8080", "--slots", "4", "--help"]
    python = str(processes.renderer_python())
    assert became == [[python, "-m", "watercolour.render.service", *words]]


def test_an_environment_that_holds_the_browser_driver_is_the_renderer_s_own(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(processes, "package_root", lambda: tmp_path)
    monkeypatch.setattr("sys.prefix", str(tmp_path / "env"))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: name)
    monkeypatch.setattr("sys.executable", "/somewhere/python")
    assert processes.renderer_python() == Path("/somewhere/python")
