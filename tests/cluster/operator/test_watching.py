"""Lists and watches on the real API server, with the faults that watches have."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from tests.cluster.ground.api import Api as Ground
from tests.cluster.ground.controlplane import ControlPlane
from tests.cluster.ground.faultproxy import FaultProxy
from tests.cluster.ground.faults import Answer, Expire, HangUp, Silence, calls

from watercolour.api.reasons import Reason
from watercolour_operator import names
from watercolour_operator.cluster import watch
from watercolour_operator.cluster.api import Api, connect
from watercolour_operator.cluster.kinds import BY_NAME
from watercolour_operator.cluster.store import Store

Json = dict[str, Any]
Follow = Callable[[], list[str]]
KIND = BY_NAME["ConfigMap"]


class Told(Store):
    """A store for which a test can wait."""

    async def until(self, condition: Callable[[], bool]) -> None:
        told = asyncio.Event()
        self.changed = lambda key: told.set()
        async with asyncio.timeout(30):
            while not condition():
                await told.wait()
                told.clear()

    def names(self) -> set[str]:
        return {found.record.name for found in self.entries()}


@pytest.fixture
def ground(control_plane: ControlPlane) -> Ground:
    return control_plane.api


@pytest.fixture
async def api(
    control_plane: ControlPlane, proxy: FaultProxy, namespace: str, tmp_path: Path
) -> AsyncIterator[Api]:
    token = control_plane.token_of(namespace, "operator", cluster_admin=True)
    path = proxy.kubeconfig(token, tmp_path / "kubeconfig")
    async with connect(str(path)) as connected:
        yield connected


@pytest.fixture
async def store() -> Told:
    return Told()


@pytest.fixture
async def follow(api: Api, store: Told, namespace: str) -> AsyncIterator[Callable[[], list[str]]]:
    """Begins to follow the namespace's ConfigMaps; returns why it began again each time."""
    tasks: list[asyncio.Task[Any]] = []

    def begin() -> list[str]:
        why: list[str] = []
        following = watch.follow(
            api, store, KIND, namespace, silence=2, restarted=lambda _, cause: why.append(cause)
        )
        tasks.append(asyncio.create_task(following))
        return why

    yield begin
    for task in tasks:
        task.cancel()


def make(ground: Ground, namespace: str, name: str, **labels: str) -> Json:
    ours = {**names.APP_LABELS, names.RUN: "peonies", names.RUN_UID: "u", **labels}
    return ground.create(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": name, "labels": ours},
            "data": {"key": "x" * 1000},
        },
        namespace,
    )


async def test_what_is_there_and_what_comes_is_known(
    ground: Ground, namespace: str, store: Told, follow: Follow
) -> None:
    follow()
    make(ground, namespace, "first")
    await store.until(lambda: store.names() == {"first"})
    make(ground, namespace, "second")
    await store.until(lambda: store.names() == {"first", "second"})
    ground.delete("ConfigMap", "first", namespace)
    await store.until(lambda: store.names() == {"second"})
    assert store.synced


async def test_what_is_somebody_elses_is_not_even_sent(
    ground: Ground, namespace: str, store: Told, follow: Follow
) -> None:
    follow()
    ground.create(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "other"}}, namespace
    )
    make(ground, namespace, "ours")
    await store.until(lambda: store.names() == {"ours"})


@pytest.mark.parametrize(
    ("fault", "why"),
    [(Silence(), "failed"), (HangUp(), "failed"), (Expire(), "gone")],
    ids=["silent", "cut", "410"],
)
async def test_a_watch_begins_again_and_misses_nothing(
    fault: Any,
    why: str,
    ground: Ground,
    namespace: str,
    store: Told,
    proxy: FaultProxy,
    follow: Follow,
) -> None:
    make(ground, namespace, "goes")
    struck = proxy.inject(fault, calls("watch", "configmaps"))
    begun_again = follow()
    await store.until(lambda: store.names() == {"goes"})
    await asyncio.to_thread(struck.wait)
    make(ground, namespace, "comes")
    ground.delete("ConfigMap", "goes", namespace)
    await store.until(lambda: store.names() == {"comes"})
    assert why in begun_again


async def test_a_watch_in_which_nothing_happens_is_opened_again_without_an_alarm(
    namespace: str,
    store: Told,
    proxy: FaultProxy,
    follow: Follow,
    caplog: pytest.LogCaptureFixture,
) -> None:
    begun_again = follow()
    await asyncio.to_thread(proxy.wait_for, calls("watch", "configmaps"), count=3)
    assert begun_again
    assert [record.message for record in caplog.records if "cannot" in record.message] == []


async def test_what_vanished_between_two_lists_is_dropped(
    ground: Ground, namespace: str, store: Told, api: Api
) -> None:
    make(ground, namespace, "goes")
    make(ground, namespace, "stays")
    await watch.list_all(api, store, KIND, namespace)
    ground.delete("ConfigMap", "goes", namespace)
    await watch.list_all(api, store, KIND, namespace)
    assert store.names() == {"stays"}


async def test_a_long_list_comes_in_pages(
    ground: Ground, namespace: str, store: Told, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "PAGE", 2)
    wanted = {f"number-{number}" for number in range(5)}
    for name in wanted:
        make(ground, namespace, name)
    await watch.list_all(api, store, KIND, namespace)
    assert store.names() == wanted


async def test_a_right_that_is_missing_is_told_and_asked_for_again(
    ground: Ground,
    namespace: str,
    store: Told,
    proxy: FaultProxy,
    follow: Follow,
) -> None:
    words = (
        'configmaps is forbidden: User "x" cannot list resource "configmaps" in API group "" '
        f'in the namespace "{namespace}"'
    )
    proxy.inject(Answer(403, words), calls("list", "configmaps"), times=2)
    make(ground, namespace, "ours")
    follow()
    await asyncio.to_thread(proxy.wait_for, calls("list", "configmaps"))
    await store.until(lambda: store.names() == {"ours"})
    assert store.synced


async def test_until_a_right_is_given_the_namespace_cannot_be_judged(
    namespace: str, store: Told, api: Api, proxy: FaultProxy
) -> None:
    words = 'pods is forbidden: User "x" cannot list resource "pods" in API group ""'
    proxy.inject(Answer(403, words), calls("list", "pods"), times=None)
    task = asyncio.create_task(watch.follow(api, store, BY_NAME["Pod"], namespace))
    await asyncio.to_thread(proxy.wait_for, calls("list", "pods"), count=2)
    blind = store.blind(namespace)
    assert blind is not None
    assert blind.reason is Reason.PERMISSION_DENIED
    assert store.blind("elsewhere") is None
    task.cancel()


async def sees(store: Store, namespace: str) -> None:
    """Return once nothing keeps the namespace from being seen."""
    async with asyncio.timeout(20):
        while store.blind(namespace) is not None:  # noqa: ASYNC110 (nothing tells of it)
            await asyncio.sleep(0.01)


async def test_a_kind_that_the_cluster_lacks_blinds_nobody_though_its_first_list_failed(
    namespace: str, store: Told, api: Api, proxy: FaultProxy
) -> None:
    """As KEDA's, when the API server is out of breath just as the operator starts."""
    failed = proxy.inject(Answer(500), calls("list", "scaledobjects"))
    task = asyncio.create_task(watch.follow(api, store, BY_NAME["ScaledObject"], namespace))
    await asyncio.to_thread(failed.wait)
    await asyncio.to_thread(proxy.wait_for, calls("list", "scaledobjects"), count=2)
    await sees(store, namespace)
    task.cancel()


async def test_a_right_to_watch_that_is_given_later_is_noticed(
    namespace: str, store: Told, proxy: FaultProxy, follow: Follow
) -> None:
    refused = proxy.inject(Answer(403, "no"), calls("watch", "configmaps"))
    follow()
    await asyncio.to_thread(refused.wait)
    await asyncio.to_thread(proxy.wait_for, calls("watch", "configmaps"), count=2)
    await sees(store, namespace)
