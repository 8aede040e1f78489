"""The records in memory: late news never undoes what is known."""

from __future__ import annotations

from typing import Any

import pytest

from watercolour_operator import names
from watercolour_operator.cluster.kinds import BY_NAME
from watercolour_operator.cluster.store import Key, Store
from watercolour_operator.observed import Pod

Json = dict[str, Any]
SERVICE = BY_NAME["Service"]
KEY = ("studio", "peonies")


@pytest.fixture
def changed() -> list[Key]:
    return []


@pytest.fixture
def store(changed: list[Key]) -> Store:
    return Store(changed=changed.append)


def run(version: int, uid: str = "u", **status: Any) -> Json:
    metadata = {
        "name": "peonies",
        "namespace": "studio",
        "uid": uid,
        "resourceVersion": str(version),
        "creationTimestamp": "2026-09-01T10:00:00Z",
    }
    return {"metadata": metadata, "spec": {}, "status": status}


def service(version: int, uid: str = "s", run: str = "peonies", run_uid: str = "u") -> Json:
    labels = {names.RUN: run, names.RUN_UID: run_uid}
    metadata = {**run_(version, uid), "name": "peonies-env", "labels": labels}
    return {"metadata": metadata}


def run_(version: int, uid: str) -> Json:
    return dict(run(version, uid)["metadata"])


def test_an_old_version_of_a_run_is_ignored(store: Store) -> None:
    store.put_run(run(5, phase="Succeeded"))
    store.put_run(run(3, phase="Running"))
    assert b"Succeeded" in store.runs[KEY].status


def test_a_deleted_run_does_not_come_back(store: Store) -> None:
    store.put_run(run(5))
    store.drop_run(KEY, "u", 6)
    store.put_run(run(5))
    assert KEY not in store.runs
    store.put_run(run(7, uid="another"))
    assert store.runs[KEY].uid == "another"


def test_the_deletion_of_an_older_run_leaves_the_newer_one(store: Store) -> None:
    store.put_run(run(5, uid="old"))
    store.put_run(run(9, uid="new"))
    store.drop_run(KEY, "old", 8)
    assert store.runs[KEY].uid == "new"
    store.put_run(run(8, uid="old"))
    assert store.runs[KEY].uid == "new"


def test_a_late_event_does_not_undo_what_a_write_has_shown(store: Store) -> None:
    made = store.put(SERVICE, service(9))
    assert made is not None
    made.known = ("digest", made.mark)
    assert store.put(SERVICE, service(4)) is made
    again = store.put(SERVICE, service(10))
    assert again is not None
    assert again.known == ("digest", made.mark)


def test_what_was_applied_is_forgotten_with_its_object(store: Store) -> None:
    made = store.put(SERVICE, service(9))
    assert made is not None
    made.known = ("digest", made.mark)
    another = store.put(SERVICE, service(12, uid="another"))
    assert another is not None
    assert another.known is None


def test_a_deleted_object_does_not_come_back(store: Store) -> None:
    made = store.put(SERVICE, service(9))
    assert made is not None
    store.drop(SERVICE, made)
    assert store.put(SERVICE, service(9)) is None
    assert store.of(KEY, "u") == []


def test_objects_of_an_older_run_of_the_name_are_foreign(store: Store) -> None:
    store.put(SERVICE, service(9, run_uid="old"))
    assert store.of(KEY, "u") == []
    assert [child.name for child in store.foreign(KEY, "u")] == ["peonies-env"]


def test_a_list_drops_what_it_lacks_unless_that_is_newer(store: Store) -> None:
    store.put(SERVICE, service(9))
    store.drop_unlisted(SERVICE, "studio", set(), version=8)
    assert len(store.of(KEY, "u")) == 1
    store.drop_unlisted(SERVICE, "elsewhere", set(), version=20)
    assert len(store.of(KEY, "u")) == 1
    store.drop_unlisted(SERVICE, None, set(), version=20)
    assert store.of(KEY, "u") == []


def test_an_object_whose_label_is_changed_moves(store: Store, changed: list[Key]) -> None:
    store.put(SERVICE, service(9))
    changed.clear()
    store.put(SERVICE, service(10, run="lotus"))
    assert store.of(KEY, "u") == []
    assert set(changed) == {KEY, ("studio", "lotus")}


def test_only_what_decisions_see_wakes_a_run(store: Store, changed: list[Key]) -> None:
    store.put(SERVICE, service(9))
    changed.clear()
    store.put(SERVICE, service(10))
    assert changed == []


def test_a_pod_that_loses_its_readiness_keeps_when_it_was_ready_first(store: Store) -> None:
    def told(version: int, status: str, since: str) -> tuple[bool, str | None]:
        labels = {names.RUN: "peonies", names.RUN_UID: "u", names.COMPONENT: "renderers"}
        metadata = {**run_(version, "p"), "name": "peonies-renderers-x", "labels": labels}
        ready = {"type": "Ready", "status": status, "lastTransitionTime": since}
        entry = store.put(BY_NAME["Pod"], {"metadata": metadata, "status": {"conditions": [ready]}})
        assert entry is not None
        assert isinstance(entry.record, Pod)
        readied = entry.record.readied
        return entry.record.ready, readied and readied.strftime("%H:%M:%S")

    assert told(1, "False", "2026-09-01T10:00:02Z") == (False, None)
    assert told(2, "True", "2026-09-01T10:00:12Z") == (True, "10:00:12")
    assert told(3, "False", "2026-09-01T11:00:00Z") == (False, "10:00:12")
    assert told(4, "True", "2026-09-01T11:00:30Z") == (True, "10:00:12")
