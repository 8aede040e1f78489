"""Answers that stand in annotations, for clusters whose pods are played and serve nothing.

``--reach scripted`` is for tests and simulations alone: whoever may annotate a run or a pod says
what its parts answer. A missing annotation is no answer, as from a part that is away.
"""

from __future__ import annotations

import json

from watercolour.api.status import Progress
from watercolour_operator.cluster.api import MERGE, Api
from watercolour_operator.cluster.errors import ApiError, WriteRefused
from watercolour_operator.cluster.kinds import POD, RUN, Kind
from watercolour_operator.names import GROUP
from watercolour_operator.observed import Demand, Load, Pod
from watercolour_operator.scaling import answers

#: On the run, or on the environment's pod: the body of ``GET /v1/demand``.
DEMAND = f"{GROUP}/scripted-demand"
#: On the trainer's pod: the body of ``GET /progress``.
PROGRESS = f"{GROUP}/scripted-progress"
#: On a renderer's pod: the body of ``GET /v1/load``. A drain is written into it.
LOAD = f"{GROUP}/scripted-load"


class Scripted:
    """Answers from annotations, as :class:`watercolour_operator.scaling.sources.Http` does."""

    def __init__(self, api: Api) -> None:
        """Ask the API server."""
        self._api = api

    async def progress(self, namespace: str, run: str, pod: Pod) -> Progress | None:
        """The pod's annotation."""
        return answers.progress(await self._said(POD, namespace, pod.name, PROGRESS))

    async def demand(self, namespace: str, run: str, pod: Pod) -> Demand | None:
        """The annotation of the pod or, without one, of the run."""
        said = await self._said(POD, namespace, pod.name, DEMAND)
        return answers.demand(said or await self._said(RUN, namespace, run, DEMAND))

    async def load(self, namespace: str, run: str, pod: Pod) -> Load | None:
        """The pod's annotation."""
        return answers.load(await self._said(POD, namespace, pod.name, LOAD))

    async def drain(self, namespace: str, run: str, pod: Pod) -> bool:
        """Write into the annotation that the pod drains."""
        return await self._write(namespace, run, pod, draining=True)

    async def undrain(self, namespace: str, run: str, pod: Pod) -> bool:
        """Write into the annotation that the pod takes work again."""
        return await self._write(namespace, run, pod, draining=False)

    async def _said(
        self, kind: Kind, namespace: str, name: str, annotation: str
    ) -> answers.Said | None:
        try:
            found = await self._api.get(kind, namespace, name, metadata=True)
        except ApiError:
            return None
        text = ((found or {}).get("metadata", {}).get("annotations") or {}).get(annotation)
        return answers.read(text.encode()) if text else None

    async def _write(self, namespace: str, run: str, pod: Pod, *, draining: bool) -> bool:
        load = await self.load(namespace, run, pod)
        if load is None:
            return False
        text = json.dumps({"slots": load.slots, "busy": load.busy, "draining": draining})
        body = {"metadata": {"annotations": {LOAD: text}}}
        try:
            await self._api.write("patch", POD, namespace, pod.name, body=body, content=MERGE)
        except (ApiError, WriteRefused):
            return False
        return True
