"""Which pods the ReplicaSet takes when it gets fewer, and how many it may take unharmed.

A ReplicaSet asks nobody. It sorts its pods (Kubernetes 1.34, ``ActivePodsWithRanks``): without a
node first, then Pending, Unknown, Running, then those that are not ready, then the lower
pod-deletion-cost, then by things that the operator does not see; and takes the first ones. So the
number of replicas may only fall by as many pods as surely stand first and have nothing to do.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from watercolour_operator.observed import Load, Pod

#: Deletion costs: a drained pod goes first, a painting one last, and 0 is every pod's own.
COST_GOING, COST_IDLE, COST_BUSY = -100, 0, 100

_PHASES = {"Pending": 0, "Unknown": 1, "Running": 2}


def active(pods: Sequence[Pod]) -> tuple[Pod, ...]:
    """The pods that count as replicas: neither ended nor terminating."""
    return tuple(pod for pod in pods if pod.deleting is None and pod.phase in _PHASES)


def unstarted(pod: Pod) -> bool:
    """Whether nothing runs in the pod: it waits for a node, an image or its next try."""
    return pod.waiting_reason is not None or (pod.phase == "Pending" and pod.started is None)


def rank(pod: Pod) -> tuple[bool, int, bool, int]:
    """The ReplicaSet's order as far as it can be known; the lowest rank goes first."""
    return pod.node is not None, _PHASES[pod.phase], pod.ready, pod.deletion_cost or 0


def removable(pods: Sequence[Pod], safe: Collection[str]) -> int:
    """How many pods the ReplicaSet may take without taking one that is not safe.

    Where the known order leaves several pods equal, those that are not safe are taken to stand
    first. During a rollout the pods belong to two ReplicaSets, which share the loss between them
    in their own way; then all of them have to be safe.

    Args:
        pods: the active pods.
        safe: names of the pods that have no work and get none.
    """
    owners = {pod.owner_uid for pod in pods}
    if len(owners) > 1 and any(pod.name not in safe for pod in pods):
        return 0
    count = 0
    for pod in sorted(pods, key=lambda pod: (*rank(pod), pod.name in safe)):
        if pod.name not in safe:
            break
        count += 1
    return count


def costs(
    pods: Sequence[Pod], drained: Collection[str], loads: Mapping[str, Load]
) -> dict[str, int]:
    """Deletion costs that have to be written: those that differ from what the pods have.

    A pod that is to go but still paints is as dear as any that paints: the ReplicaSet may owe the
    deletion of others at this very moment, and would take this one in their stead.

    Args:
        pods: the active pods.
        drained: names of the pods that are to go and have no work left.
        loads: what the pods say of themselves.
    """
    wanted: dict[str, int] = {}
    for pod in pods:
        load = loads.get(pod.name)
        if pod.name in drained:
            cost = COST_GOING
        elif load is None:
            # Unknown work: what is written stays, except that nobody else is to go first.
            cost = max(pod.deletion_cost or 0, COST_IDLE)
        else:
            cost = COST_BUSY if load.busy else COST_IDLE
        if cost != (pod.deletion_cost or 0):
            wanted[pod.name] = cost
    return wanted
