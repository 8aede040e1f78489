"""The generated reference: current, complete, and every field and word explained."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path

import pytest
from pydantic import BaseModel

from watercolour.api import docs, part, rollout
from watercolour.api.reasons import Reason, ViolationCode
from watercolour.api.spec import RunSpec, WatercolourRun
from watercolour.api.status import ConditionType, Phase

REFERENCE = Path(__file__).parents[3] / "docs" / "reference"


@pytest.mark.parametrize(
    ("name", "text"), [("spec.md", docs.spec_page()), ("reasons.md", docs.reasons_page())]
)
def test_the_page_is_current(name: str, text: str) -> None:
    is_current = (REFERENCE / name).read_text(encoding="utf-8") == text
    assert is_current, f"docs/reference/{name} is stale: run python -m watercolour.api.docs"


def fields(model: type[BaseModel], prefix: str = "") -> Iterator[tuple[str, str]]:
    for name, info in part.fields_of(model).items():
        yield f"{prefix}{name}", info.description or ""
        below = part.submodel(info.annotation)
        if below:
            yield from fields(below, f"{prefix}{name}.")


def test_every_field_is_described() -> None:
    models = [model for _, model in inspect.getmembers(rollout, inspect.isclass)]
    records = [model for model in models if issubclass(model, rollout.Record)]
    described = [pair for model in (WatercolourRun, *records) for pair in fields(model)]
    assert len(described) > 150
    assert [path for path, text in described if not text.endswith((".", ")", "`"))] == []


@pytest.mark.parametrize("words", [Reason, ViolationCode, Phase, ConditionType])
def test_every_word_has_a_meaning(words: type[StrEnum]) -> None:
    meanings = docs.meanings(words)
    assert list(meanings) == [word.value for word in words]
    assert [word for word, text in meanings.items() if not text.endswith(".")] == []


def test_the_page_names_every_field_of_a_specification() -> None:
    page = docs.spec_page()
    assert [path for path, _ in fields(RunSpec) if f"| `{path.split('.')[-1]}`" not in page] == []


def test_a_stale_page_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["docs", "--folder", str(tmp_path)])
    assert docs.main() == 0
    monkeypatch.setattr("sys.argv", ["docs", "--folder", str(tmp_path), "--check"])
    assert docs.main() == 0
    page = tmp_path / "spec.md"
    page.write_text(page.read_text().replace("`seed`", "`seeds`"))
    assert docs.main() == 1
