"""The API server and the models give the same verdict on a specification."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.cluster.ground.api import Api, ApiError
from tests.specs import ONLY_ON_ONE_SIDE, REFUSALS, SOUND

from watercolour.api import dump, load
from watercolour.api.errors import InputError
from watercolour.api.spec import RunSpec

pytestmark = pytest.mark.usefixtures("crd_installed")


def run_of(spec: Any, name: str = "peony") -> dict[str, Any]:
    return {
        "apiVersion": "watercolour.dev/v1alpha1",
        "kind": "WatercolourRun",
        "metadata": {"name": name},
        "spec": spec,
    }


def servers_fault(api: Api, manifest: dict[str, Any]) -> str | None:
    """What the API server has against a run, or None; nothing is stored."""
    try:
        api.create(manifest, "default", dry_run=True, strict=True)
    except ApiError as refusal:
        assert refusal.code in (400, 422), refusal
        return refusal.message
    return None


def models_fault(manifest: dict[str, Any]) -> str | None:
    """What the models have against a run, or None."""
    try:
        load.from_dict(manifest)
    except InputError as refusal:
        return str(refusal)
    return None


@pytest.mark.parametrize(("spec", "message"), REFUSALS, ids=[text[:48] for _, text in REFUSALS])
def test_what_the_models_refuse_is_refused(api: Api, spec: Any, message: str) -> None:
    if message.split("=")[0].split(": ")[0] in ONLY_ON_ONE_SIDE:
        pytest.skip("cannot be said in CEL")
    assert servers_fault(api, run_of(spec)) is not None


@pytest.mark.parametrize("spec", SOUND, ids=[str(spec)[:48] for spec in SOUND])
def test_what_the_models_accept_is_accepted(api: Api, spec: Any) -> None:
    assert servers_fault(api, run_of(spec)) is None
