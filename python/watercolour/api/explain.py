"""Turn pydantic's errors into problems that a person can act on."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from watercolour.api import part
from watercolour.api.part import fields_of, submodel
from watercolour.api.problems import ABSENT, RULE, Problem, quote
from watercolour.api.spec import WatercolourRun

if TYPE_CHECKING:
    from pydantic import ValidationError
    from pydantic_core import ErrorDetails

#: What a value must be, by pydantic's error type; the remedy says to make it so.
_KINDS = {
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "string": "text",
    "tuple": "a list",
    "dict": "a mapping of fields",
    "model": "a mapping of fields",
}
_BOUNDS = {
    "greater_than": ("not above {gt:g}", "Set it above {gt:g}."),
    "greater_than_equal": ("below {ge:g}", "Set it to {ge:g} or more."),
    "less_than": ("not below {lt:g}", "Set it below {lt:g}."),
    "less_than_equal": ("above {le:g}", "Set it to {le:g} or less."),
    "too_short": (
        "has {actual_length} entries, needs {min_length}",
        "Give at least {min_length}.",
    ),
    "string_too_short": ("shorter than {min_length} characters", "Fill it in, or leave it out."),
    "string_too_long": ("longer than {max_length} characters", "Shorten it."),
    "finite_number": ("not a finite number", "Give a number that is neither infinite nor NaN."),
}

#: Names under which people would put a secret, whose value no message may repeat.
_SECRET = re.compile(r"key|token|passw|secret|credential", re.IGNORECASE)
_SECRET_REMEDY = "Name a Secret by secretRef, or give a file to the command line."


def problems(error: ValidationError, data: Mapping[str, Any]) -> list[Problem]:
    """One problem for each field at fault, in the order of the fields.

    Args:
        error: what pydantic raised for ``data``.
        data: the input, by camelCase names.
    """
    by_field: dict[str, list[Problem]] = {}
    for detail in error.errors(include_url=False):
        for problem in _from_detail(detail, data):
            by_field.setdefault(problem.field, []).append(problem)
    # Branches of a union fail together. The last one is the widest, and a fault deeper down says
    # more than that the whole is of another kind.
    return [
        found[-1]
        for field, found in by_field.items()
        if not any(other.startswith((f"{field}[", f"{field}.")) for other in by_field)
    ]


def without_nulls(data: Mapping[str, Any], model: type[BaseModel]) -> dict[str, Any]:
    """The data less the fields left empty, which mean their default, as in Kubernetes.

    Free mappings, such as ``grpo``, keep their nulls.
    """
    known = fields_of(model)
    kept: dict[str, Any] = {}
    for name, value in data.items():
        if name not in known or not isinstance(value, Mapping):
            if value is not None or name not in known:
                kept[name] = value
            continue
        below = submodel(known[name].annotation)
        if below:
            kept[name] = without_nulls(value, below)
        elif known[name].annotation != dict[str, Any]:
            kept[name] = {key: inner for key, inner in value.items() if inner is not None}
        else:
            kept[name] = value
    return kept


def _from_detail(detail: ErrorDetails, data: Mapping[str, Any]) -> Iterator[Problem]:
    kind, context = detail["type"], detail.get("ctx", {})
    path = _path_in(detail["loc"], data, keep_last=kind in ("missing", "extra_forbidden"))
    field = _dotted(path)
    if kind == RULE:
        for problem in context["problems"]:
            yield problem._replace(field=".".join(filter(None, (field, problem.field))))
    elif kind == "extra_forbidden":
        if _SECRET.search(str(path[-1])):
            yield Problem(field, ABSENT, "no such field, and no place for a secret", _SECRET_REMEDY)
        else:
            yield Problem(field, detail["input"], "no such field", _nearest(path))
    elif kind == "missing":
        yield Problem(field, ABSENT, "missing", f"Add {path[-1]}: {_description(path)}")
    elif kind == "literal_error":
        yield Problem(field, detail["input"], *_not_a_choice(detail["input"], context["expected"]))
    elif kind == "string_pattern_mismatch":
        fault, remedy = part.SHAPES.get(
            context["pattern"], ("of the wrong form", f"Match {context['pattern']}.")
        )
        yield Problem(field, detail["input"], fault, remedy)
    elif kind in _BOUNDS:
        fault, remedy = _BOUNDS[kind]
        yield Problem(field, detail["input"], fault.format(**context), remedy.format(**context))
    else:
        family = kind.split("_", 1)[0]
        wanted = _KINDS.get(family)
        if wanted and isinstance(detail["input"], str) and detail["input"][:1].isdigit():
            remedy = f"Write {detail['input']} without quotes."
            yield Problem(field, detail["input"], f"text, not {wanted}", remedy)
        elif wanted:
            hint = "; quote what YAML takes for a number" if family == "string" else ""
            yield Problem(field, detail["input"], f"not {wanted}", f"Give {wanted}{hint}.")
        else:
            message = detail["msg"][:1].lower() + detail["msg"][1:].rstrip(".")
            yield Problem(field, detail["input"], message, _description(path))


def _path_in(loc: Sequence[str | int], data: Any, *, keep_last: bool) -> tuple[str | int, ...]:
    """The part of pydantic's location that exists in the data: unions add tags of their own."""
    path: list[str | int] = []
    for position, step in enumerate(loc):
        is_last = position == len(loc) - 1
        if _holds(data, step):
            data = data[step]
        elif not (keep_last and is_last):
            continue
        path.append(step)
    return tuple(path)


def _holds(data: Any, step: str | int) -> bool:
    if isinstance(data, Mapping):
        return step in data
    return isinstance(data, (list, tuple)) and isinstance(step, int) and step < len(data)


def _dotted(path: Sequence[str | int]) -> str:
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}"
    return text.removeprefix(".")


def _not_a_choice(value: Any, expected: str) -> tuple[str, str]:
    """Fault and remedy for a word outside a closed list; ``expected`` is pydantic's wording."""
    choices = [word.strip().strip("'") for word in expected.replace(" or ", ", ").split(",")]
    fault = f"not one of {', '.join(choices)}"
    if isinstance(value, bool):
        words = ("on", "yes") if value else ("off", "no")
        meant = [choice for choice in choices if choice.lower() in words]
        if meant:
            return (
                f"YAML reads {meant[0]} without quotes as {quote(value)}",
                f'Write "{meant[0]}" in quotes.',
            )
    lowered = {choice.lower(): choice for choice in choices}
    near = difflib.get_close_matches(str(value).lower(), lowered, n=1)
    return fault, f"Did you mean {lowered[near[0]]}?" if near else f"Use {choices[0]}."


def _nearest(path: Sequence[str | int]) -> str:
    """The remedy for an unknown field: a near name here, the same name elsewhere, or all names."""
    name = str(path[-1])
    here = _model_at(path[:-1])
    names = list(fields_of(here)) if here else []
    lowered = {known.lower(): known for known in names}
    near = difflib.get_close_matches(name.replace("_", "").lower(), lowered, n=1, cutoff=0.7)
    if near:
        return f"Did you mean {lowered[near[0]]}?"
    elsewhere = [known for known in _all_paths() if known.rsplit(".", 1)[-1] == name]
    if elsewhere:
        return f"Did you mean {' or '.join(elsewhere[:3])}?"
    return f"Fields here: {', '.join(names)}." if names else "Leave it out."


def _description(path: Sequence[str | int]) -> str:
    """The description of the field at a path, or an empty string."""
    parent = _model_at(path[:-1])
    if parent is None or not path:
        return ""
    info = fields_of(parent).get(str(path[-1]))
    return (info.description or "") if info else ""


def _model_at(path: Sequence[str | int]) -> type[BaseModel] | None:
    """The model whose fields stand below a path, or None."""
    model: type[BaseModel] | None = WatercolourRun
    for step in path:
        if isinstance(step, int) or model is None:
            continue
        found = fields_of(model)
        model = submodel(found[step].annotation) if step in found else None
    return model


@cache
def _all_paths() -> tuple[str, ...]:
    """Every field of a run as a dotted camelCase path."""

    def walk(model: type[BaseModel], prefix: str) -> Iterator[str]:
        for name, info in fields_of(model).items():
            path = f"{prefix}{name}"
            yield path
            below = submodel(info.annotation)
            if below is not None:
                yield from walk(below, f"{path}.")

    return tuple(walk(WatercolourRun, ""))
