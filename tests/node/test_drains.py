"""Renderers that are scaled away while they paint lose no painting; those that are killed do.

A few rounds of bench/drains_node.py, which has a hundred.
"""

from __future__ import annotations

from bench import drains_node
from tests.cluster.node.cluster import Cluster


def test_no_drained_renderer_loses_what_it_paints(release: Cluster) -> None:
    found = drains_node.measure(release, drains=12, most=4)
    assert found.drains >= 12
    assert (found.lost, found.unpainted, found.forced) == (0, 0, 0)
    assert found.killed_lost, "the test would not see a lost painting"
