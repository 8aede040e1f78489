"""Which specification counts: today's, with the fixed fields of the run's start."""

from __future__ import annotations

from watercolour.api.part import FIXED
from watercolour.api.spec import RunSpec
from watercolour_operator.observed import Observed

#: Fields that cannot change once the run has started, by their names in Python and in YAML.
FIXED_FIELDS = {
    name: info.alias or name
    for name, info in RunSpec.model_fields.items()
    if FIXED in info.metadata
}


def in_force(observed: Observed) -> tuple[RunSpec | None, tuple[str, ...]]:
    """The specification in force, and the fixed fields that were changed in vain.

    The API server refuses such a change; an older definition lets it through. The ConfigMap has
    what the run was started with. A specification that has become invalid counts as it was then.
    """
    spec, start = observed.spec, observed.started_with
    if start is None or not observed.status.attempts:
        return spec, ()
    if spec is None:
        return start, ()
    kept = {name: getattr(start, name) for name in FIXED_FIELDS}
    changed = [name for name, value in kept.items() if getattr(spec, name) != value]
    if not changed:
        return spec, ()
    fields = tuple(f"spec.{FIXED_FIELDS[name]}" for name in changed)
    return spec.model_copy(update=kept), fields
