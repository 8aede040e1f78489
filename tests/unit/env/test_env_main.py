"""The server as a process: wrong input ends it with a sentence, not with a traceback."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from watercolour.env import server

SPEC = """
apiVersion: watercolour.dev/v1alpha1
kind: WatercolourRun
metadata: {name: test}
spec:
"""


def serve(tmp_path: Path, spec: str, *arguments: str) -> int:
    path = tmp_path / "run.yaml"
    path.write_text(SPEC + spec)
    return server.main(["--spec", str(path), *arguments])


@pytest.mark.parametrize(
    ("spec", "arguments", "said"),
    [
        ("  recipe: {name: hps}", ("--renderer", "http://r"), "spec.recipe.name='hps'"),
        ("  recipe: {name: hps-only}", ("--renderer", "http://r"), "--scorer URL"),
        ("  recipe: {name: hps-only}", ("--scorer", "http://s"), "--renderer"),
        (
            "  references: {pool: /nowhere}",
            ("--renderer", "http://r", "--scorer", "http://s", "--judge", "http://j"),
            "spec.references.pool='/nowhere'",
        ),
        ("  seed: minus", ("--renderer", "http://r"), "seed"),
        (
            "  recipe: {gate: {allow: [circel]}}",
            ("--renderer", "http://r", "--scorer", "http://s", "--judge", "http://j"),
            "circel",
        ),
        (
            "  recipe: {name: hps-only}",
            ("--renderer", "http://r", "--scorer", "http://s", "--judge-key-file", "/nowhere"),
            "--judge-key-file=/nowhere",
        ),
        (
            "  recipe: {name: hps-only}",
            ("--renderer", "http://r", "--scorer", "http://s", "--judge-key-env", "NOT_SET"),
            "--judge-key-env=NOT_SET",
        ),
    ],
)
def test_wrong_input_is_named_and_exits_1(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    spec: str,
    arguments: tuple[str, ...],
    said: str,
) -> None:
    assert serve(tmp_path, spec, *arguments) == 1
    assert said in capsys.readouterr().err


def test_the_client_needs_no_openenv() -> None:
    """OpenEnv's import takes seconds; a trainer must not pay for it."""
    code = "import sys, watercolour.env.client; print('openenv' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "False"
