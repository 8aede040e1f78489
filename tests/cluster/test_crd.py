"""The resource on a real API server: what it fills in, refuses, keeps fixed, shows and scales."""

from __future__ import annotations

from typing import Any

import pytest
from tests.cluster.conftest import Kubectl
from tests.cluster.ground.api import Api, ApiError

from watercolour.api import columns, dump, load, yaml_text
from watercolour.api.spec import RunSpec
from watercolour.api.status import Cost, Progress, RenderersStatus, RewardProgress, Status

pytestmark = pytest.mark.usefixtures("crd_installed")

KIND = "WatercolourRun"


def run_of(spec: Any = None, name: str = "peony") -> dict[str, Any]:
    manifest = {
        "apiVersion": "watercolour.dev/v1alpha1",
        "kind": KIND,
        "metadata": {"name": name},
    }
    return manifest if spec is None else {**manifest, "spec": spec}


def as_yaml(spec: Any = None, name: str = "peony") -> str:
    return yaml_text.write(run_of(spec, name))


def set_phase(api: Api, namespace: str, phase: str) -> None:
    api.patch(KIND, "peony", {"status": {"phase": phase}}, namespace, subresource="status")


# What is filled in.


def test_four_lines_are_stored_with_every_default(api: Api, namespace: str) -> None:
    stored = api.create(run_of(), namespace)
    assert load.from_dict({**stored, "status": None}).spec == RunSpec()
    assert stored["spec"]["trainer"]["steps"] == RunSpec().trainer.steps
    assert stored["spec"]["renderers"]["scaling"]["mode"] == "Queue"


def test_what_stands_for_the_operators_choice_stays_unset(api: Api, namespace: str) -> None:
    spec = api.create(run_of(), namespace)["spec"]
    unset = {
        "learningRate": spec["trainer"],
        "resources": spec["trainer"],
        "grpo": spec["trainer"],
        "image": spec["renderers"],
        "replicas": spec["renderers"],
        "weights": spec["recipe"],
        "endpoint": spec["judge"],
        "podTemplates": spec,
        "activeDeadlineSeconds": spec,
        "sft": spec,
    }
    assert [name for name, where in unset.items() if name in where] == []


def test_a_stored_run_is_the_run_that_the_file_describes(api: Api, namespace: str) -> None:
    spec = {
        "trainer": {"steps": 12, "learningRate": 1e-4, "grpo": {"max_grad_norm": 0.5, "x": None}},
        "recipe": {"weights": {"quality": 1, "judge": 0}},
        "judge": {"backend": "none"},
        "scorer": {"resources": {"limits": {"cpu": 2, "memory": "4Gi"}}},
        "podTemplates": {"trainer": {"spec": {"nodeSelector": {"gpu": "h200"}}}},
    }
    stored = api.create(run_of(spec), namespace)
    assert load.from_dict({**stored, "status": None}).spec == load.from_dict(run_of(spec)).spec


def test_fields_left_empty_mean_their_defaults(kubectl: Kubectl) -> None:
    text = "apiVersion: watercolour.dev/v1alpha1\nkind: WatercolourRun\nmetadata: {name: peony}\n"
    kubectl("apply", "-f", "-", stdin=f"{text}spec:\n  trainer:\n  recipe:\n    weights:\n")
    stored = yaml_text.mapping(kubectl("get", "wcr", "peony", "-o", "yaml"), "kubectl")
    assert load.from_dict({**stored, "status": None}).spec == RunSpec()


# Bad input, as a person meets it.

BAD: list[tuple[str, Any, str]] = [
    ("unknown field", {"trainer": {"stepz": 5}}, 'unknown field "spec.trainer.stepz"'),
    (
        "negative steps",
        {"trainer": {"steps": -5}},
        "spec.trainer.steps: Invalid value: -5: spec.trainer.steps in body should be greater than "
        "or equal to 1",
    ),
    (
        "wrong unit of memory",
        {"trainer": {"resources": {"limits": {"memory": "16GB"}}}},
        'spec.trainer.resources.limits[memory]: Invalid value: "": 16GB: not a Kubernetes '
        "quantity. Write it as 500m, 2 or 16Gi.",
    ),
    (
        "a unit where seconds are counted",
        {"renderers": {"deadlineSeconds": "60s"}},
        'spec.renderers.deadlineSeconds in body must be of type number: "string"',
    ),
    (
        "a model id with a path",
        {"model": {"id": "models/my/policy"}},
        "spec.model.id=models/my/policy: neither a folder nor owner/name on the hub. Write "
        "./models/my/policy for a folder.",
    ),
    (
        "weights that do not sum to 1",
        {"recipe": {"weights": {"gate": 0.5, "quality": 0.95}}},
        "sum to 1.45, not to 1. Lower one or more of them by 0.45 in all.",
    ),
    (
        "a subject without a letter",
        {"prompts": {"subjects": ["an iris", " "]}},
        "spec.prompts.subjects[1]: Invalid value: not one line of text. Write at least one "
        "character, and no line break.",
    ),
    (
        "a secret's name that is none",
        {"judge": {"secretRef": {"name": "My Key"}}},
        "spec.judge.secretRef.name: Invalid value: My Key: not a Kubernetes name. Use 1 to 63 "
        "small letters, digits and dashes, with a letter or digit at both ends.",
    ),
    (
        "External without a number",
        {"renderers": {"scaling": {"mode": "External"}}},
        "spec.renderers.replicas: scaling.mode is External, whose scale needs a number to begin "
        "with. Set replicas to it, such as 0.",
    ),
    (
        "a pod template that opens the host",
        {"podTemplates": {"trainer": {"spec": {"hostNetwork": True}}}},
        "hostNetwork cannot be set: NetworkPolicies do not hold in the node's network. "
        "Leave it out.",
    ),
    (
        "a request above its limit",
        {"env": {"resources": {"requests": {"cpu": 2}, "limits": {"cpu": "1500m"}}}},
        "requests.cpu=2: above its limit 1500m. Lower the request, or raise the limit.",
    ),
]


@pytest.mark.parametrize(
    ("spec", "says"), [(spec, says) for _, spec, says in BAD], ids=[what for what, _, _ in BAD]
)
def test_kubectl_tells_what_is_wrong_and_what_to_do(kubectl: Kubectl, spec: Any, says: str) -> None:
    answer = kubectl("apply", "-f", "-", stdin=as_yaml(spec), check=False)
    assert says in answer.replace('Invalid value: "string": ', "Invalid value: ")
    assert "NotFound" in kubectl("get", "wcr", "peony", check=False)


@pytest.mark.parametrize(
    "resources",
    [
        {"requests": {"memory": "3 GiB"}, "limits": {"memory": "4Gi"}},
        {"requests": {"memory": "3Gi"}, "limits": {"memory": "4 GiB"}},
    ],
    ids=["request", "limit"],
)
def test_what_is_no_quantity_is_told_in_our_words_alone(kubectl: Kubectl, resources: Any) -> None:
    spec = {"trainer": {"resources": resources}}
    answer = kubectl("apply", "-f", "-", stdin=as_yaml(spec), check=False)
    assert " GiB: not a Kubernetes quantity. Write it as 500m, 2 or 16Gi." in answer
    assert "rule evaluation error" not in answer


def test_a_password_in_an_address_is_refused_and_not_repeated(kubectl: Kubectl) -> None:
    spec = {"judge": {"endpoint": "http://me:s3cret@judge/v1"}}
    answer = kubectl("apply", "-f", "-", stdin=as_yaml(spec), check=False)
    assert "not an HTTP address. Write it as http://HOST:PORT/PATH" in answer
    assert "s3cret" not in answer


def test_without_strict_validation_an_unknown_field_is_a_warning(
    kubectl: Kubectl, api: Api, namespace: str
) -> None:
    answer = kubectl(
        "create",
        "--validate=warn",
        "-f",
        "-",
        stdin=as_yaml({"trainer": {"stepz": 5}}),
        check=False,
    )
    assert 'unknown field "spec.trainer.stepz"' in answer
    assert "stepz" not in api.get(KIND, "peony", namespace)["spec"]["trainer"]


@pytest.mark.parametrize("name", ["a", "a" * 51, "p-1"])
def test_a_name_that_leaves_room_for_its_objects_is_accepted(kubectl: Kubectl, name: str) -> None:
    kubectl("apply", "-f", "-", stdin=as_yaml(name=name))


@pytest.mark.parametrize("name", ["a" * 52, "a" * 63, "a" * 64, "1st", "a.b"])
def test_a_name_that_does_not_is_refused_with_its_rule(kubectl: Kubectl, name: str) -> None:
    answer = kubectl("apply", "-f", "-", stdin=as_yaml(name=name), check=False)
    assert f"metadata.name={name}: not a run's name. Use 1 to 51 small letters" in answer


def test_subjects_may_be_in_any_script(kubectl: Kubectl, api: Api, namespace: str) -> None:
    subjects = ["牡丹", "цветок пиона", "una peonía 🌸", "פרח"]
    kubectl("apply", "-f", "-", stdin=as_yaml({"prompts": {"subjects": subjects}}))
    stored = api.get(KIND, "peony", namespace)
    assert stored["spec"]["prompts"]["subjects"] == subjects
    assert load.from_dict(stored).spec.prompts.subjects == tuple(subjects)


# What is fixed once the run has started.

CHANGES: list[tuple[str, Any]] = [
    ("spec.seed", {"seed": 2}),
    ("spec.model", {"model": {"id": "owner/name"}}),
    ("spec.model", {"model": {"chatTemplateKwargs": {"thinking": True}}}),
    ("spec.prompts", {"prompts": {"subjects": ["a lotus"]}}),
    ("spec.recipe", {"recipe": {"name": "hps-only"}}),
    ("spec.recipe", {"recipe": {"weights": {"gate": 1.0}}}),
    ("spec.recipe", {"recipe": {"gate": {"minPaintFraction": 0.01}}}),
    ("spec.references", {"references": {"perRollout": 2}}),
    ("spec.trainer.lora", {"trainer": {"lora": {"r": 8}}}),
    ("spec.artifacts.claim", {"artifacts": {"claim": "another"}}),
    ("spec.artifacts.storage", {"artifacts": {"storage": {"size": "1Gi"}}}),
]


@pytest.mark.parametrize(("path", "change"), CHANGES, ids=[str(change) for _, change in CHANGES])
def test_what_the_training_depends_on_is_fixed_after_its_start(
    api: Api, namespace: str, path: str, change: Any
) -> None:
    api.create(run_of(), namespace)
    set_phase(api, namespace, "Running")
    with pytest.raises(ApiError) as caught:
        api.patch(KIND, "peony", {"spec": change}, namespace)
    assert (
        f"{path}: fixed once the run has started (phase Running). Set it back, or make a new run."
        in caught.value.message
    )


@pytest.mark.parametrize(("path", "change"), CHANGES, ids=[str(change) for _, change in CHANGES])
def test_before_its_start_a_run_may_still_change(
    api: Api, namespace: str, path: str, change: Any
) -> None:
    api.create(run_of(), namespace)
    set_phase(api, namespace, "Pending")
    api.patch(KIND, "peony", {"spec": change}, namespace)


@pytest.mark.parametrize(
    "change",
    [
        {"trainer": {"steps": 700}},
        {"suspend": True},
        {"activeDeadlineSeconds": 60},
        {"renderers": {"scaling": {"max": 20}}},
        {"artifacts": {"keep": False}},
    ],
    ids=str,
)
def test_steps_suspension_deadlines_and_scaling_stay_open(
    api: Api, namespace: str, change: Any
) -> None:
    api.create(run_of(), namespace)
    set_phase(api, namespace, "Running")
    api.patch(KIND, "peony", {"spec": change}, namespace)


def test_the_status_of_a_started_run_can_be_written(api: Api, namespace: str) -> None:
    api.create(run_of(), namespace)
    for phase in ("Starting", "Running", "Completing", "Succeeded"):
        set_phase(api, namespace, phase)
    assert api.get(KIND, "peony", namespace)["status"]["phase"] == "Succeeded"


def test_a_user_cannot_write_the_status_beside_the_specification(api: Api, namespace: str) -> None:
    api.create({**run_of(), "status": {"phase": "Succeeded"}}, namespace)
    assert api.get(KIND, "peony", namespace)["status"]["phase"] == "Pending"


def test_a_newer_operators_status_is_kept_as_far_as_it_is_known(api: Api, namespace: str) -> None:
    api.create(run_of(), namespace)
    body = {"status": {"phase": "Running", "novelty": 3}}
    stored = api.patch(KIND, "peony", body, namespace, subresource="status")
    assert stored["status"]["phase"] == "Running"
    assert "novelty" not in stored["status"]


def test_a_condition_stands_there_once(api: Api, namespace: str) -> None:
    api.create(run_of(), namespace)
    condition = {
        "type": "Complete",
        "status": "False",
        "reason": "Training",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    with pytest.raises(ApiError, match=r"status\.conditions\[1\]: Duplicate value"):
        api.patch(
            KIND,
            "peony",
            {"status": {"conditions": [condition, condition]}},
            namespace,
            subresource="status",
        )


# What people see.


def test_a_run_that_no_operator_has_seen_shows_dashes(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=as_yaml())
    head, row = kubectl("get", "wcr").splitlines()
    assert head.split() == [
        *("NAME", "PHASE", "STEP", "REWARD", "RENDERERS", "SCORER", "GPU-MIN", "AGE"),
    ]
    assert row.split()[:-1] == ["peony", "Pending", "-", "-", "-", "-", "-"]


def test_a_running_run_shows_its_columns(api: Api, kubectl: Kubectl, namespace: str) -> None:
    api.create(run_of(), namespace)
    status = Status.model_validate(
        {
            "phase": "Running",
            "progress": Progress(step=412, steps=600, reward=RewardProgress(mean=0.4712)),
            "renderers": RenderersStatus(desired=8, ready=6, replicas=8),
            "scorer": "Ready",
            "cost": Cost(gpu_minutes=338.4),
        }
    )
    whole = status.model_copy(update={"columns": columns.of(status, steps=600)})
    body = whole.model_dump(mode="json", by_alias=True, exclude_none=True)
    manifest = {**run_of(), "status": body}
    applied = api.apply(manifest, namespace, subresource="status")
    row = kubectl("get", "wcr").splitlines()[1]
    assert row.split()[:-1] == ["peony", "Running", "412/600", "0.47", "6/8", "Ready", "338"]
    assert Status.model_validate(applied["status"]) == whole


def test_runs_are_among_all_that_is_in_a_namespace(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=as_yaml())
    assert "watercolourrun.watercolour.dev/peony" in kubectl("get", "all", "-o", "name")


def test_explain_reads_like_documentation(kubectl: Kubectl) -> None:
    text = " ".join(kubectl("explain", "wcr.spec.renderers.scaling").split())
    assert "How many renderer pods there are, and who decides." in text
    assert "Seconds without work after which a pod is let go." in text
    text = " ".join(kubectl("explain", "wcr.spec.model").split())
    assert "The policy to be trained. Fixed once the run has started." in text
    every = kubectl("explain", "wcr", "--recursive")
    for word in ("podTemplates", "tokenSecretRef", "lastFailure", "unscoredRate"):
        assert word in every


def test_no_field_is_without_an_explanation(api: Api) -> None:
    crd = api.get("CustomResourceDefinition", "watercolourruns.watercolour.dev")
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]

    def silent(node: dict[str, Any], path: str) -> list[str]:
        below = [
            found
            for name, child in node.get("properties", {}).items()
            for found in silent(child, f"{path}.{name}")
        ]
        return below if node.get("description") or path in ("", ".metadata") else [path, *below]

    assert silent(schema, "") == []


# Scaling by somebody else.


def test_an_autoscaler_finds_the_scale(api: Api, kubectl: Kubectl, namespace: str) -> None:
    spec = {"renderers": {"replicas": 2, "scaling": {"mode": "External"}}}
    api.create(run_of(spec), namespace)
    seen = {"replicas": 1, "selector": "watercolour.dev/run=peony"}
    api.patch(KIND, "peony", {"status": {"renderers": seen}}, namespace, subresource="status")
    scale = yaml_text.mapping(kubectl("get", "wcr", "peony", "--subresource=scale", "-oyaml"), "x")
    assert scale["spec"] == {"replicas": 2}
    assert scale["status"] == {"replicas": 1, "selector": "watercolour.dev/run=peony"}
    kubectl("scale", "wcr", "peony", "--replicas=5")
    assert api.get(KIND, "peony", namespace)["spec"]["renderers"]["replicas"] == 5


def test_a_run_that_scales_itself_cannot_be_scaled(
    api: Api, kubectl: Kubectl, namespace: str
) -> None:
    api.create(run_of(), namespace)
    answer = kubectl("scale", "wcr", "peony", "--replicas=5", check=False)
    assert "scaling.mode is Queue. Leave replicas out" in answer
    assert "replicas" not in api.get(KIND, "peony", namespace)["spec"]["renderers"]


def test_a_whole_specification_can_be_applied(kubectl: Kubectl, api: Api, namespace: str) -> None:
    run = load.from_dict(run_of({"trainer": {"steps": 3}}))
    kubectl("apply", "-f", "-", stdin=dump.to_yaml(run, full=True))
    assert load.from_dict(api.get(KIND, "peony", namespace)).spec == run.spec
