"""The table of generation engines: what one of them cannot do is refused with a remedy."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from watercolour.api import engines, load
from watercolour.api.errors import InputError
from watercolour.api.trainer import Trainer

SERVER = {"endpoint": "http://v:8000"}


def refusal(spec: dict[str, Any]) -> str:
    whole = {
        "apiVersion": "watercolour.dev/v1alpha1",
        "kind": "WatercolourRun",
        "metadata": {"name": "peony"},
        "spec": spec,
    }
    with pytest.raises(InputError) as caught:
        load.from_dict(whole)
    return str(caught.value)


def test_thinking_is_switched_in_one_place_alone() -> None:
    given = {"model": {"chatTemplateKwargs": {"enable_thinking": True}}}
    assert refusal(given) == (
        "spec.model.chatTemplateKwargs.enable_thinking=true: set by prompts.thinking. "
        "Set prompts.thinking instead."
    )


def test_a_pod_has_as_many_gpus_as_processes() -> None:
    given = {"trainer": {"processes": 2, "resources": {"limits": {"nvidia.com/gpu": 1}}}}
    assert refusal(given) == (
        "spec.trainer.processes=2: the pod gets nvidia.com/gpu=1, and a process uses one. "
        "Set processes to 1, or the GPUs to 2."
    )


@pytest.mark.parametrize("engine", sorted({"auto", *engines.ENGINES} - {"vllm"}))
def test_no_process_generates_from_a_part_of_the_base(engine: str) -> None:
    given = {"trainer": {"engine": engine, "processes": 2, "fsdp": True}}
    assert f"spec.trainer.engine={engine}: fsdp leaves no process the whole" in refusal(given)


@pytest.mark.parametrize("engine", ["static", "vllm"])
def test_a_cache_that_an_engine_would_not_use_is_refused(engine: str) -> None:
    more: dict[str, Any] = {"vllm": SERVER} if engine == "vllm" else {}
    trainer = {"engine": engine, "grpo": {"cache_implementation": "static"}, **more}
    assert f"engine={engine} has caches of its own" in refusal({"trainer": trainer})


def test_every_engine_of_the_specification_has_its_row() -> None:
    named = set(get_args(Trainer.model_fields["engine"].annotation)) - {"auto"}
    assert named == set(engines.ENGINES)
