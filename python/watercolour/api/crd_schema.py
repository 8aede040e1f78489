"""Turn pydantic models into structural schemas, as the API server wants them.

A structural schema has no references and no unions: a type at every node, ``null`` pruned before
defaults are filled in, so that a field left empty means its default here and on one machine alike.
What the models say (bounds, patterns, choices, descriptions, defaults) is carried over; nothing is
said twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from pydantic import BaseModel
from pydantic_core import to_jsonable_python

from watercolour.api import crd_rules, part
from watercolour.api.crd_free import FREE
from watercolour.api.crd_rule import Rule

#: Keys of a JSON schema that mean the same in a structural one.
_SAME = (
    "pattern",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
    "minimum",
    "maximum",
)

#: Characters of the longest quantity that its pattern admits.
_LONGEST_QUANTITY = 30

#: Lists of a status whose entries are told apart by a field of theirs.
_LIST_KEYS = {"Condition": "type", "Attempt": "number"}

_FIXED = "Fixed once the run has started."

#: A JSON or structural schema.
Schema = dict[str, Any]


class Converter:
    """Structural schemas of one model and of every model below it."""

    def __init__(
        self,
        model: type[BaseModel],
        *,
        rules: Mapping[str, tuple[Rule, ...]],
        free: Mapping[str, Schema],
        defaults: bool = True,
    ) -> None:
        """Read the model.

        Args:
            model: the outermost model.
            rules: CEL rules by the name of the model that they speak of.
            free: properties that a free mapping is known to have, by ``Model.field``.
            defaults: whether defaults are written; False leaves every field unset.
        """
        whole = model.model_json_schema(by_alias=True)
        self._json: dict[str, Schema] = {model.__name__: whole, **whole.get("$defs", {})}
        self._models: dict[str, type[BaseModel]] = {}
        self._rules, self._free, self._defaults = rules, free, defaults
        self._collect(model)

    def object(self, name: str, description: str = "") -> Schema:
        """The schema of a model, by its class name."""
        model = self._models[name]
        schema: Schema = {"type": "object"}
        text = _joined(description, model.__doc__ or "")
        if text:
            schema["description"] = text
        needed = self._json[name].get("required", [])
        if needed:
            schema["required"] = list(needed)
        schema["properties"] = {
            field: self._property(f"{name}.{field}", self._json[name]["properties"][field], info)
            for field, info in part.fields_of(model).items()
        }
        if name in self._rules:
            schema["x-kubernetes-validations"] = [rule.as_dict() for rule in self._rules[name]]
        return schema

    def _collect(self, model: type[BaseModel]) -> None:
        self._models[model.__name__] = model
        for info in part.fields_of(model).values():
            below = part.submodel(info.annotation)
            if below and below.__name__ not in self._models:
                self._collect(below)

    def _property(self, path: str, node: Schema, info: Any) -> Schema:
        text = info.description or ""
        schema = self._convert(node, text)
        if schema == FREE and path in self._free:
            schema = deepcopy(self._free[path])
        if path in self._rules:
            schema["x-kubernetes-validations"] = [rule.as_dict() for rule in self._rules[path]]
        if "description" not in schema and text:
            schema = {"description": _plain(text), **schema}
        if part.FIXED in info.metadata:
            schema["description"] += f" {_FIXED}"
        default = self._default(schema, info)
        if default is not None:
            schema["default"] = default
        return schema

    def _default(self, schema: Schema, info: Any) -> Any:
        """What the API server fills in; None when the field stays unset.

        An object is filled in only when something in it is: an empty one would say nothing. It is
        filled in whole, because the API server holds the rules against the default as it stands.
        """
        if not self._defaults or info.is_required():
            return None
        value = info.get_default(call_default_factory=True)
        if isinstance(value, BaseModel):
            return defaults_of(schema) or None
        if value is None or value in ((), {}):
            return None
        return _number(to_jsonable_python(value))

    def _convert(self, node: Schema, description: str = "") -> Schema:
        if "$ref" in node:
            name = node["$ref"].rsplit("/", 1)[-1]
            if name in self._models:
                return self.object(name, description)
            return self._convert(self._json[name])
        if "anyOf" in node:
            [branch] = (part for part in node["anyOf"] if part.get("type") != "null")
            return self._convert(branch, description)
        if node.get("pattern") == part.QUANTITY:
            return _quantity()
        if node.get("pattern") == part.DNS_LABEL:
            return {**self._plain(node), "maxLength": 63}
        if "const" in node or "enum" in node:
            return {"type": node["type"], "enum": list(node.get("enum", [node.get("const")]))}
        return self._plain(node)

    def _plain(self, node: Schema) -> Schema:
        kind = node["type"]
        schema: Schema = {"type": kind, **{key: node[key] for key in _SAME if key in node}}
        if schema.get("pattern") in part.SHAPES:
            rule = crd_rules.of_shape(schema.pop("pattern"))
            schema["x-kubernetes-validations"] = [rule.as_dict()]
        for bound in ("Minimum", "Maximum"):
            if f"exclusive{bound}" in node:
                schema[bound.lower()] = _number(node[f"exclusive{bound}"])
                schema[f"exclusive{bound}"] = True
        if kind == "array":
            schema["items"] = self._convert(node["items"])
            key = _LIST_KEYS.get(node["items"].get("$ref", "").rsplit("/", 1)[-1])
            if key:
                schema |= {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [key]}
        if kind == "object":
            values = node.get("additionalProperties", True)
            if values is True:
                return dict(FREE)
            schema["additionalProperties"] = self._convert(values)
        return schema


def defaults_of(schema: Schema) -> dict[str, Any]:
    """The defaults of an object's fields, without those that stay unset."""
    return {
        name: deepcopy(below["default"])
        for name, below in schema["properties"].items()
        if "default" in below
    }


def _quantity() -> Schema:
    """A quantity may be a number in YAML, such as ``cpu: 2``."""
    return {
        "x-kubernetes-int-or-string": True,
        "anyOf": [{"type": "integer"}, {"type": "string"}],
        "minimum": 0,
        "maxLength": _LONGEST_QUANTITY,
        "x-kubernetes-validations": [crd_rules.of_shape(part.QUANTITY, is_quantity=True).as_dict()],
    }


def _number(value: Any) -> Any:
    """60.0 as 60, which is what the API server makes of it."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _joined(description: str, docstring: str) -> str:
    """A field's description and its model's, without saying the same twice."""
    first, second = _plain(description), _plain(docstring)
    if first.rstrip(".") in second:
        return second
    return first if second.rstrip(".") in first else f"{first} {second}"


def _plain(text: str) -> str:
    return " ".join(text.replace("``", "`").split())
