"""Sketches that the tests of the gate start from."""

from __future__ import annotations

from pathlib import Path

from watercolour.api.rollout import Violation
from watercolour.api.spec import Gate
from watercolour.sketch import gate

GOOD = sorted((Path(__file__).parents[2] / "data" / "sketches").glob("*.js"))

FRAME = """\
function setup() {
  createCanvas(192, 192, WEBGL);
  noLoop();
}
function draw() {
  background(250);
  %s
  brush.fill("#d8382b", 120);
  brush.circle(0, 0, 60);
}
"""
"""A good sketch with room for one statement, which starts at line 7, column 3."""


def framed(statement: str) -> str:
    """Put a statement into a sketch that is otherwise good."""
    return FRAME % statement


def violations(sketch: str, **options: object) -> tuple[Violation, ...]:
    """Check a sketch under the default gate, or under one with other options."""
    return gate.check(sketch, Gate.model_validate(options))


def codes(sketch: str, **options: object) -> list[str]:
    """Return the codes of a sketch's violations, in order."""
    return [violation.code.value for violation in violations(sketch, **options)]
