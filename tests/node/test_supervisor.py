"""Nothing of a node outlives its supervisor, whatever ends that. It comes last: it kills."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cluster.ground import processes
from tests.cluster.node import cluster, host
from tests.cluster.node.cluster import Cluster
from tests.cluster.node.place import CGROUP, COVERED, LINK, RUNNING, SECOND, Place
from tests.node.conftest import Space, restricted


@pytest.fixture
def node(found: Cluster, was_up: bool) -> Iterator[Space]:
    """A namespace on a node that may be killed; the session's node is up again afterwards."""
    if was_up or found.place is None:
        pytest.skip("the cluster was there before the tests: it is not theirs to kill")
    made = restricted(found)
    yield next(made)
    cluster.up(lambda text: None)


def traces(place: Place) -> list[str]:
    """What is on the machine of a node: processes, groups, mounts, disks, interfaces."""
    found: list[str] = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = entry.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if f"{place.root}/" in words and entry.parent.name != str(os.getpid()):
            found.append(words)
    found += [str(each / CGROUP) for each in host.hierarchies() if (each / CGROUP).exists()]
    found += [
        each
        for each in Path("/proc/self/mounts").read_text().splitlines()
        if str(place.root) in each
    ]
    loops = subprocess.run(["losetup", "--list"], capture_output=True, text=True, check=True)
    found += [each for each in loops.stdout.splitlines() if str(place.root) in each]
    found += [
        str(each) for each in (Path(f"/sys/class/net/{LINK}"), RUNNING, place.life) if each.exists()
    ]
    return found


def test_nothing_is_left_of_a_node_that_is_killed(node: Space) -> None:
    place = node.cluster.place
    assert place
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "disk"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "16Mi"}}},
    }
    node.apply(claim)
    volume = {"name": "disk", "persistentVolumeClaim": {"claimName": "disk"}}
    pod = node.pod("pause", volumes=[volume])
    node.wait(f"pod/{pod}", "condition=Ready")
    cluster.second(node.cluster, lambda text: None)
    other = node.pod("pause", nodeSelector={"kubernetes.io/hostname": SECOND.name})
    node.wait(f"pod/{other}", "condition=Ready")
    kept = host.settings_before()
    assert len(traces(place)) > 10
    os.kill(int(place.pid.read_text()), signal.SIGKILL)
    assert processes.wait_until(lambda: host.running() is None, 30)
    assert host.end()
    assert traces(place) == []
    assert host.settings() == kept
    assert not [str(each) for each in COVERED if each.exists() and not any(each.iterdir())]
    assert place.images.exists()
    assert place.second.images.exists()
