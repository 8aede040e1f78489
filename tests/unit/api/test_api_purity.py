"""What importing the API brings along."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

HEAVY = ("torch", "transformers", "trl", "numpy", "fastapi", "httpx", "yaml", "pyppeteer", "click")


def loaded_by(statement: str) -> set[str]:
    """Names of all modules that a fresh interpreter holds after a statement."""
    code = f"import json, sys\n{statement}\nprint(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout))


def test_the_whole_api_imports_nothing_else_of_ours() -> None:
    modules = loaded_by("import watercolour.api.docs, watercolour.api.load, watercolour.api.dump")
    ours = {name for name in modules if name.split(".")[0] == "watercolour"}
    assert {name for name in ours if not name.startswith("watercolour.api")} == {"watercolour"}


@pytest.mark.parametrize(
    "statement",
    ["import watercolour.api.load", "from watercolour.api import WatercolourRun, Rollout"],
)
def test_the_specification_brings_no_heavy_library(statement: str) -> None:
    assert not loaded_by(statement) & set(HEAVY)


def test_the_errors_do_not_bring_pydantic() -> None:
    modules = loaded_by("from watercolour.api import InputError, Reason, ViolationCode")
    assert "pydantic" not in modules


def test_every_public_name_of_the_api_is_there() -> None:
    import watercolour.api as api

    for name in api.__all__:
        assert getattr(api, name).__name__ == name
    with pytest.raises(AttributeError, match="no attribute 'Rollouts'"):
        _ = api.Rollouts  # pyright: ignore[reportAttributeAccessIssue]
