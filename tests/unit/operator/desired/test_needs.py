"""What a specification names and does not bring."""

from __future__ import annotations

from typing import Any

from tests.unit.operator.desired.made import observed

from watercolour_operator import desired
from watercolour_operator.desired import Need

CLAIM = "PersistentVolumeClaim"


def needed(spec: dict[str, Any]) -> tuple[Need, ...]:
    found = observed(spec).spec
    assert found is not None
    return desired.needs(found)


def test_the_default_needs_nothing() -> None:
    assert needed({}) == ()


def test_everything_that_is_named_is_needed() -> None:
    spec = {
        "model": {"id": "o/n", "cacheClaim": "cache", "tokenSecretRef": {"name": "hub"}},
        "references": {"claim": "pool"},
        "scorer": {"backend": "hpsv3", "checkpoint": {"claim": "weights"}},
        "judge": {
            "backend": "openai",
            "endpoint": "https://api.example/v1",
            "secretRef": {"name": "judge", "key": "k"},
        },
        "artifacts": {"claim": "files", "hub": {"repo": "o/n", "secretRef": {"name": "push"}}},
        "tracking": {"trackio": {"secretRef": {"name": "tracker"}}},
    }
    assert needed(spec) == (
        Need(CLAIM, "cache", "spec.model.cacheClaim"),
        Need("Secret", "hub", "spec.model.tokenSecretRef", "token"),
        Need(CLAIM, "pool", "spec.references.claim"),
        Need(CLAIM, "weights", "spec.scorer.checkpoint.claim"),
        Need("Secret", "judge", "spec.judge.secretRef", "k"),
        Need(CLAIM, "files", "spec.artifacts.claim"),
        Need("Secret", "push", "spec.artifacts.hub.secretRef", "token"),
        Need("Secret", "tracker", "spec.tracking.trackio.secretRef", "token"),
    )


def test_a_hub_without_a_secret_of_its_own_needs_none() -> None:
    assert needed({"artifacts": {"hub": {"repo": "o/n"}}, "tracking": {"trackio": {}}}) == ()


def test_a_pool_in_a_config_map_is_needed() -> None:
    assert needed({"references": {"configMap": "pool"}}) == (
        Need("ConfigMap", "pool", "spec.references.configMap"),
    )


def test_what_no_pod_uses_is_not_needed() -> None:
    spec = {
        "scorer": {"endpoint": "http://a", "checkpoint": {"claim": "weights"}},
        "judge": {"secretRef": {"name": "judge"}},
    }
    assert needed(spec) == ()
