"""The run that manifests are made for, and how its objects are called, marked and owned. Pure."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any

from watercolour.api import servers
from watercolour.api.spec import RunSpec
from watercolour_operator import names
from watercolour_operator.names import Component
from watercolour_operator.observed import Observed

#: An object as the API server takes it.
Manifest = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Run:
    """A run with a valid specification."""

    name: str
    namespace: str
    uid: str
    spec: RunSpec
    #: Name and uid of the other runs that own the same shared scorer.
    sharers: tuple[tuple[str, str], ...] = ()

    @property
    def shares_scorer(self) -> bool:
        """Whether the run's scorer is one that its namespace shares."""
        return self.spec.scorer.sharing == "Namespace" and servers.runs_scorer(self.spec)

    @property
    def hosts(self) -> tuple[str, ...]:
        """Names of the run's own servers, to which no proxy leads."""
        return tuple(identity(self, component).name for component in Component)


@dataclass(frozen=True, slots=True)
class Identity:
    """What belongs to one part of a run: the name and labels of its objects and their owners."""

    name: str
    namespace: str
    component: Component
    labels: dict[str, str]
    #: Labels that find its pods, and no others, for ever: a Deployment's selector cannot change.
    selector: dict[str, str]
    owners: tuple[dict[str, Any], ...]

    def metadata(self, name: str | None = None) -> dict[str, Any]:
        """Metadata of one of its objects, under another name if that is given."""
        return {
            "name": name or self.name,
            "namespace": self.namespace,
            "labels": dict(self.labels),
            "ownerReferences": [dict(owner) for owner in self.owners],
        }


def of(observed: Observed) -> Run | None:
    """The run that was observed; None while its specification breaks a rule."""
    if observed.spec is None:
        return None
    return Run(
        observed.name, observed.namespace, observed.uid, observed.spec, observed.scorer_sharers
    )


def labels(run: Run) -> dict[str, str]:
    """Labels of every object that is the run's alone."""
    return {**names.APP_LABELS, names.RUN: run.name, names.RUN_UID: run.uid}


def controller(run: Run) -> dict[str, Any]:
    """The owner reference of every object that is the run's alone."""
    return {**_owner(run.name, run.uid), "controller": True, "blockOwnerDeletion": True}


def _owner(name: str, uid: str) -> dict[str, Any]:
    return {"apiVersion": names.API_VERSION, "kind": names.KIND, "name": name, "uid": uid}


def metadata(run: Run, name: str, *, owned: bool = True) -> dict[str, Any]:
    """Metadata of an object that belongs to no single part of the run."""
    owners = {"ownerReferences": [controller(run)]} if owned else {}
    return {"name": name, "namespace": run.namespace, "labels": labels(run), **owners}


def identity(run: Run, component: Component) -> Identity:
    """The identity of one part of the run; a shared scorer's is the same for all who share it."""
    if component is Component.SCORER and run.shares_scorer:
        return _shared_scorer(run)
    return Identity(
        name=names.child(run.name, component),
        namespace=run.namespace,
        component=component,
        labels={**labels(run), names.COMPONENT: component.value},
        selector={names.RUN_UID: run.uid, names.COMPONENT: component.value},
        owners=(controller(run),),
    )


def _shared_scorer(run: Run) -> Identity:
    """Owned by all who use it, so that it goes with the last; a second controller is not allowed.

    Every run applies the same list in the same order: with one field manager the last writer's
    list is the one that holds.
    """
    digest = scorer_digest(run.spec)
    users = sorted({(run.name, run.uid), *run.sharers})
    selector = {names.SHARED: digest, names.COMPONENT: Component.SCORER.value}
    return Identity(
        name=names.shared_scorer(digest),
        namespace=run.namespace,
        component=Component.SCORER,
        labels={**names.APP_LABELS, **selector},
        selector=selector,
        owners=tuple(_owner(name, uid) for name, uid in users),
    )


def scorer_digest(spec: RunSpec) -> str:
    """Ten characters for all that the specification says of a scorer's pods.

    Runs that differ in any of it have scorers of their own: not only their scores could differ,
    they would also write over each other's Deployment without end. What is asked with each call
    (the prompt) and what the caller keeps (attempts, time limits) is left out.
    """
    scorer = spec.scorer
    parts = {
        "backend": scorer.backend,
        "image": scorer.image,
        "resources": scorer.resources.model_dump(mode="json"),
        "checkpoint": scorer.checkpoint and scorer.checkpoint.model_dump(mode="json"),
        "download": scorer.download,
        "batching": scorer.batching.model_dump(mode="json"),
        "queue": spec.queue_name if scorer.queued else None,
        "prometheus": spec.tracking.prometheus,
        "template": spec.pod_templates.scorer,
    }
    text = json.dumps(parts, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:10]
