"""An operator that a test starts, and the answers of the pods that it asks."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.cluster.ground.api import Api
from tests.cluster.ground.controlplane import ControlPlane
from tests.cluster.ground.faultproxy import FaultProxy
from tests.cluster.ground.podplayer import PodPlayer
from tests.cluster.operator import harness
from tests.cluster.operator.harness import Answers, Running, Story

Start = Callable[..., Running]


@pytest.fixture
def story(api: Api, namespace: str, pods: PodPlayer, answers: Answers) -> Story:
    """The life of the run `peonies`."""
    return Story(api, namespace, pods, answers)


@pytest.fixture
def answers() -> Iterator[Answers]:
    """What the pods say; nothing until the test tells."""
    with harness.answering() as answering:
        yield answering


@pytest.fixture
def start(
    control_plane: ControlPlane,
    crd_installed: None,
    namespace: str,
    answers: Answers,
    tmp_path: Path,
) -> Iterator[Start]:
    """Start an operator for the test's namespace: `start(kubeconfig=…, poll_seconds="1")`."""
    running: list[Running] = []
    numbers = itertools.count(1)
    token = control_plane.token_of(namespace, "operator", cluster_admin=True)

    def begin(kubeconfig: Path | None = None, **flags: str) -> Running:
        number = next(numbers)
        own = kubeconfig or control_plane.kubeconfig_of(token, tmp_path / f"operator-{number}")
        options = {"reach": answers.reach, "identity": f"operator-{number}", **flags}
        found = harness.start(own, namespace, tmp_path / f"operator-{number}.log", **options)
        running.append(found)
        return found

    yield begin
    for operator in running:
        operator.go_on()
        operator.kill()
        print(operator.words())


@pytest.fixture
def through_proxy(
    control_plane: ControlPlane, namespace: str, proxy: FaultProxy, tmp_path: Path
) -> Path:
    """A kubeconfig that leads the operator through the fault proxy."""
    token = control_plane.token_of(namespace, "operator", cluster_admin=True)
    return proxy.kubeconfig(token, tmp_path / "through-proxy")
