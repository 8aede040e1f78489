"""Helm, and what the chart renders; for the tests that install it, a control plane of their own."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.cluster import conftest as ground
from tests.cluster.ground import binaries as programs
from tests.cluster.ground.clusters import Binaries
from tests.cluster.ground.controlplane import ControlPlane

ROOT = Path(__file__).parents[2]
CHART = ROOT / "charts" / "watercolour"
NAMESPACE = "watercolour-system"
Manifest = dict[str, Any]

# The ground's fixtures, with a control plane that has no definition yet: Helm brings it.
binaries = ground.binaries
api = ground.api
fake_nodes = ground.fake_nodes
all_pods = ground.all_pods
pods = ground.pods
namespace = ground.namespace
kubectl = ground.kubectl


@pytest.fixture(scope="session")
def control_plane(
    binaries: Binaries, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ControlPlane]:
    """A control plane that knows nothing of runs."""
    folder = tmp_path_factory.mktemp("chart") / "plane"
    with ControlPlane(folder, binaries.kube, binaries.etcd) as plane:
        yield plane


class HelmFailed(Exception):
    """Helm's own words."""


Helm = Callable[..., str]
Render = Callable[..., list[Manifest]]


@pytest.fixture(scope="session")
def helm_alone(tmp_path_factory: pytest.TempPathFactory) -> Helm:
    """Run helm; returns what it printed, raises HelmFailed with what it complained of."""
    program = programs.provide("kubectl", lambda text: None) / "helm"
    home = tmp_path_factory.mktemp("helm")
    names = ("HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME")
    environment = {**os.environ, **{name: str(home / name) for name in names}}

    def run(*arguments: str, stdin: str = "", kubeconfig: Path | None = None) -> str:
        where = ["--kubeconfig", str(kubeconfig)] if kubeconfig else []
        done = subprocess.run(
            [program, *arguments, *where],
            env=environment,
            cwd=ROOT,
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        if done.returncode:
            raise HelmFailed(done.stderr + done.stdout)
        return done.stdout

    return run


@pytest.fixture
def helm(helm_alone: Helm, control_plane: ControlPlane) -> Helm:
    """Helm against the control plane, as an administrator unless a kubeconfig is given."""

    def run(*arguments: str, kubeconfig: Path | None = None, stdin: str = "") -> str:
        return helm_alone(
            *arguments, kubeconfig=kubeconfig or control_plane.kubeconfig, stdin=stdin
        )

    return run


@pytest.fixture(scope="session")
def render(helm_alone: Helm) -> Render:
    """The manifests for some values: `render("monitoring")` by ci file, `render(values={…})`."""

    def run(
        file: str = "", *, values: Manifest | None = None, namespace: str = NAMESPACE
    ) -> list[Manifest]:
        arguments = ["template", "watercolour", str(CHART), "--namespace", namespace]
        if file:
            arguments += ["--values", str(CHART / "ci" / f"{file}-values.yaml")]
        if values:
            arguments += ["--values", "-"]
        text = helm_alone(*arguments, stdin=yaml.safe_dump(values or {}))
        return [found for found in yaml.load_all(text, yaml.CSafeLoader) if found]

    return run


def named(manifests: list[Manifest], kind: str, end: str = "") -> Manifest:
    """The one object of a kind whose name ends so."""
    found = [
        each
        for each in manifests
        if each["kind"] == kind and each["metadata"]["name"].endswith(end)
    ]
    assert len(found) == 1, f"{kind} …{end}: {[each['metadata']['name'] for each in found]}"
    return found[0]


def kinds(manifests: list[Manifest]) -> set[str]:
    """The kinds that were rendered."""
    return {each["kind"] for each in manifests}


def pod_specs(manifests: list[Manifest]) -> dict[str, Manifest]:
    """Pod templates by the name of their Deployment, DaemonSet or Job."""
    return {
        each["metadata"]["name"]: each["spec"]["template"]
        for each in manifests
        if each["kind"] in {"Deployment", "DaemonSet", "Job"}
    }


def config(manifests: list[Manifest]) -> Manifest:
    """The operator's configuration file, read."""
    return yaml.safe_load(named(manifests, "ConfigMap", "-operator")["data"]["operator.yaml"])
