"""The renderers' Deployment and Service."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.operator.desired.made import build, container, find, plan, pod

from watercolour_operator.settings import Settings

NAME = "peonies-renderers"


def args(spec: dict[str, Any] | None = None, settings: Settings | None = None) -> list[str]:
    return container(build({"renderers": spec or {}}, settings=settings), NAME)["args"]


def after(flag: str, words: list[str]) -> str:
    return words[words.index(flag) + 1]


def test_chromium_s_own_sandbox_has_the_profile_it_needs() -> None:
    profile = container(build(), NAME)["securityContext"]["seccompProfile"]
    assert profile == {"type": "Localhost", "localhostProfile": "watercolour/chromium.json"}
    assert pod(build(), NAME)["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}


@pytest.mark.parametrize(
    ("spec", "settings"),
    [({"runtimeClassName": "gvisor"}, Settings()), ({}, Settings(seccomp_profile=""))],
)
def test_without_a_node_s_profile_it_is_runtime_default(
    spec: dict[str, Any], settings: Settings
) -> None:
    manifests = build({"renderers": spec}, settings=settings)
    profile = container(manifests, NAME)["securityContext"]["seccompProfile"]
    assert profile == {"type": "RuntimeDefault"}
    assert pod(manifests, NAME).get("runtimeClassName") == spec.get("runtimeClassName")


def test_the_sandbox_stays_on_unless_the_run_says_otherwise() -> None:
    assert "--allow-unsandboxed" not in args({"runtimeClassName": "gvisor"})
    assert "--allow-unsandboxed" in args({"allowUnsandboxed": True})


def test_the_canary_is_the_api_server_unless_the_operator_knows_better() -> None:
    words = args()
    assert after("--network-canary", words) == "Required"
    address = "$(KUBERNETES_SERVICE_HOST):$(KUBERNETES_SERVICE_PORT)"
    assert after("--canary-address", words) == address
    settings = Settings(canary_address="10.96.0.1:443")
    assert after("--canary-address", args(settings=settings)) == "10.96.0.1:443"
    assert "--canary-address" not in args({"networkCanary": "Off"})


@pytest.mark.parametrize(("slots", "memory"), [(1, "1536Mi"), (2, "2560Mi"), (4, "4608Mi")])
def test_memory_grows_with_the_slots_and_is_guaranteed(slots: int, memory: str) -> None:
    resources = container(build({"renderers": {"slots": slots}}), NAME)["resources"]
    assert resources["requests"]["memory"] == resources["limits"]["memory"] == memory
    assert after("--slots", args({"slots": slots})) == str(slots)


def test_a_pod_that_goes_drains_first_and_has_the_time_for_the_slowest_render() -> None:
    found = pod(build({"renderers": {"deadlineSeconds": 90.5}}), NAME)
    command = found["containers"][0]["lifecycle"]["preStop"]["exec"]["command"]
    assert command[:3] == ["python", "-m", "watercolour.render.drain"]
    # The port is closed in the network that the renderer enters; the command runs there too.
    assert after("--socket", command) == after("--drain-socket", found["containers"][0]["args"])
    drain = int(after("--seconds", command))
    assert 90.5 < drain < found["terminationGracePeriodSeconds"]


def test_replicas_are_left_to_whoever_owns_them() -> None:
    owned = find(build(wanted=plan(renderers=None)), "Deployment", NAME)
    assert "replicas" not in owned["spec"]
    assert find(build(wanted=plan(renderers=0)), "Deployment", NAME)["spec"]["replicas"] == 0


def test_the_environment_finds_ready_renderers_one_by_one() -> None:
    spec = find(build(), "Service", NAME)["spec"]
    assert spec["clusterIP"] == "None"
    assert spec["publishNotReadyAddresses"] is False


def test_a_renderer_is_ready_when_it_says_so_and_alive_before() -> None:
    found = container(build(), NAME)
    assert found["readinessProbe"]["httpGet"]["path"] == "/readyz"
    assert found["startupProbe"]["httpGet"]["path"] == "/livez"
    assert found["livenessProbe"]["httpGet"]["path"] == "/livez"


def test_a_renderer_holds_nothing_of_the_run() -> None:
    found = pod(build({"references": {"claim": "pool"}}, settings=Settings(ca_bundle="PEM")), NAME)
    assert {item["name"] for item in found["volumes"]} == {"tmp", "home", "shm"}
