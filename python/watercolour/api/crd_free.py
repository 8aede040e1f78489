"""What a structural schema says of free mappings: pod templates and TRL's own settings.

Free mappings are kept whatever stands in them. CEL looks into a mapping only where its fields are
declared, so those that a rule speaks of are declared here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from watercolour.api import pod_templates, rules
from watercolour.api.crd_rule import Rule

#: A structural schema.
Schema = dict[str, Any]

FREE: Schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}

_TEXTS: Schema = {"type": "object", "additionalProperties": {"type": "string"}}

#: Types in GRPOConfig of the fields that the specification sets from fields of its own.
_GRPO_TYPES = {
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
    "min_p": "number",
    "repetition_penalty": "number",
    "generation_kwargs": "object",
    "max_completion_length": "integer",
    "save_steps": "number",
    "save_total_limit": "integer",
    "seed": "integer",
    "use_vllm": "boolean",
    "vllm_mode": "string",
    "vllm_model_impl": "string",
    "vllm_enable_sleep_mode": "boolean",
    "vllm_structured_outputs_regex": "string",
    "vllm_server_base_url": "string",
    "vllm_server_host": "string",
    "vllm_server_port": "integer",
    "vllm_server_timeout": "number",
    "vllm_group_port": "integer",
    "vllm_gpu_memory_utilization": "number",
    "vllm_max_model_length": "integer",
    "vllm_tensor_parallel_size": "integer",
    "output_dir": "string",
    "report_to": "string",
    "gradient_accumulation_steps": "integer",
    "steps_per_generation": "integer",
    "generation_batch_size": "integer",
    "num_train_epochs": "number",
    "model_init_kwargs": "object",
    "chat_template_kwargs": "object",
    "reward_weights": "array",
    "reward_funcs": "array",
    "shuffle_dataset": "boolean",
    "use_transformers_continuous_batching": "boolean",
    "transformers_continuous_batching_config": "object",
    "use_transformers_paged": "boolean",
    "save_strategy": "string",
    "resume_from_checkpoint": "string",
    "fsdp": "boolean",
    "fsdp_config": "object",
}

#: Types in a pod's specification of the fields that no template may set; true or false otherwise.
_POD_TYPES: Mapping[str, Schema] = {
    "ephemeralContainers": {"type": "array", "items": FREE},
    "restartPolicy": {"type": "string"},
    "serviceAccount": {"type": "string"},
    "serviceAccountName": {"type": "string"},
}

#: Types in a pod's specification of the fields that place it.
_PLACEMENT_TYPES: Mapping[str, Schema] = {
    "affinity": FREE,
    "imagePullSecrets": {"type": "array", "items": {**FREE, "required": ["name"]}},
    "nodeSelector": _TEXTS,
    "priorityClassName": {"type": "string"},
    "schedulerName": {"type": "string"},
    "tolerations": {"type": "array", "items": FREE},
    "topologySpreadConstraints": {
        "type": "array",
        "items": {**FREE, "required": ["topologyKey"]},
    },
}


def by_field() -> dict[str, Schema]:
    """The schemas of free mappings, by ``Model.field``."""
    templates = {f"PodTemplates.{name}": _template(_pod()) for name in _with_containers()}
    return {
        "Trainer.grpo": {**FREE, "properties": _grpo()},
        **templates,
        "PodTemplates.renderers": _template(_placement()),
    }


def _with_containers() -> tuple[str, ...]:
    """Components whose containers a template may change."""
    return ("trainer", "env", "scorer", "judge")


def _template(spec: Schema) -> Schema:
    metadata = {
        "type": "object",
        "description": "Labels and annotations of the pods.",
        "properties": {
            "labels": {
                **_TEXTS,
                "description": "Further labels of the pods.",
                "maxProperties": 50,
                "x-kubernetes-validations": [_own_labels().as_dict()],
            },
            "annotations": {**_TEXTS, "description": "Further annotations of the pods."},
        },
    }
    return {"type": "object", "properties": {"metadata": metadata, "spec": spec}}


def _own_labels() -> Rule:
    ours = " || ".join(f"name.startsWith('{prefix}')" for prefix in pod_templates.OWN_LABELS)
    return Rule(
        f"!self.exists(name, {ours})",
        f"{{self.filter(name, {ours})[0]}}: NetworkPolicies and the operator know pods by it. "
        "Choose a label with a prefix of your own.",
    )


def _pod() -> Schema:
    closed = {
        name: {
            **_POD_TYPES.get(name, {"type": "boolean"}),
            "description": f"Refused: {why}.",
        }
        for name, why in pod_templates.POD_FIELDS.items()
    }
    refusals = (
        Rule(f"!has(self.{name})", f"{name} cannot be set: {why}. Leave it out.")
        for name, why in pod_templates.POD_FIELDS.items()
    )
    closed |= _placed()
    return {
        **FREE,
        "description": "A pod's specification, as far as it differs from the operator's. "
        "Containers, volumes and the like are merged by name.",
        "properties": closed,
        "x-kubernetes-validations": [rule.as_dict() for rule in refusals],
    }


def _placement() -> Schema:
    return {
        "type": "object",
        "description": "Where the pods may run. Renderers run hostile code, so nothing else of "
        "their pods can change.",
        "properties": _placed(),
    }


def _placed() -> dict[str, Schema]:
    return {
        name: {**_PLACEMENT_TYPES[name], "description": f"As in a pod's specification: {name}."}
        for name in pod_templates.PLACEMENT
    }


def _of_type(kind: str) -> Schema:
    inner = {"object": {"x-kubernetes-preserve-unknown-fields": True}, "array": {"items": FREE}}
    return {"type": kind, **inner.get(kind, {})}


def _grpo() -> Schema:
    refused = {
        name: {
            **_of_type(_GRPO_TYPES[name]),
            "description": f"Refused: set {owner} instead.",
        }
        for name, owner in rules.OWNED_BY_SPEC.items()
    }
    return {
        **refused,
        "num_iterations": {
            "type": "integer",
            "minimum": 1,
            "description": "Optimizer steps that learn from one generation.",
        },
        "vllm_importance_sampling_correction": {
            "type": "boolean",
            "description": "False lets sampling be truncated with engine vllm.",
        },
        "vllm_importance_sampling_mode": {
            "type": "string",
            "description": "A mode that begins with `token` lets sampling be truncated with "
            "engine vllm.",
        },
    }
