"""A command as a person calls it: its exit status and both streams."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from watercolour import cli


class Outcome:
    """Exit status and both streams of one command."""

    def __init__(self, status: int, out: str, err: str) -> None:
        self.status = status
        self.out = out
        self.err = err

    @property
    def json(self) -> dict[str, Any]:
        """Standard output, which must be one JSON object and nothing else."""
        value: Any = json.loads(self.out)
        assert isinstance(value, dict)
        return value


Call = Callable[..., Outcome]


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Call:
    def run(*words: object, stdin: bytes = b"") -> Outcome:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        status = cli.status([str(word) for word in words])
        said = capsys.readouterr()
        return Outcome(status, said.out, said.err)

    return run


@pytest.fixture
def spec(tmp_path: Path) -> Callable[..., Path]:
    def write(**fields: Any) -> Path:
        path = tmp_path / "run.yaml"
        whole = {
            "apiVersion": "watercolour.dev/v1alpha1",
            "kind": "WatercolourRun",
            "metadata": {"name": "try"},
            "spec": {"artifacts": {"path": str(tmp_path / "runs")}, **fields},
        }
        path.write_text(yaml.safe_dump(whole))
        return path

    return write
