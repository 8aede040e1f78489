"""Settings from flags and from the chart's file."""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path

import pytest

from watercolour_operator import options
from watercolour_operator.options import OptionError
from watercolour_operator.settings import Images, Settings


def read(*flags: str) -> Settings:
    parser = argparse.ArgumentParser()
    parser.add_argument("--config")
    options.add_flags(parser)
    return options.settings(parser.parse_args(flags))


def file(tmp_path: Path, text: str) -> str:
    path = tmp_path / "operator.yaml"
    path.write_text(text)
    return str(path)


def test_without_anything_the_defaults_hold() -> None:
    assert read() == Settings()


def test_every_setting_has_a_flag_that_sets_it() -> None:
    found = read(
        "--namespaces=a",
        "--namespaces=b",
        "--lease-seconds=20",
        "--metrics-port=0",
        "--proxy-env=HTTPS_PROXY=http://p:3128",
        "--images-scorer-hpsv3=x:1",
    )
    assert found.namespaces == ("a", "b")
    assert (found.lease_seconds, found.metrics_port) == (20.0, 0)
    assert found.proxy_env == {"HTTPS_PROXY": "http://p:3128"}
    assert found.images.scorer_hpsv3 == "x:1"


def test_the_file_has_the_names_of_the_chart_and_flags_win(tmp_path: Path) -> None:
    text = "leaseName: other\nleaseSeconds: 9\nimages: {scorerEmbedded: 'y:2'}\nnamespaces: []\n"
    found = read("--config", file(tmp_path, text), "--lease-seconds=30")
    assert (found.lease_name, found.lease_seconds) == ("other", 30.0)
    assert found.images.scorer_embedded == "y:2"
    assert found.namespaces == ()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("leaseSecond: 9", "unknown key leaseSecond"),
        ("leaseSeconds: soon", "leaseSeconds='soon': not float"),
        ("leaseSeconds: 0", "must be more than 0"),
        ("namespaces: studio", "namespaces='studio': not a list of words"),
        ("images: {trainr: x}", "unknown key images.trainr"),
        ("a: [", "a: ["),
    ],
)
def test_a_bad_file_is_refused_by_name(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(OptionError) as refused:
        read("--config", file(tmp_path, text))
    assert words in str(refused.value) or "operator.yaml" in str(refused.value)


def test_a_mapping_without_a_value_is_refused() -> None:
    with pytest.raises(OptionError, match="write it as KEY=VALUE"):
        read("--proxy-env=HTTPS_PROXY")


@pytest.mark.parametrize("owner", [Settings, Images])
def test_every_setting_says_what_it_does(owner: type) -> None:
    told = options.described(owner)
    silent = [field.name for field in dataclasses.fields(owner) if field.name not in told]
    assert silent == []
