"""Read a run's specification, and say what is wrong with it in words that name the remedy."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from watercolour.api import explain
from watercolour.api.errors import InputError
from watercolour.api.problems import ABSENT, Problem, without_password
from watercolour.api.reasons import Reason
from watercolour.api.spec import WatercolourRun

#: Largest specification that is read, in bytes; the API server takes no more either.
LARGEST_FILE = 2**20


def run(path: Path | str, overrides: Mapping[str, str] | None = None) -> WatercolourRun:
    """The run that a YAML or JSON file describes; ``-`` reads standard input.

    Args:
        path: the file.
        overrides: camelCase paths to YAML values, as in ``{"spec.trainer.steps": "3"}``.

    Raises:
        InputError: the file cannot be read, is not YAML or breaks a rule (InvalidSpec).
    """
    source = "standard input" if str(path) == "-" else str(path)
    return from_dict(_yaml().mapping(_read(path, source), source), overrides, source=source)


def recipe(path: Path) -> dict[str, Any]:
    """What a recipe's file holds: the fields of ``spec.recipe``, checked.

    Raises:
        InputError: the file cannot be read, is not YAML or breaks a rule (InvalidSpec).
    """
    found = _yaml().mapping(_read(path, str(path)), str(path), "name: and weights:")
    from_dict({"metadata": {"name": "recipe"}, "spec": {"recipe": found}}, source=str(path))
    return found


def from_dict(
    data: Mapping[str, Any],
    overrides: Mapping[str, str] | None = None,
    *,
    source: str = "the specification",
) -> WatercolourRun:
    """The run that plain data (camelCase, as parsed from YAML or JSON) describe.

    Raises:
        InputError: it breaks a rule (InvalidSpec); all faults found are in the one message.
    """
    whole = dict(data)
    for path, text in (overrides or {}).items():
        whole = _with_override(whole, path, text)
    whole = explain.without_nulls(whole, WatercolourRun)
    try:
        return WatercolourRun.model_validate(whole, by_alias=True, by_name=False)
    except ValidationError as error:
        # pydantic's own words would put a password of an address into the traceback.
        raise _input_error(explain.problems(error, whole), source) from None


def _read(path: Path | str, source: str) -> str:
    try:
        if str(path) == "-":
            raw = sys.stdin.buffer.read(LARGEST_FILE + 1)
        else:
            with Path(path).open("rb") as file:
                raw = file.read(LARGEST_FILE + 1)
    except OSError as error:
        raise InputError(
            Reason.INVALID_SPEC,
            f"{source}: cannot be read ({error.strerror}).",
            remedy="Name a readable YAML file, or - for standard input.",
            field="path",
            value=source,
        ) from error
    if len(raw) > LARGEST_FILE:
        raise InputError(
            Reason.INVALID_SPEC,
            f"{source}: larger than {LARGEST_FILE} bytes.",
            remedy="Put data sets and pools into files of their own.",
        )
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise InputError(
            Reason.INVALID_SPEC,
            f"{source}, line {line}: not valid UTF-8 (byte {raw[error.start]:#04x}).",
            remedy="Save the file as UTF-8.",
        ) from error


def _with_override(data: Mapping[str, Any], path: str, text: str) -> dict[str, Any]:
    """The data with one value replaced; nothing that was passed in changes."""
    names = path.split(".")
    if not all(names):
        raise _override_error(
            path, text, "not a path of field names.", "Write it as spec.trainer.steps=3."
        )
    whole = dict(data)
    at = whole
    for position, name in enumerate(names[:-1]):
        below = at.get(name)
        if below is not None and not isinstance(below, Mapping):
            outer = ".".join(names[: position + 1])
            raise _override_error(
                path, text, f"{outer} holds a value, not fields.", f"Set {outer} itself."
            )
        at[name] = dict(below or {})
        at = at[name]
    at[names[-1]] = _yaml().value(text, f"override {path}={text}")
    return whole


def _override_error(path: str, text: str, fault: str, remedy: str) -> InputError:
    return InputError(
        Reason.INVALID_SPEC,
        f"override {path}={text}: {fault}",
        remedy=remedy,
        field=path,
        value=text,
    )


def _input_error(found: list[Problem], source: str) -> InputError:
    first = found[0]
    if len(found) == 1:
        text, remedy = str(first._replace(remedy="")), first.remedy
    else:
        text = f"{source} has {len(found)} faults:\n" + "\n".join(f"  {fault}" for fault in found)
        remedy = ""
    value = None if first.value is ABSENT else first.value
    if isinstance(value, str):
        value = without_password(value)
    return InputError(Reason.INVALID_SPEC, text, remedy=remedy, field=first.field, value=value)


def _yaml() -> Any:
    """The YAML reader, imported when first needed: most importers never parse a file."""
    from watercolour.api import yaml_text

    return yaml_text
