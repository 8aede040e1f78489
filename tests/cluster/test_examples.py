"""Every published example is accepted as it stands, and explained."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cluster.conftest import Kubectl

from watercolour.api import load

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.yaml"))
WANTED = {
    "cluster-tiny.yaml",
    "hps-led.yaml",
    "hps-only.yaml",
    "judge-led.yaml",
    "local.yaml",
    "qwen-4b-24gb.yaml",
    "qwen-8b-24gb.yaml",
    "sft-then-grpo.yaml",
}


def test_the_published_examples_are_there() -> None:
    assert {path.name for path in EXAMPLES} == WANTED


@pytest.mark.usefixtures("crd_installed")
@pytest.mark.parametrize("path", EXAMPLES, ids=[path.name for path in EXAMPLES])
def test_an_example_is_accepted_as_it_stands(kubectl: Kubectl, path: Path) -> None:
    name = load.run(path).metadata.name
    told = kubectl("apply", "--dry-run=server", "--validate=strict", "-f", str(path))
    assert told == f"watercolourrun.watercolour.dev/{name} created (server dry run)\n"


@pytest.mark.parametrize("path", EXAMPLES, ids=[path.name for path in EXAMPLES])
def test_an_example_is_explained(path: Path) -> None:
    page = (ROOT / "docs" / "examples.md").read_text(encoding="utf-8")
    assert f"(../examples/{path.name})" in page
    first = path.read_text(encoding="utf-8").splitlines()[0]
    assert first.startswith("# ")
    assert len(first) > 40


def test_no_two_examples_have_one_name() -> None:
    names = [load.run(path).metadata.name for path in EXAMPLES]
    assert len(set(names)) == len(names)
