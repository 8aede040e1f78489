"""The claim for the run's files. Pure."""

from __future__ import annotations

import posixpath

from watercolour_operator import names
from watercolour_operator.desired.run import Manifest, Run, metadata
from watercolour_operator.observed import Observed


def claim_name(run: Run) -> str:
    """The claim that the trainer mounts: the one that the specification names, or the run's own."""
    return run.spec.artifacts.claim or names.claim(run.name)


def run_folder(run: Run) -> str:
    """The run's folder in the trainer's file system; never above the claim, whatever the path."""
    path = posixpath.normpath(f"/{run.spec.artifacts.path}").lstrip("/")
    return posixpath.join(names.ARTIFACTS_FOLDER, path, run.name)


def claim(run: Run, observed: Observed) -> list[Manifest]:
    """The claim that is made for the run, or nothing.

    A claim that is kept has no owner, so that deleting the run does not delete the files; a label
    tells sweepers to leave it alone. When a run of the same name comes again it finds the claim
    and uses it as it is: most of a claim's fields cannot change, and the files are the older run's
    until the trainer has looked at them.
    """
    artifacts = run.spec.artifacts
    if artifacts.claim or _left_by_older_run(run, observed):
        return []
    meta = metadata(run, names.claim(run.name), owned=not artifacts.keep)
    if artifacts.keep:
        meta["labels"][names.KEEP] = "true"
    storage = artifacts.storage
    spec = {
        "accessModes": [storage.access_mode],
        "resources": {"requests": {"storage": storage.size}},
        **({"storageClassName": storage.class_name} if storage.class_name else {}),
    }
    return [{"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta, "spec": spec}]


def _left_by_older_run(run: Run, observed: Observed) -> bool:
    return any(
        child.kind == "PersistentVolumeClaim"
        and child.name == names.claim(run.name)
        and child.owner_uid is None
        for child in observed.foreign
    )
