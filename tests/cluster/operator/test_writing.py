"""Server-side apply, deletion and status on the real API server, call by call."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from tests.cluster.ground.api import Api as Ground
from tests.cluster.ground.controlplane import ControlPlane

from watercolour_operator import names
from watercolour_operator.cluster import watch
from watercolour_operator.cluster.api import Api, Bucket, connect
from watercolour_operator.cluster.errors import ApiError, NameTaken, WriteRefused
from watercolour_operator.cluster.kinds import BY_NAME
from watercolour_operator.cluster.reduce import Run
from watercolour_operator.cluster.store import Store
from watercolour_operator.cluster.write import Writer

Json = dict[str, Any]


@pytest.fixture
async def api(control_plane: ControlPlane) -> AsyncIterator[Api]:
    async with connect(str(control_plane.kubeconfig)) as connected:
        yield connected


@pytest.fixture
def ground(control_plane: ControlPlane) -> Ground:
    return control_plane.api


@pytest.fixture
def writer(api: Api) -> Writer:
    return Writer(api, Store())


@pytest.fixture
async def run(crd_installed: None, ground: Ground, namespace: str, writer: Writer) -> Run:
    ground.create(
        {
            "apiVersion": names.API_VERSION,
            "kind": names.KIND,
            "metadata": {"name": "peonies"},
            "spec": {},
        },
        namespace,
    )
    writer.store.put_run(ground.get(names.KIND, "peonies", namespace))
    return writer.store.runs[namespace, "peonies"]


@pytest.fixture
async def following(api: Api, writer: Writer, namespace: str) -> AsyncIterator[None]:
    """The store is told of Services and Deployments as they change."""
    kinds = (BY_NAME["Service"], BY_NAME["Deployment"])
    tasks = [
        asyncio.create_task(watch.follow(api, writer.store, kind, namespace)) for kind in kinds
    ]
    yield
    for task in tasks:
        task.cancel()


def service(run: Run, port: int = 80, **labels: str) -> Json:
    owner = {
        "apiVersion": names.API_VERSION,
        "kind": names.KIND,
        "name": run.name,
        "uid": run.uid,
        "controller": True,
    }
    own = {**names.APP_LABELS, names.RUN: run.name, names.RUN_UID: run.uid, **labels}
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": f"{run.name}-env",
            "namespace": run.namespace,
            "labels": own,
            "ownerReferences": [owner],
        },
        "spec": {
            "selector": {"a": "b"},
            "ports": [{"name": "http", "port": port, "protocol": "TCP"}],
        },
    }


async def until(store: Store, condition: Callable[[], bool]) -> None:
    """Wait until the store has been told."""
    told = asyncio.Event()
    store.changed = lambda key: told.set()
    async with asyncio.timeout(20):
        while not condition():
            await told.wait()
            told.clear()


def entry(writer: Writer, run: Run) -> Any:
    return writer.store.entry((run.namespace, run.name), "Service", "peonies-env")


async def test_what_has_not_changed_is_not_applied_again(writer: Writer, run: Run) -> None:
    assert await writer.apply(run, [service(run)])
    assert not await writer.apply(run, [service(run)])
    assert await writer.apply(run, [service(run, port=81)])


async def test_a_restart_applies_only_what_its_annotation_does_not_name(
    writer: Writer, run: Run, api: Api, following: None
) -> None:
    await writer.apply(run, [service(run)])
    other = Writer(api, writer.store, checks=Bucket(per_second=0.001, burst=0))
    entry(writer, run).known = None
    assert not await other.apply(run, [service(run)])
    assert await other.apply(run, [service(run, port=82)])


@pytest.mark.parametrize(
    "drift",
    [
        {"spec": {"selector": {"a": "c"}}},
        {"metadata": {"labels": {names.RUN: "lotus"}}},
        {"metadata": {"ownerReferences": None}},
    ],
    ids=["a value", "a label", "the owner"],
)
async def test_what_somebody_else_changed_is_repaired(
    writer: Writer, run: Run, ground: Ground, following: None, drift: Json
) -> None:
    await writer.apply(run, [service(run)])
    before = entry(writer, run)
    ground.patch("Service", "peonies-env", drift, run.namespace)
    await until(
        writer.store, lambda: (now := entry(writer, run)) is None or now.version > before.version
    )
    assert await writer.apply(run, [service(run)])
    now = ground.get("Service", "peonies-env", run.namespace)
    assert now["spec"]["selector"] == {"a": "b"}
    assert now["metadata"]["labels"][names.RUN] == "peonies"
    assert [owner["uid"] for owner in now["metadata"]["ownerReferences"]] == [run.uid]


async def test_what_somebody_else_adds_is_left_alone(
    writer: Writer, run: Run, ground: Ground
) -> None:
    await writer.apply(run, [service(run)])
    ground.patch("Service", "peonies-env", {"metadata": {"labels": {"team": "a"}}}, run.namespace)
    writer.store.put(BY_NAME["Service"], ground.get("Service", "peonies-env", run.namespace))
    assert not await writer.apply(run, [service(run)])


def deployment(run: Run, replicas: int | None) -> Json:
    body = service(run)
    labels = {names.RUN_UID: run.uid, names.COMPONENT: "renderers"}
    template = {
        "metadata": {"labels": labels},
        "spec": {"containers": [{"name": "renderers", "image": "a"}]},
    }
    spec: Json = {"selector": {"matchLabels": labels}, "template": template}
    if replicas is not None:
        spec["replicas"] = replicas
    body["metadata"] |= {"name": "peonies-renderers"}
    return {**body, "apiVersion": "apps/v1", "kind": "Deployment", "spec": spec}


async def test_a_number_of_pods_that_is_left_to_an_autoscaler_stays_as_it_is(
    writer: Writer, run: Run, ground: Ground
) -> None:
    """A field that nobody applies any more would go back to its default, one pod."""

    def replicas() -> int:
        return ground.get("Deployment", "peonies-renderers", run.namespace)["spec"]["replicas"]

    await writer.apply(run, [deployment(run, 4)])
    assert await writer.apply(run, [deployment(run, None)])
    assert replicas() == 4
    scale = {"spec": {"replicas": 6}}
    ground.patch("Deployment", "peonies-renderers", scale, run.namespace, subresource="scale")
    raw = ground.get("Deployment", "peonies-renderers", run.namespace)
    writer.store.put(BY_NAME["Deployment"], raw)
    changed = deployment(run, None)
    changed["spec"]["template"]["spec"]["containers"][0]["image"] = "b"
    assert await writer.apply(run, [changed])
    assert replicas() == 6
    await writer.apply(run, [deployment(run, 2)])
    assert replicas() == 2


async def test_an_object_of_somebody_else_is_not_taken(
    writer: Writer, run: Run, ground: Ground
) -> None:
    foreign = service(run, port=99)
    foreign["metadata"] = {"name": "peonies-env", "namespace": run.namespace}
    ground.create(foreign, run.namespace)
    with pytest.raises(NameTaken, match="Service peonies-env exists"):
        await writer.apply(run, [service(run)])
    assert "ownerReferences" not in ground.get("Service", "peonies-env", run.namespace)["metadata"]


async def test_an_object_without_our_labels_is_known_by_its_owner(
    writer: Writer, run: Run, ground: Ground
) -> None:
    bare = service(run)
    del bare["metadata"]["labels"]
    ground.create(bare, run.namespace)
    assert await writer.apply(run, [service(run)])
    labels = ground.get("Service", "peonies-env", run.namespace)["metadata"]["labels"]
    assert labels[names.RUN_UID] == run.uid


async def test_a_newcomer_of_the_same_name_is_not_touched(
    writer: Writer, run: Run, ground: Ground
) -> None:
    """The cache still has an object that has been replaced."""
    await writer.apply(run, [service(run)])
    ground.delete("Service", "peonies-env", run.namespace)
    ground.until_gone("Service", "peonies-env", run.namespace)
    with pytest.raises(ApiError) as gone:
        await writer.apply(run, [service(run, port=83)])
    assert gone.value.status in (404, 409)
    foreign = service(run, port=99)
    foreign["metadata"] = {"name": "peonies-env", "namespace": run.namespace}
    ground.create(foreign, run.namespace)
    with pytest.raises(ApiError) as taken:
        await writer.apply(run, [service(run, port=83)])
    assert taken.value.status in (409, 422)
    assert not await writer.remove(run, BY_NAME["Service"], "other", None)
    await writer.remove(run, BY_NAME["Service"], "peonies-env", None)
    assert ground.get("Service", "peonies-env", run.namespace)["spec"]["ports"][0]["port"] == 99


async def test_a_status_is_refused_when_the_run_has_changed(
    writer: Writer, run: Run, ground: Ground
) -> None:
    ground.patch(names.KIND, "peonies", {"metadata": {"labels": {"a": "b"}}}, run.namespace)
    with pytest.raises(ApiError) as conflict:
        await writer.status(run, {"phase": "Running"})
    assert conflict.value.status == 409
    fresh = await writer.fresh_run(run)
    assert fresh is not None
    await writer.status(fresh, {"phase": "Running"})
    assert ground.get(names.KIND, "peonies", run.namespace)["status"]["phase"] == "Running"


async def test_what_a_status_leaves_out_is_gone(writer: Writer, run: Run, ground: Ground) -> None:
    await writer.status(run, {"phase": "Running", "scorer": "Ready"})
    run = writer.store.runs[run.namespace, run.name]
    await writer.status(run, {"phase": "Running"})
    assert "scorer" not in ground.get(names.KIND, "peonies", run.namespace)["status"]


async def test_without_the_lease_nothing_is_written(
    writer: Writer, run: Run, api: Api, ground: Ground
) -> None:
    api.may_write = lambda: 0.0
    with pytest.raises(WriteRefused):
        await writer.apply(run, [service(run)])
    assert ground.find("Service", "peonies-env", run.namespace) is None


async def test_a_run_that_is_gone_is_forgotten(writer: Writer, run: Run, ground: Ground) -> None:
    ground.delete(names.KIND, "peonies", run.namespace)
    ground.until_gone(names.KIND, "peonies", run.namespace)
    assert await writer.fresh_run(run) is None
    assert writer.store.runs == {}
