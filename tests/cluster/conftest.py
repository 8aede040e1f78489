"""What every test of the cluster level may ask for; tests/cluster/README.md shows each in use."""

from __future__ import annotations

import itertools
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cluster.ground import clusters, kwok
from tests.cluster.ground.api import Api, ApiError, Json
from tests.cluster.ground.clusters import Binaries
from tests.cluster.ground.controlplane import ControlPlane
from tests.cluster.ground.faultproxy import FaultProxy
from tests.cluster.ground.podplayer import PodPlayer

ROOT = Path(__file__).parents[2]
CRDS = sorted((ROOT / "crds").glob("*.yaml"))
GPU_NODES = 2
GPUS_PER_NODE = 8
Kubectl = Callable[..., str]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything below this folder needs the control plane."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.cluster)


@pytest.fixture(scope="session")
def binaries(request: pytest.FixtureRequest) -> Binaries:
    """The programs; a build on the way is waited for, with a line of progress every 15 s."""
    capture: Any = request.config.pluginmanager.getplugin("capturemanager")

    def announce(text: str) -> None:
        with capture.global_and_fixture_disabled():
            print(f"\ncluster: {text}", flush=True)

    return clusters.resolve(announce)


@pytest.fixture(scope="session")
def control_plane(
    binaries: Binaries, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ControlPlane]:
    """etcd, API server, controller manager and scheduler, with crds/*.yaml installed."""
    folder = tmp_path_factory.mktemp("cluster") / "plane"
    with ControlPlane(folder, binaries.kube, binaries.etcd, crds=CRDS) as plane:
        yield plane


@pytest.fixture(scope="session")
def api(control_plane: ControlPlane) -> Api:
    """The tests' own client, as cluster-admin; its calls are not in the audit log."""
    return control_plane.api


@pytest.fixture(scope="session")
def crd_installed(control_plane: ControlPlane) -> None:
    """The resource's CRD is served; fails with the server's words when it was refused."""
    for path, refusal in control_plane.refused.items():
        pytest.fail(f"{path.relative_to(ROOT)} was refused: {refusal}", pytrace=False)
    control_plane.api.list("WatercolourRun")


@pytest.fixture(scope="session")
def fake_nodes(control_plane: ControlPlane, binaries: Binaries) -> Iterator[list[str]]:
    """Two ready nodes of 8 GPUs each and one without, kept alive by KWOK."""
    program = kwok.start(binaries.kwok, control_plane.kubeconfig, control_plane.folder)
    try:
        for number in range(GPU_NODES):
            kwok.add_node(control_plane.api, f"gpu-{number}", gpus=GPUS_PER_NODE)
        kwok.add_node(control_plane.api, "cpu-0")
        yield [*(f"gpu-{number}" for number in range(GPU_NODES)), "cpu-0"]
    finally:
        program.stop()


@pytest.fixture(scope="session")
def all_pods(control_plane: ControlPlane, fake_nodes: list[str]) -> Iterator[PodPlayer]:
    """Plays every pod of the session; tests use `pods`, which forgets their scripts."""
    with PodPlayer(control_plane.api) as player:
        yield player


@pytest.fixture
def pods(all_pods: PodPlayer, namespace: str) -> Iterator[PodPlayer]:
    """Plays the pods: each becomes ready at once unless the test scripts another life."""
    yield all_pods
    all_pods.forget(namespace)


_numbers = itertools.count(1)


@pytest.fixture
def namespace(control_plane: ControlPlane, request: pytest.FixtureRequest) -> Iterator[str]:
    """A namespace of the test's own, whose default service account exists."""
    api = control_plane.api
    name = f"t{next(_numbers)}"
    test: str = request.node.name
    annotations = {"ground.watercolour.dev/test": test}
    api.create(
        {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": name, "annotations": annotations},
        }
    )
    api.until_one("ServiceAccount", "default", name)
    yield name
    # The namespace controller takes 5 to 10 s: nobody waits for it. What an operator that has ended
    # left its finalizer on would hold the namespace for ever.
    for run in _runs(api, name):
        if run["metadata"].get("finalizers"):
            nothing = {"metadata": {"finalizers": None}}
            api.patch("WatercolourRun", run["metadata"]["name"], nothing, name)
        api.delete("WatercolourRun", run["metadata"]["name"], name)
    api.delete("Namespace", name)


def _runs(api: Api, namespace: str) -> list[Json]:
    try:
        return api.list("WatercolourRun", namespace)
    except ApiError as refusal:
        if refusal.code == 404:  # the CRD was refused, or a test has removed it
            return []
        raise


@pytest.fixture
def proxy(control_plane: ControlPlane) -> Iterator[FaultProxy]:
    """A fault proxy of the test's own; `proxy.kubeconfig(token, path)` leads through it."""
    with FaultProxy(control_plane) as running:
        yield running


@pytest.fixture
def kubectl(control_plane: ControlPlane, binaries: Binaries, namespace: str) -> Kubectl:
    """Run kubectl in the test's namespace and return what it printed.

    `kubectl("get", "pods", stdin="…", check=False)`; with check a failure fails the test.
    """

    def run(*arguments: str, stdin: str = "", check: bool = True) -> str:
        command = [binaries.kubectl, f"--kubeconfig={control_plane.kubeconfig}", "-n", namespace]
        done = subprocess.run(
            [*map(str, command), *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        if check and done.returncode:
            pytest.fail(f"kubectl {' '.join(arguments)}: {done.stderr}")
        return done.stdout if check else done.stdout + done.stderr

    return run
