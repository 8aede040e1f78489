"""The ConfigMap with the specification, as the processes read it. Pure."""

from __future__ import annotations

from typing import Any

from watercolour.api import dump
from watercolour.api.spec import Metadata, WatercolourRun
from watercolour_operator import names
from watercolour_operator.desired.run import Identity, Manifest, Run, metadata
from watercolour_operator.settings import Settings

#: Keys of the ConfigMap, and where they are in a container.
SPEC_KEY = names.SPEC_FILE.rpartition("/")[2]
CA_KEY = "ca.crt"

#: Where a container finds a pool of references that lies on a claim or in a ConfigMap.
POOL_FOLDER = "/references"


def config(run: Run, settings: Settings) -> Manifest:
    """The run's specification with every value in force, and the certificates if there are any."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata(run, names.config(run.name)),
        "data": {SPEC_KEY: specification(run), **_certificates(settings)},
    }


def certificates(who: Identity, settings: Settings) -> list[Manifest]:
    """The ConfigMap of a shared scorer, which cannot lean on that of one of its runs."""
    if not settings.ca_bundle:
        return []
    return [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": who.metadata(),
            "data": _certificates(settings),
        }
    ]


def _certificates(settings: Settings) -> dict[str, str]:
    return {CA_KEY: settings.ca_bundle} if settings.ca_bundle else {}


def specification(run: Run) -> str:
    """run.yaml: what the run is to do, in terms of the files that its processes find.

    A pool on a claim or in a ConfigMap is a folder to them.
    """
    spec = run.spec
    if spec.references.claim or spec.references.config_map:
        changes: dict[str, Any] = {"pool": POOL_FOLDER, "claim": None, "config_map": None}
        references = spec.references.model_copy(update=changes)
        spec = spec.model_copy(update={"references": references})
    whole = WatercolourRun(metadata=Metadata(name=run.name), spec=spec)
    return dump.to_yaml(whole, full=True)
