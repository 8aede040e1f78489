"""A run as the operator sees it, and the pods that it makes of it."""

from __future__ import annotations

import copy
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from watercolour.api.spec import RunSpec
from watercolour.api.status import Status
from watercolour_operator import desired
from watercolour_operator.observed import Observed
from watercolour_operator.plan import Plan
from watercolour_operator.settings import Settings

Manifest = dict[str, Any]
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def manifests(
    namespace: str, spec: Manifest | None = None, settings: Settings | None = None
) -> list[Manifest]:
    """What the operator makes for a run with a specification, all of it wanted."""
    observed = Observed(
        now=NOW,
        namespace=namespace,
        name="peony",
        uid="00000000-0000-0000-0000-000000000001",
        generation=1,
        created=NOW,
        spec=RunSpec.model_validate(spec or {}),
        status=Status(),
    )
    plan = Plan(status=Status(), active=True, attempt=1, env=1, scorer=1, judge=1, renderers=2)
    return desired.manifests(observed, plan, settings or Settings())


def pod(found: list[Manifest], component: str) -> Manifest:
    """A pod of a component, as its Deployment or Job would make it."""
    for each in found:
        template = each.get("spec", {}).get("template")
        worn = each["metadata"]["labels"].get("watercolour.dev/component")
        if template and worn == component:
            made = copy.deepcopy(template)
            meta = {**made["metadata"], "name": f"peony-{component}-0"}
            meta["namespace"] = each["metadata"]["namespace"]
            return {"apiVersion": "v1", "kind": "Pod", **made, "metadata": meta}
    raise AssertionError(f"no pods of {component}")


def with_settings(**changes: Any) -> Settings:
    """Settings with some fields changed."""
    return replace(Settings(), **changes)
