"""The environment's Deployment."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.operator.desired.made import PUBLISHED, build, container, find, observed

from watercolour_operator.desired.run import identity, of
from watercolour_operator.names import Component

NAME = "peonies-env"
SCORER, JUDGE = "http://peonies-scorer:8000", "http://peonies-judge:8000"


def told(spec: dict[str, Any], flag: str) -> str | None:
    args = container(build(spec), NAME)["args"]
    return args[args.index(flag) + 1] if flag in args else None


@pytest.mark.parametrize(
    ("spec", "scorer", "judge"),
    [
        ({}, SCORER, SCORER),
        (PUBLISHED, SCORER, JUDGE),
        ({"scorer": {"backend": "hpsv3"}}, SCORER, JUDGE),
        ({"scorer": {"backend": "hpsv3"}, "recipe": {"name": "hps-only"}}, SCORER, None),
        ({"scorer": {"endpoint": "http://a"}}, None, JUDGE),
        ({"judge": {"backend": "openai", "endpoint": "http://a/v1"}}, SCORER, None),
    ],
)
def test_it_is_told_of_the_servers_that_the_run_brings(
    spec: dict[str, Any], scorer: str | None, judge: str | None
) -> None:
    assert (told(spec, "--scorer"), told(spec, "--judge")) == (scorer, judge)


def test_it_finds_the_renderers_by_their_service() -> None:
    assert told({}, "--renderers-dns") == "peonies-renderers"
    assert told({}, "--spec") == "/etc/watercolour/run.yaml"


def test_a_hosted_judge_s_verdicts_outlive_the_container() -> None:
    hosted = {"backend": "openai", "endpoint": "http://a/v1"}
    assert told({"judge": hosted}, "--verdicts") == "/tmp/verdicts.sqlite"
    assert told({}, "--verdicts") is None


def test_the_embedded_scorer_is_there_to_stand_in_for_the_judge() -> None:
    weights = {"gate": 0.1, "judge": 0.9}
    hosted = {"backend": "openai", "endpoint": "http://a/v1"}
    own = {"recipe": {"name": "mine", "weights": weights}}
    assert told({**own, "judge": hosted}, "--scorer") is None
    assert told({**own, "judge": {**hosted, "fallback": "embedded"}}, "--scorer") is not None


def test_the_judge_s_key_is_named_and_never_shown() -> None:
    judge = {"backend": "openai", "endpoint": "http://a/v1", "secretRef": {"name": "j"}}
    assert told({"judge": judge}, "--judge-key-env") == "WATERCOLOUR_JUDGE_KEY"
    assert told({}, "--judge-key-env") is None


def test_it_is_ready_without_renderers() -> None:
    found = container(build(), NAME)
    assert found["readinessProbe"]["httpGet"]["path"] == "/livez"


def test_there_are_never_two() -> None:
    assert find(build(), "Deployment", NAME)["spec"]["strategy"] == {"type": "Recreate"}


def test_memory_grows_with_the_sessions() -> None:
    few, many = (
        container(build({"env": {"sessions": sessions}}), NAME)["resources"]["limits"]["memory"]
        for sessions in (16, 64)
    )
    assert (few, many) == ("1536Mi", "3072Mi")


def test_it_asks_the_scorer_that_its_namespace_shares() -> None:
    spec = {"scorer": {"sharing": "Namespace"}}
    run = of(observed(spec))
    assert run is not None
    name = identity(run, Component.SCORER).name
    assert told(spec, "--scorer") == told(spec, "--judge") == f"http://{name}:8000"


def test_it_ends_what_it_has_begun_before_it_is_killed() -> None:
    pod = find(build(), "Deployment", NAME)["spec"]["template"]["spec"]
    seconds = told({}, "--grace-seconds")
    assert seconds is not None
    assert 20 < float(seconds) < pod["terminationGracePeriodSeconds"]
