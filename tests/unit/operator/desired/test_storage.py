"""The claim for the run's files."""

from __future__ import annotations

import pytest
from tests.unit.operator.desired.made import build, child, container, find, keys, pod

from watercolour_operator import names

CLAIM = ("PersistentVolumeClaim", "peonies-artifacts")


def test_a_kept_claim_has_no_owner_and_says_so() -> None:
    claim = find(build(), *CLAIM)
    assert "ownerReferences" not in claim["metadata"]
    assert claim["metadata"]["labels"][names.KEEP] == "true"


def test_a_claim_that_is_not_kept_goes_with_the_run() -> None:
    claim = find(build({"artifacts": {"keep": False}}), *CLAIM)
    assert claim["metadata"]["ownerReferences"][0]["controller"] is True
    assert names.KEEP not in claim["metadata"]["labels"]


def test_the_claim_is_as_the_specification_says() -> None:
    storage = {"size": "5Gi", "className": "fast", "accessMode": "ReadWriteMany"}
    assert find(build({"artifacts": {"storage": storage}}), *CLAIM)["spec"] == {
        "accessModes": ["ReadWriteMany"],
        "resources": {"requests": {"storage": "5Gi"}},
        "storageClassName": "fast",
    }


def test_the_cluster_s_default_class_is_left_to_the_cluster() -> None:
    assert "storageClassName" not in find(build(), *CLAIM)["spec"]


def test_an_existing_claim_is_used_and_none_made() -> None:
    manifests = build({"artifacts": {"claim": "shared"}})
    assert CLAIM not in keys(manifests)
    volumes = pod(manifests, "peonies-trainer-1")["volumes"]
    assert {"name": "artifacts", "persistentVolumeClaim": {"claimName": "shared"}} in volumes


def test_a_claim_that_an_older_run_of_the_name_left_is_used_as_it_is() -> None:
    left = child(*CLAIM, owner_uid=None)
    manifests = build(foreign=(left,))
    assert CLAIM not in keys(manifests)
    volumes = pod(manifests, "peonies-trainer-1")["volumes"]
    assert {"name": "artifacts", "persistentVolumeClaim": {"claimName": CLAIM[1]}} in volumes


def test_a_claim_that_somebody_else_controls_is_not_taken_for_a_left_one() -> None:
    assert CLAIM in keys(build(foreign=(child(*CLAIM, owner_uid="else"),)))


@pytest.mark.parametrize(
    ("path", "folder"),
    [
        ("runs", "/artifacts/runs/peonies"),
        ("/data/runs/", "/artifacts/data/runs/peonies"),
        ("../../etc", "/artifacts/etc/peonies"),
        (".", "/artifacts/peonies"),
    ],
)
def test_no_path_leads_out_of_the_claim(path: str, folder: str) -> None:
    args = container(build({"artifacts": {"path": path}}), "peonies-trainer-1")["args"]
    assert args[args.index("--out") + 1] == folder


def test_only_the_trainer_has_the_files() -> None:
    manifests = build()
    for name in ("peonies-env", "peonies-renderers", "peonies-scorer"):
        assert "artifacts" not in {item["name"] for item in pod(manifests, name)["volumes"]}
