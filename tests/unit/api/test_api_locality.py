"""One machine passes cluster fields over, unless the training would be another one."""

from __future__ import annotations

from typing import Any

import pytest

from watercolour.api import load, locality, part
from watercolour.api.errors import InputError
from watercolour.api.spec import WatercolourRun


def run(spec: dict[str, Any]) -> WatercolourRun:
    return load.from_dict({"metadata": {"name": "peony"}, "spec": spec})


def test_the_embedded_default_needs_no_cluster() -> None:
    locality.require_one_machine(run({}))
    assert locality.passed_over(run({})) == ()


def test_fields_for_pods_are_passed_over_and_named() -> None:
    wanted = run(
        {
            "queueName": "gpus",
            "trainer": {"resources": {"limits": {"cpu": 2}}, "steps": 3},
            "renderers": {"scaling": {"mode": "Fixed"}, "slots": 1},
        }
    )
    locality.require_one_machine(wanted)
    assert set(locality.passed_over(wanted)) == {
        "spec.queueName",
        "spec.trainer.resources.limits",
        "spec.renderers.scaling.mode",
    }


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (
            {"trainer": {"replicas": 2}},
            "spec.trainer.replicas=2: needs a cluster. Leave it at 1.",
        ),
        (
            {"references": {"claim": "paintings"}},
            "spec.references.claim=paintings: needs a cluster. "
            "Name the pool's folder in spec.references.pool.",
        ),
        ({"suspend": True}, "spec.suspend=true: needs a cluster."),
    ],
)
def test_what_would_change_the_training_is_refused(spec: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        locality.require_one_machine(run(spec))
    assert str(caught.value).startswith(message)


def test_every_refused_field_exists_and_is_marked() -> None:
    for path in locality.REFUSED:
        model, mark = WatercolourRun, False
        *parents, last = path.split(".")
        for name in parents:
            model = part.submodel(part.fields_of(model)[name].annotation)
            assert model is not None
        mark = part.CLUSTER in part.fields_of(model)[last].metadata
        assert mark, path
