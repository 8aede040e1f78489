"""The object that sizes the renderers when the specification leaves that to HPA or KEDA. Pure.

Both ask for the same: as many pods as answer for all that waits, is being painted or is announced.
Neither knows which pod paints, so a pod that goes has to drain itself.
"""

from __future__ import annotations

import math
from typing import Any

from watercolour.api.spec import RunSpec
from watercolour_operator.desired import services
from watercolour_operator.desired.run import Identity, Manifest, Run, identity
from watercolour_operator.names import Component

#: The series an adapter has to serve to an HPA; docs/network.md says from what.
DEMAND_METRIC = "watercolour_render_demand"
#: Numbers of /v1/demand, whose sum is the demand.
DEMAND_PARTS = ("queued", "inflight", "announced")
#: Seconds between two questions of KEDA.
POLL_SECONDS = 5
#: Longest window that an HPA takes, in seconds.
LONGEST_WINDOW = 3600


def scaler(run: Run) -> list[Manifest]:
    """The HorizontalPodAutoscaler or ScaledObject of the renderers, or nothing."""
    mode, who = run.spec.renderers.scaling.mode, identity(run, Component.RENDERERS)
    if mode == "HPA":
        return [_autoscaler(run, who)]
    if mode == "KEDA":
        return [_scaled_object(run, who)]
    return []


def per_pod(spec: RunSpec) -> int:
    """Renders that one pod answers for."""
    return spec.renderers.scaling.per_pod or spec.renderers.slots


def _behaviour(run: Run) -> dict[str, Any]:
    """Up at once, down when nothing has been asked for so long as a pod may idle."""
    scaling = run.spec.renderers.scaling
    window = min(LONGEST_WINDOW, math.ceil(scaling.idle_seconds))
    at_once = {"type": "Pods", "value": scaling.max, "periodSeconds": 15}
    return {
        "scaleUp": {"stabilizationWindowSeconds": 0, "policies": [at_once]},
        "scaleDown": {"stabilizationWindowSeconds": window},
    }


def _autoscaler(run: Run, who: Identity) -> Manifest:
    """With an HPA one pod always stays: before Kubernetes 1.37 it cannot go to 0."""
    scaling = run.spec.renderers.scaling
    metric = {
        "metric": {
            "name": DEMAND_METRIC,
            "selector": {"matchLabels": {"run": run.name, "namespace": run.namespace}},
        },
        "target": {"type": "AverageValue", "averageValue": str(per_pod(run.spec))},
    }
    spec = {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": who.name},
        "minReplicas": max(1, scaling.min),
        "maxReplicas": scaling.max,
        "metrics": [{"type": "External", "external": metric}],
        "behavior": _behaviour(run),
    }
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": who.metadata(),
        "spec": spec,
    }


def _scaled_object(run: Run, who: Identity) -> Manifest:
    """KEDA asks the environment itself and adds up what it hears.

    When the environment does not answer, the pods stay as many as they are.
    """
    scaling = run.spec.renderers.scaling
    env = identity(run, Component.ENV)
    host = services.url(env).replace(env.name, f"{env.name}.{run.namespace}.svc", 1)
    triggers = [
        {
            "type": "metrics-api",
            "name": part,
            "metadata": {
                "url": f"{host}/v1/demand",
                "valueLocation": part,
                "targetValue": str(per_pod(run.spec)),
            },
        }
        for part in DEMAND_PARTS
    ]
    formula = {
        "formula": " + ".join(DEMAND_PARTS),
        "target": str(per_pod(run.spec)),
        "metricType": "AverageValue",
    }
    spec = {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": who.name},
        "minReplicaCount": scaling.min,
        "maxReplicaCount": scaling.max,
        "pollingInterval": POLL_SECONDS,
        "cooldownPeriod": math.ceil(scaling.idle_seconds),
        "fallback": {
            "failureThreshold": 3,
            "replicas": max(1, scaling.min),
            "behavior": "currentReplicas",
        },
        "advanced": {
            "scalingModifiers": formula,
            "horizontalPodAutoscalerConfig": {"behavior": _behaviour(run)},
        },
        "triggers": triggers,
    }
    return {
        "apiVersion": "keda.sh/v1alpha1",
        "kind": "ScaledObject",
        "metadata": who.metadata(),
        "spec": spec,
    }
