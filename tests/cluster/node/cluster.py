"""The cluster that commands and tests use: KUBECONFIG's, the node that runs here, or a new one."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.cluster.ground import binaries, processes
from tests.cluster.node import host
from tests.cluster.node.place import COVERED, FAILED, READY, SECOND, Place, place

ROOT = Path(__file__).resolve().parents[3]
START_WITHIN = 180.0  # seconds; 10 s on an idle machine
Say = Callable[[str], None]


class ClusterMissing(Exception):
    """There is no cluster and none can be started; the message names the remedy."""


@dataclass(frozen=True)
class Cluster:
    """How to reach it. `place` is None for one that KUBECONFIG names."""

    kubeconfig: Path
    kubectl: Path
    helm: Path
    place: Place | None


def foreign() -> str | None:
    """KUBECONFIG, if it names another cluster than the node of this machine."""
    named = os.environ.get("KUBECONFIG")
    ours = (host.running() or place()).kubeconfig
    return named if named and Path(named).absolute() != ours.absolute() else None


def there() -> bool:
    """Whether the cluster to use is somebody's, or runs already: who did not start it leaves it."""
    return foreign() is not None or host.running() is not None


def up(say: Say) -> Cluster:
    """The cluster to use, started if there is none.

    Raises ClusterMissing or BinariesMissing with the remedy.
    """
    tools = binaries.provide("kubectl", say)
    if named := foreign():
        found = Cluster(Path(named), tools / "kubectl", tools / "helm", None)
        say(f"using the cluster of KUBECONFIG={named}")
        _reach(found)
        return found
    if running := host.running():
        _wait(running, say, lambda: host.running() is not None)
        say("is up already")
        return Cluster(running.kubeconfig, tools / "kubectl", tools / "helm", running)
    if os.geteuid() != 0:
        raise ClusterMissing(
            "a node needs root for namespaces and control groups: run this as root, or set "
            "KUBECONFIG to an existing cluster"
        )
    ours = place()
    _start(ours, _programs(say), say)
    return Cluster(ours.kubeconfig, tools / "kubectl", tools / "helm", ours)


def second(cluster: Cluster, say: Say) -> Place:
    """The second node's place; it is started beside the first if it does not run.

    Raises ClusterMissing when it does not start, or when the cluster is KUBECONFIG's.
    """
    first = cluster.place
    if first is None:
        raise ClusterMissing("KUBECONFIG's cluster has the nodes that it has: unset it")
    if not first.wanted.exists():
        first.second.progress.unlink(missing_ok=True)
        first.wanted.touch()
    _wait(first.second, say, first.wanted.exists)
    return first.second


def places(first: Place) -> list[Place]:
    """Those of the nodes that run or start."""
    return [first, first.second] if first.wanted.exists() else [first]


def lose(first: Place) -> bool:
    """Lose the second node at once, as without power; returns whether there was one.

    Its objects stay in the API server, as those of a real one do. Raises RuntimeError when its
    processes do not end.
    """
    if not first.wanted.exists():
        return False
    first.wanted.unlink()
    if not processes.wait_until(lambda: not first.second.own.exists(), 30):
        raise RuntimeError(f"the second node does not end: {first.logs / 'supervisor.log'}")
    return True


def usage(cluster: Cluster) -> str:
    """What a person types next."""
    return (
        f"export KUBECONFIG={cluster.kubeconfig}\n"
        f'export PATH="{cluster.kubectl.parent}:$PATH"   # kubectl and helm\n'
        "kubectl get pods --all-namespaces"
    )


def daemon(place: Place, name: str) -> int | None:
    """The process id of a daemon of one node, as the machine counts."""
    for pid in _family(int(place.pid.read_text())):
        words = _words(pid)
        if Path(words[0]).name == name and _of_second(words) == (place.node is SECOND):
            return pid
    return None


def _of_second(words: list[str]) -> bool:
    """Whether a daemon is the second node's: its name or its folder is among the arguments."""
    return any(SECOND.name in each or f"/{SECOND.folder}/" in each for each in words)


def memory(place: Place) -> dict[str, int]:
    """MiB of the node's processes by program, shared pages parted among those that share them."""
    found: dict[str, int] = {}
    for pid in _family(int(place.pid.read_text())):
        try:
            rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
        except OSError:
            continue
        pss = next(line for line in rollup.splitlines() if line.startswith("Pss:"))
        # Chromium's processes write their whole command line into the first word.
        name = Path(_words(pid)[0].partition(" ")[0]).name
        found[name] = found.get(name, 0) + int(pss.split()[1])
    return {name: kib >> 10 for name, kib in found.items()}


def _words(pid: int) -> list[str]:
    """A process's program and arguments; empty words for one that has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return [""]


def _family(pid: int) -> list[int]:
    """A process and all that descend from it."""
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = entry.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents.setdefault(int(fields[1]), []).append(int(entry.parent.name))
    family, left = [], [pid]
    while left:
        each = left.pop()
        family.append(each)
        left += parents.get(each, [])
    return family


def _programs(say: Say) -> dict[str, Path]:
    """Every program of a node, made now if need be: about fifteen minutes, once a machine."""
    found = {name: binaries.provide(name, say) for name in binaries.NODE}
    return found | binaries.debian(*binaries.PACKAGES)


def _start(place: Place, programs: dict[str, Path], say: Say) -> None:
    host.end()  # what a killed one has left
    held = host.lock()
    if held is None:
        raise ClusterMissing("another start is on its way; try again in a moment")
    place.life.mkdir(parents=True)
    host.note(place)
    for folder in COVERED:
        folder.mkdir(parents=True, exist_ok=True)
    host.make_groups()
    with held, Path("/proc/self/ns/net").open("rb") as network:
        keep = (held.fileno(), network.fileno())
        spaces = ["--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"]
        with _log(place).open("ab") as log:
            process = subprocess.Popen(
                ["sh", "-c", 'echo $$ > "$0"; exec "$@"', str(place.pid)]
                + ["unshare", *spaces, "--propagation", "slave", sys.executable]
                + ["-m", "tests.cluster.node.supervisor", f"--root={place.root}"]
                + [f"--host-network={network.fileno()}"]
                + [f"{name}={path}" for name, path in programs.items()],
                cwd=ROOT,
                env=os.environ | {"PYTHONPATH": str(ROOT)},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                pass_fds=keep,
            )
    try:
        _wait(place, say, lambda: process.poll() is None)
    except BaseException:
        host.end()
        raise


def _wait(place: Place, say: Say, alive: Callable[[], bool]) -> None:
    """Pass on the supervisor's lines until the node is ready."""
    give_up = time.monotonic() + START_WITHIN
    shown = 0
    while True:
        going = alive()
        text = place.progress.read_text() if place.progress.exists() else ""
        lines = text.splitlines()
        for line in lines[shown:]:
            if line == READY:
                return
            if line.startswith(FAILED):
                raise ClusterMissing(text[text.index(FAILED) :])
            say(line)
        shown = len(lines)
        if not going or time.monotonic() > give_up:
            tail = _log(place).read_text().splitlines()[-20:]
            raise ClusterMissing("the node did not start:\n  " + "\n  ".join(tail))
        time.sleep(0.05)


def _log(place: Place) -> Path:
    """What the first process of a node prints."""
    return (place.logs if place.node is SECOND else place.life) / "supervisor.log"


def _reach(cluster: Cluster) -> None:
    command = [str(cluster.kubectl), "get", "--raw", "/readyz"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    if done.returncode:
        raise ClusterMissing(f"KUBECONFIG={cluster.kubeconfig}: {done.stderr.strip()}")
