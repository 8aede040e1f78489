"""What the policy is told: system prompt presets, and the request for one subject."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from watercolour.api.errors import InputError
from watercolour.api.reasons import Reason

PRESETS: tuple[str, ...] = ("tiny", "ten-methods", "none")
"""``tiny`` names the task, ``ten-methods`` teaches it, ``none`` leaves the system prompt out."""


def preset(system: str, model: str) -> str:
    """Return the preset that ``spec.prompts.system`` means for a model.

    ``auto`` is ``tiny`` for builtin policies, which were made on it, and ``ten-methods`` for all
    others, which have never seen p5.brush.

    Raises:
        InputError: no such preset.
    """
    if system == "auto":
        return "tiny" if model.startswith("builtin:") else "ten-methods"
    _check(system)
    return system


def _check(system: str) -> None:
    if system not in PRESETS:
        raise InputError(
            Reason.INVALID_SPEC,
            f"spec.prompts.system is {system!r}, which is no system prompt.",
            remedy=f"Use one of: {', '.join(PRESETS)}.",
            field="spec.prompts.system",
            value=system,
        )


def messages(subject: str, system: str) -> list[dict[str, str]]:
    """Return the chat that asks for a painting of the subject, as ``role`` and ``content``.

    ``system`` is a preset's name; :func:`preset` turns ``auto`` into one.

    Raises:
        InputError: no such preset, or an empty subject.
    """
    if not subject.strip():
        raise InputError(
            Reason.INVALID_SPEC,
            "spec.prompts.subjects holds an empty subject.",
            remedy="Name something to paint, such as 'a peach hibiscus'.",
            field="spec.prompts.subjects",
            value=subject,
        )
    _check(system)
    text = _system(system)
    request = {"role": "user", "content": f"Paint {subject.strip()} in loose watercolour."}
    return [{"role": "system", "content": text}, request] if text else [request]


@cache
def _system(name: str) -> str:
    if name == "none":
        return ""
    data = files("watercolour.sketch").joinpath(f"data/prompts/{name}.txt")
    return data.read_text("utf-8").strip()
