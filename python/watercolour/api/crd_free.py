"""What a structural schema says of free mappings: pod templates and TRL's own settings.

Free mappings are kept whatever stands in them. CEL looks into a mapping only where its fields are
declared, so those that a rule speaks of are declared here.
"""

from __future__ import annotations

from typing import Any

from watercolour.api import rules

#: Types in GRPOConfig of the fields that the specification sets from fields of its own.
_TYPES = {
    "num_generations": "integer",
    "max_steps": "integer",
    "learning_rate": "number",
    "lr_scheduler_type": "string",
    "warmup_steps": "number",
    "scale_rewards": "string",
    "beta": "number",
    "temperature": "number",
    "top_p": "number",
    "top_k": "integer",
    "max_completion_length": "integer",
    "save_steps": "number",
    "save_total_limit": "integer",
    "seed": "integer",
    "use_vllm": "boolean",
    "output_dir": "string",
    "report_to": "string",
}


def by_field() -> dict[str, dict[str, Any]]:
    """The schemas of free mappings, by ``Model.field``."""
    free: dict[str, Any] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    labels = {
        "type": "object",
        "additionalProperties": {"type": "string"},
    }
    metadata = {
        "type": "object",
        "description": "Labels and annotations of the pods.",
        "properties": {"labels": dict(labels), "annotations": dict(labels)},
    }
    template = {
        "type": "object",
        "properties": {
            "metadata": metadata,
            "spec": {**free, "description": "A pod's specification, merged by container name."},
        },
    }
    placement = {
        "type": "object",
        "description": "Where the pods may run. Renderers run hostile code, so nothing else of "
        "their pods can change.",
        "properties": {
            name: {"x-kubernetes-preserve-unknown-fields": True, "description": f"A pod's {name}."}
            for name in rules.RENDERER_TEMPLATE_FIELDS
        },
    }
    return {
        "Trainer.grpo": {**free, "properties": _grpo_properties()},
        **{f"PodTemplates.{name}": template for name in ("trainer", "env", "scorer", "judge")},
        "PodTemplates.renderers": {
            "type": "object",
            "properties": {"metadata": metadata, "spec": placement},
        },
    }


def _grpo_properties() -> dict[str, Any]:
    refused = {
        name: {
            "type": _TYPES[name],
            "nullable": True,
            "description": f"Refused here: set {owner} instead.",
        }
        for name, owner in rules.OWNED_BY_SPEC.items()
    }
    return {
        **refused,
        "vllm_importance_sampling_correction": {
            "type": "boolean",
            "description": "False lets sampling be truncated with engine vllm.",
        },
        "vllm_importance_sampling_mode": {
            "type": "string",
            "maxLength": 100,
            "description": "A mode that begins with `token` lets sampling be truncated with "
            "engine vllm.",
        },
    }
