"""What a node with the operator takes while there is no run; the first of the session's tests."""

from __future__ import annotations

from tests.cluster.ground import processes
from tests.cluster.node import cluster
from tests.cluster.node.cluster import Cluster
from tests.cluster.node.place import Place

MOST_MIB = 1.2 * 1024


def test_node_with_the_operator_is_small(release: Cluster, place: Place) -> None:
    """Daemons, control plane, operator and the profile's installer."""
    small = processes.wait_until(lambda: sum(cluster.memory(place).values()) <= MOST_MIB, 120)
    assert small, cluster.memory(place)
