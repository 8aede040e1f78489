"""What tests on a whole node may ask for: the cluster, a namespace, pods of the test's own.

The cluster is that of KUBECONFIG, the node that runs on this machine already, or one that is
started for the session and ended with it.
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.cluster.node import cluster, host, images, run
from tests.cluster.node.cluster import Cluster
from tests.cluster.node.daemons import SANDBOX
from tests.cluster.node.place import Place

Json = dict[str, Any]
WAIT = 60.0  # seconds that a condition may take before the test fails


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything below this folder needs a node."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.node)


@dataclass
class Space:
    """A namespace, and kubectl in it."""

    cluster: Cluster
    name: str
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def kubectl(self, *arguments: str, stdin: str = "", check: bool = True) -> str:
        """What kubectl printed; its complaints too, when a failure is expected (check=False)."""
        done = subprocess.run(
            [str(self.cluster.kubectl), "-n", self.name, *arguments],
            input=stdin,
            env=os.environ | {"KUBECONFIG": str(self.cluster.kubeconfig)},
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )
        if check and done.returncode:
            pytest.fail(f"kubectl {' '.join(arguments)}: {done.stderr}")
        return done.stdout if check else done.stdout + done.stderr

    def get(self, kind: str, name: str = "", *arguments: str) -> Json:
        """An object, or a list of them."""
        words = ["get", kind, *([name] if name else []), *arguments, "-o", "json"]
        return json.loads(self.kubectl(*words))

    def apply(self, *manifests: Json) -> None:
        """Server-side apply."""
        several = {"apiVersion": "v1", "kind": "List", "items": list(manifests)}
        self.kubectl("apply", "--server-side", "-f", "-", stdin=json.dumps(several))

    def wait(self, what: str, condition: str, timeout: float = WAIT) -> None:
        """`kubectl wait`; fails with the object's description."""
        words = ["wait", what, f"--for={condition}", f"--timeout={timeout:g}s"]
        told = self.kubectl(*words, check=False)
        if "condition met" not in told and "deleted" not in told:
            described = self.kubectl("describe", what, check=False)
            pytest.fail(f"{what}: not {condition} in {timeout:g} s: {told}\n{described[-3000:]}")

    def pod(self, *command: str, labels: dict[str, str] | None = None, **more: Any) -> str:
        """A pod that does a thing of the probe's; returns its name without waiting."""
        name = f"{command[0]}-{next(self._numbers)}"
        security = {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "runAsNonRoot": True,
            "seccompProfile": {"type": "RuntimeDefault"},
        }
        container = {
            "name": "probe",
            "image": SANDBOX,
            "imagePullPolicy": "Never",
            "args": list(command),
            "securityContext": security,
            **more.pop("container", {}),
        }
        spec = {
            "containers": [container],
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 1,
            "automountServiceAccountToken": False,
            **more,
        }
        meta = {"name": name, "labels": {"probe": command[0], **(labels or {})}}
        self.apply({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec})
        return name

    def hello(self) -> str:
        """A Service `hello` on port 80 before the pods that serve on 8080; its address."""
        ports = [{"port": 80, "targetPort": 8080}]
        spec = {"selector": {"probe": "serve"}, "ports": ports}
        meta = {"name": "hello"}
        self.apply({"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": spec})
        return self.get("service", "hello")["spec"]["clusterIP"]

    def probe(self, pod: str, *command: str) -> str:
        """What the probe in a running pod answers."""
        return self.kubectl("exec", pod, "--", "/probe", *command, check=False)


def announce(request: pytest.FixtureRequest) -> Callable[[str], None]:
    """Print past pytest's capture: a build or a start takes a while."""
    capture: Any = request.config.pluginmanager.getplugin("capturemanager")

    def say(text: str) -> None:
        with capture.global_and_fixture_disabled():
            print(f"\ncluster: {text}", end="", flush=True)

    return say


@pytest.fixture
def say(request: pytest.FixtureRequest) -> Callable[[str], None]:
    """Tell a figure that was measured."""
    return announce(request)


@pytest.fixture
def place(found: Cluster) -> Place:
    """The node's folder; KUBECONFIG's cluster has none, and its daemons are not ours to kill."""
    if found.place is None:
        pytest.skip("the daemons of KUBECONFIG's cluster are not ours to kill")
    return found.place


@pytest.fixture(scope="session")
def was_up() -> bool:
    """Whether the cluster is somebody's, from before the session."""
    return cluster.there()


@pytest.fixture(scope="session")
def found(request: pytest.FixtureRequest, was_up: bool) -> Iterator[Cluster]:
    """The cluster; a node that was not up before the session is ended with it."""
    if os.geteuid() and not was_up:
        pytest.skip("a node takes root, or KUBECONFIG")
    yield cluster.up(announce(request))
    if not was_up:
        host.end()


@pytest.fixture(scope="module")
def release(found: Cluster, request: pytest.FixtureRequest) -> Cluster:
    """The cluster with our images and the chart on it."""
    say = announce(request)
    if found.place:
        images.bring(found.place, say)
    run.install(found, say)
    return found


_numbers = itertools.count(1)


@pytest.fixture
def space(found: Cluster) -> Iterator[Space]:
    """A namespace of the test's own, where Pod Security lets in `restricted` pods alone."""
    yield from restricted(found)


def restricted(found: Cluster) -> Iterator[Space]:
    """A new namespace, deleted afterwards."""
    made = Space(found, f"node-test-{os.getpid()}-{next(_numbers)}")
    run.namespace(found, made.name)
    yield made
    made.kubectl("delete", "namespace", made.name, "--wait=false")
