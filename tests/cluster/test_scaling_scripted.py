"""Answers that stand in annotations, on the real API server."""

from __future__ import annotations

import json

from tests.cluster.ground.api import Api, Json
from tests.cluster.ground.controlplane import ControlPlane

from watercolour_operator import names
from watercolour_operator.cluster import reduce
from watercolour_operator.cluster.api import connect
from watercolour_operator.names import Component
from watercolour_operator.observed import Demand, Load, Pod
from watercolour_operator.scaling import scripted, sources
from watercolour_operator.settings import Settings


def pod(api: Api, namespace: str, component: Component, annotation: str, said: Json) -> Pod:
    """A pod, played by nobody, that says something."""
    made = api.create(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": component.value,
                "labels": {names.COMPONENT: component.value, names.RUN_UID: "uid"},
                "annotations": {annotation: json.dumps(said)},
            },
            "spec": {"containers": [{"name": "main", "image": "registry.example/none:1"}]},
        },
        namespace,
    )
    found = reduce.pod(made)
    assert found is not None
    return found


async def test_parts_answer_what_their_annotations_say(
    control_plane: ControlPlane, crd_installed: None, api: Api, namespace: str
) -> None:
    load = {"slots": 2, "busy": 1, "draining": False}
    demand = {"queued": 3, "inflight": 1, "announced": 0}
    renderer = pod(api, namespace, Component.RENDERERS, scripted.LOAD, load)
    trainer = pod(api, namespace, Component.TRAINER, scripted.PROGRESS, {"step": 4, "steps": 9})
    env = pod(api, namespace, Component.ENV, "another", {})
    api.create(
        {
            "apiVersion": names.API_VERSION,
            "kind": names.KIND,
            "metadata": {
                "name": "peonies",
                "annotations": {scripted.DEMAND: json.dumps(demand)},
            },
            "spec": {},
        },
        namespace,
    )
    async with (
        connect(str(control_plane.kubeconfig)) as client,
        sources.connect(Settings(reach="scripted"), client) as asked,
    ):
        progress = await asked.progress(namespace, "peonies", trainer)
        assert progress is not None
        assert (progress.step, progress.steps) == (4, 9)
        assert await asked.demand(namespace, "peonies", env) == Demand(3, 1, 0)
        assert await asked.load(namespace, "peonies", renderer) == Load(2, 1, False)
        assert await asked.drain(namespace, "peonies", renderer)
        assert await asked.load(namespace, "peonies", renderer) == Load(2, 1, True)
        assert await asked.undrain(namespace, "peonies", renderer)
        assert await asked.load(namespace, "peonies", renderer) == Load(2, 1, False)
        assert await asked.load(namespace, "peonies", env) is None
        assert await asked.demand(namespace, "nobody", trainer) is None
        assert not await asked.drain(namespace, "peonies", env)
