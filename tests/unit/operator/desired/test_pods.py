"""What all pods of a run have in common."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.operator.desired.made import PUBLISHED, build, container, pod, templates, variables

from watercolour.api import load
from watercolour.api.rules import quantity
from watercolour_operator.settings import Settings

GPU = {"trainer": {"resources": {"limits": {"nvidia.com/gpu": 1}}}}
MANIFESTS = build({**PUBLISHED, **GPU})
PODS = dict(templates(MANIFESTS))


@pytest.mark.parametrize("name", PODS)
def test_a_pod_has_no_token_no_privilege_and_nothing_to_write_on(name: str) -> None:
    spec = PODS[name]["spec"]
    assert spec["automountServiceAccountToken"] is False
    assert spec["enableServiceLinks"] is False
    assert spec["serviceAccountName"] == name.removesuffix("-1")
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["runAsUser"] == 65532
    for item in spec["containers"]:
        security = item["securityContext"]
        assert security["allowPrivilegeEscalation"] is False
        assert security["capabilities"] == {"drop": ["ALL"]}
        assert security["readOnlyRootFilesystem"] is True
    for volume in spec["volumes"]:
        assert volume.keys() - {"name"} <= {"emptyDir", "configMap", "persistentVolumeClaim"}


@pytest.mark.parametrize("name", PODS)
def test_a_pod_can_write_where_programs_do(name: str) -> None:
    item = PODS[name]["spec"]["containers"][0]
    paths = {mount["mountPath"] for mount in item["volumeMounts"]}
    assert {"/tmp", "/dev/shm", variables(item)["HOME"]} <= paths


@pytest.mark.parametrize("name", PODS)
def test_everything_has_requests_and_limits(name: str) -> None:
    for item in PODS[name]["spec"]["containers"]:
        for kind in ("requests", "limits"):
            assert {"cpu", "memory", "ephemeral-storage"} <= item["resources"][kind].keys()
        for resource, limit in item["resources"]["limits"].items():
            assert quantity(item["resources"]["requests"][resource]) <= quantity(limit)


@pytest.mark.parametrize("name", PODS)
def test_shared_memory_stays_well_below_the_memory_limit(name: str) -> None:
    spec = PODS[name]["spec"]
    (shm,) = (item for item in spec["volumes"] if item["name"] == "shm")
    assert shm["emptyDir"]["medium"] == "Memory"
    limit = quantity(spec["containers"][0]["resources"]["limits"]["memory"])
    assert quantity(shm["emptyDir"]["sizeLimit"]) <= limit / 4


@pytest.mark.parametrize("name", PODS)
def test_the_last_words_of_a_container_are_kept(name: str) -> None:
    item = PODS[name]["spec"]["containers"][0]
    assert item["terminationMessagePolicy"] == "FallbackToLogsOnError"


@pytest.mark.parametrize("name", PODS)
def test_probes_ask_the_port_that_the_container_names(name: str) -> None:
    item = PODS[name]["spec"]["containers"][0]
    (port,) = item["ports"]
    for kind in ("startupProbe", "readinessProbe", "livenessProbe"):
        assert item[kind]["httpGet"]["port"] == port["name"] == "http"
    assert str(port["containerPort"]) in item["args"]


def allowed(item: dict[str, Any]) -> int:
    """Seconds that a container may take until its first answer."""
    probe = item["startupProbe"]
    return probe["periodSeconds"] * probe["failureThreshold"]


@pytest.mark.parametrize("name", PODS)
def test_a_slow_start_is_ended_by_the_runs_deadline_and_no_sooner(name: str) -> None:
    default = load.from_dict({"metadata": {"name": "plain"}}).spec.startup_deadline_seconds
    assert allowed(PODS[name]["spec"]["containers"][0]) >= default


def test_another_deadline_is_the_next_trainers_and_starts_nothing_anew() -> None:
    later = dict(templates(build({**PUBLISHED, **GPU, "startupDeadlineSeconds": 7200})))
    trainer = later.pop("peonies-trainer-1")
    assert allowed(trainer["spec"]["containers"][0]) >= 7200
    assert later == {name: PODS[name] for name in later}
    assert later


def test_who_has_a_gpu_tolerates_its_taint_and_nobody_else_does() -> None:
    taint = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
    gpus = {name for name, each in PODS.items() if taint in each["spec"].get("tolerations", ())}
    assert gpus == {"peonies-trainer-1", "peonies-scorer", "peonies-judge"}


def test_all_but_the_trainer_leave_a_silent_node_within_seconds() -> None:
    """Else Kubernetes waits for 300 s before others are made in their place."""
    for name, template in PODS.items():
        found = [
            each["tolerationSeconds"]
            for each in template["spec"].get("tolerations", ())
            if each["key"] == "node.kubernetes.io/unreachable"
        ]
        assert found == ([] if "trainer" in name else [5]), name


SECRETS: dict[str, Any] = {
    **PUBLISHED,
    "model": {"id": "owner/name", "tokenSecretRef": {"name": "hub", "key": "t"}},
    "judge": {**PUBLISHED["judge"], "secretRef": {"name": "judge", "key": "k"}},
    "artifacts": {"hub": {"repo": "o/n", "secretRef": {"name": "push", "key": "p"}}},
    "tracking": {"trackio": {"endpoint": "http://t:7860", "secretRef": {"name": "tracker"}}},
}


def test_a_secret_goes_only_to_the_part_that_needs_it() -> None:
    found = {
        name: {
            item["name"]: item["valueFrom"]["secretKeyRef"]
            for item in template["spec"]["containers"][0]["env"]
            if "valueFrom" in item
        }
        for name, template in templates(build(SECRETS))
    }
    assert found == {
        "peonies-trainer-1": {
            "HF_TOKEN": {"name": "hub", "key": "t"},
            "WATERCOLOUR_PUSH_TOKEN": {"name": "push", "key": "p"},
            "TRACKIO_WRITE_TOKEN": {"name": "tracker", "key": "token"},
        },
        "peonies-env": {"WATERCOLOUR_JUDGE_KEY": {"name": "judge", "key": "k"}},
        "peonies-renderers": {},
        "peonies-scorer": {},
        "peonies-judge": {},
    }


def test_only_who_may_reach_outside_is_told_of_the_proxy() -> None:
    settings = Settings(
        proxy_env={"HTTPS_PROXY": "http://proxy:3128", "NO_PROXY": "intern.example"},
        no_proxy=("10.0.0.0/8",),
    )
    manifests = build({**PUBLISHED, "egress": {"trainer": ["all"]}}, settings=settings)
    told = {
        name: variables(template["spec"]["containers"][0])
        for name, template in templates(manifests)
        if "HTTPS_PROXY" in variables(template["spec"]["containers"][0])
    }
    assert told.keys() == {"peonies-trainer-1"}
    around = told["peonies-trainer-1"]["NO_PROXY"].split(",")
    assert {"intern.example", "10.0.0.0/8", ".svc", "localhost", "peonies-env"} <= set(around)
    assert told["peonies-trainer-1"]["no_proxy"] == told["peonies-trainer-1"]["NO_PROXY"]


def test_pull_secrets_policy_and_priority_come_from_the_settings() -> None:
    settings = Settings(
        image_pull_secrets=("registry",), image_pull_policy="Always", priority_class="training"
    )
    for name, template in templates(build(PUBLISHED, settings=settings)):
        assert template["spec"]["imagePullSecrets"] == [{"name": "registry"}], name
        assert template["spec"]["priorityClassName"] == "training"
        assert template["spec"]["containers"][0]["imagePullPolicy"] == "Always"


def test_prometheus_is_shown_the_way_unless_the_run_wants_none() -> None:
    for name, template in templates(build(PUBLISHED)):
        assert template["metadata"]["labels"]["watercolour.dev/metrics"] == "true", name
        assert template["metadata"]["annotations"]["prometheus.io/path"] == "/metrics"
    for _, template in templates(build({**PUBLISHED, "tracking": {"prometheus": False}})):
        assert "watercolour.dev/metrics" not in template["metadata"]["labels"]
        assert "prometheus.io/scrape" not in template["metadata"]["annotations"]


def test_images_are_the_run_s_own_or_the_operator_s() -> None:
    assert container(MANIFESTS, "peonies-scorer")["image"] == Settings().images.scorer_hpsv3
    assert container(build(), "peonies-scorer")["image"] == Settings().images.scorer_embedded
    own = build({"env": {"image": "mine/env:2"}, "trainer": {"image": "mine/t@sha256:" + "a" * 64}})
    assert container(own, "peonies-env")["image"] == "mine/env:2"
    assert container(own, "peonies-trainer-1")["image"].startswith("mine/t@")
    assert pod(own, "peonies-env")["restartPolicy"] == "Always"
