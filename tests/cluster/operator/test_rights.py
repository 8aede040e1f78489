"""The chart's role by what the operator really calls: nothing is refused, and nothing is idle."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from tests.cluster.ground import processes
from tests.cluster.ground.api import Api
from tests.cluster.ground.controlplane import Call, ControlPlane
from tests.cluster.ground.podlife import Creating, Exited, Life, Running
from tests.cluster.operator.conftest import Start
from tests.cluster.operator.harness import Json, Story

from watercolour_operator import names

RULES = Path(__file__).parents[3] / "charts" / "watercolour" / "files" / "operator-rules.yaml"
RBAC = "rbac.authorization.k8s.io"

#: Rights for what this control plane lacks: KEDA's kind, and the admission plugin that guards owner
#: references which hold a deletion up.
ELSEWHERE = {"scaledobjects", "watercolourruns/finalizers"}
#: As in charts/watercolour/templates/rbac.yaml, for the Lease that the tests' operators have.
LEASE: list[Json] = [
    {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["create"]},
    {
        "apiGroups": ["coordination.k8s.io"],
        "resources": ["leases"],
        "resourceNames": ["operator"],
        "verbs": ["get", "update"],
    },
]
#: A verb and a resource, perhaps with its subresource.
Right = tuple[str, str]


@pytest.fixture
def bound(api: Api, control_plane: ControlPlane, namespace: str, tmp_path: Path) -> Path:
    """A kubeconfig for an account with the chart's rules in the namespace, and with its Lease."""
    token = control_plane.token_of(namespace, "bound")
    rules = [*yaml.safe_load(RULES.read_text()), *LEASE]
    role = {"apiVersion": f"{RBAC}/v1", "kind": "Role", "metadata": {"name": "bound"}}
    api.apply({**role, "rules": rules}, namespace)
    api.apply(
        {
            "apiVersion": f"{RBAC}/v1",
            "kind": "RoleBinding",
            "metadata": {"name": "bound"},
            "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": "bound"},
            "subjects": [{"kind": "ServiceAccount", "name": "bound", "namespace": namespace}],
        },
        namespace,
    )
    return control_plane.kubeconfig_of(token, tmp_path / "bound")


def needed(calls: list[Call]) -> set[Right]:
    """Verb and resource of the rights that calls took; an apply that makes takes two."""
    found = {(call.verb, call.resource) for call in calls}
    return found | {("create", call.resource) for call in calls if call.code == 201}


def rights(rules: list[Json]) -> set[Right]:
    """Verb and resource of the rights that rules give."""
    return {
        (verb, resource)
        for rule in rules
        for verb in rule["verbs"]
        for resource in rule["resources"]
    }


def test_every_rule_is_used_and_no_call_is_refused(
    api: Api,
    control_plane: ControlPlane,
    namespace: str,
    story: Story,
    start: Start,
    bound: Path,
) -> None:
    """Three lives that between them take every right there is."""
    start(bound, lease_seconds="30")
    answers, pods = story.answers, story.pods
    api.create({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "hub"}}, namespace)

    # One with a Secret, an autoscaler and busy renderers, which go last; deleted when its time to
    # live is over.
    answers.say("peonies", "renderers", "/v1/load", {"slots": 1, "busy": 1, "draining": False})
    story.create(
        model={"id": "owner/name", "tokenSecretRef": {"name": "hub"}},
        renderers={"scaling": {"mode": "HPA", "min": 1}},
        cleanup={"ttlSeconds": 0, "runTtlSecondsSucceeded": 1},
    )
    trainer = story.train()
    labels = {names.COMPONENT: "renderers", names.RUN: "peonies"}
    api.until("Pod", dear, namespace, labels=labels)
    answers.say("peonies", "trainer", "/progress", None)
    pods.step(namespace, trainer, Exited(0))
    api.until_gone(names.KIND, "peonies", namespace, timeout=60)

    # One whose renderers do not go when they are asked to.
    lotus = Story(api, namespace, pods, answers, name="lotus")
    stubborn = Life((Creating(), Running()), stop_after=None)
    pods.script(namespace, stubborn, labels={names.COMPONENT: "renderers"})
    lotus.create(renderers={"scaling": {"mode": "Fixed", "max": 1}})
    trainer = lotus.train()
    api.until("Pod", bool, namespace, labels={**labels, names.RUN: "lotus"})
    answers.say("lotus", "trainer", "/progress", None)
    pods.step(namespace, trainer, Exited(0))

    # One whose pods nobody may make, which only events tell.
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "none"}}
    api.create({**quota, "spec": {"hard": {"pods": "0"}}}, namespace)
    Story(api, namespace, pods, answers, name="iris").create()

    user = f"system:serviceaccount:{namespace}:bound"
    rules = yaml.safe_load(RULES.read_text())
    given = {right for right in rights(rules) if right[1] not in ELSEWHERE}
    used = set[Right]()

    def all_used() -> bool:
        used.update(needed(control_plane.calls(user)))
        return given <= used

    processes.wait_until(all_used, 60)
    assert given - used == set(), "rules for nothing"
    own = rights(LEASE) | {("list", kind) for kind in ELSEWHERE} | {("get", "")}
    assert used - given <= own
    refused = [call for call in control_plane.calls(user) if call.code == 403]
    assert refused == []


def dear(found: list[Json]) -> bool:
    """Whether all pods have a cost of deletion."""
    return bool(found) and all(
        names.DELETION_COST in pod["metadata"].get("annotations", {}) for pod in found
    )
