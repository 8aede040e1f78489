"""How well what a sketch can do is shut in here, decided once before the renderer starts.

Three layers beside the page's own rules: a network of the renderer's own, Chromium's sandbox, and
limits that the kernel keeps. A machine may lack any of them; then the renderer says so, and which
of the others hold all the same.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from watercolour import logs
from watercolour.api.errors import InfrastructureError
from watercolour.api.reasons import Reason
from watercolour.render import cgroup, keeper, netns, verdict

log = logs.get(__name__)

#: Who the browser runs as when this process is root: `nobody`.
UNPRIVILEGED = 65534

#: Bytes of memory for a browser's shared processes, and for each page with what it causes there.
SHARED_BYTES, SLOT_BYTES = 768 * 2**20, 1280 * 2**20

#: Bytes of a container's memory that stay the renderer's own.
OWN_BYTES = 192 * 2**20

#: Processes and threads for a browser, and for each page more (measured: 122, and 14 a page).
SHARED_PROCESSES, SLOT_PROCESSES = 512, 128


@dataclass(frozen=True)
class Limits:
    """What one browser may use.

    Attributes:
        memory_bytes, processes: of all its processes together; the latter with their threads.
        parent: where its control group is made; None for none, and then neither limit holds.
        own_users: nobody but this renderer's processes counts against a user's processes.
    """

    memory_bytes: int
    processes: int
    parent: cgroup.Parent | None = None
    own_users: bool = False


@dataclass(frozen=True)
class Isolation:
    """The layers that hold.

    Attributes:
        network: ``own``, in which there is nothing but a loopback, or the ``host``'s.
        sandbox: Chromium's own; ``unknown`` until a browser has started.
        limits: memory and processes of a browser are bounded by a ``cgroup``, or the renderer
            watches the memory of pages, ten times a second, and ``rlimits`` bound the rest.
        remarks: by layer, why it is weaker than it might be.
    """

    network: Literal["own", "host"] = "host"
    sandbox: Literal["on", "off", "unknown"] = "unknown"
    limits: Literal["cgroup", "rlimits"] = "rlimits"
    remarks: dict[str, str] = field(default_factory=dict[str, str])
    parent: cgroup.Parent | None = None
    own_users: bool = False

    def with_sandbox(self, on: bool | None) -> Isolation:
        """The same, once a browser has shown whether its own sandbox is on; None if none has."""
        return replace(self, sandbox="unknown" if on is None else "on" if on else "off")

    def layers(self) -> dict[str, bool]:
        """By layer, whether it holds in full; for the metric."""
        return {
            "network": self.network == "own",
            "sandbox": self.sandbox == "on",
            "limits": self.limits == "cgroup",
        }

    def details(self) -> dict[str, Any]:
        """For ``/readyz``."""
        return {
            "network": self.network,
            "sandbox": self.sandbox,
            "limits": self.limits,
            "remarks": self.remarks,
        }

    def of(self, slots: int, *, prints: bool = False) -> Limits:
        """The limits of a browser with so many pages, each of which may have to paint a print."""
        room = self.parent.memory_limit() if self.parent else None
        return Limits(
            memory(slots, room, prints=prints),
            SHARED_PROCESSES + slots * SLOT_PROCESSES,
            self.parent,
            self.own_users,
        )


def memory(slots: int, room: int | None, *, prints: bool = False) -> int:
    """Bytes for a browser with so many pages where the renderer itself may use ``room``.

    In a container the browser must meet its limit before the container does, or the kernel might
    end the renderer in its stead.
    """
    wanted = SHARED_BYTES + slots * (SLOT_BYTES + verdict.PRINT_BYTES * prints)
    return wanted if room is None else min(wanted, max(room - OWN_BYTES, room // 2))


def enter(mode: netns.Mode) -> Isolation:
    """Shut this process in as well as the system allows; it must have one thread only.

    What listens or is to reach the machine's network has to be opened before. Every layer that
    does not hold is logged, once. Groups of browsers whose renderers were killed are removed, and
    processes that lose their parent become this one's children, so that it can end them.

    Args:
        mode: whether a network of its own must be, should be or shall not be entered.

    Raises:
        InfrastructureError: it must be, and cannot (NetworkNamespaceUnavailable).
    """
    remarks: dict[str, str] = {}
    keeper.become_subreaper()
    parent = cgroup.prepare() if os.geteuid() == 0 else "only root makes control groups"
    if isinstance(parent, str):
        remarks["limits"] = parent
        log.warning(
            "no control group for browsers (%s): the renderer itself watches their memory", parent
        )
    elif swept := cgroup.sweep(parent):
        log.info("removed %d groups of browsers whose renderers were killed", len(swept))
    users = os.readlink("/proc/self/ns/user")
    refused = "switched off" if mode == "Off" else netns.enter({UNPRIVILEGED})
    if refused is not None:
        remarks["network"] = refused
        if mode == "Required":
            raise InfrastructureError(
                Reason.NETWORK_NAMESPACE_UNAVAILABLE,
                f"--network-namespace=Required: no network namespace can be made here: {refused}.",
                remedy="Allow unprivileged user namespaces (in a container by the chart's seccomp "
                "profile), start as root, or say Preferred.",
            )
        log.warning(
            "no network namespace (%s): what keeps sketches from the network is the page's "
            "security policy and a browser without proxy or names",
            refused,
        )
    return Isolation(
        network="own" if refused is None else "host",
        limits="rlimits" if isinstance(parent, str) else "cgroup",
        remarks=remarks,
        parent=None if isinstance(parent, str) else parent,
        own_users=os.readlink("/proc/self/ns/user") != users,
    )
