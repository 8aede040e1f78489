"""The global names that the gate knows, by what it does with a sketch that uses them."""

from __future__ import annotations

import tomllib
from importlib.resources import files
from typing import Any

from watercolour.api.reasons import ViolationCode

_DATA = files("watercolour.sketch").joinpath("data")
_LISTS: dict[str, Any] = tomllib.loads(_DATA.joinpath("names.toml").read_text("utf-8"))


def _names(group: str) -> frozenset[str]:
    return frozenset(_LISTS[group].split())


ECMASCRIPT: frozenset[str] = _names("ecmascript")
"""Globals of the language without a way to code, clock or network."""

P5: frozenset[str] = _names("p5")
"""p5's harmless functions, variables and constants."""

ENTRY_POINTS: frozenset[str] = _names("entry_points")
"""Functions that p5 calls when the sketch defines them."""

NEEDED: frozenset[str] = _names("needed")
"""Names that a sketch may not declare at its top level: others would get the sketch's own."""

REFUSED: dict[str, ViolationCode] = {
    name: ViolationCode(group)
    for group in (
        "external_access",
        "dynamic_code",
        "harness_tampering",
        "text_label",
        "bare_primitives",
    )
    for name in _names(group)
}
"""Known globals that no sketch may touch, with their violation code."""

KNOWN: frozenset[str] = (
    frozenset(REFUSED)
    | ECMASCRIPT
    | P5
    | ENTRY_POINTS
    | frozenset(_DATA.joinpath("other_globals.txt").read_text("utf-8").split())
    | {"brush"}
)
"""Every global of the browser, p5 and p5.brush: assigning to one is never a new variable."""

NUMBER_FUNCTIONS: frozenset[str] = _names("number_functions")
"""Global functions that return a number whatever they are given."""

NUMBER_VARIABLES: frozenset[str] = _names("number_variables")
"""Global variables and constants that are numbers."""

STATICS: dict[str, frozenset[str]] = {k: frozenset(v.split()) for k, v in _LISTS["statics"].items()}
"""Members of built-in objects that lead nowhere else; ``Math`` and ``console`` have no others."""

NAMESPACES: frozenset[str] = frozenset(STATICS) | {"console", "Math"}
"""Globals whose members are used and whose value is not: an alias would hide what is called."""

CODE_MEMBERS: frozenset[str] = _names("code_members")
"""Member names that lead to code or to prototypes."""

PAGE_MEMBERS: frozenset[str] = _names("page_members")
"""Member names that lead out of the painting to the page."""

THIS_DATA: frozenset[str] = _names("this_data")
"""Members of ``this`` that are plainly data, although a global has the same name."""

SECRETS: frozenset[str] = _names("secrets")
"""Lower-case words that no text of a sketch may hold, read forwards or backwards."""
