"""A release on the real API server: install, upgrade, rollback, uninstall, while there are runs."""

from __future__ import annotations

import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.chart.conftest import CHART, ROOT, Helm, HelmFailed
from tests.cluster.ground import podlife, processes
from tests.cluster.ground.api import Api, ApiError
from tests.cluster.ground.controlplane import ControlPlane
from tests.cluster.ground.podplayer import PodPlayer

pytestmark = pytest.mark.cluster
Manifest = dict[str, Any]
DEFINITION = "watercolourruns.watercolour.dev"
RUN: Manifest = {
    "apiVersion": "watercolour.dev/v1alpha1",
    "kind": "WatercolourRun",
    "metadata": {"name": "peony"},
    "spec": {"trainer": {"steps": 5}},
}


@pytest.fixture
def release(
    helm: Helm, namespace: str, control_plane: ControlPlane
) -> Iterator[Callable[..., str]]:
    """Call helm on the release `watercolour` of the test's namespace; uninstalled at the end."""
    api = control_plane.api

    def call(verb: str, *arguments: str, kubeconfig: Path | None = None) -> str:
        return helm(
            verb, "watercolour", *arguments, "--namespace", namespace, kubeconfig=kubeconfig
        )

    yield call
    if api.find("CustomResourceDefinition", DEFINITION):
        for run in api.list("WatercolourRun"):
            api.delete("WatercolourRun", run["metadata"]["name"], run["metadata"]["namespace"])
    if api.list("Secret", namespace, labels={"owner": "helm"}):
        call("uninstall", "--no-hooks")
    api.delete("CustomResourceDefinition", DEFINITION)
    api.until_gone("CustomResourceDefinition", DEFINITION)


def volume(name: str) -> Manifest:
    """Room for the claim of a run; nothing makes volumes in a cluster without a kubelet."""
    spec = {
        "capacity": {"storage": "100Gi"},
        "accessModes": ["ReadWriteOnce"],
        "hostPath": {"path": f"/nowhere/{name}"},
        # Reserved: claims that other tests have left wait for any volume.
        "claimRef": {"namespace": name, "name": "peony-artifacts"},
    }
    kind = {"apiVersion": "v1", "kind": "PersistentVolume"}
    return {**kind, "metadata": {"name": name}, "spec": spec}


def uid(api: Api, namespace: str) -> str:
    """The run's identity."""
    return api.get("WatercolourRun", "peony", namespace)["metadata"]["uid"]


@contextmanager
def operator(control_plane: ControlPlane, namespace: str, folder: Path) -> Iterator[None]:
    """The operator's own process, with the account and the configuration of the release."""
    command = [*operator_command(control_plane, namespace, folder)]
    program = processes.start("operator", command, folder / "operator.log")
    try:
        yield
    finally:
        program.stop()


def operator_command(control_plane: ControlPlane, namespace: str, folder: Path) -> list[str]:
    """The command of the Deployment, but for what a pod has: account, address, ports."""
    data = control_plane.api.get("ConfigMap", "watercolour-operator", namespace)["data"]
    config = folder / "operator.yaml"
    config.write_text(data["operator.yaml"])
    kubeconfig = account(control_plane, namespace, "watercolour-operator", folder)
    liveness, metrics = processes.free_ports(2)
    flags = {"liveness-port": liveness, "metrics-port": metrics, "metrics-host": "127.0.0.1"}
    shown = [f"--{name}={value}" for name, value in flags.items()]
    words = ["--kubeconfig", str(kubeconfig), "--config", str(config), *shown]
    return [sys.executable, "-m", "watercolour_operator", *words]


def account(control_plane: ControlPlane, namespace: str, name: str, folder: Path) -> Path:
    """A kubeconfig for one of the release's ServiceAccounts."""
    request = {"spec": {"expirationSeconds": 3600}}
    granted = control_plane.api.post("ServiceAccount", name, namespace, "token", request)
    return control_plane.kubeconfig_of(granted["status"]["token"], folder / f"{name}.kubeconfig")


class Hook:
    """`helm uninstall` in the background, with its hook's command run as the hook's account."""

    def __init__(self, call: Callable[[], str]) -> None:
        self.words = ""
        self.failed = False
        self._thread = threading.Thread(target=self._run, args=(call,))
        self._thread.start()

    def _run(self, call: Callable[[], str]) -> None:
        try:
            self.words = call()
        except HelmFailed as error:
            self.words, self.failed = str(error), True

    def join(self) -> None:
        """Wait until helm has ended."""
        self._thread.join(60)
        assert not self._thread.is_alive()


def uninstall(
    release: Callable[..., str],
    control_plane: ControlPlane,
    namespace: str,
    pods: PodPlayer,
    folder: Path,
) -> tuple[Hook, str]:
    """Uninstall as a cluster would: returns how helm fared, and what the hook's pod said."""
    api = control_plane.api
    worn = {"app.kubernetes.io/component": "uninstall"}
    earlier = {pod["metadata"]["uid"] for pod in api.list("Pod", namespace, labels=worn)}
    hook = Hook(lambda: release("uninstall", "--timeout", "50s"))

    def fresh(found: list[Manifest]) -> list[Manifest]:
        return [
            pod
            for pod in found
            if pod["metadata"]["uid"] not in earlier and pod["status"].get("phase") == "Running"
        ]

    pod = fresh(api.until("Pod", fresh, namespace, labels=worn))[0]
    container = pod["spec"]["containers"][0]
    module = container["command"][1:]
    kubeconfig = account(control_plane, namespace, pod["spec"]["serviceAccountName"], folder)
    done = subprocess.run(
        [sys.executable, *module, *container["args"], "--kubeconfig", kubeconfig],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    end = podlife.Exited(done.returncode, message=done.stderr)
    pods.step(namespace, pod["metadata"]["name"], end)
    hook.join()
    return hook, done.stderr


def older_chart(folder: Path) -> Path:
    """The chart as it was before a field came into being."""
    copy = folder / "older"
    shutil.copytree(CHART, copy)
    path = copy / "files" / "watercolourruns.yaml"
    definition = yaml.safe_load(path.read_text())
    spec = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    del spec["properties"]["tracking"]
    spec.get("default", {}).pop("tracking", None)
    path.write_text(yaml.safe_dump(definition))
    chart = copy / "Chart.yaml"
    chart.write_text(chart.read_text().replace("version: 0.1.0", "version: 0.0.9", 1))
    return copy


def knows_tracking(api: Api) -> bool:
    """Whether the cluster's definition is the newer one."""
    definition = api.get("CustomResourceDefinition", DEFINITION)
    schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return "tracking" in schema["properties"]["spec"]["properties"]


def test_upgrade_and_rollback_take_the_definition_along_and_keep_the_runs(
    release: Callable[..., str], api: Api, namespace: str, tmp_path: Path, pods: PodPlayer
) -> None:
    older = str(older_chart(tmp_path))
    release("install", older, "--wait", "--timeout", "60s")
    assert not knows_tracking(api)
    run = api.create(RUN, namespace)["metadata"]["uid"]

    release("upgrade", str(CHART), "--wait", "--timeout", "60s")
    assert knows_tracking(api)
    assert uid(api, namespace) == run

    release("rollback", "1", "--wait", "--timeout", "60s")
    assert not knows_tracking(api)
    after = api.get("WatercolourRun", "peony", namespace)
    assert after["metadata"]["uid"] == run
    assert after["spec"]["trainer"]["steps"] == 5


def test_definition_and_runs_survive_the_release_and_are_taken_over_by_the_next(
    release: Callable[..., str], api: Api, namespace: str, pods: PodPlayer
) -> None:
    release("install", str(CHART), "--set", "uninstall.runs=Leave")
    run = api.create(RUN, namespace)["metadata"]["uid"]
    release("uninstall")
    assert not api.find("Deployment", "watercolour-operator", namespace)
    assert uid(api, namespace) == run
    release("install", str(CHART), "--set", "uninstall.runs=Leave")
    assert uid(api, namespace) == run


def test_a_running_run_keeps_the_release_until_it_is_suspended(
    release: Callable[..., str],
    api: Api,
    control_plane: ControlPlane,
    namespace: str,
    tmp_path: Path,
    pods: PodPlayer,
) -> None:
    release("install", str(CHART))
    with operator(control_plane, namespace, tmp_path):
        api.create(RUN, namespace)
        trainer = {"watercolour.dev/component": "trainer"}
        api.until("Pod", bool, namespace, labels=trainer, what="a trainer")
        hook, words = uninstall(release, control_plane, namespace, pods, tmp_path)
        assert hook.failed
        assert f"{namespace}/peony" in words
        assert api.find("Deployment", "watercolour-operator", namespace)
        assert api.find("ClusterRole", "watercolour-operator")

        # The very command that the refusal shows.
        (command,) = (line for line in words.splitlines() if line.strip().startswith("kubectl"))
        assert command.split("'")[1] == '{"spec":{"suspend":true}}'
        api.patch("WatercolourRun", "peony", {"spec": {"suspend": True}}, namespace)
        api.until_one(
            "WatercolourRun",
            "peony",
            namespace,
            lambda each: each.get("status", {}).get("phase") == "Suspended",
        )
        hook, words = uninstall(release, control_plane, namespace, pods, tmp_path)
    assert not hook.failed, hook.words
    assert words == ""
    assert not api.find("Deployment", "watercolour-operator", namespace)
    assert api.find("CustomResourceDefinition", DEFINITION)
    assert api.get("WatercolourRun", "peony", namespace)["status"]["phase"] == "Suspended"
    assert not api.list("Pod", namespace, labels=trainer)


def test_uninstall_suspends_what_runs_when_told_to(
    release: Callable[..., str],
    api: Api,
    control_plane: ControlPlane,
    namespace: str,
    tmp_path: Path,
    pods: PodPlayer,
) -> None:
    release("install", str(CHART), "--set", "uninstall.runs=Suspend")
    with operator(control_plane, namespace, tmp_path):
        api.create(RUN, namespace)
        api.until("Pod", bool, namespace, labels={"watercolour.dev/component": "trainer"})
        hook, words = uninstall(release, control_plane, namespace, pods, tmp_path)
    assert not hook.failed, hook.words
    assert f"{namespace}/peony: suspending" in words
    left = api.get("WatercolourRun", "peony", namespace)
    assert left["status"]["phase"] == "Suspended"
    assert left["spec"]["suspend"] is True
    assert not api.list("Job", namespace, labels={"watercolour.dev/component": "trainer"})


def test_a_life_of_a_run_needs_no_right_that_the_role_lacks(
    release: Callable[..., str],
    api: Api,
    control_plane: ControlPlane,
    namespace: str,
    tmp_path: Path,
    pods: PodPlayer,
) -> None:
    release(
        "install",
        str(CHART),
        "--set",
        "rbac.mode=namespaces",
        "--set",
        f"rbac.namespaces={{{namespace}}}",
    )
    user = f"system:serviceaccount:{namespace}:watercolour-operator"
    api.create(volume(namespace))
    with operator(control_plane, namespace, tmp_path):
        api.create(RUN, namespace)
        worn = {"watercolour.dev/component": "trainer"}
        trainer = api.until(
            "Pod",
            lambda found: found and found[0]["status"].get("phase") == "Running",
            namespace,
            labels=worn,
        )
        pods.step(namespace, trainer[0]["metadata"]["name"], podlife.Exited(0))
        api.until_one(
            "WatercolourRun",
            "peony",
            namespace,
            lambda each: each.get("status", {}).get("phase") in ("Succeeded", "Failed"),
        )
    refused = [call for call in control_plane.calls(user) if call.code == 403]
    # KEDA is not there, and its absence is borne.
    assert [call for call in refused if call.resource != "scaledobjects"] == []


def test_an_installer_of_one_namespace_can_install_in_single_mode(
    release: Callable[..., str],
    api: Api,
    control_plane: ControlPlane,
    namespace: str,
    tmp_path: Path,
) -> None:
    control_plane.install(yaml.safe_load((ROOT / "crds" / "watercolourruns.yaml").read_text()))
    rbac = "rbac.authorization.k8s.io"
    account_name = "installer"
    api.apply(
        {
            "apiVersion": f"{rbac}/v1",
            "kind": "ClusterRole",
            "metadata": {"name": f"{namespace}-runs"},
            "rules": yaml.safe_load((CHART / "files" / "operator-rules.yaml").read_text()),
        }
    )
    control_plane.token_of(namespace, account_name)
    for role in ("admin", f"{namespace}-runs"):
        api.apply(
            {
                "apiVersion": f"{rbac}/v1",
                "kind": "RoleBinding",
                "metadata": {"name": f"installer-{role}", "namespace": namespace},
                "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": role},
                "subjects": [
                    {"kind": "ServiceAccount", "name": account_name, "namespace": namespace}
                ],
            }
        )
    kubeconfig = account(control_plane, namespace, account_name, tmp_path)
    values = str(CHART / "ci" / "single-values.yaml")
    with pytest.raises(HelmFailed, match="forbidden"):
        release("install", str(CHART), kubeconfig=kubeconfig)
    release("install", str(CHART), "--values", values, kubeconfig=kubeconfig)
    assert api.find("Deployment", "watercolour-operator", namespace)


def test_restricted_namespaces_take_all_but_the_profiles_pods(
    release: Callable[..., str], api: Api, namespace: str, pods: PodPlayer
) -> None:
    level = {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}}
    api.patch("Namespace", namespace, level)
    tools = f"{namespace}-node"
    api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": tools}})
    release(
        "install",
        str(CHART),
        "--set",
        f"seccompProfile.namespace={tools}",
        "--wait",
        "--timeout",
        "60s",
    )
    daemon = api.get("DaemonSet", "watercolour-seccomp-profile", tools)
    assert daemon["status"]["numberReady"] == len(api.list("Node"))
    spec = {**daemon["spec"]["template"]["spec"], "serviceAccountName": "default"}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}
    with pytest.raises(ApiError, match="violates PodSecurity"):
        api.create(pod, namespace, dry_run=True)
    api.create(pod, tools, dry_run=True)
