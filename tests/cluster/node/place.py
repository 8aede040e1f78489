"""Where the node on this machine keeps its files, and its addresses and names."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tests.cluster.ground import binaries

NODE = "wc-node"
LINK = "wc-node0"  # the host's end of the wire to the node
OUTSIDE = "10.231.0.1"
ADDRESS = "10.231.0.2"
PODS = "10.244.0.0/24"
SERVICES = "10.96.0.0/16"
DNS = "10.96.0.10"
CGROUP = "watercolour-node"
DISK_CLASS = "node-disk"
RUNNING = Path("/run/watercolour-node.json")  # who runs, for `down` from anywhere
LOCK = Path("/run/watercolour-node.lock")  # held as long as a node runs: one a machine
KUBELET = Path("/var/lib/kubelet")
# Folders of the machine that daemons insist on; the node sees its own in their place.
COVERED = (KUBELET, Path("/var/lib/cni"), Path("/var/log/pods"), Path("/var/log/containers"))


@dataclass(frozen=True)
class Place:
    """The folders of one node. Only `images` outlives it."""

    root: Path

    @property
    def images(self) -> Path:
        """containerd's root: what was imported stays for the next start."""
        return self.root / "containerd"

    @property
    def life(self) -> Path:
        """Everything else: thrown away when the node goes."""
        return self.root / "life"

    @property
    def plane(self) -> Path:
        """The control plane's folder."""
        return self.life / "plane"

    @property
    def logs(self) -> Path:
        """The logs of every daemon."""
        return self.plane / "log"

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig."""
        return self.plane / "admin.kubeconfig"

    @property
    def socket(self) -> Path:
        """containerd's socket."""
        return self.life / "containerd" / "containerd.sock"

    @property
    def pid(self) -> Path:
        """The process whose end is the node's end, as the machine counts processes."""
        return self.life / "pid"

    @property
    def progress(self) -> Path:
        """What the supervisor is doing, a line each; the last is READY or starts with FAILED."""
        return self.life / "progress"


READY = "ready"
FAILED = "failed: "


def place() -> Place:
    """The place of this machine's node: $WATERCOLOUR_CACHE/node, ~/.cache/watercolour/node."""
    return Place(binaries.cache().parent / "node")
