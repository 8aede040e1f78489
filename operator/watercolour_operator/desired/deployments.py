"""The Deployment around a part's pods. Pure."""

from __future__ import annotations

from typing import Any

from watercolour_operator.desired.run import Identity, Manifest

#: One at a time: a second environment would split the queue, a second scorer need a second GPU.
ONE_AT_A_TIME: dict[str, Any] = {"type": "Recreate"}
#: New ones are there before old ones go.
NO_GAP: dict[str, Any] = {
    "type": "RollingUpdate",
    "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": 0},
}


def deployment(
    who: Identity, template: dict[str, Any], replicas: int | None, strategy: dict[str, Any]
) -> Manifest:
    """A Deployment.

    Args:
        who: whose pods they are.
        template: the pods.
        replicas: how many; None leaves the field to whoever owns it.
        strategy: how pods of an older template are replaced.
    """
    spec: dict[str, Any] = {
        "selector": {"matchLabels": dict(who.selector)},
        "strategy": strategy,
        "revisionHistoryLimit": 1,
        "template": template,
    }
    if replicas is not None:
        spec["replicas"] = replicas
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": who.metadata(), "spec": spec}
