"""The objects that size the renderers in modes HPA and KEDA."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.operator.desired.made import build, find, keys

SCALERS = {"HorizontalPodAutoscaler", "ScaledObject"}


def renderers(mode: str, **fields: Any) -> dict[str, Any]:
    more = {"replicas": 2} if mode == "External" else {}
    return {"renderers": {**more, "slots": 3, "scaling": {"mode": mode, **fields}}}


@pytest.mark.parametrize("mode", ["Queue", "Fixed", "External"])
def test_no_scaler_where_nobody_asked_for_one(mode: str) -> None:
    assert not SCALERS & {kind for kind, _ in keys(build(renderers(mode)))}


def test_an_hpa_asks_for_as_many_pods_as_answer_for_the_demand() -> None:
    spec = renderers("HPA", max=6, idleSeconds=90.5)
    found = find(build(spec), "HorizontalPodAutoscaler", "peonies-renderers")["spec"]
    assert found["scaleTargetRef"]["name"] == "peonies-renderers"
    assert (found["minReplicas"], found["maxReplicas"]) == (1, 6)
    (metric,) = found["metrics"]
    assert metric["external"]["metric"] == {
        "name": "watercolour_render_demand",
        "selector": {"matchLabels": {"run": "peonies", "namespace": "gardens"}},
    }
    assert metric["external"]["target"] == {"type": "AverageValue", "averageValue": "3"}
    assert found["behavior"]["scaleDown"]["stabilizationWindowSeconds"] == 91
    assert found["behavior"]["scaleUp"]["stabilizationWindowSeconds"] == 0


def test_an_hpa_s_window_has_an_upper_bound() -> None:
    spec = renderers("HPA", idleSeconds=86400.0)
    found = find(build(spec), "HorizontalPodAutoscaler", "peonies-renderers")["spec"]
    assert found["behavior"]["scaleDown"]["stabilizationWindowSeconds"] == 3600


def test_keda_adds_up_the_environment_s_demand() -> None:
    spec = renderers("KEDA", max=6, perPod=4)
    found = find(build(spec), "ScaledObject", "peonies-renderers")["spec"]
    assert (found["minReplicaCount"], found["maxReplicaCount"]) == (0, 6)
    modifiers = found["advanced"]["scalingModifiers"]
    assert modifiers["formula"] == "queued + inflight + announced"
    assert modifiers["target"] == "4"
    assert [item["name"] for item in found["triggers"]] == ["queued", "inflight", "announced"]
    for item in found["triggers"]:
        assert item["metadata"]["url"] == "http://peonies-env.gardens.svc:8000/v1/demand"


def test_keda_holds_the_pods_when_the_environment_is_silent() -> None:
    found = find(build(renderers("KEDA")), "ScaledObject", "peonies-renderers")["spec"]
    assert found["fallback"]["behavior"] == "currentReplicas"
