"""The columns of ``kubectl get wcr``: where they are read from, and what stands in them.

A column reads one path and shows it as it is, so ``412/600`` and ``6/8`` are ready-made strings in
``status.columns``. What is not known is ``-``, never 0 and never blank.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from watercolour.api.status import UNKNOWN, Columns, Phase, Status

#: ``additionalPrinterColumns`` of the definition.
DEFINED: tuple[dict[str, str], ...] = (
    {
        "name": "Phase",
        "type": "string",
        "jsonPath": ".status.phase",
        "description": "Where the run stands.",
    },
    {
        "name": "Step",
        "type": "string",
        "jsonPath": ".status.columns.step",
        "description": "Optimizer steps done and wanted.",
    },
    {
        "name": "Reward",
        "type": "string",
        "jsonPath": ".status.columns.reward",
        "description": "Mean reward of the newest step; - while none is scored.",
    },
    {
        "name": "Renderers",
        "type": "string",
        "jsonPath": ".status.columns.renderers",
        "description": "Renderer pods ready and wanted.",
    },
    {
        "name": "Scorer",
        "type": "string",
        "jsonPath": ".status.columns.scorer",
        "description": "Ready, Starting, Sleeping or Stopped.",
    },
    {
        "name": "GPU-min",
        "type": "string",
        "jsonPath": ".status.columns.gpuMinutes",
        "description": "GPUs of all components, times the minutes held.",
    },
    {
        "name": "Age",
        "type": "date",
        "jsonPath": ".metadata.creationTimestamp",
        "description": "Since when the run exists.",
    },
)


def of(status: Status, steps: int) -> Columns:
    """The columns for a status.

    Args:
        status: what is known of the run.
        steps: spec.trainer.steps, for a run whose trainer has not answered yet.
    """
    progress, renderers, cost = status.progress, status.renderers, status.cost
    reward = progress.reward.mean if progress else None
    return Columns(
        step=f"{progress.step if progress else 0}/{(progress.steps if progress else 0) or steps}",
        reward=UNKNOWN if reward is None else f"{reward:.2f}",
        renderers=f"{renderers.ready}/{renderers.desired}" if renderers else UNKNOWN,
        scorer=status.scorer or UNKNOWN,
        gpu_minutes=f"{cost.gpu_minutes:.0f}" if cost else UNKNOWN,
    )


def with_defaults(properties: Mapping[str, Any]) -> dict[str, Any]:
    """The phase and the columns of a run that no operator has seen yet, for the schema."""
    shown = properties["columns"]
    strings = {name: {**below, "default": UNKNOWN} for name, below in shown["properties"].items()}
    return {
        "phase": {**properties["phase"], "default": Phase.PENDING.value},
        "columns": {**shown, "properties": strings, "default": dict.fromkeys(strings, UNKNOWN)},
    }
