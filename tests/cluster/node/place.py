"""Where the node on this machine keeps its files, and its addresses and names."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tests.cluster.ground import binaries

LINK = "wc-node0"  # the host's end of the wire to the node
OUTSIDE = "10.231.0.1"
ADDRESS = "10.231.0.2"
PODS = "10.244.0.0/16"  # of all nodes
SERVICES = "10.96.0.0/16"
DNS = "10.96.0.10"
CGROUP = "watercolour-node"
SWITCH = "nodes0"  # where the first node's network holds the wires of further ones
BESIDE = "10.231.1.1"  # the first node's address there
DISK_CLASS = "node-disk"
RUNNING = Path("/run/watercolour-node.json")  # who runs, for `down` from anywhere
LOCK = Path("/run/watercolour-node.lock")  # held as long as a node runs: one a machine
KUBELET = Path("/var/lib/kubelet")
# Folders of the machine that daemons insist on; the node sees its own in their place.
COVERED = (KUBELET, Path("/var/lib/cni"), Path("/var/log/pods"), Path("/var/log/containers"))


@dataclass(frozen=True)
class Node:
    """What tells the nodes of this machine apart.

    Attributes:
        name: as Kubernetes knows it.
        address: of its kubelet.
        pods: the range of its pods' addresses.
        group: the control group below which its pods are.
        folder: of its own files, within the folders of all; empty for the first.
    """

    name: str
    address: str
    pods: str
    group: str
    folder: str


FIRST = Node("wc-node", ADDRESS, "10.244.0.0/24", CGROUP, "")
SECOND = Node("wc-node-2", "10.231.1.2", "10.244.1.0/24", f"{CGROUP}/second", "second")


@dataclass(frozen=True)
class Place:
    """The folders of one node. Only `images` outlives it."""

    root: Path
    node: Node = FIRST

    @property
    def second(self) -> Place:
        """The same for the second node, which is optional and ends with the first."""
        return Place(self.root, SECOND)

    @property
    def images(self) -> Path:
        """containerd's root: what was imported stays for the next start."""
        return self.root / "-".join(filter(None, ["containerd", self.node.folder]))

    @property
    def life(self) -> Path:
        """Everything else of all nodes: thrown away when the first goes."""
        return self.root / "life"

    @property
    def own(self) -> Path:
        """What in `life` is this node's alone."""
        return self.life / self.node.folder

    @property
    def plane(self) -> Path:
        """The control plane's folder."""
        return self.life / "plane"

    @property
    def logs(self) -> Path:
        """The logs of every daemon."""
        return self.plane / "log" / self.node.folder

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig."""
        return self.plane / "admin.kubeconfig"

    @property
    def socket(self) -> Path:
        """containerd's socket."""
        return self.own / "containerd" / "containerd.sock"

    @property
    def pid(self) -> Path:
        """The process whose end is the node's end, as the machine counts processes."""
        return self.life / "pid"

    @property
    def progress(self) -> Path:
        """What a start is doing, a line each; the last is READY or starts with FAILED."""
        return self.own / "progress"

    @property
    def wanted(self) -> Path:
        """There as long as the second node is to run; the supervisor sees to it."""
        return self.life / "second-wanted"


READY = "ready"
FAILED = "failed: "


def place() -> Place:
    """The place of this machine's node: $WATERCOLOUR_CACHE/node, ~/.cache/watercolour/node."""
    return Place(binaries.cache().parent / "node")
