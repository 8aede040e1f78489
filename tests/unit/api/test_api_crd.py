"""The generated definition: current, structural, and the columns' texts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from watercolour.api import columns, crd, crd_rule, crd_rules
from watercolour.api.spec import RunSpec
from watercolour.api.status import Cost, Phase, Progress, RenderersStatus, RewardProgress, Status

FILE = Path(__file__).parents[3] / "crds" / "watercolourruns.yaml"


def nodes(schema: Any, path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    yield path, schema
    for name, below in schema.get("properties", {}).items():
        yield from nodes(below, f"{path}.{name}")
    for inner in ("items", "additionalProperties"):
        if inner in schema:
            yield from nodes(schema[inner], f"{path}[]")


def test_the_definition_is_current() -> None:
    is_current = FILE.read_text(encoding="utf-8") == crd.text()
    assert is_current, "crds/watercolourruns.yaml is stale: run python -m watercolour.api.crd"


def test_a_stale_definition_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "crds" / "runs.yaml"
    monkeypatch.setattr("sys.argv", ["crd", "--file", str(path)])
    assert crd.main() == 0
    monkeypatch.setattr("sys.argv", ["crd", "--file", str(path), "--check"])
    assert crd.main() == 0
    path.write_text(path.read_text().replace("seed:", "seeds:"))
    assert crd.main() == 1


def test_every_node_has_one_type() -> None:
    odd = [
        path
        for path, node in nodes(crd.schema())
        if "type" not in node and not node.get("x-kubernetes-int-or-string")
    ]
    assert odd == []


def test_unknown_fields_are_kept_in_free_mappings_alone() -> None:
    kept = {
        path.removesuffix("[]")
        for path, node in nodes(crd.schema())
        if node.get("x-kubernetes-preserve-unknown-fields")
    }
    free = (".spec.model.chatTemplateKwargs", ".spec.trainer.grpo", ".spec.podTemplates.")
    assert [path for path in kept if not path.startswith(free)] == []


def test_texts_and_lists_that_a_rule_may_read_are_bounded() -> None:
    spec = crd.schema()["properties"]["spec"]
    free = (".trainer.grpo", ".podTemplates.")
    unbounded = [
        path
        for path, node in nodes(spec)
        if not path.startswith(free)
        if (node.get("type") == "string" and not {"maxLength", "enum"} & node.keys())
        or (node.get("type") == "array" and "maxItems" not in node)
    ]
    assert unbounded == []


def test_what_is_marked_as_fixed_has_a_rule_and_says_so() -> None:
    whole = crd.schema()
    rules = [rule["rule"] for rule in whole["x-kubernetes-validations"]]
    paths = [path for path, _ in crd_rules.fixed_paths(RunSpec, "spec")]
    assert {"spec.seed", "spec.model", "spec.recipe", "spec.references"} <= set(paths)
    for path in paths:
        assert any(f"self.{path} == oldSelf.{path}" in rule for rule in rules)
        node = whole
        for name in path.split("."):
            node = node["properties"][name]
        assert "Fixed once the run has started." in node["description"]


def test_a_message_is_one_format_with_its_values() -> None:
    rule = crd_rule.Rule("self.a < 1", "spec.a={self.a}: 100% too much. Lower it.", ".a")
    assert rule.as_dict() == {
        "rule": "self.a < 1",
        "message": "spec.a=…: 100% too much. Lower it.",
        "messageExpression": '"spec.a=%s: 100%% too much. Lower it.".format([self.a])',
        "fieldPath": ".a",
    }


def test_columns_of_a_run_that_has_not_begun() -> None:
    shown = columns.of(Status(), steps=600)
    assert (shown.step, shown.reward, shown.scorer) == ("0/600", "-", "-")
    assert (shown.renderers, shown.gpu_minutes) == ("-", "-")


def test_columns_of_a_running_run() -> None:
    status = Status(
        phase=Phase.RUNNING,
        progress=Progress(step=0, steps=0, reward=RewardProgress(mean=0.0)),
        renderers=RenderersStatus(desired=8, ready=6),
        scorer="Ready",
        cost=Cost(gpu_minutes=0.4),
    )
    shown = columns.of(status, steps=600)
    assert (shown.step, shown.reward, shown.scorer) == ("0/600", "0.00", "Ready")
    assert (shown.renderers, shown.gpu_minutes) == ("6/8", "0")


def test_a_time_says_its_unit() -> None:
    silent = [
        path
        for path, node in nodes(crd.schema())
        if path.endswith("Seconds") and "second" not in node["description"].lower()
    ]
    assert silent == []
