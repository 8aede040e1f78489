"""Reading a specification: what is accepted, and what each refusal says."""

from __future__ import annotations

import io
import sys
import traceback
from pathlib import Path
from typing import Any

import pytest
from tests.specs import REFUSALS, SOUND

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


@pytest.mark.parametrize(("spec", "message"), REFUSALS, ids=[text[:48] for _, text in REFUSALS])
def test_a_refusal_names_field_value_and_remedy(spec: Any, message: str) -> None:
    assert fault(spec) == message


@pytest.mark.parametrize("spec", SOUND)
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


def test_an_empty_recipe_is_not_asked_for_a_run_s_first_lines(tmp_path: Path) -> None:
    path = write(tmp_path, "")
    with pytest.raises(InputError, match=r": empty\. Start with name: and weights:\."):
        load.recipe(path)


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
