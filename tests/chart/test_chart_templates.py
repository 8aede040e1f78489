"""What is rendered for which values, template by template."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.chart.conftest import (
    CHART,
    NAMESPACE,
    ROOT,
    Helm,
    Render,
    config,
    kinds,
    named,
    pod_specs,
)

from watercolour_operator import names

CLUSTER_SCOPED = {
    "ClusterRole",
    "ClusterRoleBinding",
    "CustomResourceDefinition",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
    "PriorityClass",
    "Namespace",
}
CI = sorted(path.name.removesuffix("-values.yaml") for path in (CHART / "ci").iterdir())


@pytest.mark.parametrize("file", CI)
def test_every_pod_but_the_profiles_is_restricted(file: str, render: Render) -> None:
    for name, template in pod_specs(render(file)).items():
        spec = template["spec"]
        security = spec["securityContext"]
        assert security["seccompProfile"] == {"type": "RuntimeDefault"}
        if not name.endswith("-seccomp-profile"):
            assert security["runAsNonRoot"] is True
            assert security["runAsUser"] == 65532
            assert not any("hostPath" in volume for volume in spec.get("volumes", []))
        assert not {"hostNetwork", "hostPID", "hostIPC"} & set(spec)
        assert spec["enableServiceLinks"] is False
        for container in [*spec["containers"], *spec.get("initContainers", [])]:
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }
            assert set(container["resources"]) == {"requests", "limits"}


@pytest.mark.parametrize("file", CI)
def test_every_object_is_labelled_and_in_a_namespace_of_its_own_or_none(
    file: str, render: Render
) -> None:
    for each in render(file):
        labels = each["metadata"]["labels"]
        assert labels["app.kubernetes.io/instance"] == "watercolour"
        assert labels["app.kubernetes.io/managed-by"] == "Helm"
        assert ("namespace" in each["metadata"]) is (each["kind"] not in CLUSTER_SCOPED), each


def test_one_operator_is_replaced_before_the_next_begins(render: Render) -> None:
    found = render()
    spec = named(found, "Deployment")["spec"]
    assert spec["replicas"] == 1
    assert spec["strategy"] == {"type": "Recreate"}
    pod = spec["template"]
    # The NetworkPolicies of runs know the operator by these.
    assert names.OPERATOR_LABELS.items() <= pod["metadata"]["labels"].items()
    container = pod["spec"]["containers"][0]
    assert container["command"] == ["python", "-m", "watercolour_operator"]
    assert container["args"] == ["--config", "/etc/watercolour/operator.yaml"]
    assert container["livenessProbe"]["httpGet"]["port"] == "liveness"
    # A crowded node is slow to start it; liveness alone would kill it again and again.
    startup = container["startupProbe"]
    assert startup["httpGet"] == container["livenessProbe"]["httpGet"]
    assert startup["periodSeconds"] * startup["failureThreshold"] >= 300
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    written = config(found)
    assert ports == {"metrics": written["metricsPort"], "liveness": written["livenessPort"]}
    assert named(found, "Service")["spec"]["selector"].items() <= pod["metadata"]["labels"].items()


def test_a_changed_configuration_starts_the_operator_again(render: Render) -> None:
    before = pod_specs(render())["watercolour-operator"]["metadata"]["annotations"]
    changed = render(values={"operator": {"pollSeconds": 5}})
    after = pod_specs(changed)["watercolour-operator"]["metadata"]["annotations"]
    assert before["checksum/config"] != after["checksum/config"]


def test_the_definition_is_the_generated_one_and_is_kept(render: Render) -> None:
    found = named(render(), "CustomResourceDefinition")
    annotations = found["metadata"]["annotations"]
    assert annotations.pop("helm.sh/resource-policy") == "keep"
    found["metadata"].pop("labels")
    generated = yaml.load((ROOT / "crds" / "watercolourruns.yaml").read_text(), yaml.CSafeLoader)
    generated["metadata"].pop("labels", None)
    assert found == generated


def test_single_mode_makes_nothing_outside_its_namespace(render: Render) -> None:
    found = render("single", namespace="painters")
    assert not kinds(found) & CLUSTER_SCOPED
    assert {each["metadata"]["namespace"] for each in found} == {"painters"}
    assert config(found)["namespaces"] == ["painters"]


def test_namespaces_mode_binds_a_role_in_each_and_none_in_the_cluster(render: Render) -> None:
    found = render("namespaces")
    roles = {
        each["metadata"]["namespace"]
        for each in found
        if each["kind"] == "Role" and each["metadata"]["name"] == "watercolour-operator"
    }
    assert roles == {"paint-a", "paint-b"}
    assert config(found)["namespaces"] == ["paint-a", "paint-b"]
    subjects = [each["subjects"] for each in found if each["kind"].endswith("RoleBinding")]
    assert {subject[0]["namespace"] for subject in subjects} == {NAMESPACE}
    # What is left for the cluster is for people, not for the operator.
    assert "ClusterRoleBinding" not in kinds(found)


def test_bare_leaves_definition_policy_and_user_roles_out(render: Render) -> None:
    found = render("bare")
    assert not kinds(found) & {"CustomResourceDefinition", "ValidatingAdmissionPolicy"}
    assert [each["metadata"]["name"] for each in found if each["kind"] == "ClusterRole"] == [
        "watercolour-operator",
        "watercolour-uninstall",
    ]


def test_images_go_behind_the_registry_unless_they_name_one(render: Render) -> None:
    found = render("air-gapped")
    specs = pod_specs(found)
    images = {
        container["image"]
        for template in specs.values()
        for container in [
            *template["spec"]["containers"],
            *template["spec"].get("initContainers", []),
        ]
    }
    assert len(images) == 1
    assert re.fullmatch(
        r"registry\.internal:5000/mirror/watercolour/operator:0\.1\.0@sha256:[0-9a-f]{64}",
        images.pop(),
    )
    assert config(found)["images"]["trainer"] == "other.internal/watercolour/trainer:0.1.0"
    for image in ("renderers", "env", "scorerEmbedded", "scorerHpsv3"):
        assert config(found)["images"][image].startswith("registry.internal:5000/mirror/")
    for template in specs.values():
        assert template["spec"]["imagePullSecrets"] == [{"name": "registry"}]
    assert config(found)["imagePullSecrets"] == ["registry"]


def test_nothing_that_is_rendered_names_a_registry_of_ours(render: Render) -> None:
    text = json.dumps(render())
    for registry in ("docker.io", "ghcr.io", "quay.io", "gcr.io"):
        assert registry not in text


def test_proxy_and_certificates_reach_the_configuration(render: Render) -> None:
    written = config(render("air-gapped"))
    proxy = written["proxyEnv"]
    assert proxy["HTTPS_PROXY"] == proxy["https_proxy"] == "http://proxy.internal:3128"
    assert set(proxy) == {"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy"}
    assert written["noProxy"] == [".internal", "10.0.0.0/8"]
    assert written["caBundle"].startswith("-----BEGIN CERTIFICATE-----\n")
    # The operator talks to the API server and to Services alone: a proxy would be in its way.
    assert "PROXY" not in json.dumps(pod_specs(render("air-gapped")))


def test_placement_reaches_every_pod(render: Render) -> None:
    found = render("placement")
    for template in pod_specs(found).values():
        spec, meta = template["spec"], template["metadata"]
        assert spec["nodeSelector"]["pool"] == "system"
        assert spec["tolerations"][-1] == {"key": "system", "operator": "Exists"}
        assert "nodeAffinity" in spec["affinity"]
        assert spec["priorityClassName"] == "system-cluster-critical"
        assert meta["labels"]["team"] == "painters"
        assert meta["annotations"]["note"] == "a sentence"
    assert config(found)["priorityClass"] == "training"


def test_an_operator_on_a_silent_node_is_replaced_at_once(render: Render) -> None:
    def tolerations(*given: dict[str, Any]) -> list[dict[str, Any]]:
        found = render(values={"operator": {"tolerations": list(given)}})
        return named(found, "Deployment")["spec"]["template"]["spec"]["tolerations"]

    unreachable = {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}
    ours = {**unreachable, "operator": "Exists", "tolerationSeconds": 5}
    other = {"key": "system", "operator": "Exists"}
    assert tolerations() == [ours]
    assert tolerations(other) == [ours, other]
    # What a person says of the same taint holds alone; of two times Kubernetes takes the shorter.
    longer = {**ours, "tolerationSeconds": 600}
    for given in (longer, {"operator": "Exists"}):
        assert tolerations(other, given) == [other, given]


def test_the_profile_is_written_by_root_into_one_folder_of_the_node(render: Render) -> None:
    found = render()
    spec = named(found, "DaemonSet")["spec"]["template"]["spec"]
    paths = [volume["hostPath"] for volume in spec["volumes"] if "hostPath" in volume]
    assert paths == [{"path": "/var/lib/kubelet/seccomp/watercolour", "type": "DirectoryOrCreate"}]
    assert spec["securityContext"]["runAsUser"] == 0
    assert spec["automountServiceAccountToken"] is False
    args = spec["initContainers"][0]["args"]
    assert args == ["--from", "/etc/watercolour/profile.json", "--to", "/profiles/chromium.json"]
    data = named(found, "ConfigMap", "-seccomp-profile")["data"]["profile.json"]
    assert data == (CHART / "files" / "chromium-seccomp.json").read_text()
    assert config(found)["seccompProfile"] == "watercolour/chromium.json"


def test_the_profile_goes_where_the_kubelet_is_told_to_be(render: Render) -> None:
    where = {"kubeletRoot": "/data/kubelet/", "name": "w/c.json", "namespace": "node-tools"}
    found = render(values={"seccompProfile": where})
    daemon = named(found, "DaemonSet")
    assert daemon["metadata"]["namespace"] == "node-tools"
    assert named(found, "ConfigMap", "-seccomp-profile")["metadata"]["namespace"] == "node-tools"
    spec = daemon["spec"]["template"]["spec"]
    assert spec["volumes"][1]["hostPath"]["path"] == "/data/kubelet/seccomp/w"
    assert spec["initContainers"][0]["args"][-1] == "/profiles/c.json"


def test_gvisor_needs_no_profile_on_the_nodes(render: Render) -> None:
    found = render("gvisor")
    assert "DaemonSet" not in kinds(found)
    assert config(found)["seccompProfile"] == ""


def test_the_network_policy_shuts_the_namespace_but_for_the_operator(render: Render) -> None:
    assert "NetworkPolicy" not in kinds(render())
    found = render("network-policy")
    deny = named(found, "NetworkPolicy", "-deny")["spec"]
    assert deny == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}
    operator = named(found, "NetworkPolicy", "-operator")["spec"]
    labels = pod_specs(found)["watercolour-operator"]["metadata"]["labels"]
    assert operator["podSelector"]["matchLabels"].items() <= labels.items()
    blocks = [peer["ipBlock"]["cidr"] for peer in operator["egress"][0]["to"]]
    assert blocks == ["10.96.0.1/32", "10.0.0.10/32"]
    dns = operator["egress"][1]
    assert {(port["port"], port["protocol"]) for port in dns["ports"]} == {
        (number, protocol) for number in (53, 5353) for protocol in ("UDP", "TCP")
    }
    assert {"ipBlock": {"cidr": "169.254.20.10/32"}} in dns["to"]
    ports = {port["port"] for rule in operator["egress"] for port in rule["ports"]}
    assert {names.PORTS[part] for part in names.Component} <= ports
    scrapers = operator["ingress"][0]["from"][0]["namespaceSelector"]["matchLabels"]
    assert scrapers == {"kubernetes.io/metadata.name": "monitoring"}
    hook = named(found, "NetworkPolicy", "-uninstall")["spec"]
    assert len(hook["egress"]) == 1


def test_without_labels_nobody_may_scrape_through_the_network_policy(render: Render) -> None:
    found = render(values={"networkPolicy": {"enabled": True}})
    assert "ingress" not in named(found, "NetworkPolicy", "-operator")["spec"]


def test_disruption_budgets_select_the_operator_and_the_trainers(render: Render) -> None:
    assert "PodDisruptionBudget" not in kinds(render())
    found = render("disruption-budgets")
    labels = pod_specs(found)["watercolour-operator"]["metadata"]["labels"]
    operator = named(found, "PodDisruptionBudget", "-operator")["spec"]
    assert operator["selector"]["matchLabels"].items() <= labels.items()
    trainers = named(found, "PodDisruptionBudget", "-trainers")
    assert trainers["metadata"]["namespace"] == "paint-a"
    assert trainers["spec"]["selector"]["matchLabels"] == {names.COMPONENT: "trainer"}


@pytest.mark.parametrize(
    ("file", "verbs"), [("", ["list"]), ("uninstall-suspend", ["list", "patch"])]
)
def test_the_hook_may_touch_runs_and_no_more_than_its_mode_needs(
    file: str, verbs: list[str], render: Render
) -> None:
    rules = named(render(file), "ClusterRole", "-uninstall")["rules"]
    assert rules == [
        {"apiGroups": ["watercolour.dev"], "resources": ["watercolourruns"], "verbs": verbs}
    ]


def test_the_hook_runs_before_anything_is_deleted(render: Render) -> None:
    job = named(render("uninstall-suspend"), "Job")
    assert job["metadata"]["annotations"]["helm.sh/hook"] == "pre-delete"
    args = job["spec"]["template"]["spec"]["containers"][0]["args"]
    assert args == ["--runs=Suspend", "--timeout=300"]
    assert job["spec"]["activeDeadlineSeconds"] > 300
    assert job["spec"]["backoffLimit"] == 0


def test_leaving_runs_alone_needs_no_hook(render: Render) -> None:
    found = render("uninstall-leave")
    assert "Job" not in kinds(found)
    assert not [each for each in found if each["metadata"]["name"].endswith("-uninstall")]


def test_users_may_write_runs_and_never_their_status(render: Render) -> None:
    found = render()
    view = named(found, "ClusterRole", "-view")
    edit = named(found, "ClusterRole", "-edit")
    assert view["metadata"]["labels"]["rbac.authorization.k8s.io/aggregate-to-view"] == "true"
    assert "rbac.authorization.k8s.io/aggregate-to-view" not in edit["metadata"]["labels"]

    def written(role: dict[str, Any]) -> set[str]:
        rules = (rule for rule in role["rules"] if {"update", "patch"} & set(rule["verbs"]))
        return {resource for rule in rules for resource in rule["resources"]}

    assert written(view) == set()
    assert written(edit) == {"watercolourruns", "watercolourruns/scale"}


@pytest.mark.parametrize(
    ("release", "name"), [("watercolour", "watercolour"), ("lab", "lab-watercolour")]
)
def test_objects_are_called_after_the_release(release: str, name: str, helm_alone: Any) -> None:
    text = helm_alone("template", release, str(CHART), "--namespace", NAMESPACE)
    found = [each for each in yaml.load_all(text, yaml.CSafeLoader) if each]
    assert named(found, "Deployment")["metadata"]["name"] == f"{name}-operator"
    assert config(found)["leaseName"] == f"{name}-operator"
    lease = named(found, "Role", "-lease")["rules"][1]
    assert lease["resourceNames"] == [f"{name}-operator"]


@pytest.mark.parametrize(
    ("file", "words"),
    [
        ("defaults", "looks after the runs of every namespace."),
        ("defaults", "rollout status daemonset/watercolour-seccomp-profile"),
        ("namespaces", "looks after the runs of paint-a, paint-b."),
        ("single", "Left to a cluster administrator"),
        ("gvisor", "Careful: renderers get RuntimeDefault"),
        ("bare", "The definition of WatercolourRun is not part of this release"),
        ("bare", "Careful: nothing refuses a renderer pod without walls"),
        ("uninstall-leave", "Careful: after `helm uninstall` running runs go on"),
    ],
)
def test_the_notes_say_what_runs_and_what_is_risky(
    file: str, words: str, helm_alone: Helm, tmp_path: Path
) -> None:
    values = str(CHART / "ci" / f"{file}-values.yaml")
    text = helm_alone(
        "install",
        "watercolour",
        str(CHART),
        *("--namespace", NAMESPACE, "--values", values, "--dry-run=client"),
        kubeconfig=tmp_path / "none",
    )
    notes = text.partition("\nNOTES:\n")[2]
    assert words in notes
    assert f"kubectl -n {NAMESPACE} rollout status deployment/watercolour-operator" in notes
    assert ("Careful" in notes) is (file in {"gvisor", "bare", "uninstall-leave"})
