"""Requests and limits: what is given, and the defaults for the rest."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from watercolour.api import sizes
from watercolour.api.part import Resources
from watercolour.api.rules import quantity

DEFAULT = sizes.size(("1", "2"), ("1Gi", "4Gi"), ("1Gi", "1Gi"))


def merged(given: dict[str, Any], gpus: int = 0) -> dict[str, dict[str, str]]:
    return sizes.resources(Resources.model_validate(given), DEFAULT, gpus=gpus)


@pytest.mark.parametrize(
    ("given", "request_", "limit"),
    [
        ({}, "1Gi", "4Gi"),
        ({"limits": {"memory": "8Gi"}}, "8Gi", "8Gi"),
        ({"limits": {"memory": "512Mi"}}, "512Mi", "512Mi"),
        ({"requests": {"memory": "2Gi"}}, "2Gi", "4Gi"),
        ({"requests": {"memory": "8Gi"}}, "8Gi", "8Gi"),
        ({"requests": {"memory": "2Gi"}, "limits": {"memory": "3Gi"}}, "2Gi", "3Gi"),
    ],
)
def test_what_is_given_holds(given: dict[str, Any], request_: str, limit: str) -> None:
    found = merged(given)
    assert (found["requests"]["memory"], found["limits"]["memory"]) == (request_, limit)


def test_what_is_guaranteed_stays_guaranteed() -> None:
    found = merged({"requests": {"ephemeral-storage": "512Mi"}})
    assert found["limits"]["ephemeral-storage"] == "512Mi"


@pytest.mark.parametrize("where", ["requests", "limits"])
def test_a_device_is_requested_as_it_is_limited(where: str) -> None:
    found = merged({where: {"nvidia.com/gpu": 2}}, gpus=1)
    assert found["requests"]["nvidia.com/gpu"] == found["limits"]["nvidia.com/gpu"] == "2"


AMOUNTS = st.dictionaries(
    st.sampled_from(["cpu", "memory", "ephemeral-storage", "nvidia.com/gpu", "hugepages-2Mi"]),
    st.sampled_from(["0", "1", "500m", "64Mi", "2Gi", "1Ti"]),
)


@given(requests=AMOUNTS, limits=AMOUNTS, gpus=st.integers(0, 2))
def test_no_request_is_above_its_limit_unless_it_was_given_so(
    requests: dict[str, str], limits: dict[str, str], gpus: int
) -> None:
    found = merged({"requests": requests, "limits": limits}, gpus)
    assert found["requests"].keys() == found["limits"].keys()
    for name, limit in found["limits"].items():
        given_so = name in requests and name in limits and not sizes.is_device(name)
        assert given_so or quantity(found["requests"][name]) <= quantity(limit)
        assert name not in limits or limit == limits[name]
