"""Specifications for hypothesis: values at, inside and outside the bounds of every field."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from watercolour.api.spec import WatercolourRun

SCHEMA = WatercolourRun.model_json_schema(by_alias=True)
DEFS: dict[str, Any] = SCHEMA["$defs"]

#: Mappings that are free to hold anything; what stands in them is judged by other tests.
FREE = ("chatTemplateKwargs", "grpo", "podTemplates")

WRONG_KINDS = st.sampled_from([None, True, "3", "", 1.5, -1, [], [1], {}, {"a": 1}])
_WORDS = (
    "a",
    "0",
    "-",
    " ",
    "a b",
    "a/b",
    "a/b/c",
    "./a",
    "/",
    "~",
    "a/",
    "牡丹",
    "\u00a0",
    "a\nb",
)
_LONG = ("x" * 63, "x" * 64, "x" * 1000, "x" * 1001)
_SHAPED = ("http://a", "https://b/c d", "http://u@h", "a:1", "a@sha256:1", "o/n@1", "o/n@é", "all")
_QUANTITIES = ("1Gi", "1.5", "500m", "01", "1e3", "1GiB")
TEXTS = st.sampled_from((*_WORDS, *_LONG, *_SHAPED, *_QUANTITIES))


def specs() -> SearchStrategy[dict[str, Any]]:
    """Specifications with a few fields set, some of them wrongly."""
    return _part(DEFS["RunSpec"])


def _values(schema: dict[str, Any]) -> SearchStrategy[Any]:
    right = _right(schema)
    # One in eight is of another kind.
    return st.integers(0, 7).flatmap(lambda roll: right if roll else WRONG_KINDS)


def _right(schema: dict[str, Any]) -> SearchStrategy[Any]:
    if "$ref" in schema:
        return _right(DEFS[schema["$ref"].rsplit("/", 1)[-1]])
    if "anyOf" in schema:
        return st.one_of([_right(branch) for branch in schema["anyOf"]])
    if "enum" in schema or "const" in schema:
        return st.sampled_from([*schema.get("enum", [schema.get("const")]), "Other"])
    match schema.get("type"):
        case "integer":
            return _whole(schema)
        case "number":
            return _numbers(schema)
        case "boolean":
            return st.booleans()
        case "string":
            return TEXTS | st.from_regex(schema["pattern"]) if "pattern" in schema else TEXTS
        case "array":
            return st.lists(_values(schema["items"]), max_size=3)
        case "object" if "properties" in schema:
            return _part(schema)
        case "object" if isinstance(schema.get("additionalProperties"), dict):
            names = st.sampled_from(["cpu", "memory", "nvidia.com/gpu"])
            return st.dictionaries(names, _values(schema["additionalProperties"]), max_size=2)
        case _:
            return st.none()


def _whole(schema: dict[str, Any]) -> SearchStrategy[Any]:
    low, high = schema.get("minimum", 0), schema.get("maximum", 2**31 - 1)
    # No 3.0: kubectl sends it as 3, and the API server takes it or not, by the rules of the field.
    edges = [low - 1, low, low + 1, high, high + 1, low + 0.5, 2**40]
    return st.sampled_from(edges) | st.integers(low, low + 40)


def _numbers(schema: dict[str, Any]) -> SearchStrategy[Any]:
    low = schema.get("minimum", schema.get("exclusiveMinimum", 0))
    high = schema.get("maximum", schema.get("exclusiveMaximum", 1e6))
    edges = [low, high, low - 1e-9, high + 1e-9, 1, 0.25, 0.5]
    return st.sampled_from(edges) | st.floats(low, high, allow_nan=False, width=32)


@st.composite
def _part(draw: st.DrawFn, schema: dict[str, Any]) -> dict[str, Any]:
    properties: dict[str, Any] = {
        name: below for name, below in schema["properties"].items() if name not in FREE
    }
    some = draw(st.lists(st.sampled_from(sorted(properties)), max_size=3, unique=True))
    needed = schema.get("required", []) if draw(st.integers(0, 7)) else []
    return {name: draw(_values(properties[name])) for name in dict.fromkeys([*needed, *some])}
