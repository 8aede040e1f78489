"""The Deployments of scorer and judge."""

from __future__ import annotations

from typing import Any

from tests.unit.operator.desired.made import PUBLISHED, build, container, pod, templates, variables

HPSV3 = {"scorer": {"backend": "hpsv3"}}


def scorer(**fields: Any) -> dict[str, Any]:
    return {"scorer": {"backend": "hpsv3", **fields}}


def after(flag: str, words: list[str]) -> str:
    return words[words.index(flag) + 1]


def test_the_embedded_scorer_needs_no_gpu_and_the_published_one_needs_one() -> None:
    assert "nvidia.com/gpu" not in container(build(), "peonies-scorer")["resources"]["limits"]
    resources = container(build(HPSV3), "peonies-scorer")["resources"]
    assert resources["limits"]["nvidia.com/gpu"] == resources["requests"]["nvidia.com/gpu"] == "1"


def test_a_device_that_the_run_names_is_taken_instead() -> None:
    spec = scorer(resources={"limits": {"amd.com/gpu": 2}})
    found = pod(build(spec), "peonies-scorer")
    assert "nvidia.com/gpu" not in found["containers"][0]["resources"]["limits"]
    assert found["containers"][0]["resources"]["requests"]["amd.com/gpu"] == "2"
    assert found["tolerations"][0]["key"] == "amd.com/gpu"


def test_they_end_within_five_seconds() -> None:
    for name in ("peonies-scorer", "peonies-judge"):
        assert pod(build(PUBLISHED), name)["terminationGracePeriodSeconds"] == 5


def test_the_weights_come_from_a_claim_or_from_the_hub() -> None:
    held = build(scorer(checkpoint={"claim": "weights", "path": "../a/b.safetensors"}))
    args = container(held, "peonies-scorer")["args"]
    assert after("--checkpoint", args) == "/checkpoint/a/b.safetensors"
    assert "--base" not in args
    volume = {"claimName": "weights", "readOnly": True}
    assert {"name": "checkpoint", "persistentVolumeClaim": volume} in pod(held, "peonies-scorer")[
        "volumes"
    ]
    hub = scorer(checkpoint={"id": "o/n", "revision": "abc"}, download=True)
    args = container(build(hub), "peonies-scorer")["args"]
    assert after("--checkpoint-id", args) == "o/n"
    assert after("--checkpoint-revision", args) == "abc"


def test_who_may_not_download_does_not_try() -> None:
    assert variables(container(build(HPSV3), "peonies-scorer"))["HF_HUB_OFFLINE"] == "1"
    free = container(build(scorer(download=True)), "peonies-scorer")
    assert "HF_HUB_OFFLINE" not in variables(free)


def test_a_queued_scorer_carries_the_queue_s_label() -> None:
    def label(spec: dict[str, Any], name: str) -> str | None:
        labels = dict(templates(build(spec)))[name]["metadata"]["labels"]
        return labels.get("kueue.x-k8s.io/queue-name")

    judge = {**PUBLISHED["judge"], "deploy": {**PUBLISHED["judge"]["deploy"], "queued": True}}
    queued = {**scorer(queued=True), "judge": judge, "queueName": "gpus"}
    assert label(queued, "peonies-scorer") == label(queued, "peonies-judge") == "gpus"
    assert label({**PUBLISHED, "queueName": "gpus"}, "peonies-scorer") is None
    assert label(scorer(queued=True), "peonies-scorer") is None


def test_a_deployed_judge_is_served_under_the_name_by_which_it_is_asked() -> None:
    found = container(build(PUBLISHED), "peonies-judge")
    assert "command" not in found
    assert after("--model", found["args"]) == "owner/vision"
    assert after("--served-model-name", found["args"]) == "vision"
    assert "--tensor-parallel-size" not in found["args"]
    assert found["readinessProbe"]["httpGet"]["path"] == "/health"


def test_a_judge_on_several_gpus_is_spread_over_them() -> None:
    deploy = {**PUBLISHED["judge"]["deploy"], "gpus": 2}
    found = container(
        build({**PUBLISHED, "judge": {**PUBLISHED["judge"], "deploy": deploy}}), "peonies-judge"
    )
    assert after("--tensor-parallel-size", found["args"]) == "2"
    assert found["resources"]["limits"]["nvidia.com/gpu"] == "2"


def test_the_embedded_judge_beside_another_scorer_is_the_scorer_s_program() -> None:
    found = container(build(HPSV3), "peonies-judge")
    assert found["command"][-1] == "watercolour.score.service"
    assert after("--backend", found["args"]) == "embedded"
    assert "nvidia.com/gpu" not in found["resources"]["limits"]


def test_the_base_lies_in_the_claim_or_on_the_hub() -> None:
    held = build(scorer(checkpoint={"claim": "weights", "base": "./../qwen"}))
    assert after("--base", container(held, "peonies-scorer")["args"]) == "/checkpoint/qwen"
    hub = build(scorer(checkpoint={"id": "o/n", "base": "o/qwen"}, download=True))
    assert after("--base", container(hub, "peonies-scorer")["args"]) == "o/qwen"


def test_a_published_scorer_s_options_are_the_service_s() -> None:
    from watercolour.score import service

    checkpoint = {"claim": "weights", "base": "./qwen"}
    spec = scorer(checkpoint=checkpoint, batching={"maxPaintings": 16, "windowSeconds": 0.05})
    found = service.parser().parse_args(container(build(spec), "peonies-scorer")["args"])
    assert (found.backend, found.max_batch, found.window_seconds) == ("hpsv3", 16, 0.05)
    assert (str(found.checkpoint), found.base) == (
        "/checkpoint/HPSv3.safetensors",
        "/checkpoint/qwen",
    )


def test_the_embedded_scorer_is_told_only_what_it_understands() -> None:
    from watercolour.score import service

    found = container(build(), "peonies-scorer")
    service.parser().parse_args(found["args"])
    service.parser().parse_args(container(build(HPSV3), "peonies-judge")["args"])
