"""What is read back of a run: its specification, its status, what it was started with."""

from __future__ import annotations

import json

import pytest

from watercolour.api import dump
from watercolour.api.spec import Metadata, RunSpec, WatercolourRun
from watercolour.api.status import Phase
from watercolour_operator import observe
from watercolour_operator.cluster import reduce
from watercolour_operator.cluster.reduce import Run


def run(spec: bytes = b"{}", status: bytes = b"{}") -> Run:
    metadata = {
        "namespace": "studio",
        "name": "peonies",
        "uid": "u",
        "resourceVersion": "1",
        "creationTimestamp": "2026-09-01T00:00:00Z",
    }
    return reduce.run(
        {"metadata": metadata, "spec": json.loads(spec), "status": json.loads(status)}
    )


def test_a_specification_that_breaks_a_rule_is_told_by_field_and_value() -> None:
    spec, problem = observe.specification(run(b'{"trainer": {"steps": -1}}'))
    assert spec is None
    assert problem is not None
    assert "trainer.steps" in problem
    assert "-1" in problem


def test_a_field_of_a_newer_definition_is_told() -> None:
    _, problem = observe.specification(run(b'{"colour": "blue"}'))
    assert "colour" in (problem or "")


def test_a_status_that_is_none_of_ours_counts_as_empty() -> None:
    assert observe.status_of(run(status=b'{"phase": "Dancing"}')).phase is Phase.PENDING


@pytest.mark.parametrize(
    "spec",
    [
        RunSpec(),
        RunSpec.model_validate({"trainer": {"learningRate": 1e-6, "steps": 3}, "seed": 7}),
        RunSpec.model_validate({"prompts": {"subjects": ["no", "2026-01-01", "1e-4", "🌸: x"]}}),
    ],
    ids=["defaults", "small numbers", "odd words"],
)
def test_what_a_run_was_started_with_is_read_back_as_it_was(spec: RunSpec) -> None:
    text = dump.to_yaml(WatercolourRun(metadata=Metadata(name="peonies"), spec=spec), full=True)
    kept = observe._spec_in(text)  # pyright: ignore[reportPrivateUsage]
    assert kept is not None
    assert RunSpec.model_validate_json(reduce.unpacked(kept), by_name=True) == spec


@pytest.mark.parametrize("text", ["spec: [", "- a list", "spec: {colour: blue}", ""])
def test_a_file_that_is_no_run_is_not_known(text: str) -> None:
    assert observe._spec_in(text) is None  # pyright: ignore[reportPrivateUsage]


def test_only_runs_that_share_have_a_digest() -> None:
    alone, shared = RunSpec(), RunSpec.model_validate({"scorer": {"sharing": "Namespace"}})
    assert observe.shared_digest(run(), alone) is None
    assert observe.shared_digest(run(), shared) is not None
    assert observe.shared_digest(run(), None) is None
