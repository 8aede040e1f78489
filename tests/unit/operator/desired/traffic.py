"""What NetworkPolicies say: may this pod open a connection to that one?

The rules of the Kubernetes API for policies with both policyTypes: a pod that no policy selects may
do anything, one that is selected only what some policy allows, and a connection needs both ends.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from watercolour_operator.desired import Manifest

Labels = Mapping[str, str]


@dataclass(frozen=True)
class End:
    """A pod, or an address outside when it has no namespace."""

    name: str
    namespace: str | None = None
    labels: Labels = field(default_factory=dict[str, str])
    address: str = "10.1.0.9"


def allowed(
    policies: Sequence[Manifest], source: End, target: End, port: int, protocol: str = "TCP"
) -> bool:
    """Whether a connection from ``source`` to ``target`` is let through at both ends."""
    return _passes(policies, "egress", source, target, port, protocol) and _passes(
        policies, "ingress", target, source, port, protocol
    )


def _passes(
    policies: Sequence[Manifest], way: str, pod: End, peer: End, port: int, protocol: str
) -> bool:
    if pod.namespace is None:
        return True
    selecting = [
        policy
        for policy in policies
        if policy["metadata"]["namespace"] == pod.namespace
        and _matches(policy["spec"]["podSelector"], pod.labels)
    ]
    if not selecting:
        return True
    side = "to" if way == "egress" else "from"
    return any(
        _rule_allows(rule, side, policy["metadata"]["namespace"], peer, port, protocol)
        for policy in selecting
        for rule in policy["spec"].get(way, [])
    )


def _rule_allows(
    rule: dict[str, Any], side: str, namespace: str, peer: End, port: int, protocol: str
) -> bool:
    ports = rule.get("ports")
    if ports is not None and not any(
        entry["port"] == port and entry["protocol"] == protocol for entry in ports
    ):
        return False
    return side not in rule or any(_is(one, namespace, peer) for one in rule[side])


def _is(one: dict[str, Any], namespace: str, peer: End) -> bool:
    if "ipBlock" in one:
        address = ipaddress.ip_address(peer.address)
        blocks = [one["ipBlock"]["cidr"]]
        inside = any(address in ipaddress.ip_network(block) for block in blocks)
        but = one["ipBlock"].get("except", [])
        return inside and not any(address in ipaddress.ip_network(block) for block in but)
    if peer.namespace is None:
        return False
    if "namespaceSelector" in one:
        labels = {"kubernetes.io/metadata.name": peer.namespace}
        if not _matches(one["namespaceSelector"], labels):
            return False
    elif peer.namespace != namespace:
        return False
    return _matches(one.get("podSelector", {}), peer.labels)


def _matches(selector: dict[str, Any], labels: Labels) -> bool:
    wanted = selector.get("matchLabels", {})
    return all(labels.get(name) == value for name, value in wanted.items())
