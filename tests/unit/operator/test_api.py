"""Bodies of server-side apply are read as YAML by the API server."""

from __future__ import annotations

import json
from typing import Any

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from watercolour_operator.cluster import api
from watercolour_operator.cluster.api import APPLY, JSON, Bucket

# YAML and JSON both know every character but lone surrogates.
CHARACTERS = st.characters(exclude_categories=["Cs"])
TEXT = st.text(CHARACTERS)
# YAML's keys end after 1024 bytes; Kubernetes has none that long, and one character takes up to 12.
KEY = st.text(CHARACTERS, max_size=80)


@settings(deadline=None)
@given(st.dictionaries(KEY, TEXT))
def test_an_applied_body_means_the_same_in_yaml(body: dict[str, Any]) -> None:
    assert yaml.safe_load(api._encoded(body, APPLY)) == body  # pyright: ignore[reportPrivateUsage]


@settings(deadline=None)
@given(st.dictionaries(KEY, TEXT))
def test_any_other_body_is_json(body: dict[str, Any]) -> None:
    assert json.loads(api._encoded(body, JSON)) == body  # pyright: ignore[reportPrivateUsage]


def test_a_bucket_gives_its_burst_and_then_its_rate() -> None:
    bucket = Bucket(per_second=1.0, burst=2.0)
    assert [bucket.take(), bucket.take()] == [0.0, 0.0]
    assert bucket.take() > 0.9
    assert not bucket.free
    assert not bucket.take_if_free()
