"""What a specification names and does not bring: Secrets, claims, ConfigMaps. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

from watercolour.api import servers
from watercolour.api.part import SecretRef
from watercolour.api.spec import RunSpec


class Need(NamedTuple):
    """An object that has to be there before the run's pods can start."""

    kind: Literal["Secret", "PersistentVolumeClaim", "ConfigMap"]
    name: str
    #: The field of the specification that names it.
    field: str
    #: The key that a Secret must have; None asks for the object alone.
    key: str | None = None


def needs(spec: RunSpec) -> tuple[Need, ...]:
    """Everything that the specification names, in the order of its fields."""
    return tuple(_needs(spec))


def _needs(spec: RunSpec) -> Iterator[Need]:
    if spec.model.cache_claim:
        yield Need("PersistentVolumeClaim", spec.model.cache_claim, "spec.model.cacheClaim")
    if spec.model.token_secret_ref:
        yield _secret(spec.model.token_secret_ref, "spec.model.tokenSecretRef")
    if spec.references.claim:
        yield Need("PersistentVolumeClaim", spec.references.claim, "spec.references.claim")
    if spec.references.config_map:
        yield Need("ConfigMap", spec.references.config_map, "spec.references.configMap")
    checkpoint = spec.scorer.checkpoint
    if checkpoint and checkpoint.claim and servers.runs_scorer(spec):
        yield Need("PersistentVolumeClaim", checkpoint.claim, "spec.scorer.checkpoint.claim")
    if spec.judge.secret_ref and spec.judge.backend == "openai":
        yield _secret(spec.judge.secret_ref, "spec.judge.secretRef")
    if spec.artifacts.claim:
        yield Need("PersistentVolumeClaim", spec.artifacts.claim, "spec.artifacts.claim")
    if spec.artifacts.hub and spec.artifacts.hub.secret_ref:
        yield _secret(spec.artifacts.hub.secret_ref, "spec.artifacts.hub.secretRef")
    if spec.tracking.trackio and spec.tracking.trackio.secret_ref:
        yield _secret(spec.tracking.trackio.secret_ref, "spec.tracking.trackio.secretRef")


def _secret(ref: SecretRef, field: str) -> Need:
    return Need("Secret", ref.name, field, ref.key)
