"""What the pinned p5.brush build exports, and which of it a gate may allow.

``data/methods.txt`` is generated from the vendored build; a browser test compares the two.
"""

from __future__ import annotations

from importlib.resources import files

from watercolour.api.errors import InputError
from watercolour.api.reasons import Reason
from watercolour.api.spec import Gate

METHODS: frozenset[str] = frozenset(
    files("watercolour.sketch").joinpath("data/methods.txt").read_text("utf-8").split()
)
"""The 47 functions of the library's global ``brush``; its three classes are not among them."""

TEN: frozenset[str] = frozenset(
    {
        "beginShape",
        "circle",
        "endShape",
        "fill",
        "fillBleed",
        "fillTexture",
        "noFill",
        "noStroke",
        "scaleBrushes",
        "vertex",
    }
)
"""The methods that the system prompt ``ten-methods`` teaches."""

PAINTERS: frozenset[str] = frozenset(
    {
        "arc",
        "box",
        "circle",
        "endShape",
        "endStroke",
        "flowLine",
        "hatch",
        "hatchArray",
        "line",
        "polygon",
        "rect",
        "spline",
        "wash",
    }
)
"""Methods that leave paint on the canvas: an admitted sketch calls at least one of them."""


def allowed(options: Gate) -> frozenset[str]:
    """Return the methods that ``options.allow`` admits.

    ``ten`` includes ``load``, which every template of the library shows and which paints nothing.

    Raises:
        InputError: a listed name is not an export of the library.
    """
    if options.allow == ("all",):
        return METHODS
    if options.allow == ("ten",):
        return TEN | {"load"}
    unknown = sorted(set(options.allow) - METHODS)
    if unknown:
        raise InputError(
            Reason.INVALID_SPEC,
            f"spec.recipe.gate.allow names {', '.join(unknown)}, which p5.brush does not export.",
            remedy=f"Use names out of: {', '.join(sorted(METHODS))}.",
            field="spec.recipe.gate.allow",
            value=unknown,
        )
    return frozenset(options.allow)
