"""The parts of a node that need none to be seen at work; the rest is in tests/node."""

from __future__ import annotations

import hashlib
import json
import stat
import tarfile
from pathlib import Path

import pytest
from tests.cluster.ground import binaries
from tests.cluster.node import archive, autoscalers, disks, images, run


def test_archive_holds_the_program_under_its_name(tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_bytes(b"\x7fELF")
    path = tmp_path / "image.tar"
    archive.write(path, "localhost/thing:1", {"thing": program}, ["/thing"], "65532")
    assert archive.names(path) == ["localhost/thing:1"]
    with tarfile.open(path) as packed:
        blobs = {member.name: packed.extractfile(member) for member in packed.getmembers()}
        read = {name: file.read() for name, file in blobs.items() if file}
    for name, content in read.items():
        if name.startswith("blobs/"):
            assert hashlib.sha256(content).hexdigest() == name.rpartition("/")[2]
    listed = json.loads(read["index.json"])["manifests"][0]["digest"].replace(":", "/")
    manifest = json.loads(read[f"blobs/{listed}"])
    layer = tmp_path / "layer.tar"
    layer.write_bytes(read[f"blobs/{manifest['layers'][0]['digest'].replace(':', '/')}"])
    with tarfile.open(layer) as unpacked:
        assert stat.S_IMODE(unpacked.getmember("thing").mode) == 0o755


@pytest.mark.parametrize(
    ("quantity", "bytes_"),
    [("1Gi", 2**30), ("500M", 500 * 10**6), ("1.5Ki", 1536), ("4096", 4096), ("2k", 2000)],
)
def test_size_of_a_claim(quantity: str, bytes_: int) -> None:
    assert disks.size(quantity) == bytes_


@pytest.mark.parametrize("quantity", ["", "1G i", "-1Gi", "1e3", "1i"])
def test_what_is_no_size_is_refused(quantity: str) -> None:
    with pytest.raises(ValueError, match="is no quantity"):
        disks.size(quantity)


def test_every_archive_has_a_name_in_the_chart() -> None:
    found = images.wanted()
    assert set(found) == {"operator", "trainer", "renderer", "env", "scorer-embedded"}
    assert all(reference.startswith(f"watercolour/{name}:") for name, reference in found.items())


def test_missing_archive_names_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WATERCOLOUR_CACHE", str(tmp_path))
    monkeypatch.setattr(images.daemons, "ctr", lambda *_: "")
    with pytest.raises(images.ImageMissing, match=r"operator\.tar is not there: .*make images"):
        images.bring(images.Place(tmp_path), print)


def test_line_of_a_run_tells_none_from_nothing() -> None:
    waiting = {"type": "RenderersReady", "status": "False", "reason": "PodStarting"}
    assert run.describe({"phase": "Starting", "conditions": [waiting]}) == (
        "Starting   renderers: PodStarting"
    )
    running: run.Json = {"phase": "Running", "progress": {"step": 3, "steps": 20, "reward": {}}}
    assert "step 3/20  reward -" in run.describe(running)
    running["progress"]["reward"] = {"mean": 0.0}
    assert "step 3/20  reward 0.000" in run.describe(running)


def test_autoscaler_runs_the_program_that_was_built(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(binaries, "folder", lambda program: Path(f"{program}-0123abcd"))
    container = {
        "image": "registry.example/metrics-server:v0",
        "args": ["--secure-port=10250"],
        "resources": {"requests": {"cpu": "100m"}, "limits": {"memory": "1Gi"}},
    }
    spec = {"template": {"spec": {"containers": [container]}}}
    manifest = {"kind": "Deployment", "metadata": {"name": "metrics-server"}, "spec": spec}
    made = autoscalers.ours(manifest, autoscalers.AUTOSCALERS["metrics-server"])
    [found] = made["spec"]["template"]["spec"]["containers"]
    assert found["image"] == "localhost/watercolour-node/metrics-server:0123abcd"
    assert found["imagePullPolicy"] == "Never"
    assert found["args"] == ["--secure-port=10250", "--kubelet-insecure-tls"]
    assert found["resources"]["limits"] == {"memory": "1Gi"}
    assert found["resources"]["requests"]["cpu"] == "10m"


def test_whatever_is_no_deployment_of_an_autoscaler_stays() -> None:
    for kind, name in (("Service", "metrics-server"), ("Deployment", "webhooks")):
        manifest = {"kind": kind, "metadata": {"name": name}, "spec": {}}
        wanted = autoscalers.AUTOSCALERS["metrics-server"]
        assert autoscalers.ours(dict(manifest), wanted) == manifest


def test_node_needs_no_autoscaler_that_was_not_asked_for() -> None:
    programs = {each for one in autoscalers.AUTOSCALERS.values() for each in one.programs.values()}
    assert programs == set(binaries.AUTOSCALERS)
    assert not programs & {*binaries.NODE, *binaries.DEFAULT}
    assert programs <= set(binaries.GO_PROGRAMS)
