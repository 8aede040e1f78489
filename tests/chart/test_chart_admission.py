"""The admission policy on the real API server: the operator's pods pass, and no weaker ones."""

from __future__ import annotations

import contextlib
import copy
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.chart import runs
from tests.chart.conftest import Render
from tests.cluster.ground.api import Api, ApiError
from tests.cluster.ground.controlplane import ControlPlane

pytestmark = pytest.mark.cluster
Manifest = dict[str, Any]
Change = Callable[[Manifest], object]
POLICY_KINDS = ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")


@pytest.fixture(scope="module")
def policy(control_plane: ControlPlane, render: Render) -> Iterator[None]:
    """The chart's policies, in force; one RuntimeClass counts as a wall."""
    api = control_plane.api
    values = {"admissionPolicy": {"runtimeClasses": ["gvisor"]}}
    found = [each for each in render(values=values) if each["kind"] in POLICY_KINDS]
    assert len(found) == 4
    for each in found:
        api.apply(each)
    api.apply(
        {
            "apiVersion": "node.k8s.io/v1",
            "kind": "RuntimeClass",
            "metadata": {"name": "gvisor"},
            "handler": "runsc",
        }
    )
    wait_until_in_force(api)
    yield
    for each in found:
        api.delete(each["kind"], each["metadata"]["name"])


def wait_until_in_force(api: Api) -> None:
    """The API server takes a moment to compile a policy; then it refuses."""
    worst = good("default")
    worst["spec"]["hostNetwork"] = True
    worst["spec"]["serviceAccountName"] = "default"
    api.until_one("ServiceAccount", "default", "default")
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        with contextlib.suppress(ApiError):
            api.create(worst, dry_run=True)
            continue
        return
    pytest.fail("the policy is not in force after 30 s")


def good(namespace: str, spec: Manifest | None = None) -> Manifest:
    """A renderer pod as the operator makes it; its account is made by the operator too."""
    pod = runs.pod(runs.manifests(namespace, spec), "renderers")
    pod["spec"]["serviceAccountName"] = "default"
    return pod


def container(pod: Manifest) -> Manifest:
    return pod["spec"]["containers"][0]


def security(pod: Manifest) -> Manifest:
    return container(pod)["securityContext"]


def second(pod: Manifest, **changes: Any) -> None:
    """A second container like the first but for some fields of its security context."""
    beside = copy.deepcopy(container(pod))
    beside["name"] = "beside"
    beside.pop("ports")
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        beside.pop(probe, None)
    beside["securityContext"] |= changes
    pod["spec"]["containers"].append(beside)


def first_of_all(pod: Manifest, **changes: Any) -> None:
    """An init container like the renderer but for some fields of its security context."""
    second(pod, **changes)
    before = pod["spec"]["containers"].pop()
    before.pop("lifecycle", None)
    pod["spec"]["initContainers"] = [before]


def volume(pod: Manifest, source: Manifest) -> None:
    pod["spec"]["volumes"].append({"name": "more", **source})


WEAKER: dict[str, tuple[str, Change]] = {
    "hostNetwork": ("hostNetwork", lambda p: p["spec"].update(hostNetwork=True)),
    "hostPID": ("hostPID", lambda p: p["spec"].update(hostPID=True)),
    "hostIPC": ("hostIPC", lambda p: p["spec"].update(hostIPC=True)),
    "hostPort": ("hostPort", lambda p: container(p)["ports"][0].update(hostPort=8080)),
    "shared processes": (
        "shareProcessNamespace",
        lambda p: p["spec"].update(shareProcessNamespace=True),
    ),
    "token": (
        "automountServiceAccountToken",
        lambda p: p["spec"].update(automountServiceAccountToken=True),
    ),
    "token by default": (
        "automountServiceAccountToken",
        lambda p: p["spec"].pop("automountServiceAccountToken"),
    ),
    "projected token": (
        "volumes",
        lambda p: volume(
            p, {"projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}}
        ),
    ),
    "hostPath": ("volumes", lambda p: volume(p, {"hostPath": {"path": "/var/run"}})),
    "Secret as a volume": ("volumes", lambda p: volume(p, {"secret": {"secretName": "s"}})),
    "claim": (
        "volumes",
        lambda p: volume(p, {"persistentVolumeClaim": {"claimName": "peony-artifacts"}}),
    ),
    "Secret as a variable": (
        "Secrets",
        lambda p: container(p)["env"].append(
            {"name": "T", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}
        ),
    ),
    "Secret as variables": (
        "Secrets",
        lambda p: container(p).update(envFrom=[{"secretRef": {"name": "s"}}]),
    ),
    "sysctls": (
        "sysctls",
        lambda p: p["spec"]["securityContext"].update(
            sysctls=[{"name": "net.ipv4.ip_local_port_range", "value": "1024 65535"}]
        ),
    ),
    "privileged": (
        "privileged",
        lambda p: security(p).update(privileged=True, allowPrivilegeEscalation=True),
    ),
    "procMount": (
        "procMount",
        lambda p: (p["spec"].update(hostUsers=False), security(p).update(procMount="Unmasked")),
    ),
    "privilege escalation": (
        "allowPrivilegeEscalation",
        lambda p: security(p).update(allowPrivilegeEscalation=True),
    ),
    "privilege escalation by default": (
        "allowPrivilegeEscalation",
        lambda p: security(p).pop("allowPrivilegeEscalation"),
    ),
    "capabilities kept": ("capabilities", lambda p: security(p).pop("capabilities")),
    "capability added": (
        "capabilities",
        lambda p: security(p)["capabilities"].update(add=["NET_ADMIN"]),
    ),
    "writable root": (
        "readOnlyRootFilesystem",
        lambda p: security(p).update(readOnlyRootFilesystem=False),
    ),
    "root allowed": ("runAsNonRoot", lambda p: security(p).update(runAsNonRoot=False)),
    "root by nobody's word": (
        "runAsNonRoot",
        lambda p: (
            security(p).pop("runAsNonRoot"),
            p["spec"]["securityContext"].pop("runAsNonRoot"),
        ),
    ),
    "root by number": (
        "runAsNonRoot",
        lambda p: p["spec"]["securityContext"].update(runAsUser=0),
    ),
    "root by the container's number": (
        "runAsNonRoot",
        lambda p: security(p).update(runAsUser=0),
    ),
    "unconfined by seccomp": (
        "seccomp",
        lambda p: security(p).update(seccompProfile={"type": "Unconfined"}),
    ),
    "another profile": (
        "seccomp",
        lambda p: security(p).update(
            seccompProfile={"type": "Localhost", "localhostProfile": "anything.json"}
        ),
    ),
    "RuntimeDefault under the node's own runtime": (
        "seccomp",
        lambda p: security(p).update(seccompProfile={"type": "RuntimeDefault"}),
    ),
    "unconfined by AppArmor": (
        "AppArmor",
        lambda p: security(p).update(appArmorProfile={"type": "Unconfined"}),
    ),
    "browser without its sandbox": (
        "allowUnsandboxed",
        lambda p: container(p)["args"].append("--allow-unsandboxed"),
    ),
    "no limits": ("limits", lambda p: container(p).update(resources={})),
    "no limit of memory": (
        "limits",
        lambda p: container(p).update(resources={"limits": {"cpu": "1"}}),
    ),
    "no run": ("labels", lambda p: p["metadata"]["labels"].pop("watercolour.dev/run-uid")),
    "weak second container": (
        "readOnlyRootFilesystem",
        lambda p: second(p, readOnlyRootFilesystem=False),
    ),
    "weak init container": (
        "allowPrivilegeEscalation",
        lambda p: first_of_all(p, allowPrivilegeEscalation=True),
    ),
}


@pytest.mark.usefixtures("policy")
def test_the_server_finds_no_fault_in_the_policies_expressions(api: Api) -> None:
    for name in ("watercolour-renderers", "watercolour-renderers-kept"):
        found = api.until_one(
            "ValidatingAdmissionPolicy",
            name,
            None,
            lambda each: each.get("status", {}).get("observedGeneration"),
        )
        assert not found["status"].get("typeChecking", {}).get("expressionWarnings")


@pytest.mark.usefixtures("policy")
def test_the_operators_renderer_is_admitted(api: Api, namespace: str) -> None:
    api.create(good(namespace), dry_run=True)


@pytest.mark.usefixtures("policy")
@pytest.mark.parametrize("component", ["trainer", "env", "scorer"])
def test_other_components_are_not_its_business(api: Api, namespace: str, component: str) -> None:
    pod = runs.pod(runs.manifests(namespace), component)
    pod["spec"]["serviceAccountName"] = "default"
    pod["spec"]["shareProcessNamespace"] = True
    api.create(pod, dry_run=True)


@pytest.mark.usefixtures("policy")
def test_two_walled_containers_are_admitted(api: Api, namespace: str) -> None:
    pod = good(namespace)
    second(pod)
    api.create(pod, dry_run=True)


@pytest.mark.usefixtures("policy")
@pytest.mark.parametrize(("words", "change"), WEAKER.values(), ids=WEAKER)
def test_a_weaker_renderer_is_refused(api: Api, namespace: str, words: str, change: Change) -> None:
    pod = good(namespace)
    change(pod)
    with pytest.raises(ApiError) as refused:
        api.create(pod, dry_run=True)
    assert "denied request: renderers: " in refused.value.message
    assert words in refused.value.message.partition("renderers: ")[2]


@pytest.mark.usefixtures("policy")
def test_a_runtime_class_on_the_list_stands_for_profile_and_sandbox(
    api: Api, namespace: str
) -> None:
    spec = {"renderers": {"runtimeClassName": "gvisor", "allowUnsandboxed": True}}
    api.create(good(namespace, spec), dry_run=True)


@pytest.mark.usefixtures("policy")
def test_a_runtime_class_that_is_not_on_the_list_stands_for_nothing(
    api: Api, namespace: str
) -> None:
    api.apply(
        {
            "apiVersion": "node.k8s.io/v1",
            "kind": "RuntimeClass",
            "metadata": {"name": "plain"},
            "handler": "runc",
        }
    )
    with pytest.raises(ApiError, match="seccomp profile must be Localhost watercolour/chromium"):
        api.create(good(namespace, {"renderers": {"runtimeClassName": "plain"}}), dry_run=True)


@pytest.mark.usefixtures("policy")
def test_a_renderer_keeps_the_labels_that_fence_it_in(api: Api, namespace: str) -> None:
    pod = api.create(good(namespace))
    name = pod["metadata"]["name"]
    for label in ("component", "run", "run-uid"):
        change = {"metadata": {"labels": {f"watercolour.dev/{label}": "other"}}}
        with pytest.raises(ApiError, match="of a pod must stay"):
            api.patch("Pod", name, change, namespace)
        gone = {"metadata": {"labels": {f"watercolour.dev/{label}": None}}}
        with pytest.raises(ApiError, match="of a pod must stay"):
            api.patch("Pod", name, gone, namespace)
    # What the operator itself writes on a living pod.
    cost = {"metadata": {"annotations": {"controller.kubernetes.io/pod-deletion-cost": "-1"}}}
    api.patch("Pod", name, cost, namespace)


@pytest.mark.usefixtures("policy")
def test_a_pod_does_not_become_a_renderer(api: Api, namespace: str) -> None:
    plain = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "plain", "labels": {"watercolour.dev/run": "peony"}},
        "spec": {"containers": [{"name": "c", "image": "i:1"}]},
    }
    api.create(plain, namespace)
    change = {"metadata": {"labels": {"watercolour.dev/component": "renderers"}}}
    with pytest.raises(ApiError, match="of a pod must stay"):
        api.patch("Pod", "plain", change, namespace)


@pytest.mark.usefixtures("policy")
def test_nobody_debugs_inside_a_renderer(api: Api, namespace: str) -> None:
    pod = api.create(good(namespace))
    name = pod["metadata"]["name"]
    debugger = {"spec": {"ephemeralContainers": [{"name": "d", "image": "i:1"}]}}
    with pytest.raises(ApiError, match="gets no ephemeral container"):
        api.patch(
            "Pod", name, debugger, namespace, how="strategic", subresource="ephemeralcontainers"
        )
