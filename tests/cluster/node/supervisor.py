"""The one process that owns a node: `python -m tests.cluster.node.supervisor`, started by `up`.

It is the first process of namespaces of its own (processes, mounts, network). Whatever ends it,
the kernel ends every daemon and every pod with it and takes the mounts and interfaces away.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tests.cluster.ground.controlplane import ControlPlane
from tests.cluster.node import addons, archive, daemons, disks
from tests.cluster.node.daemons import COREDNS, SANDBOX, Daemons
from tests.cluster.node.place import (
    ADDRESS,
    COVERED,
    FAILED,
    LINK,
    NODE,
    OUTSIDE,
    READY,
    Place,
)

EVERY = 0.5  # seconds between two looks at daemons and claims


class Progress:
    """Lines that `up` shows while it waits."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._start = time.monotonic()

    def say(self, text: str) -> None:
        """Add a line with the seconds since the start."""
        with self._path.open("a") as file:
            file.write(f"{time.monotonic() - self._start:5.1f} s  {text}\n")

    def close(self, text: str) -> None:
        """Add the last line."""
        with self._path.open("a") as file:
            file.write(f"{text}\n")


def be_init() -> None:
    """Go on in a child; the parent, first process of its namespace, buries whoever dies.

    Containers' shims and what they started become its children. It ends with the child, and the
    namespace with it.
    """
    child = os.fork()
    if child == 0:
        return
    while True:
        ended, status = os.wait()
        if ended == child:
            os._exit(os.waitstatus_to_exitcode(status) & 0xFF)


def cover(place: Place) -> None:
    """Hide the machine's folders that daemons write to behind the node's own."""
    _run("mount", "--make-rshared", "/")
    for folder in COVERED:
        own = place.life / "covered" / folder.name
        own.mkdir(parents=True)
        _run("mount", "--bind", own, folder)
    _run("mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", "/run")


def wire(host_network: int) -> None:
    """A wire from the node's network to the machine's, and no other way out."""
    outside = f"/proc/self/fd/{host_network}"
    give = {"pass_fds": [host_network]}
    _run("ip", "link", "set", "lo", "up")
    pair = ["ip", "link", "add", "eth0", "type", "veth", "peer", "name", LINK, "netns", outside]
    _run(*pair, **give)
    there = ["nsenter", f"--net={outside}", "ip"]
    _run(*there, "addr", "add", f"{OUTSIDE}/24", "dev", LINK, **give)
    _run(*there, "link", "set", LINK, "up", **give)
    _run("ip", "addr", "add", f"{ADDRESS}/24", "dev", "eth0")
    _run("ip", "link", "set", "eth0", "up")
    _run("ip", "route", "add", "default", "via", OUTSIDE)
    Path("/proc/sys/net/ipv4/ip_forward").write_text("1")


def own_images(place: Place, programs: dict[str, Path]) -> None:
    """Import the sandbox's image and CoreDNS, made of the static programs alone."""
    there = set(daemons.ctr(place, "images", "ls", "--quiet").split())
    wanted = {SANDBOX: programs["probe"] / "probe", COREDNS: programs["coredns"] / "coredns"}
    with tempfile.TemporaryDirectory(dir=place.life) as scratch:
        for name, program in wanted.items():
            # The folder of a program is named by what it was made from.
            marked = f"{name}-{program.parent.name.rpartition('-')[2]}"
            if marked in there:
                continue
            path = Path(scratch) / "image.tar"
            user = "0" if name == COREDNS else "65532:65532"  # port 53
            archive.write(path, name, {program.name: program}, [f"/{program.name}"], user)
            daemons.ctr(place, "images", "import", str(path))
            daemons.ctr(place, "images", "tag", "--force", name, marked)
            for old in there:
                if old.startswith(f"{name}-"):
                    daemons.ctr(place, "images", "rm", old)


def raise_node(
    place: Place, programs: dict[str, Path], progress: Progress
) -> tuple[ControlPlane, Daemons]:
    """Start everything; returns when pods can be scheduled and names resolve."""
    kube = programs["kube"]
    plane = ControlPlane(place.plane, kube, programs["etcd"], address=ADDRESS, nodes=[NODE])
    services = Daemons(place)
    daemons.containerd(services)
    own_images(place, programs)
    progress.say("containerd runs")
    plane.start()
    progress.say("the API server is ready")
    daemons.kubelet(services, kube)
    daemons.kube_proxy(services, kube)
    for manifest in addons.manifests():
        plane.api.apply(manifest)
    plane.api.until_one("Node", NODE, None, _ready, timeout=120, what="the node is Ready")
    progress.say("the node is ready")
    daemons.kube_router(services, programs["kube-router"] / "kube-router")
    plane.api.until_one(
        "Deployment",
        "coredns",
        "kube-system",
        lambda found: found["status"].get("readyReplicas"),
        timeout=120,
        what="CoreDNS is ready",
    )
    progress.say("names resolve")
    return plane, services


def keep(plane: ControlPlane, services: Daemons, log: Path) -> None:
    """Bring back what ends, and make and remove volumes, until killed."""
    while True:
        with log.open("a") as file:
            for name in [*plane.revive(), *services.revive()]:
                print(f"{time.strftime('%H:%M:%S')} {name} ended and was started again", file=file)
            try:
                for line in disks.look(plane.api, services.place):
                    print(f"{time.strftime('%H:%M:%S')} {line}", file=file)
            except Exception as problem:  # the API server may be away on purpose
                print(f"{time.strftime('%H:%M:%S')} disks: {problem}", file=file)
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
    progress = Progress(place.progress)
    be_init()
    try:
        cover(place)
        wire(options.host_network)
        os.close(options.host_network)
        plane, services = raise_node(place, programs, progress)
    except Exception as problem:
        progress.close(FAILED + str(problem).replace("\n", "\n  "))
        raise
    progress.close(READY)
    keep(plane, services, place.logs / "supervisor.log")


def _ready(node: dict[str, object]) -> bool:
    status = node.get("status")
    conditions = status.get("conditions", []) if isinstance(status, dict) else []
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def _run(*command: str | Path, pass_fds: Sequence[int] = ()) -> None:
    words = [str(each) for each in command]
    done = subprocess.run(words, capture_output=True, text=True, check=False, pass_fds=pass_fds)
    if done.returncode:
        raise RuntimeError(f"{' '.join(words)}: {done.stderr.strip()}")


if __name__ == "__main__":
    main()
    sys.exit(0)
