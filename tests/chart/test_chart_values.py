"""What the chart accepts: closed, documented, and plain about what is wrong."""

from __future__ import annotations

import dataclasses
import json
import re
import subprocess
import sys
import tomllib

import pytest
import yaml
from pydantic.alias_generators import to_camel
from tests.chart.conftest import CHART, ROOT, Helm, HelmFailed, Render, config

from watercolour_operator.settings import Images, Settings

CI = sorted(path.name.removesuffix("-values.yaml") for path in (CHART / "ci").iterdir())


def test_generated_files_are_fresh() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "scripts" / "chart_docs.py", "--check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_a_value_without_a_comment_is_refused_by_the_generator() -> None:
    code = "import chart_docs; chart_docs.values('image:\\n  registry: 1\\n')"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT / "scripts",
        capture_output=True,
        text=True,
        check=False,
    )
    assert "image.registry has no comment above it" in done.stderr


@pytest.mark.parametrize("name", CI)
def test_the_linter_finds_nothing_in(name: str, helm_alone: Helm) -> None:
    values = str(CHART / "ci" / f"{name}-values.yaml")
    assert "0 chart(s) failed" in helm_alone("lint", "--strict", str(CHART), "--values", values)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"rbac": {"mod": "single"}}, "'/rbac': additional properties 'mod' not allowed"),
        ({"operater": {}}, "additional properties 'operater' not allowed"),
        ({"rbac": {"mode": "everything"}}, "must be one of 'cluster', 'namespaces', 'single'"),
        ({"operator": {"resyncSeconds": 0}}, "exclusiveMinimum"),
        ({"operator": {"resyncSeconds": "60"}}, "got string, want number"),
        ({"image": {"trainer": "watercolour/trainer"}}, "'/image/trainer'"),
        ({"image": {"trainer": "watercolour/trainer:latest"}}, "'/image/trainer'"),
        ({"monitoring": {"podMonitor": {"interval": "soon"}}}, "'/monitoring/podMonitor/interval'"),
        ({"rbac": {"mode": "namespaces"}}, "rbac.mode=namespaces needs rbac.namespaces"),
        ({"rbac": {"namespaces": ["a"]}}, "rbac.namespaces is for rbac.mode=namespaces"),
        ({"seccompProfile": {"name": ""}}, "seccompProfile.install=true needs seccompProfile.name"),
        (
            {"rbac": {"mode": "single"}, "seccompProfile": {"namespace": "kube-system"}},
            "lies outside the release's namespace",
        ),
    ],
)
def test_a_wrong_value_is_refused_by_name(
    wrong: dict[str, object], words: str, render: Render
) -> None:
    with pytest.raises(HelmFailed) as refused:
        render(values=wrong)
    text = str(refused.value)
    shown = words if words != "exclusiveMinimum" else "resyncSeconds"
    assert shown in text


@pytest.mark.parametrize(
    ("word", "key"), yaml.safe_load((CHART / "files" / "meant.yaml").read_text()).items()
)
def test_a_key_of_another_name_is_answered_with_the_right_one(
    word: str, key: str, render: Render
) -> None:
    with pytest.raises(HelmFailed, match=rf'"{word}" is not a key of this chart; see') as refused:
        render(values={word: {}})
    assert key in str(refused.value)


def test_every_key_that_is_pointed_to_exists() -> None:
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    meant = yaml.safe_load((CHART / "files" / "meant.yaml").read_text())
    for key in re.findall(r"\b[a-z]\w+\.\w+", " ".join(meant.values())):
        block, name = key.split(".")
        assert name in values[block], key


def test_every_object_of_the_schema_is_closed_or_somebody_elses() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text())

    def check(part: dict[str, object], path: str) -> None:
        if "properties" in part:
            assert part["additionalProperties"] is False, path
            assert isinstance(part["properties"], dict)
            for name, below in part["properties"].items():
                assert below.get("description") or "properties" in below, f"{path}.{name}"
                check(below, f"{path}.{name}")

    check(schema, "")


def test_the_configuration_file_has_the_fields_of_the_settings(render: Render) -> None:
    written = config(render())
    fields = {to_camel(field.name) for field in dataclasses.fields(Settings)}
    # What only matters to an operator outside the cluster stays at its default.
    assert set(written) == fields - {"operatorCidrs"}
    assert set(written["images"]) == {to_camel(field.name) for field in dataclasses.fields(Images)}


def test_defaults_of_the_chart_are_those_of_the_settings(render: Render) -> None:
    written = config(render())
    settings = Settings()
    for field in dataclasses.fields(Settings):
        name = to_camel(field.name)
        if name in written and name != "images":
            default = getattr(settings, field.name)
            assert written[name] == (list(default) if isinstance(default, tuple) else default), name
    for field in dataclasses.fields(Images):
        image = getattr(settings.images, field.name)
        assert written["images"][to_camel(field.name)] == image


def test_chart_images_and_package_have_one_version() -> None:
    package = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    images = yaml.safe_load((CHART / "values.yaml").read_text())["image"]
    assert chart["appVersion"] == package
    tags = {name: image for name, image in images.items() if ":" in str(image)}
    assert len(tags) == 6
    assert {image.rsplit(":", 1)[1] for image in tags.values()} == {package}
