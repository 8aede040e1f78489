"""The ConfigMap with the specification, as the processes read it. Pure."""

from __future__ import annotations

from typing import Any

from watercolour.api import dump
from watercolour.api.spec import Metadata, RunSpec, WatercolourRun
from watercolour_operator import names
from watercolour_operator.desired.run import Identity, Manifest, Run, metadata
from watercolour_operator.settings import Settings

#: Keys of the ConfigMap, and where they are in a container.
SPEC_KEY = names.SPEC_FILE.rpartition("/")[2]
START_KEY = names.START_FILE.rpartition("/")[2]
CA_KEY = "ca.crt"

#: Where a container finds a pool of references that lies on a claim or in a ConfigMap.
POOL_FOLDER = "/references"


def config(run: Run, settings: Settings) -> Manifest:
    """The run's specification with every value in force, and the certificates if there are any."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata(run, names.config(run.name)),
        "data": {SPEC_KEY: specification(run), **_start(run), **_certificates(settings)},
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
    if _has_mounted_pool(run):
        changes: dict[str, Any] = {"pool": POOL_FOLDER, "claim": None, "config_map": None}
        references = spec.references.model_copy(update=changes)
        spec = spec.model_copy(update={"references": references})
    return _written(run, spec)


def _start(run: Run) -> dict[str, str]:
    """The specification in its own terms, where its processes have it in others."""
    return {START_KEY: _written(run, run.spec)} if _has_mounted_pool(run) else {}


def _has_mounted_pool(run: Run) -> bool:
    return bool(run.spec.references.claim or run.spec.references.config_map)


def _written(run: Run, spec: RunSpec) -> str:
    return dump.to_yaml(WatercolourRun(metadata=Metadata(name=run.name), spec=spec), full=True)
