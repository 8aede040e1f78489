"""Which programs a test session uses.

1. WATERCOLOUR_CLUSTER_BINARIES names a folder that holds all of them;
2. the cache has them (see binaries.py);
3. they are made now, or the build in the background is waited for, with a line of progress.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.cluster.ground import binaries
from tests.cluster.ground.binaries import BinariesMissing

NAMED = "WATERCOLOUR_CLUSTER_BINARIES"


@dataclass(frozen=True)
class Binaries:
    """Paths of the programs; `kube` is the folder that holds kube-apiserver and its siblings."""

    kube: Path
    etcd: Path
    kwok: Path
    kubectl: Path
    helm: Path
    kubeconform: Path


def resolve(announce: Callable[[str], None]) -> Binaries:
    """Find or make every program. Raises BinariesMissing with the remedy."""
    named = os.environ.get(NAMED)
    if named:
        return _named(Path(named))
    kubectl = binaries.provide("kubectl", announce)
    return Binaries(
        etcd=binaries.etcd(),
        kube=binaries.provide("kube", announce),
        kwok=binaries.provide("kwok", announce) / "kwok",
        kubeconform=binaries.provide("kubeconform", announce) / "kubeconform",
        kubectl=kubectl / "kubectl",
        helm=kubectl / "helm",
    )


def _named(folder: Path) -> Binaries:
    components = ("kube-apiserver", "kube-controller-manager", "kube-scheduler")
    tools = ("kwok", "kubectl", "helm", "kubeconform")
    missing = [name for name in (*components, *tools) if not os.access(folder / name, os.X_OK)]
    if missing:
        raise BinariesMissing(
            f"{NAMED}={folder} lacks {', '.join(missing)}: add them, or unset it to use "
            "the cache (make cluster-binaries)"
        )
    own_etcd = folder / "etcd"
    return Binaries(
        kube=folder,
        etcd=own_etcd if own_etcd.exists() else binaries.etcd(),
        **{name: folder / name for name in tools},
    )
