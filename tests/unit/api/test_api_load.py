"""Reading a specification: what is accepted, and what each refusal says."""

from __future__ import annotations

import io
import sys
import traceback
from pathlib import Path
from typing import Any

import pytest

from watercolour.api import dump, load, rules, yaml_text
from watercolour.api.errors import InputError
from watercolour.api.reasons import Reason
from watercolour.api.spec import RunSpec

FOUR_LINES = """\
apiVersion: watercolour.dev/v1alpha1
kind: WatercolourRun
metadata:
  name: peony
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "run.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def fault(spec: Any) -> str:
    """The message with which a specification is refused."""
    with pytest.raises(InputError) as caught:
        load.from_dict({"metadata": {"name": "peony"}, "spec": spec})
    assert caught.value.reason is Reason.INVALID_SPEC
    assert caught.value.exit_code == 1
    return str(caught.value)


def test_four_lines_are_a_run(tmp_path: Path) -> None:
    run = load.run(write(tmp_path, FOUR_LINES))
    assert run.metadata.name == "peony"
    assert run.spec == RunSpec()


def test_standard_input_is_a_dash(monkeypatch: pytest.MonkeyPatch) -> None:
    stdin = io.TextIOWrapper(io.BytesIO(FOUR_LINES.encode()))
    monkeypatch.setattr(sys, "stdin", stdin)
    assert load.run("-").metadata.name == "peony"


def test_json_is_yaml(tmp_path: Path) -> None:
    assert load.run(write(tmp_path, '{"metadata": {"name": "peony"}}')).spec == RunSpec()


def test_empty_sections_mean_their_defaults(tmp_path: Path) -> None:
    text = f"{FOUR_LINES}spec:\n  trainer:\n  recipe:\n    weights:\n"
    assert load.run(write(tmp_path, text)).spec == RunSpec()


def test_nulls_in_free_mappings_are_kept() -> None:
    run = load.from_dict({"metadata": {"name": "a"}, "spec": {"trainer": {"grpo": {"x": None}}}})
    assert run.spec.trainer.grpo == {"x": None}


def test_exponents_are_numbers(tmp_path: Path) -> None:
    text = f"{FOUR_LINES}spec: {{trainer: {{learningRate: 1e-4, grpo: {{max_grad_norm: 2E0}}}}}}"
    trainer = load.run(write(tmp_path, text)).spec.trainer
    assert trainer.learning_rate == 1e-4
    assert trainer.grpo == {"max_grad_norm": 2.0}


def test_dates_are_text(tmp_path: Path) -> None:
    text = f"{FOUR_LINES}spec: {{judge: {{model: 2026-01-01}}}}"
    assert load.run(write(tmp_path, text)).spec.judge.model == "2026-01-01"


def test_subjects_may_be_in_any_script() -> None:
    run = load.from_dict({"metadata": {"name": "a"}, "spec": {"prompts": {"subjects": ["牡丹"]}}})
    assert run.spec.prompts.subjects == ("牡丹",)


def test_numbers_are_quantities() -> None:
    limits = {"cpu": 2, "memory": "16Gi", "nvidia.com/gpu": 1}
    data = {"metadata": {"name": "a"}, "spec": {"trainer": {"resources": {"limits": limits}}}}
    run = load.from_dict(data)
    assert run.spec.trainer.resources.limits == {
        "cpu": "2",
        "memory": "16Gi",
        "nvidia.com/gpu": "1",
    }


def test_unknown_status_fields_of_a_newer_operator_are_let_through() -> None:
    status = {"phase": "Running", "novelty": 3, "progress": {"step": 4, "steps": 9}}
    run = load.from_dict({"metadata": {"name": "a"}, "status": status})
    assert run.status is not None
    assert run.status.progress is not None
    assert run.status.progress.step == 4
    assert run.status.progress.unscored_rate is None


# Each: the specification, and the whole message.
REFUSALS: list[tuple[Any, str]] = [
    # One field.
    ({"trainer": {"steps": 0}}, "spec.trainer.steps=0: below 1. Set it to 1 or more."),
    (
        {"trainer": {"steps": "3"}},
        'spec.trainer.steps="3": text, not a whole number. Write 3 without quotes.',
    ),
    (
        {"trainer": {"steps": True}},
        "spec.trainer.steps=true: not a whole number. Give a whole number.",
    ),
    (
        {"trainer": {"steps": "many"}},
        "spec.trainer.steps=many: not a whole number. Give a whole number.",
    ),
    (
        {"trainer": {"learningRate": 0}},
        "spec.trainer.learningRate=0: not above 0. Set it above 0.",
    ),
    (
        {"trainer": {"learningRate": float("inf")}},
        "spec.trainer.learningRate=inf: not a finite number. "
        "Give a number that is neither infinite nor NaN.",
    ),
    (
        {"trainer": {"lora": {"dropout": 1.5}}},
        "spec.trainer.lora.dropout=1.5: above 1. Set it to 1 or less.",
    ),
    (
        {"renderers": {"size": 2000}},
        "spec.renderers.size=2000: above 1024. Set it to 1024 or less.",
    ),
    (
        {"prompts": {"subjects": []}},
        "spec.prompts.subjects=[]: has 0 entries, needs 1. Give at least 1.",
    ),
    (
        {"prompts": {"subjects": ["an iris", " "]}},
        'spec.prompts.subjects[1]=" ": not one line of text. '
        "Write at least one character, and no line break.",
    ),
    (
        {"prompts": {"thinking": "no"}},
        "spec.prompts.thinking=no: not true or false. Give true or false.",
    ),
    (
        {"scorer": {"backend": "hps"}},
        "spec.scorer.backend=hps: not one of embedded, hpsv3, vlm-mark, none. Did you mean hpsv3?",
    ),
    (
        {"renderers": {"networkCanary": False}},
        "spec.renderers.networkCanary=false: YAML reads Off without quotes as false. "
        'Write "Off" in quotes.',
    ),
    ({"trainer": 5}, "spec.trainer=5: not a mapping of fields. Give a mapping of fields."),
    (
        {"recipe": {"gate": {"allow": 5}}},
        "spec.recipe.gate.allow=5: not a list. Give a list.",
    ),
    (
        {"recipe": {"gate": {"allow": ["fill", 3]}}},
        "spec.recipe.gate.allow[1]=3: not text. Give text; quote what YAML takes for a number.",
    ),
    (
        {"queueName": "My_Queue"},
        "spec.queueName=My_Queue: not a Kubernetes name. Use 1 to 63 small letters, digits and "
        "dashes, with a letter or digit at both ends.",
    ),
    (
        {"scorer": {"endpoint": "localhost:8000"}},
        "spec.scorer.endpoint=localhost:8000: not an HTTP address. "
        "Write it as http://HOST:PORT/PATH, without a user or password.",
    ),
    (
        {"env": {"resources": {"limits": {"memory": "4GB"}}}},
        "spec.env.resources.limits.memory=4GB: not a Kubernetes quantity. "
        "Write it as 500m, 2 or 16Gi.",
    ),
    (
        {"references": {"dataset": "owner/pool"}},
        "spec.references.dataset=owner/pool: not a pinned data set. Write it as owner/name@COMMIT.",
    ),
    (
        {"renderers": {"image": "two words"}},
        "spec.renderers.image=two words: not a container image. "
        "Write it as registry/name:tag or name@sha256:DIGEST.",
    ),
    # Names.
    ({"trainer": {"stepz": 5}}, "spec.trainer.stepz=5: no such field. Did you mean steps?"),
    (
        {"trainer": {"group_size": 4}},
        "spec.trainer.group_size=4: no such field. Did you mean groupSize?",
    ),
    (
        {"groupSize": 4},
        "spec.groupSize=4: no such field. Did you mean spec.trainer.groupSize?",
    ),
    (
        {"references": {"tierShares": {"wonderful": 1}}},
        "spec.references.tierShares.wonderful=1: no such field. Fields here: love, okay, meh.",
    ),
    (
        {"prompts": {"dataset": {}}},
        "spec.prompts.dataset.id: missing. Add id: A folder, a file (.txt one a line, .jsonl, "
        ".parquet) or hub id.",
    ),
    # Several fields of one part.
    (
        {"trainer": {"rolloutsPerStep": 10}},
        "spec.trainer.rolloutsPerStep=10: not a multiple of groupSize=8. Set rolloutsPerStep to 8.",
    ),
    (
        {"trainer": {"rolloutsPerStep": 2}},
        "spec.trainer.rolloutsPerStep=2: not a multiple of groupSize=8. Set rolloutsPerStep to 8.",
    ),
    (
        {"recipe": {"weights": {"gate": 0.5}}},
        "spec.recipe.weights: gate=0.5, length=0.05, quality=0.6, judge=0.3, pigment=0 sum to "
        "1.45, not to 1. Lower one or more of them by 0.45 in all.",
    ),
    (
        {"references": {"tierShares": {"love": 0.25}}},
        "spec.references.tierShares: love=0.25, okay=0.5, meh=0 sum to 0.75, not to 1. "
        "Raise one or more of them by 0.25 in all.",
    ),
    # Between the parts.
    (
        {"env": {"sessions": 8}},
        "spec.env.sessions=8: below trainer.rolloutsPerStep=16, so the environment would refuse "
        "the rest. Set sessions to 16 or more.",
    ),
    (
        {"trainer": {"guards": {"probes": 40}}},
        "spec.env.sessions=32: below trainer.guards.probes=40, so the environment would refuse "
        "the rest. Set sessions to 40 or more.",
    ),
    (
        {"env": {"messageTimeoutSeconds": 60}},
        "spec.env.messageTimeoutSeconds=60: not above renderers.deadlineSeconds=60, so clients "
        "would give up first. Set messageTimeoutSeconds to 300, or lower deadlineSeconds.",
    ),
    (
        {"model": {"id": "a/b"}, "trainer": {"engine": "vllm", "sampling": {"topK": 0}}},
        "spec.trainer.sampling.topP=0.95: truncated sampling with engine=vllm and the "
        "sequence_mask correction ruins the loss. Set topP to 1 and topK to 0, or "
        "trainer.grpo.vllm_importance_sampling_correction to false.",
    ),
    (
        {"model": {"id": "a/b"}, "trainer": {"engine": "vllm", "sampling": {"topP": 1.0}}},
        "spec.trainer.sampling.topK=20: truncated sampling with engine=vllm and the "
        "sequence_mask correction ruins the loss. Set topP to 1 and topK to 0, or "
        "trainer.grpo.vllm_importance_sampling_correction to false.",
    ),
    (
        {"judge": {"backend": "none"}, "recipe": {"weights": {}}},
        "spec.judge.backend=none: recipe.weights.judge=0.3 needs a judge. "
        "Set backend to embedded or openai, or the weight to 0.",
    ),
    (
        {"scorer": {"backend": "none"}, "recipe": {"weights": {}}},
        "spec.scorer.backend=none: recipe.weights.quality=0.6 needs a scorer. "
        "Set backend to embedded or hpsv3, or the weight to 0.",
    ),
    (
        {"judge": {"backend": "openai"}},
        "spec.judge.endpoint: backend=openai needs an endpoint. Name the base URL of an "
        "OpenAI-compatible API, such as http://127.0.0.1:8000/v1.",
    ),
    (
        {"scorer": {"backend": "vlm-mark"}},
        "spec.scorer.endpoint: backend=vlm-mark needs a vision-language model. "
        "Name its base URL, or set judge.backend to openai.",
    ),
    (
        {"scorer": {"checkpoint": {}}},
        "spec.scorer.checkpoint: needs exactly one of claim and id. "
        "Name the claim that holds the weights, or the hub model.",
    ),
    (
        {
            "judge": {
                "backend": "openai",
                "endpoint": "http://judge/v1",
                "deploy": {"image": "vllm:1", "model": "a/b"},
            }
        },
        "spec.judge.deploy=a/b: judge.endpoint is given too. Keep one of endpoint and deploy.",
    ),
    (
        {"judge": {"secretRef": {}}},
        "spec.judge.secretRef.name: missing. Add name: The Secret's name.",
    ),
    (
        {"renderers": {"scaling": {"min": 9}}},
        "spec.renderers.scaling.min=9: above max=8. Set min to 8 or less, or raise max.",
    ),
    (
        {"renderers": {"replicas": 3}},
        "spec.renderers.replicas=3: scaling.mode is Queue. "
        "Leave replicas out, or set renderers.scaling.mode to External.",
    ),
    (
        {"renderers": {"canvas": {"minSide": 512, "maxSide": 256}}},
        "spec.renderers.canvas.minSide=512: above maxSide=256. Set minSide to 256 or less.",
    ),
    (
        {"references": {"pool": "./mine", "claim": "paintings"}},
        "spec.references.claim=paintings: references.pool is given too. "
        "Keep one of pool, dataset, claim and configMap.",
    ),
    (
        {"prompts": {"subjects": ["an iris"], "dataset": {"id": "a/b"}}},
        "spec.prompts.dataset=a/b: subjects are given too. "
        "Leave one of prompts.subjects and prompts.dataset out.",
    ),
    (
        {"prompts": {"thinking": True}},
        "spec.trainer.sampling.maxCompletionTokens=512: leaves no room for a sketch after "
        "prompts.thinking=true. Set it to 1024 or more, or set prompts.thinking to false.",
    ),
    (
        {"model": {"id": "models/my/policy"}},
        "spec.model.id=models/my/policy: neither a folder nor owner/name on the hub. "
        "Write ./models/my/policy for a folder.",
    ),
    (
        {"model": {"id": "./policy", "revision": "main"}},
        "spec.model.revision=main: model.id is a folder. Leave revision out.",
    ),
    (
        {"trainer": {"processes": 3}},
        "spec.trainer.rolloutsPerStep=16: not a multiple of replicas=1 times processes=3. "
        "Let each process have the same number of rollouts.",
    ),
    (
        {"trainer": {"grpo": {"num_generations": 4}}},
        "spec.trainer.grpo.num_generations=4: set by spec.trainer.groupSize. "
        "Set spec.trainer.groupSize instead.",
    ),
    (
        {"scorer": {"resources": {"requests": {"memory": "4Gi"}, "limits": {"memory": "4G"}}}},
        "spec.scorer.resources.requests.memory=4Gi: above its limit 4G. Set it to 4G or less.",
    ),
    (
        {"egress": {"env": ["10.0.0.1"]}},
        "spec.egress.env=10.0.0.1: not a CIDR. Write 203.0.113.0/24, or all.",
    ),
    (
        {"podTemplates": {"renderers": {"spec": {"hostNetwork": True, "tolerations": []}}}},
        "spec.podTemplates.renderers.spec.hostNetwork=true: renderers run hostile code, so this "
        "cannot change. Keep to affinity, imagePullSecrets, nodeSelector, priorityClassName, "
        "schedulerName, tolerations, topologySpreadConstraints.",
    ),
]


@pytest.mark.parametrize(("spec", "message"), REFUSALS, ids=[text[:48] for _, text in REFUSALS])
def test_a_refusal_names_field_value_and_remedy(spec: Any, message: str) -> None:
    assert fault(spec) == message


@pytest.mark.parametrize(
    "spec",
    [
        {"trainer": {"engine": "vllm", "sampling": {"topP": 1.0, "topK": 0}}},
        {
            "trainer": {
                "engine": "vllm",
                "grpo": {"vllm_importance_sampling_correction": False},
            }
        },
        {"trainer": {"engine": "vllm", "grpo": {"vllm_importance_sampling_mode": "token_mask"}}},
        {"judge": {"backend": "none"}, "recipe": {"weights": {"quality": 0.9, "judge": 0.0}}},
        {"judge": {"backend": "none"}},
        {"env": {"sessions": 16}, "trainer": {"guards": {"probes": 0}}},
        {"renderers": {"replicas": 3, "scaling": {"mode": "External"}}},
        {"trainer": {"grpo": {"a_field_of_tomorrow": 1}}},
        {"egress": {"env": ["10.0.0.0/8", "fd00::/8"], "trainer": ["all"]}},
        {"recipe": {"name": "hybrid"}},
        {"model": {"id": "owner/name", "revision": "main"}},
        {"model": {"id": "./policy"}},
        {"scorer": {"backend": "none"}, "recipe": {"weights": {"quality": 0.0, "judge": 0.9}}},
        {"judge": {"backend": "openai", "endpoint": "https://judge.example/v1"}},
        {"judge": {"backend": "openai", "deploy": {"image": "vllm:1", "model": "a/b"}}},
        {"env": {"resources": {"requests": {"memory": "1Gi"}, "limits": {"memory": "1024Mi"}}}},
        {"renderers": {"scaling": {"min": 8}, "canvas": {"minSide": 1024}}},
        {"model": {"id": "/models/a/b/policy/"}},
        {
            "prompts": {"thinking": True},
            "trainer": {"sampling": {"maxCompletionTokens": 1024}},
        },
    ],
)
def test_what_is_sound_is_accepted(spec: Any) -> None:
    load.from_dict({"metadata": {"name": "peony"}, "spec": spec})


def test_several_faults_are_listed_at_once(tmp_path: Path) -> None:
    path = write(
        tmp_path, f"{FOUR_LINES}spec: {{trainer: {{steps: 0, stepz: 1}}, judge: {{backend: gpt}}}}"
    )
    with pytest.raises(InputError) as caught:
        load.run(path)
    assert str(caught.value) == (
        f"{path} has 3 faults:\n"
        "  spec.trainer.steps=0: below 1. Set it to 1 or more.\n"
        "  spec.trainer.stepz=1: no such field. Did you mean steps?\n"
        "  spec.judge.backend=gpt: not one of embedded, openai, none. Use embedded."
    )


def test_several_faults_between_parts_are_listed_at_once() -> None:
    message = fault({"env": {"sessions": 1, "messageTimeoutSeconds": 1}})
    assert "2 faults" in message
    assert "spec.env.sessions=1" in message
    assert "spec.env.messageTimeoutSeconds=1" in message


@pytest.mark.parametrize("name", ["", "Peony", "-peony", "peony-", "a_b", "a" * 52, "pe ony"])
def test_a_name_that_kubernetes_would_refuse_is_refused(name: str) -> None:
    with pytest.raises(InputError, match=r"^metadata\.name=.*: not a run's name\. Use 1 to 51"):
        load.from_dict({"metadata": {"name": name}})


def test_the_longest_name_is_accepted() -> None:
    assert load.from_dict({"metadata": {"name": "a" * 51}}).metadata.name == "a" * 51


def test_another_kind_of_object_is_refused() -> None:
    with pytest.raises(InputError, match=r"kind=Pod: not one of WatercolourRun\. Use"):
        load.from_dict({"kind": "Pod", "metadata": {"name": "a"}})


def test_a_run_without_a_name_is_refused() -> None:
    with pytest.raises(InputError, match=r"^metadata: missing\. Add metadata: The run's name"):
        load.from_dict({})


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ({"judge": {"endpoint": "http://me:s3cret@host/v1"}}, "not an HTTP address"),
        ({"judge": {"apiKey": "s3cret"}}, "spec.judge.apiKey: no such field, and no place for"),
        ({"model": {"hub_token": "s3cret"}}, "Name a Secret by secretRef"),
    ],
)
def test_a_secret_in_the_wrong_place_is_not_repeated(spec: Any, says: str) -> None:
    with pytest.raises(InputError) as caught:
        load.from_dict({"metadata": {"name": "peony"}, "spec": spec})
    assert says in str(caught.value)
    told = "".join(traceback.format_exception(caught.value)) + repr(vars(caught.value))
    assert "s3cret" not in told


BROKEN_FILES: list[tuple[bytes, str]] = [
    (b"spec: {a: b: c}\n", "line 1, column 12: not valid YAML"),
    (b"a: 1\n\ta: 2\n", "line 2, column 1: not valid YAML"),
    (b"spec: 1\nkind: x\nspec: 2\n", "line 3, column 1: not valid YAML, spec stands here a second"),
    (b"1: 2\n", "line 1, column 1: not valid YAML, the field name 1 is not text"),
    (b"a: 1\n---\nb: 2\n", "a second document starts here"),
    (b"a: !!python/object:os.system x\n", "line 1, column 4: not valid YAML"),
    (b"", ": empty. Start with apiVersion"),
    (b"- a\n", ": a list, not a mapping of fields. Start with apiVersion"),
    (b"just words\n", ": a str, not a mapping of fields."),
    (b"a: 1\nb: \xff\n", "line 2: not valid UTF-8 (byte 0xff). Save the file as UTF-8."),
    (b"a: \x01\n", "not valid YAML"),
    (b"a: " + b"[" * 5000, "nested too deeply"),
    (b"#" * (2**20 + 1), "larger than 1048576 bytes"),
]


@pytest.mark.parametrize(("content", "message"), BROKEN_FILES, ids=[m for _, m in BROKEN_FILES])
def test_a_broken_file_is_refused_with_its_line(
    tmp_path: Path, content: bytes, message: str
) -> None:
    path = tmp_path / "run.yaml"
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        load.run(path)
    assert caught.value.reason is Reason.INVALID_SPEC
    assert str(path) in str(caught.value)
    assert message in str(caught.value)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none\.yaml: cannot be read \(No such file"):
        load.run(tmp_path / "none.yaml")


def test_a_file_of_the_greatest_size_is_read(tmp_path: Path) -> None:
    path = write(tmp_path, FOUR_LINES + "#" * (load.LARGEST_FILE - len(FOUR_LINES)))
    assert load.run(path).metadata.name == "peony"


@pytest.mark.parametrize(
    ("text", "number"),
    [("2", 2), ("0.5", 0.5), ("500m", 0.5), ("1k", 1000), ("1Ki", 1024), ("3M", 3e6),
     ("2Gi", 2 * 1024**3), ("1.5T", 1.5e12)],
)  # fmt: skip
def test_quantities_are_read_as_kubernetes_does(text: str, number: float) -> None:
    assert rules.quantity(text) == number


def test_a_byte_order_mark_is_no_fault(tmp_path: Path) -> None:
    path = tmp_path / "run.yaml"
    path.write_bytes(b"\xef\xbb\xbf" + FOUR_LINES.encode())
    assert load.run(path).metadata.name == "peony"


def test_overrides_replace_single_values(tmp_path: Path) -> None:
    overrides = {
        "spec.trainer.steps": "3",
        "spec.prompts.subjects": "[an iris, a rose]",
        "metadata.name": "lotus",
    }
    run = load.run(write(tmp_path, FOUR_LINES), overrides)
    assert run.spec.trainer.steps == 3
    assert run.spec.prompts.subjects == ("an iris", "a rose")
    assert run.metadata.name == "lotus"


def test_overrides_leave_the_data_alone() -> None:
    data = {"metadata": {"name": "a"}, "spec": {"trainer": {"steps": 9}}}
    load.from_dict(data, {"spec.trainer.steps": "3"})
    assert data == {"metadata": {"name": "a"}, "spec": {"trainer": {"steps": 9}}}


@pytest.mark.parametrize(
    ("path", "text", "message"),
    [
        ("trainer.steps", "3", 'trainer={"steps": 3}: no such field. Did you mean spec.trainer'),
        ("spec.trainer.stepz", "3", "spec.trainer.stepz=3: no such field. Did you mean steps?"),
        ("spec.seed.more", "3", "override spec.seed.more=3: spec.seed holds a value, not fields."),
        ("spec.trainer.", "3", "override spec.trainer.=3: not a path of field names."),
        ("", "3", "override =3: not a path of field names."),
        ("spec.trainer.steps", "[", "override spec.trainer.steps=[, line 1, column 2: not"),
    ],
)
def test_a_wrong_override_is_refused(path: str, text: str, message: str) -> None:
    data = {"metadata": {"name": "a"}, "spec": {"seed": 3}}
    with pytest.raises(InputError) as caught:
        load.from_dict(data, {path: text})
    assert message in str(caught.value)


def test_written_text_that_looks_like_a_number_stays_text() -> None:
    data = {"metadata": {"name": "a"}, "spec": {"judge": {"model": "1e-4"}}}
    run = load.from_dict(data)
    assert load.from_dict(yaml_text.mapping(dump.to_yaml(run), "again")) == run


def test_the_short_form_holds_what_differs_and_the_full_form_everything() -> None:
    run = load.from_dict({"metadata": {"name": "a"}, "spec": {"trainer": {"steps": 3}}})
    assert dump.to_dict(run)["spec"] == {"trainer": {"steps": 3}}
    full = dump.to_dict(run, full=True)["spec"]
    assert full["trainer"]["steps"] == 3
    assert full["trainer"]["groupSize"] == 8
    assert full["renderers"]["scaling"]["mode"] == "Queue"
