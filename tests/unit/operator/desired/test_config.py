"""The specification as the processes read it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.unit.operator.desired.made import PUBLISHED, build, find, keys, observed, pod

from watercolour.api import load, yaml_text
from watercolour.api.spec import WatercolourRun
from watercolour_operator.settings import Settings


def read_back(spec: dict[str, Any], folder: Path) -> WatercolourRun:
    file = folder / "run.yaml"
    file.write_text(find(build(spec), "ConfigMap", "peonies-spec")["data"]["run.yaml"])
    return load.run(file)


def test_the_processes_read_the_specification_that_was_given(tmp_path: Path) -> None:
    run = read_back({**PUBLISHED, "trainer": {"steps": 7}}, tmp_path)
    assert run.metadata.name == "peonies"
    assert run.spec == observed({**PUBLISHED, "trainer": {"steps": 7}}).spec


def test_every_value_in_force_stands_in_it() -> None:
    text = find(build(), "ConfigMap", "peonies-spec")["data"]["run.yaml"]
    assert "learningRate:" in text
    assert "messageTimeoutSeconds: 300.0" in text


def test_a_pool_on_a_claim_is_a_folder_to_the_processes(tmp_path: Path) -> None:
    for source, volume in (
        ({"claim": "pool"}, {"persistentVolumeClaim": {"claimName": "pool", "readOnly": True}}),
        ({"configMap": "pool"}, {"configMap": {"name": "pool"}}),
    ):
        run = read_back({"references": {**source, "perRollout": 2}}, tmp_path)
        assert run.spec.references.pool == "/references"
        assert run.spec.references.per_rollout == 2
        env = pod(build({"references": source}), "peonies-env")
        assert {"name": "references", **volume} in env["volumes"]
        mount = {"name": "references", "mountPath": "/references", "readOnly": True}
        assert mount in env["containers"][0]["volumeMounts"]


def test_what_the_run_was_started_with_stands_beside_what_its_processes_read() -> None:
    def config(spec: dict[str, Any]) -> dict[str, str]:
        return find(build(spec), "ConfigMap", "peonies-spec")["data"]

    spec = {"references": {"claim": "pool", "perRollout": 2}}
    found = config(spec)
    whole = load.from_dict(yaml_text.mapping(found["start.yaml"], "start.yaml"))
    assert whole.spec == observed(spec).spec
    assert "start.yaml" not in config({}), "where both are the same"


def test_certificates_are_there_for_those_who_reach_outside() -> None:
    settings = Settings(ca_bundle="PEM")
    manifests = build(PUBLISHED, settings=settings)
    assert find(manifests, "ConfigMap", "peonies-spec")["data"]["ca.crt"] == "PEM"
    for name, expected in (("peonies-trainer-1", True), ("peonies-renderers", False)):
        container = pod(manifests, name)["containers"][0]
        found = {item["name"]: item.get("value") for item in container["env"]}
        assert (found.get("SSL_CERT_FILE") == "/etc/watercolour/ca.crt") is expected


def test_a_shared_scorer_has_certificates_of_its_own() -> None:
    settings = Settings(ca_bundle="PEM")
    manifests = build({"scorer": {"sharing": "Namespace"}}, settings=settings)
    (name,) = (
        name
        for kind, name in keys(manifests)
        if kind == "ConfigMap" and name.startswith("watercolour-scorer-")
    )
    assert {"name": "config", "configMap": {"name": name}} in pod(manifests, name)["volumes"]
