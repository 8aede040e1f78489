"""Which fields only a cluster can honour.

The same specification runs on one machine and in a cluster. A field that is marked
:data:`~watercolour.api.part.CLUSTER` speaks of pods, claims or queues. On one machine most of them
change nothing about the training and are passed over; those that would change what is trained are
refused there, so that nobody gets another training than the one asked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel

from watercolour.api.errors import InputError
from watercolour.api.part import CLUSTER
from watercolour.api.problems import Problem
from watercolour.api.reasons import Reason
from watercolour.api.spec import WatercolourRun

#: Cluster fields without which the training would be another one, and what to do on one machine.
REFUSED = {
    "spec.prompts.dataset": "List the subjects in spec.prompts.subjects.",
    "spec.references.dataset": "Download the pool and name its folder in spec.references.pool.",
    "spec.references.claim": "Name the pool's folder in spec.references.pool.",
    "spec.references.configMap": "Name the pool's folder in spec.references.pool.",
    "spec.trainer.replicas": "Leave it at 1.",
    "spec.judge.deploy": "Start the model yourself and name its address in spec.judge.endpoint.",
    "spec.suspend": "Set it to false, or stop the run with Ctrl-C.",
}


def passed_over(run: WatercolourRun) -> tuple[str, ...]:
    """Cluster fields that differ from their defaults and change nothing on one machine."""
    return tuple(path for path, _ in _changed(run.spec, "spec.", False) if path not in REFUSED)


def require_one_machine(run: WatercolourRun) -> None:
    """Check that one machine can train what the specification asks for.

    Raises:
        InputError: it cannot (InvalidSpec); the message names every such field and the remedy.
    """
    found = [
        Problem(path, value, "needs a cluster", REFUSED[path])
        for path, value in _changed(run.spec, "spec.", False)
        if path in REFUSED
    ]
    if found:
        first = found[0]
        raise InputError(
            Reason.INVALID_SPEC,
            "\n".join(str(problem) for problem in found),
            field=first.field,
            value=first.value,
        )


def _changed(part: BaseModel, prefix: str, in_cluster: bool) -> Iterator[tuple[str, Any]]:
    """Paths and values of cluster fields that are not at their defaults."""
    for name, info in type(part).model_fields.items():
        value = getattr(part, name)
        path = f"{prefix}{info.alias or name}"
        marked = in_cluster or CLUSTER in info.metadata
        if value == info.get_default(call_default_factory=True):
            continue
        if isinstance(value, BaseModel) and path not in REFUSED:
            yield from _changed(value, f"{path}.", marked)
        elif marked:
            yield path, value
