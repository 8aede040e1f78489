"""What every command shares: usage, errors, and what a run refuses before it starts."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.unit.cli.conftest import Call

from watercolour import cli
from watercolour.api import InfrastructureError, Reason

SKETCH = """function setup() { createCanvas(192, 192, WEBGL); noLoop(); }
function draw() { background("#fff"); brush.fill("#a33", 160); brush.circle(0, 0, 40); }
"""


def test_help_imports_nothing_heavy() -> None:
    script = (
        "import sys; from watercolour import cli; cli.status(['--help']); "
        "heavy = ['torch', 'pydantic', 'rich', 'httpx', 'jinja2', 'pyarrow', 'PIL', 'numpy']; "
        "print([name for name in heavy if name in sys.modules], file=sys.stderr)"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stderr.strip() == "[]"
    assert "Exit status" in ran.stdout


@pytest.mark.parametrize("words", [[], ["frob"], ["gate"], ["score"], ["run", "x", "--set", "y"]])
def test_wrong_usage_exits_with_2(call: Call, words: list[str]) -> None:
    got = call(*words)
    assert got.status == 2
    assert got.out == ""


# gate


@pytest.mark.parametrize("command", ["gate", "run", "report"])
def test_a_missing_file_is_the_inputs_fault(call: Call, tmp_path: Path, command: str) -> None:
    got = call(command, tmp_path / "absent")
    assert got.status == 1
    assert "absent" in got.err
    assert "Traceback" not in got.err


# run


@pytest.mark.parametrize(
    ("fields", "overrides", "said"),
    [
        ({"recipe": {"name": "hps-let"}}, [], "Did you mean 'hps-led'"),
        (
            {"recipe": {"weights": {"gate": 0.1, "length": 0.1, "quality": 0.1, "judge": 0.1}}},
            [],
            "sum to 0.4, not to 1",
        ),
        ({"trainer": {"groupSize": 6}}, [], "rolloutsPerStep=16: not a multiple of groupSize=6"),
        ({}, ["--set", "spec.trainer.groupSize=6"], "not a multiple of groupSize=6"),
        ({}, ["--set", "spec.trainer.stepz=6"], "spec.trainer.stepz"),
        ({}, ["--name", "Not A Name"], "metadata.name"),
        ({"prompts": {"subjects": []}}, [], "spec.prompts.subjects"),
    ],
)
def test_a_bad_specification_names_field_and_remedy(
    call: Call, spec: Callable[..., Path], fields: dict[str, Any], overrides: list[str], said: str
) -> None:
    got = call("run", spec(**fields), *overrides, "--json")
    assert got.status == 1
    assert said in got.err
    assert set(got.json["error"]) == {"reason", "message", "remedy", "field", "value"}
    assert "Traceback" not in got.err


def test_a_run_without_the_renderers_environment_says_how_to_get_it(
    call: Call, spec: Callable[..., Path], tmp_path: Path
) -> None:
    got = call("run", spec(), "--renderer-python", tmp_path / "python", "--json")
    assert got.status == 3
    assert got.json["error"]["reason"] == "BrowserMissing"
    assert "make setup" in got.json["error"]["remedy"]


def test_an_existing_run_is_refused_with_the_two_remedies(
    call: Call, spec: Callable[..., Path], tmp_path: Path
) -> None:
    (tmp_path / "runs" / "try").mkdir(parents=True)
    (tmp_path / "runs" / "try" / "metrics.csv").touch()
    got = call("run", spec(), "--json")
    assert got.status == 1
    assert got.json["error"]["reason"] == "RunExists"
    assert "--resume" in got.json["error"]["remedy"]
    assert "--name" in got.json["error"]["remedy"]


# score


def test_an_error_is_one_paragraph_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    error = InfrastructureError(Reason.BROWSER_MISSING, "no browser.", remedy="Get one.")
    assert cli.tell(error, False) == 3
    assert capsys.readouterr() == ("", "watercolour: no browser. Get one.\n")


def test_a_fault_of_ours_shows_a_traceback_and_stays_json(
    call: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "a.js").write_text(SKETCH)

    def broken(*_: object) -> None:
        raise ZeroDivisionError("petals")

    monkeypatch.setattr("watercolour.sketch.gate.inspect", broken)
    got = call("gate", tmp_path / "a.js", "--json")
    assert got.status == 3
    assert got.json["error"]["reason"] == "InternalError"
    assert "Traceback" in got.err
    assert "Please report it" in got.err
