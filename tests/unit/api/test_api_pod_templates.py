"""What a pod template may not say, and the words in which it is told."""

from __future__ import annotations

from typing import Any

import pytest

from watercolour.api import load
from watercolour.api.errors import InputError


def check(component: str, template: dict[str, Any]) -> None:
    spec = {"podTemplates": {component: template}}
    load.from_dict({"metadata": {"name": "peonies"}, "spec": spec})


TOKEN: dict[str, Any] = {"serviceAccountToken": {}}
#: Component, template, the field that is named and a word of why.
REFUSED: list[tuple[str, dict[str, Any], str, str]] = [
    ("env", {"spec": {"hostNetwork": True}}, "env.spec.hostNetwork", "do not hold"),
    ("env", {"spec": {"hostPID": True}}, "env.spec.hostPID", "namespaces are closed"),
    ("env", {"spec": {"hostIPC": False}}, "env.spec.hostIPC", "namespaces are closed"),
    ("judge", {"spec": {"serviceAccountName": "a"}}, "judge.spec.serviceAccountName", "rights"),
    (
        "scorer",
        {"spec": {"automountServiceAccountToken": True}},
        "scorer.spec.automountServiceAccountToken",
        "no token",
    ),
    (
        "trainer",
        {"spec": {"securityContext": {"runAsNonRoot": False}}},
        "trainer.spec.securityContext.runAsNonRoot",
        "without privileges",
    ),
    (
        "trainer",
        {"spec": {"securityContext": {"seccompProfile": {"type": "Unconfined"}}}},
        "trainer.spec.securityContext.seccompProfile",
        "without privileges",
    ),
    (
        "trainer",
        {"spec": {"securityContext": {"runAsUser": 0}}},
        "trainer.spec.securityContext.runAsUser",
        "other than root",
    ),
    (
        "trainer",
        {"spec": {"containers": [{"name": "trainer", "securityContext": {"privileged": True}}]}},
        "trainer.spec.containers[trainer].securityContext.privileged",
        "without privileges",
    ),
    (
        "env",
        {"spec": {"initContainers": [{"name": "a", "securityContext": {"capabilities": {}}}]}},
        "env.spec.initContainers[a].securityContext.capabilities",
        "without privileges",
    ),
    (
        "trainer",
        {"spec": {"containers": [{"name": "trainer", "resources": {"limits": None}}]}},
        "trainer.spec.containers[trainer].resources",
        "Set spec.trainer.resources instead",
    ),
    (
        "judge",
        {"spec": {"containers": [{"name": "judge", "resources": {}}]}},
        "judge.spec.containers[judge].resources",
        "Set spec.judge.deploy.resources instead",
    ),
    (
        "trainer",
        {"spec": {"containers": [{"name": "logs", "image": "a"}]}},
        "trainer.spec.containers[logs]",
        "its GPU after the trainer has ended",
    ),
    (
        "env",
        {"spec": {"containers": [{"name": "a", "ports": [{"containerPort": 1, "hostPort": 1}]}]}},
        "env.spec.containers[a].ports.hostPort",
        "port of the node",
    ),
    (
        "env",
        {"spec": {"volumes": [{"name": "root", "hostPath": {"path": "/"}}]}},
        "env.spec.volumes[root].hostPath",
        "without privileges",
    ),
    (
        "env",
        {
            "spec": {
                "volumes": [{"name": "t", "projected": {"sources": [{"serviceAccountToken": {}}]}}]
            }
        },
        "env.spec.volumes[t].projected.sources.serviceAccountToken",
        "no token",
    ),
    (
        "env",
        {"metadata": {"labels": {"watercolour.dev/run-uid": "x"}}},
        "env.metadata.labels.watercolour.dev/run-uid",
        "NetworkPolicies",
    ),
    (
        "renderers",
        {"metadata": {"labels": {"watercolour.dev/component": "env"}}},
        "renderers.metadata.labels.watercolour.dev/component",
        "NetworkPolicies",
    ),
    (
        "renderers",
        {"spec": {"securityContext": {"runAsUser": 1}}},
        "renderers.spec.securityContext",
        "hostile code",
    ),
    (
        "renderers",
        {"spec": {"containers": [{"name": "renderers", "image": "a"}]}},
        "renderers.spec.containers",
        "hostile code",
    ),
    ("env", {"spec": {"containers": [{"image": "a"}]}}, "env.spec.containers[0]", "no name"),
    ("env", {"spec": {"containers": None}}, "env.spec.containers", "not a list"),
    ("env", {"spec": {"volumes": {"a": 1}}}, "env.spec.volumes", "not a list"),
    ("env", {"spec": []}, "env.spec", "not a mapping"),
    ("env", {"spec": {"affinity": {"$patch": "delete"}}}, "env.spec.affinity.$patch", "directives"),
    ("env", {"kind": "Pod"}, "env.kind", "not a field of a pod template"),
    ("env", {"metadata": {"name": "a"}}, "env.metadata.name", "not a field of a pod template"),
]


@pytest.mark.parametrize(("component", "template", "field", "why"), REFUSED)
def test_a_template_that_weakens_is_refused_by_the_field_s_name(
    component: str, template: dict[str, Any], field: str, why: str
) -> None:
    with pytest.raises(InputError) as caught:
        check(component, template)
    assert caught.value.field == f"spec.podTemplates.{field}"
    assert why in str(caught.value)


ALLOWED: list[tuple[str, dict[str, Any]]] = [
    ("trainer", {"spec": {"containers": [{"name": "trainer", "env": [{"name": "A"}]}]}}),
    ("trainer", {"spec": {"initContainers": [{"name": "logs", "restartPolicy": "Always"}]}}),
    ("env", {"spec": {"containers": [{"name": "proxy", "resources": {"limits": {"cpu": 1}}}]}}),
    ("scorer", {"spec": {"securityContext": {"runAsUser": None}}}),
    ("scorer", {"spec": {"volumes": [{"name": "w", "persistentVolumeClaim": {"claimName": "a"}}]}}),
    ("judge", {"metadata": {"labels": {"team": "a"}, "annotations": {"b": "c"}}}),
    ("renderers", {"spec": {"nodeSelector": {"a": "b"}, "tolerations": [{"operator": "Exists"}]}}),
]


@pytest.mark.parametrize(("component", "template"), ALLOWED)
def test_a_template_that_places_or_adds_is_taken(component: str, template: dict[str, Any]) -> None:
    check(component, template)
