"""Any specification that is accepted can be written as YAML and read back the same."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from watercolour.api import dump, load, yaml_text
from watercolour.api.errors import InputError
from watercolour.api.spec import WatercolourRun

SCHEMA = WatercolourRun.model_json_schema(by_alias=True)
DEFS: dict[str, Any] = SCHEMA["$defs"]

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**31), 2**31) | st.floats(-1e9, 1e9) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
TEXT = st.text(min_size=1, max_size=20) | st.sampled_from(
    [
        "1e-4",
        "Off",
        "yes",
        "null",
        "~",
        "2026-01-01",
        "0x1f",
        "1_000",
        "a: b",
        "# no",
        "- a",
        "牡丹",
    ]
)


def values(schema: dict[str, Any]) -> SearchStrategy[Any]:
    """Values that a JSON schema admits, and some that it does not."""
    if "$ref" in schema:
        return values(DEFS[schema["$ref"].rsplit("/", 1)[-1]])
    if "anyOf" in schema:
        return st.one_of([values(branch) for branch in schema["anyOf"]])
    if "enum" in schema or "const" in schema:
        return st.sampled_from(schema.get("enum", [schema.get("const")]))
    match schema.get("type"):
        case "integer":
            low = schema.get("minimum", 0)
            return st.integers(low, min(schema.get("maximum", 10**6), low + 2000))
        case "number":
            return st.floats(schema.get("minimum", 1e-9), schema.get("maximum", 1e6))
        case "boolean":
            return st.booleans()
        case "string":
            return st.from_regex(schema["pattern"]) | TEXT if "pattern" in schema else TEXT
        case "array":
            return st.lists(values(schema["items"]), max_size=3)
        case "object" if "properties" in schema:
            return parts(schema)
        case "object" if isinstance(schema.get("additionalProperties"), dict):
            return st.dictionaries(TEXT, values(schema["additionalProperties"]), max_size=2)
        case "object":
            return st.dictionaries(TEXT, JSON, max_size=3)
        case _:
            return st.none()


@st.composite
def parts(draw: st.DrawFn, schema: dict[str, Any]) -> dict[str, Any]:
    """A mapping with one or two of a part's fields, and those that it must have."""
    properties: dict[str, Any] = schema["properties"]
    some = draw(st.lists(st.sampled_from(sorted(properties)), max_size=2, unique=True))
    return {
        name: draw(values(properties[name]))
        for name in dict.fromkeys([*schema.get("required", []), *some])
    }


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
@given(parts(DEFS["RunSpec"]))
def test_a_run_survives_writing_and_reading(spec: dict[str, Any]) -> None:
    try:
        run = load.from_dict({"metadata": {"name": "peony"}, "spec": spec})
    except InputError:
        reject()
    for full in (False, True):
        text = dump.to_yaml(run, full=full)
        assert load.from_dict(yaml_text.mapping(text, "written")) == run


@settings(max_examples=100, deadline=None)
@given(st.dictionaries(TEXT, JSON, max_size=3))
def test_whatever_the_data_a_refusal_has_words(data: dict[str, Any]) -> None:
    with pytest.raises(InputError) as caught:
        load.from_dict({"metadata": {"name": "a"}, "spec": {**data, "nothing": 0}})
    assert "nothing=0: no such field" in str(caught.value)
