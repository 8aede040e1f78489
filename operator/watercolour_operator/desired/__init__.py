"""The objects of a run, from its specification and the decision on it. Pure: no clock, no client.

:func:`manifests` gives all of them in the order in which they are applied: whoever could talk is
fenced in first, files and names come next, and the trainer, whose GPU is the scarce thing, last.
The same input always gives the same bytes.
"""

from __future__ import annotations

from typing import NamedTuple

from watercolour.api import servers
from watercolour_operator import names
from watercolour_operator.desired import (
    accounts,
    config,
    env,
    judge,
    network,
    renderers,
    scaling,
    scorer,
    services,
    storage,
    trainer,
)
from watercolour_operator.desired.needs import Need, needs
from watercolour_operator.desired.run import Identity, Manifest, Run, identity, of, scorer_digest
from watercolour_operator.names import Component
from watercolour_operator.observed import Observed
from watercolour_operator.plan import Plan, Removal
from watercolour_operator.settings import Settings

__all__ = [
    "KINDS",
    "Kind",
    "Manifest",
    "Need",
    "manifests",
    "needs",
    "scorer_digest",
    "surplus",
]


class Kind(NamedTuple):
    """A kind of object that a run may have."""

    api_version: str
    kind: str
    plural: str
    #: The cluster may lack it, because it comes with another project.
    optional: bool = False


#: Every kind that :func:`manifests` may hold, in the order in which they are applied.
KINDS = (
    Kind("networking.k8s.io/v1", "NetworkPolicy", "networkpolicies"),
    Kind("v1", "ServiceAccount", "serviceaccounts"),
    Kind("v1", "PersistentVolumeClaim", "persistentvolumeclaims"),
    Kind("v1", "ConfigMap", "configmaps"),
    Kind("v1", "Service", "services"),
    Kind("apps/v1", "Deployment", "deployments"),
    Kind("autoscaling/v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers"),
    Kind("keda.sh/v1alpha1", "ScaledObject", "scaledobjects", optional=True),
    Kind("batch/v1", "Job", "jobs"),
)

#: Kinds that :func:`surplus` takes away; files, and a trainer's past attempts, are not its concern.
PRUNED = frozenset(
    {"Deployment", "HorizontalPodAutoscaler", "NetworkPolicy", "ScaledObject", "Service"}
)


def manifests(observed: Observed, plan: Plan, settings: Settings) -> list[Manifest]:
    """Every object that is to be there, in the order in which they are applied.

    Nothing is wanted of a run that is being deleted or whose specification breaks a rule. Of one
    that is over, its claim alone, if it is there, so that `artifacts.keep` still decides on it.

    The trainer's Job is wanted only while it is not there yet: with a queue it is made suspended,
    and to apply it again would suspend a training that the queue has admitted.
    """
    run = of(observed)
    if run is None or observed.deleting is not None:
        return []
    if not plan.active:
        there = {(child.kind, child.name) for child in observed.children}
        return [item for item in storage.claim(run, observed) if _key(item) in there]
    parts = [identity(run, component) for component in _components(run)]
    return [
        *network.policies(run, settings),
        *(accounts.account(who) for who in parts),
        *storage.claim(run, observed),
        config.config(run, settings),
        *_shared_config(run, settings),
        *(services.service(who) for who in parts),
        env.deployment(run, plan.env, settings),
        renderers.deployment(run, plan.renderers, settings),
        *_scoring(run, plan, settings),
        *scaling.scaler(run),
        *_trainer(run, observed, plan, settings),
    ]


def surplus(observed: Observed, wanted: list[Manifest]) -> tuple[Removal, ...]:
    """Objects of an active run that its specification no longer asks for.

    A scorer that was replaced by an endpoint, or the autoscaler of another scaling mode. What the
    run does not control alone, such as a shared scorer, is left to its other owners.
    """
    keys = {_key(item) for item in wanted}
    return tuple(
        Removal(child.kind, child.name)
        for child in observed.children
        if child.kind in PRUNED
        and child.owner_uid == observed.uid
        and not child.deleting
        and (child.kind, child.name) not in keys
    )


def _components(run: Run) -> list[Component]:
    parts = [Component.TRAINER, Component.RENDERERS, Component.ENV]
    if servers.runs_scorer(run.spec):
        parts.append(Component.SCORER)
    if servers.runs_judge(run.spec):
        parts.append(Component.JUDGE)
    return parts


def _shared_config(run: Run, settings: Settings) -> list[Manifest]:
    if not run.shares_scorer:
        return []
    who: Identity = identity(run, Component.SCORER)
    return config.certificates(who, settings)


def _scoring(run: Run, plan: Plan, settings: Settings) -> list[Manifest]:
    found: list[Manifest] = []
    if servers.runs_scorer(run.spec):
        found.append(scorer.deployment(run, plan.scorer, settings))
    if servers.runs_judge(run.spec):
        found.append(judge.deployment(run, plan.judge, settings))
    return found


def _trainer(run: Run, observed: Observed, plan: Plan, settings: Settings) -> list[Manifest]:
    if plan.attempt is None:
        return []
    name = names.trainer_job(run.name, plan.attempt)
    if any(child.kind == "Job" and child.name == name for child in observed.children):
        return []
    return [trainer.job(run, plan.attempt, settings, resume=plan.resume)]


def _key(item: Manifest) -> tuple[str, str]:
    return item["kind"], item["metadata"]["name"]
