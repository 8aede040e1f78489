"""The gate's static side: what a sketch must be before anybody renders it.

A sketch is refused with every violation that was found, in the order of their places; those
without a place, for something that is missing, come last. Nothing is raised for what a sketch
contains.
"""

from __future__ import annotations

import dataclasses
import math
from itertools import chain, islice

from watercolour.api.reasons import ViolationCode
from watercolour.api.rollout import Violation
from watercolour.api.spec import Gate
from watercolour.sketch import (
    extract,
    flow,
    rules_lexical,
    rules_members,
    rules_names,
    rules_shape,
    soundness,
)
from watercolour.sketch.exports import allowed
from watercolour.sketch.parse import MAX_DEPTH, TooDeepError, parse
from watercolour.sketch.reading import read

MAX_VIOLATIONS = 20
"""A verdict lists no more; a sketch that is all violations is not worth a longer list."""

_RULES = (
    rules_lexical.check,
    rules_names.check,
    rules_names.check_declarations,
    rules_members.check,
    flow.check,
    rules_shape.check,
)


@dataclasses.dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a reply at the static gate; ``sketch`` is None when it held none."""

    sketch: str | None
    violations: tuple[Violation, ...]

    @property
    def admitted(self) -> bool:
        """Whether the sketch may be rendered."""
        return not self.violations


def inspect(completion: str, options: Gate) -> Verdict:
    """Extract the sketch of a reply and check it.

    Raises:
        InputError: ``options.allow`` names a method that p5.brush does not export.
    """
    sketch = extract.extract(completion)
    if sketch is None:
        missing = Violation(
            code=ViolationCode.NO_SKETCH_IN_RESPONSE,
            message="The reply holds no sketch; answer with one fenced block of JavaScript.",
        )
        return Verdict(None, (missing,))
    return Verdict(sketch, check(sketch, options))


def check(sketch: str, options: Gate) -> tuple[Violation, ...]:
    """Return the sketch's violations, in the order of their places; empty when it is admitted.

    Raises:
        InputError: ``options.allow`` names a method that p5.brush does not export.
    """
    methods = allowed(options)
    if len(sketch) > options.max_characters:
        message = (
            f"The sketch has {len(sketch):,} characters; {options.max_characters:,} is the limit."
        )
        return (Violation(code=ViolationCode.TOO_LONG, message=message),)
    fault = soundness.check_text(sketch)
    if fault is not None:
        return (fault,)
    try:
        syntax = parse(sketch)
    except TooDeepError:
        message = f"The sketch nests more than {MAX_DEPTH:,} levels deep; write it flatter."
        return (Violation(code=ViolationCode.TOO_LONG, message=message),)
    fault = soundness.check_tree(syntax)
    if fault is not None:
        return (fault,)
    reading = read(syntax, methods)
    # Every rule reports in document order, so the first few of each hold the first few of all.
    found = chain.from_iterable(islice(rule(reading), MAX_VIOLATIONS) for rule in _RULES)
    ordered = sorted(set(found), key=_place)
    return tuple(ordered[:MAX_VIOLATIONS])


def _place(violation: Violation) -> tuple[float, int, str]:
    return (violation.line or math.inf, violation.column or 0, violation.code)
