"""The Lease on the real API server: one holder, whatever befalls it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.cluster.ground.api import Api as Ground
from tests.cluster.ground.controlplane import ControlPlane
from tests.cluster.ground.faultproxy import FaultProxy
from tests.cluster.ground.faults import Answer, Hold, calls

from watercolour_operator.cluster.api import Api, connect
from watercolour_operator.lease import Lease, LeaseLost

SECONDS = 3.0


@pytest.fixture
async def api(
    control_plane: ControlPlane, proxy: FaultProxy, namespace: str, tmp_path: Path
) -> AsyncIterator[Api]:
    token = control_plane.token_of(namespace, "operator", cluster_admin=True)
    async with connect(str(proxy.kubeconfig(token, tmp_path / "kubeconfig"))) as connected:
        yield connected


@pytest.fixture
def ground(control_plane: ControlPlane) -> Ground:
    return control_plane.api


def of(api: Api, namespace: str, identity: str, seconds: float = SECONDS) -> Lease:
    return Lease(api, namespace, "operator", identity, seconds)


def holder(ground: Ground, namespace: str) -> str:
    return ground.get("Lease", "operator", namespace)["spec"]["holderIdentity"]


async def test_the_first_one_has_it_for_less_than_its_whole_time(api: Api, namespace: str) -> None:
    lease = of(api, namespace, "a")
    assert not lease.held
    await lease.acquire()
    assert 0 < lease.remaining() <= SECONDS * 2 / 3


async def test_another_one_gets_it_when_it_is_given_back(
    api: Api, namespace: str, ground: Ground
) -> None:
    first, second = of(api, namespace, "a", 60), of(api, namespace, "b", 60)
    await first.acquire()
    waiting = asyncio.create_task(second.acquire())
    await asyncio.to_thread(
        ground.until_one, "Lease", "operator", namespace, lambda it: it["spec"]["holderIdentity"]
    )
    assert not waiting.done()
    await first.release()
    assert not first.held
    async with asyncio.timeout(20):
        await waiting
    assert holder(ground, namespace) == "b"


async def test_another_one_gets_it_when_the_holder_is_silent_and_only_then(
    api: Api, namespace: str, ground: Ground
) -> None:
    first, second = of(api, namespace, "a"), of(api, namespace, "b")
    await first.acquire()
    async with asyncio.timeout(20):
        await second.acquire()
    assert second.held
    assert not first.held, "the first one's time must be over before the second one's begins"


async def test_who_is_known_by_its_name_takes_it_back_at_once(api: Api, namespace: str) -> None:
    """A container that was started again in the same pod."""
    await of(api, namespace, "pod-1", 60).acquire()
    async with asyncio.timeout(10):
        await of(api, namespace, "pod-1", 60).acquire()


async def test_a_holder_that_is_replaced_ends(api: Api, namespace: str, ground: Ground) -> None:
    lease = of(api, namespace, "a")
    await lease.acquire()
    holding = asyncio.create_task(lease.hold())
    stolen = {"spec": {"holderIdentity": "b", "leaseDurationSeconds": 60}}
    await asyncio.to_thread(ground.patch, "Lease", "operator", stolen, namespace)
    with pytest.raises(LeaseLost, match="b holds lease"):
        async with asyncio.timeout(20):
            await holding
    assert lease.remaining() == 0


@pytest.mark.parametrize("fault", [Answer(500), Hold()], ids=["refused", "unanswered"])
async def test_a_holder_that_cannot_renew_ends(
    api: Api, namespace: str, proxy: FaultProxy, fault: Answer | Hold
) -> None:
    lease = of(api, namespace, "a")
    await lease.acquire()
    proxy.inject(fault, calls(resource="leases"), times=None)
    with pytest.raises(LeaseLost):
        # A call may take 30 s.
        async with asyncio.timeout(20):
            await lease.hold()
    assert not lease.held


async def test_one_failed_renewal_is_borne(api: Api, namespace: str, proxy: FaultProxy) -> None:
    lease = of(api, namespace, "a", 9)
    await lease.acquire()
    failed = proxy.inject(Answer(500), calls("update", "leases"))
    holding = asyncio.create_task(lease.hold())
    await asyncio.to_thread(failed.wait)
    await asyncio.to_thread(proxy.wait_for, calls("update", "leases"), count=3)
    assert lease.held
    holding.cancel()
