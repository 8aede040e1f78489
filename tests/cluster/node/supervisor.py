"""The one process that owns a node: `python -m tests.cluster.node.supervisor`, started by `up`.

It is the first process of namespaces of its own (processes, mounts, network). Whatever ends it,
the kernel ends every daemon and every pod with it and takes the mounts and interfaces away. A
second node, when one is asked for, lives in namespaces within these.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from tests.cluster.ground.controlplane import ControlPlane
from tests.cluster.node import addons, daemons, disks, images, progress, spaces
from tests.cluster.node.daemons import Daemons
from tests.cluster.node.place import (
    ADDRESS,
    FAILED,
    FIRST,
    LINK,
    OUTSIDE,
    READY,
    SECOND,
    Place,
)
from tests.cluster.node.progress import Progress
from tests.cluster.node.second import Second

EVERY = 0.5  # seconds between two looks at daemons and claims


def raise_node(
    place: Place, programs: dict[str, Path], told: Progress
) -> tuple[ControlPlane, Daemons]:
    """Start everything; returns when pods can be scheduled and names resolve."""
    kube = programs["kube"]
    nodes = [FIRST.name, SECOND.name]
    plane = ControlPlane(place.plane, kube, programs["etcd"], address=ADDRESS, nodes=nodes)
    services = Daemons(place)
    daemons.containerd(services)
    images.own(place, programs)
    told.say("containerd runs")
    plane.start()
    told.say("the API server is ready")
    daemons.kubelet(services, kube)
    daemons.kube_proxy(services, kube)
    for manifest in addons.manifests():
        plane.api.apply(manifest)
    plane.api.until_one(
        "Node", FIRST.name, None, progress.ready, timeout=120, what="the node is Ready"
    )
    told.say("the node is ready")
    daemons.kube_router(services, programs["kube-router"] / "kube-router")
    plane.api.until_one(
        "Deployment",
        "coredns",
        "kube-system",
        lambda found: found["status"].get("readyReplicas"),
        timeout=120,
        what="CoreDNS is ready",
    )
    told.say("names resolve")
    return plane, services


def keep(plane: ControlPlane, services: Daemons, second: Second, log: Path) -> None:
    """Bring back what ends, make and remove volumes, see to the second node, until killed."""
    while True:
        ended = [*plane.revive(), *services.revive()]
        progress.note(log, *(f"{name} ended and was started again" for name in ended))
        for name, look in (
            ("disks", lambda: disks.look(plane.api, services.place)),
            (SECOND.name, second.look),
        ):
            try:
                progress.note(log, *look())
            except Exception as problem:  # the API server may be away on purpose
                progress.note(log, f"{name}: {problem}")
        time.sleep(EVERY)


def main(argv: Sequence[str] | None = None) -> None:
    """Be the node of a place until killed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--root", type=Path, required=True)
    parser.add_argument("--host-network", type=int, required=True, help="file descriptor")
    parser.add_argument("programs", nargs="+", help="NAME=PATH")
    options = parser.parse_args(argv)
    place = Place(options.root)
    programs = {
        name: Path(path) for name, _, path in (each.partition("=") for each in options.programs)
    }
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # ended by `down` alone, which cleans up
    told = Progress(place.progress)
    spaces.be_init()
    try:
        spaces.cover(place)
        attach = [["addr", "add", f"{OUTSIDE}/24", "dev", LINK], ["link", "set", LINK, "up"]]
        spaces.wire(options.host_network, ADDRESS, OUTSIDE, LINK, attach)
        os.close(options.host_network)
        plane, services = raise_node(place, programs, told)
    except Exception as problem:
        told.close(FAILED + str(problem).replace("\n", "\n  "))
        raise
    told.close(READY)
    keep(plane, services, Second(place, programs), place.logs / "supervisor.log")


if __name__ == "__main__":
    main()
    sys.exit(0)
