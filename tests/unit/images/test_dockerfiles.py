"""The images, as their Dockerfiles say they are and as the operator expects them."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from fnmatch import fnmatch
from pathlib import Path

import pytest
import yaml
from scripts import images
from tests.unit.operator.desired.made import PUBLISHED, build, container

from watercolour_operator.desired import pods

ROOT = Path(__file__).parents[3]
CHART = ROOT / "charts" / "watercolour"
DOCKERFILES = sorted((ROOT / "images").glob("*/Dockerfile"))
BY_NAME = {image.name: image for image in images.IMAGES}
#: What an image that neither trains nor runs HPSv3 must not carry.
HEAVY = re.compile(r"^(torch|torchvision|triton|nvidia-.*|cuda-.*)$")

Stages = dict[str, list[str]]


def instructions(path: Path) -> list[str]:
    text = path.read_text(encoding="utf-8").replace("\\\n", " ")
    lines = (" ".join(line.split()) for line in text.splitlines())
    return [line for line in lines if line and not line.startswith("#")]


def stages(path: Path) -> Stages:
    """Instructions by stage, with those of the stages that it is made from before its own."""
    found: Stages = {}
    current: list[str] = []
    for line in instructions(path):
        if line.startswith("FROM "):
            parent, name = re.fullmatch(r"FROM (\S+) AS (\S+)", line).groups()  # pyright: ignore
            assert parent == "${BASE_IMAGE}" or parent in found, line
            current = found[name] = list(found.get(parent, []))
        else:
            current.append(line)
    return found


def stage(name: str) -> list[str]:
    image = BY_NAME[name]
    return stages(images.dockerfile(image))[image.target]


def last(lines: list[str], word: str) -> str:
    return next(line for line in reversed(lines) if line.startswith(word)).removeprefix(word)


def environment(lines: list[str]) -> dict[str, str]:
    pairs = [pair for line in lines if line.startswith("ENV ") for pair in line[4:].split()]
    return dict(pair.split("=", 1) for pair in pairs)


def entrypoint(name: str) -> list[str]:
    return json.loads(last(stage(name), "ENTRYPOINT "))


def pins(lock: Path) -> dict[str, str]:
    return dict(re.findall(r"^([a-z0-9.-]+)==(\S+)", lock.read_text(), re.MULTILINE))


def locks(name: str) -> list[str]:
    """Locks of the libraries that an image ends with."""
    path = images.dockerfile(BY_NAME[name])
    taken = [
        line.split("=", 1)[1].split()[0] for line in stage(name) if line.startswith("COPY --from=")
    ]
    return sorted(
        {
            found
            for source in taken
            if "weights" not in source
            for line in stages(path)[source]
            for found in re.findall(r"prepare (?:libraries|torch) (locks/\S+)", line)
        }
    )


def test_there_is_an_image_for_every_name_in_the_chart() -> None:
    values = yaml.safe_load((CHART / "values.yaml").read_text())["image"]
    named = {
        key: value for key, value in values.items() if key[0] not in "rp" or key == "renderers"
    }
    assert {image.value: images.reference(image) for image in images.IMAGES} == named


def test_images_have_the_version_of_the_chart() -> None:
    version = yaml.safe_load((CHART / "Chart.yaml").read_text())["appVersion"]
    for image in images.IMAGES:
        assert images.reference(image).rpartition(":")[2] == version
        assert f"ARG VERSION={version}" in stage(image.name)


@pytest.mark.parametrize("path", DOCKERFILES, ids=lambda path: path.parent.name)
class TestEveryDockerfile:
    def test_the_base_can_be_chosen(self, path: Path) -> None:
        first, *rest = instructions(path)
        assert first.startswith("ARG BASE_IMAGE=")
        assert not [line for line in rest if line.startswith("ARG BASE_IMAGE")]
        assert stages(path)

    def test_nothing_is_fetched_past_the_locks(self, path: Path) -> None:
        text = path.read_text()
        assert not re.search(r"^ADD ", text, re.MULTILINE)
        assert not re.search(r"pip install|curl|wget|git clone", text)

    def test_what_it_takes_is_there_and_in_the_context(self, path: Path) -> None:
        ignored = (ROOT / ".dockerignore").read_text().splitlines()
        admitted = [line[1:] for line in ignored if line.startswith("!")]
        image = next(image for image in images.IMAGES if images.dockerfile(image) == path)
        for source in images.sources(image):
            assert (ROOT / source).exists(), source
            assert source.split("/")[0] in admitted, source

    def test_our_package_is_made_from_all_that_it_is_made_from(self, path: Path) -> None:
        project = tomllib.loads((ROOT / "pyproject.toml").read_text())
        wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
        needed = {
            "pyproject.toml",
            project["project"]["readme"],
            *project["project"]["license-files"],
            *(folder.split("/")[0] for folder in wheel),
        }
        packing = [
            lines for lines in stages(path).values() if "images/prepare package" in lines[-1]
        ]
        assert packing
        for lines in packing:
            copied = {
                word for line in lines if line.startswith("COPY ") for word in line.split()[1:-1]
            }
            assert needed <= copied


@pytest.mark.parametrize("name", BY_NAME)
class TestEveryImage:
    def test_it_runs_as_whom_the_operator_says(self, name: str) -> None:
        assert last(stage(name), "USER ") == f"{pods.USER}:{pods.USER}"
        assert environment(stage(name))["HOME"] == pods.HOME

    def test_it_finds_its_programs(self, name: str) -> None:
        path = environment(stage(name))["PATH"].split(":")
        assert path[:2] == ["/opt/watercolour/bin", "/opt/venv/bin"]
        assert {"/usr/bin", "/bin"} <= set(path)

    def test_it_says_what_it_is(self, name: str) -> None:
        labels = " ".join(line for line in stage(name) if line.startswith("LABEL "))
        for label in ("title", "description", "licenses", "version"):
            assert f"org.opencontainers.image.{label}=" in labels

    def test_what_differs_by_commit_alone_comes_last(self, name: str) -> None:
        *steps, argument, label = stage(name)
        assert (argument, label) == (
            "ARG REVISION=",
            'LABEL org.opencontainers.image.revision="${REVISION}"',
        )
        assert not any("REVISION" in step for step in steps)

    def test_it_ends_with_no_tool_of_its_build(self, name: str) -> None:
        steps = [line for line in stage(name) if line.startswith(("RUN ", "COPY "))]
        for step in steps:
            assert re.search(r"prepare (user|compiler|debian .*)$", step) or re.fullmatch(
                r"COPY --from=\S+ (/opt/(?:venv|watercolour|torch)\S*) \1", step
            ), step

    def test_its_libraries_are_pinned_by_hash(self, name: str) -> None:
        assert locks(name)
        for lock in locks(name):
            text = (ROOT / lock).read_text()
            blocks = re.split(r"^(?=[a-z0-9])", text, flags=re.MULTILINE)
            assert [
                block[:40] for block in blocks if "==" in block and "--hash=" not in block
            ] == []
            assert "--index-url" not in text

    def test_it_carries_torch_only_if_it_computes_with_it(self, name: str) -> None:
        held = {package for lock in locks(name) for package in pins(ROOT / lock)}
        heavy = {package for package in held if HEAVY.match(package)}
        assert ("torch" in heavy) == (name in ("trainer", "scorer-hpsv3"))
        assert bool(heavy) == ("torch" in heavy)


@pytest.mark.parametrize("name", ["env", "scorer-embedded", "trainer"])
def test_an_image_has_the_versions_that_are_tested(name: str) -> None:
    tested = pins(ROOT / "locks" / "main.txt")
    for lock in locks(name):
        held = pins(ROOT / lock)
        assert {package: tested.get(package) for package in held} == held


def test_the_trainer_has_each_library_once() -> None:
    first, second = (pins(ROOT / lock) for lock in locks("trainer"))
    assert not first.keys() & second.keys()
    assert {"torch", "trl", "transformers", "click"} <= first.keys() | second.keys()


@pytest.mark.parametrize(
    ("name", "part", "spec"),
    [
        ("trainer", "peonies-trainer-1", {}),
        ("env", "peonies-env", {}),
        ("renderer", "peonies-renderers", {}),
        ("scorer-embedded", "peonies-scorer", {}),
        ("scorer-hpsv3", "peonies-scorer", PUBLISHED),
    ],
)
def test_an_image_starts_as_the_operator_starts_it(name: str, part: str, spec: dict) -> None:
    found = container(build(spec), part)
    assert found["image"] == images.reference(BY_NAME[name])
    assert found["command"] == entrypoint(name)


@pytest.mark.parametrize(
    ("template", "module"),
    [
        ("operator", "watercolour_operator"),
        ("seccomp-profile", "watercolour_operator.profile"),
        ("uninstall", "watercolour_operator.uninstall"),
    ],
)
def test_the_operators_image_has_what_the_chart_starts(template: str, module: str) -> None:
    text = (CHART / "templates" / f"{template}.yaml").read_text()
    assert re.search(rf"command: \[python, -m, {re.escape(module)}[,\]]", text)
    assert entrypoint("operator") == ["python", "-m", "watercolour_operator"]


def test_the_operator_needs_no_more_of_ours_than_its_image_keeps(tmp_path: Path) -> None:
    path = images.dockerfile(BY_NAME["operator"])
    kept = last(stages(path)["package"], "RUN images/prepare package ").split()
    ours = tmp_path / "watercolour"
    ours.mkdir()
    for name in ("__init__.py", *kept):
        (ours / name).symlink_to(ROOT / "python" / "watercolour" / name)
    (tmp_path / "watercolour_operator").symlink_to(ROOT / "operator" / "watercolour_operator")
    program = (
        "import importlib, pkgutil, watercolour, watercolour_operator as o\n"
        f"assert watercolour.__file__.startswith({str(tmp_path)!r})\n"
        "for m in pkgutil.walk_packages(o.__path__, 'watercolour_operator.'):\n"
        "    m.name.endswith('__main__') or importlib.import_module(m.name)\n"
        "import watercolour_operator.__main__\n"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", program],
        env={"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_the_context_holds_nothing_that_a_build_makes_itself() -> None:
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    for made in ("python/watercolour/render/vendor", "python/watercolour/score/weights"):
        assert made in ignored
    assert any(fnmatch("python/watercolour/__pycache__", line) for line in ignored if "*/" in line)
