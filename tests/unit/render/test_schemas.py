"""The contract's models: whole, consistent with the records, and every example true."""

from __future__ import annotations

import json
import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from watercolour.api.reasons import Reason
from watercolour.render import mistakes, schemas
from watercolour.render.result import Job, Painted

RENDER = Path(schemas.__file__).parent

MODELS = [
    schemas.RenderRequest,
    schemas.RenderAnswer,
    schemas.Load,
    schemas.Alive,
    schemas.Readiness,
    schemas.MalformedProblem,
    schemas.SketchProblem,
    schemas.BusyProblem,
    schemas.InfrastructureProblem,
    schemas.UnreadyProblem,
]

#: Modules that run in the command line or in the environment, and not behind the endpoints.
ELSEWHERE = {"client.py", "dispatcher.py", "discover.py", "fleet.py", "service.py", "canary.py"}


@pytest.mark.parametrize("model", MODELS)
def test_every_example_keeps_its_own_model(model: type[BaseModel]) -> None:
    extra: Any = model.model_config.get("json_schema_extra")
    assert extra["examples"]
    for example in extra["examples"]:
        model.model_validate_json(json.dumps(example))


@pytest.mark.parametrize("model", MODELS)
def test_every_field_is_described(model: type[BaseModel]) -> None:
    undescribed = {name for name, info in model.model_fields.items() if not info.description}
    assert undescribed <= {"reason", "status"}


def test_a_request_is_a_job_with_the_same_defaults() -> None:
    wanted = {one.name: one.default for one in fields(Job)}
    offered = {name: info.default for name, info in schemas.RenderRequest.model_fields.items()}
    shared = wanted.keys() & offered.keys()
    assert shared == wanted.keys()
    limits = {"size", "scale", "deadline_s", "cpu_budget_s"}
    assert {name: wanted[name] for name in limits} == {name: offered[name] for name in limits}


def test_an_answer_is_a_painting() -> None:
    assert set(schemas.RenderAnswer.model_fields) == {one.name for one in fields(Painted)}


def test_every_field_of_a_request_has_its_remedy() -> None:
    assert set(schemas.REMEDIES) == {*schemas.RenderRequest.model_fields, "body"}


def test_every_reason_behind_the_endpoints_is_in_the_contract() -> None:
    raised = {
        Reason[name]
        for path in RENDER.glob("*.py")
        if path.name not in ELSEWHERE
        for name in re.findall(r"Reason\.([A-Z_]+)\b", path.read_text(encoding="utf-8"))
        if name in Reason.__members__
    }
    assert raised <= {*schemas.INFRASTRUCTURE_REASONS}


def test_a_long_value_is_told_by_its_beginning() -> None:
    assert mistakes.echo("x" * 61) == "x" * 60 + "…"
    assert mistakes.echo([1] * 100) == ("[" + "1, " * 20)[:60] + "…"
    assert (mistakes.echo(7), mistakes.echo(True), mistakes.echo(None)) == (7, True, None)
    assert mistakes.echo(10**30) == "1" + "0" * 30


def test_no_more_mistakes_are_told_than_a_person_reads() -> None:
    body = {f"field{number}": 1 for number in range(1000)}
    with pytest.raises(ValidationError) as caught:
        schemas.RenderRequest.model_validate(body)
    assert len(mistakes.mistakes(caught.value)) == mistakes.MISTAKES
