"""The daemons of a node: containerd, kubelet, kube-proxy and the keeper of NetworkPolicies.

All of it runs inside the node's namespaces, so their rules, mounts and interfaces are the node's
alone. facts about this set-up that cost time to find out stand beside the option they explain.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from tests.cluster.ground import binaries, processes
from tests.cluster.ground.processes import Program
from tests.cluster.node.place import (
    DNS,
    KUBELET,
    PODS,
    SERVICES,
    Place,
)

SANDBOX = "localhost/watercolour-node/probe:1"
COREDNS = "localhost/watercolour-node/coredns:1"
RESTART_AFTER = 3.0  # seconds since its last start; one that cannot start is no storm
Json = dict[str, Any]


@dataclass
class Daemons:
    """What runs on the node; `revive` starts what has ended, as an init system would."""

    place: Place
    commands: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    programs: dict[str, Program] = field(default_factory=dict[str, Program])
    started: dict[str, float] = field(default_factory=dict[str, float])

    def start(self, name: str, command: list[str | Path]) -> None:
        """Start one, with a log of its name."""
        self.commands[name] = [str(each) for each in command]
        self._start(name)

    def stop(self, name: str) -> None:
        """Stop one for good."""
        self.programs.pop(name).stop()

    def revive(self) -> list[str]:
        """Start what has ended once more, and tell which that was."""
        now = time.monotonic()
        ended = [
            name
            for name, program in self.programs.items()
            if not program.alive() and now - self.started[name] > RESTART_AFTER
        ]
        for name in ended:
            self._start(name)
        return ended

    def _start(self, name: str) -> None:
        log = self.place.logs / f"{name}.log"
        self.programs[name] = processes.start(name, self.commands[name], log)
        self.started[name] = time.monotonic()


def containerd(daemons: Daemons) -> None:
    """Start containerd with an empty list of containers, whatever an earlier node left in it."""
    place = daemons.place
    # Records of containers that died with their node; the pods they belonged to are gone too.
    shutil.rmtree(place.images / "io.containerd.grpc.v1.cri", ignore_errors=True)
    network = place.own / "cni"
    network.mkdir(parents=True)
    (network / "10-node.conflist").write_text(json.dumps(_network(place)))
    path = place.own / "containerd.toml"
    path.write_text(_containerd_configuration(place))
    daemons.start("containerd", ["containerd", "--config", path])
    _await_containerd(daemons)
    if left := ctr(place, "containers", "ls", "--quiet").split():
        ctr(place, "containers", "rm", *left)
        # The CRI part remembers what it saw when it started.
        daemons.stop("containerd")
        daemons.start("containerd", ["containerd", "--config", path])
        _await_containerd(daemons)


def ctr(place: Place, *arguments: str) -> str:
    """Ask containerd; its own images and containers of the kubelet's namespace."""
    command = ["ctr", "--address", str(place.socket), "--namespace", "k8s.io", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"ctr {' '.join(arguments)}: {done.stderr.strip()}")
    return done.stdout


def kubelet(daemons: Daemons, kube: Path) -> None:
    """Start the kubelet."""
    place = daemons.place
    resolve = place.own / "resolv.conf"
    resolve.write_text(Path("/etc/resolv.conf").read_text())
    configuration: Json = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "containerRuntimeEndpoint": f"unix://{place.socket}",
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{place.node.group}",
        "failCgroupV1": False,
        "failSwapOn": False,
        "oomScoreAdj": 0,  # a machine without CAP_SYS_RESOURCE cannot lower its own
        "clusterDNS": [DNS],
        "clusterDomain": "cluster.local",
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": str(place.plane / "pki" / "ca.crt")},
        },
        "authorization": {"mode": "Webhook"},
        "evictionHard": {
            "memory.available": "100Mi",
            "nodefs.available": "1%",
            "imagefs.available": "1%",
        },
        # Images were imported and cannot be pulled again.
        "imageGCHighThresholdPercent": 100,
        "podPidsLimit": 4096,
        "resolvConf": str(resolve),
        "volumePluginDir": str(place.own / "plugins"),
        "seccompDefault": True,
    }
    path = place.own / "kubelet.yaml"
    path.write_text(yaml.safe_dump(configuration))
    daemons.start(
        "kubelet",
        [
            kube / "kubelet",
            f"--config={path}",
            f"--kubeconfig={place.plane / f'{place.node.name}.kubeconfig'}",
            f"--hostname-override={place.node.name}",
            f"--root-dir={KUBELET}",
            f"--node-ip={place.node.address}",
        ],
    )


def kube_proxy(daemons: Daemons, kube: Path) -> None:
    """Start kube-proxy: Services are iptables rules of the node's own network namespace."""
    daemons.start(
        "kube-proxy",
        [
            kube / "kube-proxy",
            f"--kubeconfig={daemons.place.kubeconfig}",
            "--proxy-mode=iptables",
            f"--cluster-cidr={PODS}",
            f"--hostname-override={daemons.place.node.name}",
            "--conntrack-max-per-core=0",  # the limit belongs to the machine
            "--metrics-bind-address=127.0.0.1:10249",
        ],
    )


def kube_router(daemons: Daemons, program: Path) -> None:
    """Start the keeper of NetworkPolicies; it ends at once when the node has not registered."""
    daemons.start(
        "kube-router",
        [
            program,
            f"--kubeconfig={daemons.place.kubeconfig}",
            "--run-router=false",
            "--run-service-proxy=false",
            "--run-loadbalancer=false",
            "--run-firewall=true",
            f"--hostname-override={daemons.place.node.name}",
            "--iptables-sync-period=5m",
            f"--service-cluster-ip-range={SERVICES}",
            "--health-port=0",
        ],
    )


def _network(place: Place) -> Json:
    return {
        "cniVersion": "0.4.0",
        "name": "node",
        "plugins": [
            {
                "type": "bridge",
                "bridge": "pods0",
                "isGateway": True,
                "hairpinMode": True,
                "ipam": {
                    "type": "host-local",
                    "ranges": [[{"subnet": place.node.pods}]],
                    "routes": [{"dst": "0.0.0.0/0"}],
                    "dataDir": str(place.own / "addresses"),
                },
            },
            {"type": "portmap", "capabilities": {"portMappings": True}},
        ],
    }


def _containerd_configuration(place: Place) -> str:
    """Without `restrict_oom_score_adj` no sandbox starts where CAP_SYS_RESOURCE is missing."""
    own = place.own
    cri = 'plugins."io.containerd.grpc.v1.cri"'
    return f"""\
version = 2
root = "{place.images}"
state = "{own / "containerd"}"
disabled_plugins = [
  "io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.zfs",
  "io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.devmapper",
]
[grpc]
  address = "{place.socket}"
[plugins."io.containerd.internal.v1.opt"]
  path = "{own / "opt"}"
[{cri}]
  sandbox_image = "{SANDBOX}"
  restrict_oom_score_adj = true
  disable_apparmor = true
  netns_mounts_under_state_dir = true
  [{cri}.cni]
    bin_dir = "{binaries.PLUGINS}"
    conf_dir = "{own / "cni"}"
  [{cri}.containerd]
    snapshotter = "overlayfs"
    [{cri}.containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [{cri}.containerd.runtimes.runc.options]
        SystemdCgroup = false
"""


def _await_containerd(daemons: Daemons) -> None:
    give_up = time.monotonic() + 30
    while True:
        try:
            ctr(daemons.place, "version")
            return
        except RuntimeError as problem:
            program = daemons.programs["containerd"]
            if time.monotonic() > give_up or not program.alive():
                raise RuntimeError(f"containerd: {problem}\n{program.tail()}") from problem
            time.sleep(0.05)
