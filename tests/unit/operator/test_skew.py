"""An older definition: what it lacks is read from the API server's words and left out."""

from __future__ import annotations

import pytest

from watercolour.api.reasons import Reason
from watercolour_operator.cluster import skew
from watercolour_operator.cluster.errors import ApiError

ONE = (
    "failed to create typed patch object (/peonies; watercolour.dev/v1alpha1, "
    "Kind=WatercolourRun): .status.activeSeconds: field not declared in schema"
)
SEVERAL = """failed to create typed patch object (a/b; watercolour.dev/v1alpha1): errors:
  .status.renderers.decision: field not declared in schema
  .status.attempts[0].resumed: field not declared in schema"""


@pytest.mark.parametrize(
    ("words", "fields"),
    [
        (ONE, ("status.activeSeconds",)),
        (SEVERAL, ("status.renderers.decision", "status.attempts.resumed")),
        ("etcdserver: request timed out", ()),
    ],
    ids=["one", "several", "another fault"],
)
def test_the_fields_are_read_from_the_servers_words(words: str, fields: tuple[str, ...]) -> None:
    assert skew.undeclared(ApiError(500, words)) == fields


def test_a_field_is_left_out_wherever_it_stands() -> None:
    status = {
        "phase": "Running",
        "renderers": {"ready": 2, "decision": {"desired": 2}},
        "attempts": [{"number": 1, "resumed": False}, {"number": 2}],
    }
    lacking = ("status.renderers.decision", "status.attempts.resumed", "status.cost.gpuMinutes")
    assert skew.without(status, lacking) == {
        "phase": "Running",
        "renderers": {"ready": 2},
        "attempts": [{"number": 1}, {"number": 2}],
    }
    assert status["renderers"] == {"ready": 2, "decision": {"desired": 2}}, "the given one stays"


def test_a_definition_that_lacks_nothing_is_no_trouble() -> None:
    assert skew.trouble(()) is None
    told = skew.trouble(("status.activeSeconds",))
    assert told is not None
    assert told.reason is Reason.VERSION_SKEW
    assert "lacks status.activeSeconds" in told.message
