"""Each fault of the proxy does to a client what it says, and nothing else."""

from __future__ import annotations

import http.client
import json
import ssl
import time
import urllib.parse
from collections.abc import Iterator

import httpx
import pytest
from tests.cluster.ground.api import Api, ApiError, Json
from tests.cluster.ground.controlplane import ControlPlane
from tests.cluster.ground.faultproxy import FaultProxy
from tests.cluster.ground.faults import (
    Answer,
    Delay,
    Drop,
    Expire,
    HangUp,
    Hold,
    Replay,
    Silence,
    calls,
    parse,
)


@pytest.fixture
def client(control_plane: ControlPlane, namespace: str, proxy: FaultProxy) -> Iterator[Api]:
    """A client that goes through the proxy with a token of its own."""
    token = control_plane.token_of(namespace, "client", cluster_admin=True)
    api = Api(proxy.server, token, control_plane.ca)
    yield api
    api.close()


def config_map(name: str, text: str = "") -> Json:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name},
        "data": {"text": text},
    }


CREATE = calls("create", "configmaps")


READ = [
    ("GET /api/v1/namespaces/n/pods", "", "list . pods . n ."),
    ("GET /api/v1/pods?watch=1", "", "watch . pods . . ."),
    ("GET /api/v1/namespaces/n", "", "get . namespaces . . n"),
    ("PUT /api/v1/namespaces/n/finalize", "", "update . namespaces finalize n n"),
    ("POST /apis/batch/v1/namespaces/n/jobs", "", "create batch jobs . n ."),
    ("PATCH /apis/g.dev/v1/namespaces/n/runs/t/status", "apply", "apply g.dev runs status n t"),
    ("PATCH /apis/apps/v1/namespaces/n/deployments/d", "json", "patch apps deployments . n d"),
    ("DELETE /apis/batch/v1/namespaces/n/jobs", "", "deletecollection batch jobs . n ."),
    ("GET /apis/apps/v1", "", "list . . . . ."),
]


@pytest.mark.parametrize(("request_line", "patch", "expected"), READ)
def test_calls_are_read_as_the_server_reads_them(
    request_line: str, patch: str, expected: str
) -> None:
    method, url = request_line.split()
    path, _, query = url.partition("?")
    headers = {"content-type": f"application/{patch}-patch+yaml"}
    call = parse(1, method, path, dict(urllib.parse.parse_qsl(query)), headers, b"")
    read = (call.verb, call.group, call.resource, call.subresource, call.namespace, call.name)
    assert " ".join(part or "." for part in read) == expected


def test_untouched_calls_pass_with_the_callers_own_rights(
    client: Api, control_plane: ControlPlane, proxy: FaultProxy, namespace: str
) -> None:
    client.create(config_map("a", "ü" * 100_000), namespace)
    assert client.get("ConfigMap", "a", namespace)["data"]["text"] == "ü" * 100_000
    assert [(c.verb, c.name, c.status) for c in proxy.calls] == [
        ("create", "", 201),
        ("get", "a", 200),
    ]
    user = f"system:serviceaccount:{namespace}:client"
    logged = [(call.verb, call.code) for call in control_plane.calls(user)]
    assert logged == [("create", 201), ("get", 200)]
    powerless = Api(proxy.server, control_plane.token_of(namespace, "nobody"), control_plane.ca)
    with pytest.raises(ApiError, match="forbidden"):
        powerless.get("ConfigMap", "a", namespace)


@pytest.mark.parametrize("status", [409, 422, 429, 500, 503])
@pytest.mark.parametrize("after", [False, True])
def test_answer_replaces_the_servers_before_or_after_the_effect(
    client: Api, api: Api, proxy: FaultProxy, namespace: str, status: int, after: bool
) -> None:
    proxy.inject(Answer(status, after=after), CREATE)
    with pytest.raises(ApiError) as refused:
        client.create(config_map("a"), namespace)
    assert refused.value.code == status
    assert (api.find("ConfigMap", "a", namespace) is not None) == after
    client.create(config_map("b"), namespace)  # the fault was for one call


def test_too_many_requests_says_when_to_come_back(
    client: Api, proxy: FaultProxy, control_plane: ControlPlane, namespace: str
) -> None:
    proxy.inject(Answer(429, retry_after=7))
    context = ssl.create_default_context(cafile=str(control_plane.ca))
    answer = httpx.get(f"{proxy.server}/api/v1/namespaces/{namespace}/pods", verify=context)
    assert answer.headers["Retry-After"] == "7"
    assert answer.json()["details"]["retryAfterSeconds"] == 7


@pytest.mark.parametrize("after", [False, True])
def test_drop_closes_the_connection_before_or_after_the_effect(
    client: Api, api: Api, proxy: FaultProxy, namespace: str, after: bool
) -> None:
    proxy.inject(Drop(after=after), CREATE)
    with pytest.raises(httpx.RemoteProtocolError):
        client.create(config_map("a"), namespace)
    assert (api.find("ConfigMap", "a", namespace) is not None) == after


@pytest.mark.parametrize("after", [False, True])
def test_held_call_goes_on_when_released(
    client: Api, api: Api, proxy: FaultProxy, namespace: str, after: bool
) -> None:
    rule = proxy.inject(Hold(after=after), CREATE)
    connection, headers = raw(client)
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    connection.request("POST", path, json.dumps(config_map("a")), headers)
    rule.wait()
    assert (api.find("ConfigMap", "a", namespace) is not None) == after
    rule.release()
    assert connection.getresponse().status == 201


def test_held_call_of_a_client_that_left_never_arrives(
    client: Api, api: Api, proxy: FaultProxy, namespace: str
) -> None:
    rule = proxy.inject(Hold(), CREATE)
    connection, headers = raw(client)
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    connection.request("POST", path, json.dumps(config_map("a")), headers)
    rule.wait()
    connection.close()
    client.create(config_map("b"), namespace)
    proxy.clear()
    client.create(config_map("c"), namespace)
    assert proxy.calls[0].status is None
    assert api.find("ConfigMap", "a", namespace) is None


def test_delay_comes_before_the_effect(client: Api, proxy: FaultProxy, namespace: str) -> None:
    proxy.inject(Delay(0.3), CREATE)
    begun = time.monotonic()
    client.create(config_map("a"), namespace)
    assert time.monotonic() - begun >= 0.3


def test_fault_strikes_the_kth_matching_call_alone(
    client: Api, proxy: FaultProxy, namespace: str
) -> None:
    rule = proxy.inject(Answer(500), CREATE, at=3, times=2)
    outcomes: list[int] = []
    for name in "abcde":
        client.list("ConfigMap", namespace)
        try:
            client.create(config_map(name), namespace)
            outcomes.append(201)
        except ApiError as refusal:
            outcomes.append(refusal.code)
    assert outcomes == [201, 201, 500, 500, 201]
    assert (rule.seen, rule.hits) == (5, 2)
    assert [call.number for call in proxy.seen(lambda call: bool(call.fault))] == [6, 8]


def watched(client: Api, namespace: str, since: str, timeout: float = 1.0) -> Iterator[str]:
    for event in client.events_of("ConfigMap", namespace, since=since, timeout=timeout):
        thing = event["object"]
        yield f"{event['type']} {thing.get('metadata', {}).get('name') or thing.get('code')}"


def three(api: Api, namespace: str) -> str:
    """Make three config maps and return the version before them."""
    since = api.create(config_map("zero"), namespace)["metadata"]["resourceVersion"]
    for name in "abc":
        api.create(config_map(name), namespace)
    return since


def test_silent_watch_stays_open_and_says_nothing(
    client: Api, api: Api, proxy: FaultProxy, namespace: str
) -> None:
    rule = proxy.inject(Silence(events=2), calls("watch"))
    since = three(api, namespace)
    # The watch would end by itself after a second; the client gives up on a silence.
    assert list(watched(client, namespace, since)) == ["ADDED a", "ADDED b"]
    assert rule.hits == 1
    assert list(watched(client, namespace, since)) == ["ADDED a", "ADDED b", "ADDED c"]


@pytest.mark.parametrize("events", [0, 2])
def test_watch_is_cut(
    client: Api, api: Api, proxy: FaultProxy, namespace: str, events: int
) -> None:
    proxy.inject(HangUp(events), calls("watch"))
    since = three(api, namespace)
    seen: list[str] = []
    with pytest.raises(httpx.RemoteProtocolError):
        # What came before the cut is kept, and counts.
        seen.extend(watched(client, namespace, since))
    assert len(seen) <= events
    assert len(list(watched(client, namespace, since))) == 3


def test_watch_expires(client: Api, api: Api, proxy: FaultProxy, namespace: str) -> None:
    proxy.inject(Expire(events=1), calls("watch"))
    since = three(api, namespace)
    assert list(watched(client, namespace, since)) == ["ADDED a", "ERROR 410"]


def test_watch_replays_an_old_version(
    client: Api, api: Api, proxy: FaultProxy, namespace: str
) -> None:
    proxy.inject(Replay(events=2), calls("watch"))
    since = three(api, namespace)
    told = list(watched(client, namespace, since))
    assert told == ["ADDED a", "ADDED b", "ADDED a", "ADDED c"]


def test_waits_for_a_call_of_the_past_or_the_future(
    client: Api, proxy: FaultProxy, namespace: str
) -> None:
    client.create(config_map("a"), namespace)
    [call] = proxy.wait_for(CREATE)
    assert call.json()["metadata"]["name"] == "a"
    with pytest.raises(AssertionError, match="1 of 2 calls"):
        proxy.wait_for(CREATE, count=2, timeout=0.1)


def raw(client: Api) -> tuple[http.client.HTTPSConnection, dict[str, str]]:
    """A connection whose request can be sent without waiting for its answer."""
    place = urllib.parse.urlsplit(client.server)
    context = ssl.create_default_context(cafile=str(client.authority))
    connection = http.client.HTTPSConnection(place.netloc, context=context, timeout=20)
    return connection, {**client.headers, "Content-Type": "application/json"}
