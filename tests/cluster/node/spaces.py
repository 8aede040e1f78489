"""What the first process of a node's own namespaces (processes, mounts, network) begins with."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.cluster.node.place import COVERED, PODS, Place


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
    """Hide the folders around that daemons write to behind the node's own."""
    run("mount", "--make-rshared", "/")
    for folder in COVERED:
        own = place.own / "covered" / folder.name
        own.mkdir(parents=True)
        run("mount", "--bind", own, folder)
    run("mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", "/run")


def wire(
    around: int, address: str, via: str, far_end: str, attach: Sequence[Sequence[str]]
) -> None:
    """A wire from the node's network to the one around it, and no other way out.

    Args:
        around: file descriptor of the network namespace around.
        address: of this end, in a network of 24 bits.
        via: the address on the other side that leads further.
        far_end: the interface on the other side.
        attach: what `ip` has to be told there.
    """
    outside = f"/proc/self/fd/{around}"
    give = [around]
    run("ip", "link", "set", "lo", "up")
    pair = ["ip", "link", "add", "eth0", "type", "veth", "peer", "name", far_end, "netns", outside]
    run(*pair, pass_fds=give)
    for words in attach:
        run("nsenter", f"--net={outside}", "ip", *words, pass_fds=give)
    run("ip", "addr", "add", f"{address}/24", "dev", "eth0")
    run("ip", "link", "set", "eth0", "up")
    run("ip", "route", "add", "default", "via", via)
    Path("/proc/sys/net/ipv4/ip_forward").write_text("1")
    # Not the network plug-in's own rule: it would hide pods from those of another node, whose
    # NetworkPolicies know them by their address.
    beyond = ["--source", PODS, "!", "--destination", PODS]
    run("iptables", "--wait", "-t", "nat", "-A", "POSTROUTING", *beyond, "-j", "MASQUERADE")


def run(*command: str | Path, pass_fds: Sequence[int] = ()) -> None:
    """Run a command. Raises RuntimeError with what it complained of."""
    words = [str(each) for each in command]
    done = subprocess.run(words, capture_output=True, text=True, check=False, pass_fds=pass_fds)
    if done.returncode:
        raise RuntimeError(f"{' '.join(words)}: {done.stderr.strip()}")
