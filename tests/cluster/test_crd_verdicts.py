"""The API server and the models give the same verdict on a specification."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from tests.cluster.ground.api import Api, ApiError
from tests.specs import BEYOND_CEL, REFUSALS, SOUND
from tests.strategies import specs

from watercolour.api import crd_free, load, pod_templates, rules
from watercolour.api.errors import InputError

OF_TYPE = {"integer": 3, "number": 0.5, "string": "a", "boolean": True, "array": [], "object": {}}
#: Each field that no pod template may set, with a value of its type.
CLOSED: dict[str, Any] = {
    **dict.fromkeys(pod_templates.POD_FIELDS, True),
    "ephemeralContainers": [],
    "restartPolicy": "Always",
    "serviceAccount": "a",
    "serviceAccountName": "a",
}

pytestmark = pytest.mark.usefixtures("crd_installed")


def run_of(spec: Any, name: str = "peony") -> dict[str, Any]:
    return {
        "apiVersion": "watercolour.dev/v1alpha1",
        "kind": "WatercolourRun",
        "metadata": {"name": name},
        "spec": spec,
    }


def servers_fault(api: Api, manifest: dict[str, Any]) -> str:
    """What the API server has against a run, or an empty text; nothing is stored."""
    try:
        api.create(manifest, "default", dry_run=True, strict=True)
    except ApiError as refusal:
        if refusal.code in (400, 422):
            return refusal.message
        raise
    return ""


def models_fault(manifest: dict[str, Any]) -> str:
    """What the models have against a run, or an empty text."""
    try:
        load.from_dict(manifest)
    except InputError as refusal:
        return str(refusal)
    return ""


def assert_same_verdict(api: Api, manifest: dict[str, Any]) -> None:
    server, models = servers_fault(api, manifest), models_fault(manifest)
    assert bool(server) == bool(models), f"server: {server or 'sound'}\nmodels: {models or 'sound'}"


@pytest.mark.parametrize(
    "spec",
    # JSON has no infinity.
    [pytest.param(spec, id=text[:48]) for spec, text in REFUSALS if "=inf:" not in text],
)
def test_what_the_models_refuse_is_refused(api: Api, spec: Any) -> None:
    assert servers_fault(api, run_of(spec))


@pytest.mark.parametrize("spec", SOUND, ids=[str(spec)[:48] for spec in SOUND])
def test_what_the_models_accept_is_accepted(api: Api, spec: Any) -> None:
    assert servers_fault(api, run_of(spec)) == ""


@pytest.mark.parametrize("spec", BEYOND_CEL, ids=[str(spec)[18:60] for spec in BEYOND_CEL])
def test_what_cel_cannot_see_is_left_to_the_models(api: Api, spec: Any) -> None:
    assert servers_fault(api, run_of(spec)) == ""
    assert "podTemplates" in models_fault(run_of(spec))


@pytest.mark.parametrize("name", rules.OWNED_BY_SPEC)
def test_what_the_specification_sets_cannot_be_passed_through(api: Api, name: str) -> None:
    declared = crd_free.by_field()["Trainer.grpo"]["properties"][name]["type"]
    manifest = run_of({"trainer": {"grpo": {name: OF_TYPE[declared]}}})
    remedy = f"Set {rules.OWNED_BY_SPEC[name]} instead."
    assert remedy in servers_fault(api, manifest)
    assert remedy in models_fault(manifest)


TEMPLATES: list[tuple[str, Any]] = [
    *(("trainer", {"spec": {name: value}}) for name, value in CLOSED.items()),
    ("env", {"spec": []}),
    ("env", {"kind": "Pod"}),
    ("env", {"metadata": {"name": "a"}}),
    ("env", {"metadata": {"labels": {"watercolour.dev/run-uid": "x"}}}),
    ("env", {"metadata": {"labels": {"a": 1}}}),
    ("scorer", {"spec": {"tolerations": {}}}),
    ("scorer", {"spec": {"nodeSelector": {"disk": True}}}),
    ("renderers", {"metadata": {"labels": {"app.kubernetes.io/name": "x"}}}),
    ("renderers", {"spec": {"containers": [{"name": "renderers", "image": "a"}]}}),
    ("renderers", {"spec": {"hostNetwork": True}}),
    ("renderers", {"spec": {"securityContext": {"runAsUser": 1}}}),
    ("renderers", {"spec": {"priorityClassName": 5}}),
    ("renderers", {"spec": {"affinity": []}}),
    ("renderers", {"spec": {"imagePullSecrets": [{}]}}),
]


@pytest.mark.parametrize(("component", "template"), TEMPLATES, ids=str)
def test_a_pod_template_that_opens_a_pod_is_refused_by_both(
    api: Api, component: str, template: Any
) -> None:
    manifest = run_of({"podTemplates": {component: template}})
    assert servers_fault(api, manifest)
    assert "podTemplates" in models_fault(manifest)


@pytest.mark.parametrize(
    ("component", "template"),
    [
        ("trainer", {"spec": {"nodeSelector": {"gpu": "h200"}, "runtimeClassName": "nvidia"}}),
        ("judge", {"metadata": {"labels": {"team": "a"}, "annotations": {"b": "c"}}}),
        ("env", {"spec": {"containers": [{"name": "env", "env": [{"name": "A", "value": "b"}]}]}}),
        ("renderers", {"spec": {"tolerations": [{"operator": "Exists"}], "affinity": {}}}),
    ],
    ids=str,
)
def test_a_pod_template_that_places_or_adds_is_taken_by_both(
    api: Api, component: str, template: Any
) -> None:
    manifest = run_of({"podTemplates": {component: template}})
    assert (servers_fault(api, manifest), models_fault(manifest)) == ("", "")


@settings(
    max_examples=150,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(spec=specs())
def test_both_judge_any_specification_alike(api: Api, spec: dict[str, Any]) -> None:
    assert_same_verdict(api, run_of(spec))
