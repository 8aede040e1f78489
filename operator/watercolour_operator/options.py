"""The settings from the command line and from a file; each is declared once, in ``settings``.

A setting ``lease_seconds`` is the flag ``--lease-seconds`` and the key ``leaseSeconds`` in the
file. Lists take their flag several times, mappings take KEY=VALUE. Flags win over the file.
"""

from __future__ import annotations

import argparse
import dataclasses
import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, get_type_hints

from watercolour_operator.settings import Images, Settings

TUPLE, MAPPING = tuple[str, ...], dict[str, str]
_LINE = re.compile(r"^    (?:#: (?P<words>.*)|(?P<name>\w+): .*)$")


class OptionError(ValueError):
    """A flag or a key of the file cannot be used; names it, its value and the remedy."""


def add_flags(parser: argparse.ArgumentParser) -> None:
    """One flag for every setting."""
    words = {**described(Settings), **{f"images.{k}": v for k, v in described(Images).items()}}
    for path, kind, default in _settings():
        flag = "--" + path.replace("_", "-").replace(".", "-")
        shown = ", ".join(map(str, default)) if isinstance(default, tuple) else default
        parser.add_argument(
            flag,
            dest=f"setting:{path}",
            action="append" if kind in (TUPLE, MAPPING) else "store",
            metavar="KEY=VALUE" if kind == MAPPING else kind.__name__.upper(),
            help=f"{words.get(path, '')} (default: {shown or 'none'})".replace("%", "%%").strip(),
        )


def described(settings: type) -> dict[str, str]:
    """The comment above each field."""
    found: dict[str, str] = {}
    pending: list[str] = []
    for line in inspect.getsource(settings).splitlines():
        matched = _LINE.match(line)
        if matched and matched["words"] is not None:
            pending.append(matched["words"])
        elif matched:
            found[matched["name"]] = " ".join(pending)
            pending = []
    return found


def settings(args: argparse.Namespace) -> Settings:
    """The settings that the flags and the file of ``--config`` give.

    Raises:
        OptionError: a key or a value cannot be used.
    """
    values = _from_file(Path(args.config)) if args.config else {}
    given = vars(args)
    for path, kind, _ in _settings():
        value = given.get(f"setting:{path}")
        if value is not None:
            if kind == MAPPING:
                value = dict(_pair(path, text) for text in value)
            values[path] = _checked(path, kind, value)
    images = {p.partition(".")[2]: v for p, v in values.items() if p.startswith("images.")}
    rest = {path: value for path, value in values.items() if "." not in path}
    return Settings(**rest, images=Images(**images))


def _settings() -> Iterator[tuple[str, Any, Any]]:
    """Path, type and default of every setting."""
    for prefix, owner in (("", Settings), ("images.", Images)):
        hints = get_type_hints(owner)
        for field in dataclasses.fields(owner):
            if hints[field.name] is Images:
                continue
            default = field.default
            if default is dataclasses.MISSING and callable(field.default_factory):
                default = field.default_factory()
            yield prefix + field.name, hints[field.name], default


def _from_file(path: Path) -> dict[str, Any]:
    from watercolour.api.errors import InputError
    from watercolour.api.yaml_text import mapping

    try:
        data = mapping(path.read_text(encoding="utf-8"), str(path))
    except (OSError, InputError) as error:
        raise OptionError(f"--config {path}: {error}") from error
    kinds = {_key(name): (name, kind) for name, kind, _ in _settings()}
    values: dict[str, Any] = {}
    for key, value in _flat(data):
        if key not in kinds:
            known = ", ".join(sorted(kinds))
            raise OptionError(f"{path}: unknown key {key}. Known are {known}.")
        name, kind = kinds[key]
        values[name] = _checked(key, kind, value)
    return values


def _flat(data: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for key, value in data.items():
        if key == "images" and isinstance(value, Mapping):
            yield from ((f"images.{inner}", image) for inner, image in value.items())
        else:
            yield key, value


def _key(path: str) -> str:
    """``images.scorer_hpsv3`` → ``images.scorerHpsv3``."""
    return re.sub(r"_(\w)", lambda found: found[1].upper(), path)


def _checked(name: str, kind: Any, value: Any) -> Any:
    """The value as its setting wants it."""
    if kind == TUPLE and isinstance(value, Sequence) and not isinstance(value, str):
        return tuple(str(item) for item in value if item)
    if kind == MAPPING and isinstance(value, Mapping):
        return {str(key): str(item) for key, item in value.items()}
    if kind is str and isinstance(value, str):
        return value
    if kind in (int, float) and not isinstance(value, bool):
        try:
            number = kind(value)
        except (TypeError, ValueError):
            pass
        else:
            if number > 0 or (kind is int and number == 0):
                return number
            raise OptionError(f"{name}={value}: must be more than 0.")
    wanted: dict[Any, str] = {TUPLE: "a list of words", MAPPING: "words by name"}
    raise OptionError(f"{name}={value!r}: not {wanted.get(kind, kind.__name__)}.")


def _pair(name: str, text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise OptionError(f"{name}={text!r}: write it as KEY=VALUE.")
    return key, value
