"""The optional second node, which can be lost: `up --second` and `lose`.

It has namespaces of its own within the first node's, so it ends with that one, and is lost as a
machine without power is: its first process is killed, the kernel ends all others with it, and
nobody is told. The wires of both meet in a switch in the first node's network, which stays, so that
whoever still speaks to a lost pod hears nothing for as long as on a real network.

`Second` is the supervisor's side; `python -m tests.cluster.node.second` the node's own.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import yaml
from tests.cluster.ground.api import Api, Json
from tests.cluster.node import daemons, host, images, progress, spaces
from tests.cluster.node.daemons import Daemons
from tests.cluster.node.place import BESIDE, FAILED, READY, SECOND, SWITCH, Place
from tests.cluster.node.progress import Progress

WIRE = "second0"  # the end of its wire at the switch
EVERY = 0.5  # seconds between two looks at daemons


class Second:
    """Starts and loses the second node as the file `wanted` says."""

    def __init__(self, first: Place, programs: dict[str, Path]) -> None:
        self._first = first
        self._place = first.second
        self._programs = programs
        self._process: subprocess.Popen[bytes] | None = None

    def look(self) -> list[str]:
        """Do what is wanted, and tell what was done."""
        wanted = self._first.wanted.exists()
        if self._process is None:
            return self._start() if wanted else []
        if self._process.poll() is not None:
            # It comes back when that is asked for, as a machine does that was switched off.
            self._first.wanted.unlink(missing_ok=True)
            self._forget()
            return [f"{SECOND.name} ended"]
        if not wanted:
            self._kill()
            self._forget()
            shutil.rmtree(self._place.own)
            return [f"{SECOND.name} was lost"]
        return []

    def _start(self) -> list[str]:
        shutil.rmtree(self._place.own, ignore_errors=True)
        self._place.own.mkdir()
        self._place.logs.mkdir(exist_ok=True)
        host.make_groups(SECOND.group)
        _switch()
        with (
            Path("/proc/self/ns/net").open("rb") as network,
            (self._place.logs / "supervisor.log").open("ab") as log,
        ):
            own = ["--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"]
            self._process = subprocess.Popen(
                ["unshare", *own, "--propagation", "slave", sys.executable]
                + ["-m", "tests.cluster.node.second", f"--root={self._place.root}"]
                + [f"--network={network.fileno()}"]
                + [f"{name}={path}" for name, path in self._programs.items()],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=[network.fileno()],
            )
        return [f"{SECOND.name} starts"]

    def _kill(self) -> None:
        """Kill the first process of its namespace, and wait until all of it has ended."""
        assert self._process is not None
        pid = self._process.pid
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        for child in children:
            os.kill(int(child), signal.SIGKILL)
        if not children:  # it has just been started
            self._process.kill()
        self._process.wait()

    def _forget(self) -> None:
        self._process = None
        host.remove_groups(SECOND.group)


def _switch() -> None:
    """The switch, and the way to the second node's pods; an end of a lost wire goes."""
    if (Path("/sys/class/net") / WIRE).exists():
        subprocess.run(["ip", "link", "delete", WIRE], capture_output=True, check=False)
    shown = subprocess.run(["ip", "link", "show", SWITCH], capture_output=True, check=False)
    if shown.returncode == 0:
        return
    spaces.run("ip", "link", "add", SWITCH, "type", "bridge")
    spaces.run("ip", "addr", "add", f"{BESIDE}/24", "dev", SWITCH)
    spaces.run("ip", "link", "set", SWITCH, "up")
    spaces.run("ip", "route", "add", SECOND.pods, "via", SECOND.address)


def raise_node(place: Place, programs: dict[str, Path], told: Progress) -> Daemons:
    """Start its daemons; returns when pods can be scheduled on it."""
    began = datetime.now(UTC).replace(microsecond=0)
    kube = programs["kube"]
    services = Daemons(place)
    daemons.containerd(services)
    images.own(place, programs)
    told.say("containerd of the second node runs")
    daemons.kubelet(services, kube)
    daemons.kube_proxy(services, kube)

    def heard(node: Json) -> bool:
        """Whether its kubelet says so now: a node that was lost may still be thought ready."""
        at = progress.ready(node)
        return at is not None and datetime.fromisoformat(at) >= began

    api = _api(place)
    api.until_one("Node", SECOND.name, None, heard, timeout=120, what="the second node is Ready")
    api.close()
    daemons.kube_router(services, programs["kube-router"] / "kube-router")
    told.say("the second node is ready")
    return services


def _api(place: Place) -> Api:
    """The administrator's way to the API server."""
    document = yaml.safe_load(place.kubeconfig.read_text())
    cluster, user = document["clusters"][0]["cluster"], document["users"][0]["user"]
    return Api(cluster["server"], user["token"], Path(cluster["certificate-authority"]))


def main(argv: Sequence[str] | None = None) -> None:
    """Be the second node until killed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--root", type=Path, required=True)
    parser.add_argument("--network", type=int, required=True, help="file descriptor")
    parser.add_argument("programs", nargs="+", help="NAME=PATH")
    options = parser.parse_args(argv)
    place = Place(options.root, SECOND)
    programs = {
        name: Path(path) for name, _, path in (each.partition("=") for each in options.programs)
    }
    told = Progress(place.progress)
    spaces.be_init()
    try:
        spaces.cover(place)
        attach = [["link", "set", WIRE, "master", SWITCH], ["link", "set", WIRE, "up"]]
        spaces.wire(options.network, SECOND.address, BESIDE, WIRE, attach)
        os.close(options.network)
        services = raise_node(place, programs, told)
    except Exception as problem:
        told.close(FAILED + str(problem).replace("\n", "\n  "))
        raise
    told.close(READY)
    while True:
        again = [f"{name} ended and was started again" for name in services.revive()]
        progress.note(place.logs / "supervisor.log", *again)
        time.sleep(EVERY)


if __name__ == "__main__":
    main()
    sys.exit(0)
