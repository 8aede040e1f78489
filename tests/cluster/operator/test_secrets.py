"""Secrets that a run names: only kubelet and container see them, whatever is said of them."""

from __future__ import annotations

import base64
import json

from tests.cluster.ground.api import Api
from tests.cluster.ground.podlife import Creating, Exited, Life, Running
from tests.cluster.operator.conftest import Start
from tests.cluster.operator.harness import Json, Story

from watercolour_operator import names

VALUES = {
    "hub": "hf_QwErTyUiOpAsDfGhJkLzXcVb",
    "push": "hf_MnBvCxZlKjHgFdSaPoIuYtRe",
    "judge": "sk-judge-0123456789abcdefghij",
    "tracker": "tracker-swordfish-9876543210",
}
#: What libraries say of a refusal, with all that they were given.
SAID = (
    f"401 Unauthorized for token {VALUES['hub']}\n"
    f"headers: {{'Authorization': 'Bearer {VALUES['push']}'}}\n"
    f"Error code: 401 - Incorrect API key provided: {VALUES['judge']}.\n"
    f"TRACKIO_WRITE_TOKEN={VALUES['tracker']} was refused"
)
KINDS = (
    "ConfigMap",
    "Deployment",
    "Event",
    "HorizontalPodAutoscaler",
    "Job",
    "Lease",
    "NetworkPolicy",
    "PersistentVolumeClaim",
    "ReplicaSet",
    "Service",
    "ServiceAccount",
    "WatercolourRun",
)


def told(api: Api, namespace: str) -> dict[str, str]:
    """All that is written of the run, by where it stands. A pod's status is its kubelet's."""
    found = {kind: api.list(kind, namespace) for kind in KINDS}
    found["Pod"] = [pod | {"status": {}} for pod in api.list("Pod", namespace)]
    return {kind: json.dumps(objects) for kind, objects in found.items()}


def variables(api: Api, namespace: str) -> dict[str, Json]:
    """Where the pods' variables that are no plain values come from, by name."""
    return {
        variable["name"]: variable["valueFrom"]
        for pod in api.list("Pod", namespace)
        for container in pod["spec"]["containers"]
        for variable in container.get("env", [])
        if "valueFrom" in variable
    }


def test_no_value_of_a_secret_is_written_anywhere(
    api: Api, namespace: str, story: Story, start: Start
) -> None:
    operator = start(lease_seconds="30")
    for name, value in VALUES.items():
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}}
        api.create({**secret, "stringData": {"token": value}}, namespace)
    refused = Life((Creating(), Running(), Exited(1, message=SAID)))
    story.pods.script(namespace, refused, labels={names.COMPONENT: "trainer"}, times=1)
    endpoint = "http://judge.example/v1"
    story.create(
        model={"id": "owner/name", "tokenSecretRef": {"name": "hub"}},
        judge={
            "backend": "openai",
            "endpoint": endpoint,
            "model": "vision",
            "secretRef": {"name": "judge", "key": "token"},
        },
        artifacts={"hub": {"repo": "owner/adapter", "secretRef": {"name": "push"}}},
        tracking={"trackio": {"endpoint": "http://t:7860", "secretRef": {"name": "tracker"}}},
    )
    trainer = story.train(attempt=2)
    written = told(api, namespace)
    assert variables(api, namespace) == {
        name: {"secretKeyRef": {"name": secret, "key": "token"}}
        for name, secret in {
            "HF_TOKEN": "hub",
            "WATERCOLOUR_PUSH_TOKEN": "push",
            "WATERCOLOUR_JUDGE_KEY": "judge",
            "TRACKIO_WRITE_TOKEN": "tracker",
        }.items()
    }
    # The refusal itself is told, so that it is known what to do.
    assert "was refused" in written["WatercolourRun"] + written["Event"]
    story.finish(trainer)
    written |= {f"{kind} at the end": text for kind, text in told(api, namespace).items()}
    written |= {"log": operator.words(), "metrics": operator.ask("/metrics")[1]}
    for name, value in VALUES.items():
        encoded = base64.b64encode(value.encode()).decode()
        found = [where for where, text in written.items() if value in text or encoded in text]
        assert found == [], name
