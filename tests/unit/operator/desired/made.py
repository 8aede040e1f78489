"""Runs to build manifests for, and ways to look into what was built."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from watercolour.api import load
from watercolour.api.status import Status
from watercolour_operator import desired
from watercolour_operator.desired import Manifest
from watercolour_operator.observed import Child, Observed
from watercolour_operator.plan import Plan
from watercolour_operator.settings import Settings

NOW = datetime(2026, 1, 1, tzinfo=UTC)
UID = "8f14e45f-ceea-467f-a0e6-0e5a2c1f4a11"

#: A run with every server of its own.
PUBLISHED: dict[str, Any] = {
    "recipe": {"name": "hps-led"},
    "scorer": {"backend": "hpsv3"},
    "judge": {
        "backend": "openai",
        "model": "vision",
        "deploy": {"image": "vllm/vllm-openai:v0.11.0", "model": "owner/vision", "gpus": 1},
    },
}


def observed(spec: dict[str, Any] | None = None, name: str = "peonies", **more: Any) -> Observed:
    """A run as it is first seen; ``spec`` is what stands in its YAML."""
    run = load.from_dict({"metadata": {"name": name}, "spec": spec or {}})
    seen = Observed(
        now=NOW,
        namespace="gardens",
        name=name,
        uid=UID,
        generation=1,
        created=NOW,
        spec=run.spec,
        status=Status(),
    )
    return replace(seen, **more)


def plan(**more: Any) -> Plan:
    """A run at work: all but scorer and judge are wanted."""
    return replace(Plan(Status(), active=True, attempt=1, env=1, renderers=2), **more)


def build(
    spec: dict[str, Any] | None = None,
    *,
    settings: Settings | None = None,
    wanted: Plan | None = None,
    **more: Any,
) -> list[Manifest]:
    """The manifests of a specification."""
    return desired.manifests(observed(spec, **more), wanted or plan(), settings or Settings())


def child(kind: str, name: str, **more: Any) -> Child:
    """An object that is there already."""
    return replace(Child(kind, name, f"{name}-uid", 1, NOW, owner_uid=UID), **more)


def keys(manifests: list[Manifest]) -> list[tuple[str, str]]:
    """Kind and name of each."""
    return [(item["kind"], item["metadata"]["name"]) for item in manifests]


def find(manifests: list[Manifest], kind: str, name: str) -> Manifest:
    """The object of that kind and name."""
    return next(
        item for item in manifests if (item["kind"], item["metadata"]["name"]) == (kind, name)
    )


def templates(manifests: list[Manifest]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every pod template with the name of its object."""
    for item in manifests:
        if item["kind"] in ("Deployment", "Job"):
            yield item["metadata"]["name"], item["spec"]["template"]


def pod(manifests: list[Manifest], name: str) -> dict[str, Any]:
    """The pod's specification of the object of that name."""
    return dict(templates(manifests))[name]["spec"]


def container(manifests: list[Manifest], name: str) -> dict[str, Any]:
    """The operator's own container of the object of that name."""
    return pod(manifests, name)["containers"][0]


def variables(container: dict[str, Any]) -> dict[str, Any]:
    """A container's environment: values, or where they come from."""
    return {item["name"]: item.get("value", item.get("valueFrom")) for item in container["env"]}
