"""The control plane is a real one: it validates, collects, counts, restarts, leaves no trace."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cluster.conftest import Kubectl
from tests.cluster.ground import processes
from tests.cluster.ground.api import Api, ApiError, Json, Kind
from tests.cluster.ground.clusters import Binaries
from tests.cluster.ground.controlplane import ControlPlane

ROOT = Path(__file__).parents[2]
BRUSH = Kind("ground.watercolour.dev/v1", "brushes")


@pytest.fixture(scope="module")
def brushes(control_plane: ControlPlane) -> None:
    """A small custom resource with a rule across two fields."""
    bristles = {"type": "integer", "minimum": 1}
    rule = {"rule": "self.min <= self.max", "message": "min: above max"}
    spec: Json = {
        "type": "object",
        "properties": {"min": bristles, "max": bristles},
        "required": ["min", "max"],
        "x-kubernetes-validations": [rule],
    }
    schema = {"type": "object", "properties": {"spec": spec}}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
    }
    control_plane.install(
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "brushes.ground.watercolour.dev"},
            "spec": {
                "group": "ground.watercolour.dev",
                "scope": "Namespaced",
                "names": {"plural": "brushes", "kind": "Brush"},
                "versions": [version],
            },
        }
    )


def brush(low: int, high: int) -> str:
    return f"""
apiVersion: ground.watercolour.dev/v1
kind: Brush
metadata: {{name: b}}
spec: {{min: {low}, max: {high}}}
"""


def test_rule_of_a_custom_resource_refuses(brushes: None, kubectl: Kubectl) -> None:
    refused = kubectl("apply", "-f", "-", stdin=brush(3, 2), check=False)
    assert "spec: Invalid value" in refused
    assert "min: above max" in refused
    assert "brush.ground.watercolour.dev/b created" in kubectl(
        "apply", "-f", "-", stdin=brush(2, 3)
    )


def owned(owner: Json) -> Json:
    reference = {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
    }
    metadata = {"name": "owned", "ownerReferences": [reference]}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}


def test_children_go_with_their_owner(api: Api, namespace: str) -> None:
    manifest = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "owner"}}
    owner = api.create(manifest, namespace)
    api.create(owned(owner), namespace)
    api.delete("Secret", "owner", namespace)
    api.until_gone("ConfigMap", "owned", namespace)


def test_child_of_an_owner_that_never_was_goes(api: Api, namespace: str) -> None:
    manifest = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "owner"}}
    owner = api.create(manifest, namespace)
    owner["metadata"]["uid"] = "00000000-0000-0000-0000-000000000000"
    api.create(owned(owner), namespace)
    api.until_gone("ConfigMap", "owned", namespace)


def test_resource_is_installed_before_the_controllers(
    api: Api, namespace: str, crd_installed: None
) -> None:
    run = {
        "apiVersion": "watercolour.dev/v1alpha1",
        "kind": "WatercolourRun",
        "metadata": {"name": "owner"},
        "spec": {"model": {"id": "builtin:tiny"}},
    }
    api.create(owned(api.create(run, namespace)), namespace)
    api.delete("WatercolourRun", "owner", namespace)
    # The collector looks for new kinds every 30 s only; a late CRD would exceed this.
    api.until_gone("ConfigMap", "owned", namespace, timeout=15)


def test_calls_are_counted_by_user(control_plane: ControlPlane, api: Api, namespace: str) -> None:
    token = control_plane.token_of(namespace, "counted", cluster_admin=True)
    user = f"system:serviceaccount:{namespace}:counted"
    other = Api(control_plane.server, token, control_plane.ca)
    other.list("Pod", namespace)
    other.list("Job", namespace)
    api.list("Pod", namespace)
    told = [(call.verb, call.resource, call.namespace) for call in control_plane.calls(user)]
    assert told == [("list", "pods", namespace), ("list", "jobs", namespace)]
    everyone = {call.user for call in control_plane.calls()}
    assert not any(name.startswith("system:kube") for name in everyone)


def test_token_has_the_rights_of_its_account_alone(
    control_plane: ControlPlane, namespace: str
) -> None:
    plain = Api(control_plane.server, control_plane.token_of(namespace, "plain"), control_plane.ca)
    with pytest.raises(ApiError, match='cannot list resource "pods"'):
        plain.list("Pod", namespace)


def test_server_comes_back_with_its_objects(binaries: Binaries, tmp_path: Path) -> None:
    with ControlPlane(tmp_path / "plane", binaries.kube, binaries.etcd) as plane:
        config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kept"}}
        plane.api.create(config_map, "default")
        plane.stop_api_server()
        assert not plane.alive()
        plane.start_api_server()
        assert plane.alive()
        assert plane.api.find("ConfigMap", "kept", "default")
        assert plane.resident_mib()["kube-apiserver"] > 50


SESSION = """
import sys, time
from pathlib import Path
from tests.cluster.ground import clusters, kwok
from tests.cluster.ground.controlplane import ControlPlane

found = clusters.resolve(print)
with ControlPlane(Path(sys.argv[1]), found.kube, found.etcd) as plane:
    kwok.start(found.kwok, plane.kubeconfig, plane.folder)
    print("ready", flush=True)
    time.sleep(600)
"""


def left(folder: Path) -> list[str]:
    """Processes whose command line names the folder."""
    found: list[str] = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = entry.read_bytes().split(b"\0")
        except OSError:
            continue
        if str(folder).encode() in b" ".join(words[1:]) and words[0] != sys.executable.encode():
            found.append(b" ".join(words).decode())
    return found


def test_nothing_outlives_a_session_that_is_killed(tmp_path: Path) -> None:
    folder = tmp_path / "plane"
    session = subprocess.Popen(
        [sys.executable, "-c", SESSION, str(folder)],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert session.stdout is not None
        assert any(line == "ready\n" for line in session.stdout)
        # A process that was just started is still the interpreter that starts it.
        assert processes.wait_until(lambda: len(left(folder)) == 5, 10), left(folder)
    finally:
        session.send_signal(signal.SIGKILL)
        session.wait()
    gone = processes.wait_until(lambda: not left(folder), 10)
    assert gone, left(folder)
