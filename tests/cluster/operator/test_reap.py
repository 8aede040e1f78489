"""`watercolour reap` on the real API server: finds what lost runs left, and nothing else."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from tests.cluster.ground.api import Api
from tests.cluster.ground.controlplane import ControlPlane
from tests.cluster.operator import harness

from watercolour import cli
from watercolour_operator import names, reap

Json = dict[str, Any]


def make(api: Api, namespace: str, kind: str, name: str, uid: str, **labels: str) -> None:
    ours = {**names.APP_LABELS, names.RUN: "lost", names.RUN_UID: uid, **labels}
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    more = {"spec": spec} if kind == "PersistentVolumeClaim" else {}
    api.create(
        {
            "apiVersion": "v1",
            "kind": kind,
            "metadata": {"name": name, "namespace": namespace, "labels": ours},
            **more,
        },
        namespace,
    )


@pytest.fixture
def left(api: Api, crd_installed: None, namespace: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """What a lost run left, beside what a living run has and what was to be kept."""
    monkeypatch.setattr(reap, "YOUNG", timedelta(0))
    alive = api.create(harness.run("alive"), namespace)["metadata"]["uid"]
    make(api, namespace, "ConfigMap", "alive-spec", alive)
    make(api, namespace, "ConfigMap", "lost-spec", "lost-uid")
    make(api, namespace, "ServiceAccount", "lost-env", "lost-uid")
    make(api, namespace, "PersistentVolumeClaim", "lost-artifacts", "lost-uid")
    return namespace


def ran(control_plane: ControlPlane, *options: str) -> int:
    return cli.status(["reap", "--kubeconfig", str(control_plane.kubeconfig), *options])


def test_without_yes_it_only_lists(
    left: str, api: Api, control_plane: ControlPlane, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ran(control_plane, "-n", left, "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert {(one["kind"], one["name"]) for one in told["objects"]} == {
        ("ConfigMap", "lost-spec"),
        ("ServiceAccount", "lost-env"),
    }
    assert api.find("ConfigMap", "lost-spec", left) is not None


def test_with_yes_it_removes_what_is_lost_and_leaves_the_files(
    left: str, api: Api, control_plane: ControlPlane, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ran(control_plane, "-n", left, "--yes") == 0
    assert "2 objects removed" in capsys.readouterr().err
    api.until_gone("ConfigMap", "lost-spec", left)
    api.until_gone("ServiceAccount", "lost-env", left)
    assert api.find("PersistentVolumeClaim", "lost-artifacts", left) is not None
    assert api.find("ConfigMap", "alive-spec", left) is not None


def test_what_is_young_may_belong_to_a_run_that_was_just_made(
    left: str, api: Api, control_plane: ControlPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reap, "YOUNG", timedelta(hours=1))
    assert ran(control_plane, "-n", left, "--yes") == 0
    assert api.find("ConfigMap", "lost-spec", left) is not None


def test_a_cluster_that_is_away_is_infrastructure(
    capsys: pytest.CaptureFixture[str], tmp_path: Any
) -> None:
    assert cli.status(["reap", "--kubeconfig", str(tmp_path / "none")]) == 3
    assert "cannot be read" in capsys.readouterr().err
