"""Write a run's specification back as YAML that :mod:`watercolour.api.load` reads."""

from __future__ import annotations

from typing import Any

from watercolour.api.spec import WatercolourRun


def to_dict(run: WatercolourRun, *, full: bool = False) -> dict[str, Any]:
    """The run as plain data with camelCase names, without its status.

    Args:
        run: the run.
        full: every field with the value in force, instead of what differs from the defaults.
    """
    spec = run.spec.model_dump(mode="json", by_alias=True, exclude_defaults=not full)
    whole: dict[str, Any] = {
        "apiVersion": run.api_version,
        "kind": run.kind,
        "metadata": run.metadata.model_dump(mode="json"),
    }
    return {**whole, "spec": spec} if spec else whole


def to_yaml(run: WatercolourRun, *, full: bool = False) -> str:
    """The run as YAML; see :func:`to_dict`."""
    from watercolour.api import yaml_text

    return yaml_text.write(to_dict(run, full=full))
