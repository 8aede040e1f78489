"""Pod templates of the specification: what they change, and what they cannot."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from tests.unit.operator.desired.made import PUBLISHED, build, container, pod, templates

from watercolour_operator.desired.templates import merged
from watercolour_operator.names import Component

#: Many a draw is refused, and pydantic takes its time.
PATIENT = (HealthCheck.too_slow, HealthCheck.filter_too_much)
BASES = {
    Component(template["metadata"]["labels"]["watercolour.dev/component"]): template
    for _, template in templates(build(PUBLISHED))
}


def with_template(component: str, template: dict[str, Any]) -> dict[str, Any]:
    return {**PUBLISHED, "podTemplates": {component: template}}


def test_a_container_is_merged_by_its_name() -> None:
    changed = {"name": "trainer", "env": [{"name": "NCCL_DEBUG", "value": "INFO"}]}
    manifests = build(with_template("trainer", {"spec": {"containers": [changed]}}))
    found = container(manifests, "peonies-trainer-1")
    assert found["env"][-1] == {"name": "NCCL_DEBUG", "value": "INFO"}
    before = container(build(PUBLISHED), "peonies-trainer-1")
    assert {**found, "env": before["env"]} == before


def test_a_variable_of_the_same_name_is_replaced() -> None:
    changed = {"name": "env", "env": [{"name": "HOME", "value": "/tmp"}]}
    found = container(
        build(with_template("env", {"spec": {"containers": [changed]}})), "peonies-env"
    )
    assert [item["value"] for item in found["env"] if item["name"] == "HOME"] == ["/tmp"]


def test_placement_reaches_the_renderers() -> None:
    placement = {
        "nodeSelector": {"pool": "cpu"},
        "tolerations": [{"key": "spot", "operator": "Exists"}],
        "priorityClassName": "low",
    }
    found = pod(build(with_template("renderers", {"spec": placement})), "peonies-renderers")
    assert found.pop("tolerations")[-1:] == placement.pop("tolerations")
    assert {name: found[name] for name in placement} == placement


@pytest.mark.parametrize(
    ("said", "left"),
    [
        ({"key": "node.kubernetes.io/unreachable", "tolerationSeconds": 600}, True),
        ({"operator": "Exists"}, True),
        ({"key": "node.kubernetes.io/unreachable", "effect": "NoSchedule"}, False),
        ({"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"}, False),
    ],
)
def test_a_template_says_how_long_a_silent_node_is_borne(said: dict[str, Any], left: bool) -> None:
    template = with_template("renderers", {"spec": {"tolerations": [said]}})
    found = pod(build(template), "peonies-renderers")["tolerations"]
    assert (found == [said]) is left
    assert found[-1] == said


def test_a_template_adds_to_the_toleration_of_the_gpu() -> None:
    gpu = {"trainer": {"resources": {"limits": {"nvidia.com/gpu": 1}}}}
    template = {"spec": {"tolerations": [{"key": "spot", "operator": "Exists"}]}}
    found = pod(build({**with_template("trainer", template), **gpu}), "peonies-trainer-1")
    assert [item["key"] for item in found["tolerations"]] == ["nvidia.com/gpu", "spot"]


def test_null_takes_a_field_away_where_that_weakens_nothing() -> None:
    template = {"spec": {"securityContext": {"runAsUser": None, "fsGroup": None}}}
    found = pod(build(with_template("scorer", template)), "peonies-scorer")["securityContext"]
    assert found == {
        "runAsNonRoot": True,
        "runAsGroup": 65532,
        "fsGroupChangePolicy": "OnRootMismatch",
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def test_labels_and_annotations_are_added() -> None:
    metadata = {"labels": {"team": "paint"}, "annotations": {"note": "x"}}
    manifests = build(with_template("judge", {"metadata": metadata}))
    found = dict(templates(manifests))["peonies-judge"]["metadata"]
    assert found["labels"]["team"] == "paint"
    assert found["annotations"]["note"] == "x"
    assert found["annotations"]["kubectl.kubernetes.io/default-container"] == "judge"


def test_a_container_beside_the_operator_s_gets_limits_and_loses_its_privileges() -> None:
    template = {"spec": {"containers": [{"name": "proxy", "image": "envoy:1"}]}}
    found = pod(build(with_template("env", template)), "peonies-env")["containers"]
    assert [item["name"] for item in found] == ["env", "proxy"]
    assert found[1]["resources"]["limits"] == {"cpu": "500m", "memory": "256Mi"}
    assert_safe(
        BASES[Component.ENV],
        {
            "metadata": BASES[Component.ENV]["metadata"],
            "spec": pod(build(with_template("env", template)), "peonies-env"),
        },
        Component.ENV,
    )


def test_an_empty_template_changes_nothing() -> None:
    for empty in ({}, {"spec": None}, {"metadata": None, "spec": {}}):
        for component, base in BASES.items():
            assert merged(base, empty, component) == base


NAMES = st.sampled_from(["trainer", "env", "scorer", "judge", "renderers", "other"])


def name_of(item: dict[str, Any]) -> str:
    return item["name"]


USERS = st.sampled_from([0, False, None, 1, 65532])
SECURITY = st.fixed_dictionaries(
    {},
    optional={
        "privileged": st.booleans(),
        "allowPrivilegeEscalation": st.booleans(),
        "capabilities": st.sampled_from([None, {}, {"drop": []}, {"add": ["SYS_ADMIN"]}]),
        "readOnlyRootFilesystem": st.booleans(),
        "runAsNonRoot": st.sampled_from([True, False, None]),
        "runAsUser": USERS,
        "runAsGroup": USERS,
        "procMount": st.just("Unmasked"),
        "seccompProfile": st.sampled_from([None, {"type": "Unconfined"}]),
        "appArmorProfile": st.just({"type": "Unconfined"}),
        "seLinuxOptions": st.just({"type": "spc_t"}),
    },
)
CONTAINER: SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {"name": NAMES},
    optional={
        "image": st.just("evil/image:1"),
        "securityContext": st.none() | SECURITY,
        "resources": st.sampled_from([None, {}, {"limits": None}, {"limits": {"memory": "1Ti"}}]),
        "ports": st.just([{"containerPort": 8000, "hostPort": 80}]) | st.none(),
        "env": st.just([{"name": "A", "value": "b"}]) | st.none(),
        "volumeMounts": st.just([{"name": "root", "mountPath": "/host"}]) | st.none(),
    },
)
CONTAINERS = st.none() | st.lists(CONTAINER, max_size=3, unique_by=name_of)
VOLUME: SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {"name": st.sampled_from(["root", "tmp", "config", "token"])},
    optional={
        "hostPath": st.just({"path": "/"}),
        "projected": st.just({"sources": [{"serviceAccountToken": {"path": "token"}}]}),
        "emptyDir": st.just({}),
    },
)
POD = st.fixed_dictionaries(
    {},
    optional={
        "hostNetwork": st.booleans(),
        "hostPID": st.booleans(),
        "hostIPC": st.booleans(),
        "shareProcessNamespace": st.booleans(),
        "automountServiceAccountToken": st.sampled_from([True, None]),
        "enableServiceLinks": st.sampled_from([True, None]),
        "serviceAccountName": st.sampled_from(["admin", None]),
        "serviceAccount": st.just("admin"),
        "restartPolicy": st.just("OnFailure"),
        "securityContext": st.none() | SECURITY,
        "containers": CONTAINERS,
        "initContainers": st.none() | st.lists(CONTAINER, max_size=2, unique_by=name_of),
        "ephemeralContainers": st.just([{"name": "debug"}]),
        "volumes": st.none() | st.lists(VOLUME, max_size=3, unique_by=name_of),
        "tolerations": st.none() | st.just([{"operator": "Exists"}]),
        "nodeSelector": st.just({"a": "b"}),
    },
)
LABELS = st.dictionaries(
    st.sampled_from(["watercolour.dev/run-uid", "watercolour.dev/component", "team"]),
    st.sampled_from(["", "other", "renderers"]),
)
TEMPLATE = st.fixed_dictionaries(
    {},
    optional={
        "metadata": st.none() | st.fixed_dictionaries({}, optional={"labels": st.none() | LABELS}),
        "spec": st.none() | POD,
    },
)


@settings(
    max_examples=400,
    deadline=None,
    suppress_health_check=(HealthCheck.too_slow, HealthCheck.filter_too_much),
)
@given(template=TEMPLATE, component=st.sampled_from(list(Component)))
def test_no_template_weakens_a_pod_even_unchecked(
    template: dict[str, Any], component: Component
) -> None:
    base, before = deepcopy(BASES[component]), deepcopy(template)
    found = merged(base, template, component)
    assert_safe(BASES[component], found, component)
    assert (base, template) == (BASES[component], before)


def assert_safe(base: dict[str, Any], found: dict[str, Any], component: Component) -> None:
    """Everything that protects the node, the run and the network is as it was."""
    assert base["metadata"]["labels"].items() <= found["metadata"]["labels"].items()
    spec, old = found["spec"], base["spec"]
    assert not spec.keys() & {
        "hostNetwork",
        "hostPID",
        "hostIPC",
        "shareProcessNamespace",
        "serviceAccount",
        "ephemeralContainers",
    }
    for name in (
        "automountServiceAccountToken",
        "enableServiceLinks",
        "serviceAccountName",
        "restartPolicy",
    ):
        assert spec[name] == old[name]
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["seccompProfile"] == old["securityContext"]["seccompProfile"]
    assert spec["securityContext"].get("runAsUser", 1) >= 1
    assert spec["securityContext"].keys() <= old["securityContext"].keys()
    assert spec["containers"][0]["name"] == component
    assert spec["containers"][0]["resources"] == old["containers"][0]["resources"]
    for item in [*spec["containers"], *spec.get("initContainers", [])]:
        _assert_container_safe(item, old["containers"][0])
    for volume in spec["volumes"]:
        assert "hostPath" not in volume
        assert "serviceAccountToken" not in str(volume)
    if component is Component.RENDERERS:
        for name in ("containers", "volumes", "securityContext"):
            assert spec[name] == old[name]
        assert "initContainers" not in spec


def _assert_container_safe(item: dict[str, Any], base: dict[str, Any]) -> None:
    security = {**item["securityContext"]}
    assert security.pop("runAsUser", 1) >= 1
    security.pop("runAsGroup", None)
    profile = security.pop("seccompProfile")
    is_ours = item["name"] == base["name"]
    assert profile == (
        base["securityContext"]["seccompProfile"] if is_ours else {"type": "RuntimeDefault"}
    )
    assert security == {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
        "runAsNonRoot": True,
    }
    assert item["resources"]["limits"]
    assert not any("hostPort" in port for port in item.get("ports") or [])


@pytest.mark.parametrize("component", list(Component))
def test_a_template_of_placement_leaves_the_rest_as_it_was(component: Component) -> None:
    over = merged(BASES[component], {"spec": {"nodeSelector": {"a": "b"}}}, component)
    assert over["spec"].pop("nodeSelector") == {"a": "b"}
    assert over == BASES[component]
