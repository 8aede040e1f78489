"""YAML as Kubernetes reads it, with the line in every complaint.

Differs from PyYAML's safe loader in three places: a key that stands twice is refused instead of
silently winning, ``1e-4`` is a number and ``2026-01-01`` is text, as they are to kubectl.
"""

from __future__ import annotations

import re
from typing import Any

import yaml

from watercolour.api.errors import InputError
from watercolour.api.reasons import Reason

#: ``1e-4``: PyYAML wants a dot in it.
_EXPONENT = re.compile(r"^[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)[eE][-+]?[0-9]+$")
_BREAKS = re.compile("[\x85\u2028\u2029]")
_TIMESTAMP = "tag:yaml.org,2002:timestamp"

#: How a run's specification begins.
RUN = "apiVersion: watercolour.dev/v1alpha1 and kind: WatercolourRun"


class _Loader(yaml.SafeLoader):
    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        self.flatten_mapping(node)
        seen: set[str] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, str):
                raise yaml.MarkedYAMLError(
                    None, None, f"the field name {key!r} is not text", key_node.start_mark
                )
            if key in seen:
                raise yaml.MarkedYAMLError(
                    None, None, f"{key} stands here a second time", key_node.start_mark
                )
            seen.add(key)
        return super().construct_mapping(node, deep=deep)


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        """Write what stands twice a second time: people read no anchors."""
        return True

    def represent_str(self, data: str) -> yaml.ScalarNode:
        # Written as they are, these would be read back as line breaks.
        style = '"' if _BREAKS.search(data) else None
        return self.represent_scalar("tag:yaml.org,2002:str", data, style=style)


_Dumper.add_representer(str, _Dumper.represent_str)


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != _TIMESTAMP]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
for _side in (_Loader, _Dumper):
    _side.add_implicit_resolver("tag:yaml.org,2002:float", _EXPONENT, list("-+0123456789."))


def write(data: Any) -> str:
    """YAML in block style, in the order of the data, that :func:`value` reads back."""
    return yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100)


def value(text: str, source: str) -> Any:
    """The one YAML value in a text.

    Raises:
        InputError: it is not YAML (InvalidSpec), with the line.
    """
    try:
        return yaml.load(text, Loader=_Loader)
    except yaml.YAMLError as error:
        raise _input_error(error, source) from error
    except RecursionError as error:
        raise InputError(
            Reason.INVALID_SPEC, f"{source}: nested too deeply.", remedy="Flatten it."
        ) from error


def mapping(text: str, source: str, begins: str = RUN) -> dict[str, Any]:
    """The one YAML mapping in a text.

    Args:
        text: the YAML.
        source: where it is from, for messages.
        begins: what such a mapping begins with, for the remedy.

    Raises:
        InputError: it is not YAML or not a mapping (InvalidSpec).
    """
    data = value(text, source)
    if isinstance(data, dict):
        return data
    what = "empty" if data is None else f"a {type(data).__name__}, not a mapping of fields"
    raise InputError(
        Reason.INVALID_SPEC,
        f"{source}: {what}.",
        remedy=f"Start with {begins}.",
    )


def _input_error(error: yaml.YAMLError, source: str) -> InputError:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error)
    if "expected a single document" in (getattr(error, "context", None) or ""):
        problem = "a second document starts here"
    place = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
    return InputError(
        Reason.INVALID_SPEC,
        f"{source}{place}: not valid YAML, {problem}.",
        remedy="Mend that line (spaces, not tabs; quote text that holds a colon).",
    )
