"""One connection to the API server: authentication, time-outs, rate, the guard before a write."""

from __future__ import annotations

import asyncio
import json
import os
import re
import ssl
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

import aiohttp
from kubernetes.aio import client as kubernetes_client
from kubernetes.aio import config as kubernetes_config

from watercolour_operator.cluster.errors import ApiError, WriteRefused
from watercolour_operator.cluster.kinds import Kind

Raw = dict[str, Any]

JSON = "application/json"
METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
METADATA_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
APPLY = "application/apply-patch+yaml"
MERGE = "application/merge-patch+json"

#: Longest answer of a pod that is read, in bytes.
LONGEST_ANSWER = 65536
#: Connections of one operator: its watches, its workers, and some air.
CONNECTIONS = 200
#: Seconds for which an idle connection is kept; API servers keep theirs for longer.
KEEP_SECONDS = 75.0
#: Longest event of a watch, in bytes: more than etcd stores of one object.
LONGEST_EVENT = 2**21


class NoCluster(Exception):
    """No usable configuration leads to an API server."""


@dataclass
class Bucket:
    """Tokens that come back with time: a rate with a burst."""

    per_second: float
    burst: float
    _tokens: float = field(init=False)
    _at: float = field(init=False)

    def __post_init__(self) -> None:
        self._tokens = self.burst
        self._at = time.monotonic()

    def take(self) -> float:
        """Take a token; returns the seconds to wait until it may be used."""
        self._refill()
        self._tokens -= 1
        return max(0.0, -self._tokens / self.per_second)

    @property
    def free(self) -> bool:
        """Whether a token could be used without waiting."""
        self._refill()
        return self._tokens >= 1

    def _refill(self) -> None:
        now = time.monotonic()
        self._tokens = min(self.burst, self._tokens + (now - self._at) * self.per_second)
        self._at = now

    def take_if_free(self) -> bool:
        """Take a token only if that needs no waiting."""
        if not self.free:
            return False
        self._tokens -= 1
        return True


@dataclass
class Api:
    """The API server, as the rest of the operator sees it."""

    client: kubernetes_client.ApiClient
    session: aiohttp.ClientSession
    #: Seconds of one call before it counts as failed.
    request_seconds: float
    rate: Bucket
    #: Seconds for which this process may still write; 0 refuses. A Lease sets it.
    may_write: Callable[[], float] = lambda: float("inf")
    #: Told of every call that ended: verb, status (0 without an answer), seconds.
    ended: Callable[[str, int, float], None] = lambda verb, status, seconds: None

    @property
    def host(self) -> str:
        """Base URL of the API server."""
        return str(self.client.configuration.host)

    async def get(
        self, kind: Kind, namespace: str, name: str, *, metadata: bool = False, below: str = ""
    ) -> Raw | None:
        """One object as the server has it now, or None when there is none.

        Raises:
            ApiError: any other answer, or none.
        """
        accept = METADATA if metadata else JSON
        path = kind.path(namespace, name, below)
        try:
            return await self._call("get", "GET", kind, path, namespace, name, accept=accept)
        except ApiError as error:
            if error.status == 404:
                return None
            raise

    async def token(self) -> str | None:
        """The bearer token in force, with its scheme; None where certificates speak."""
        return await self.client.configuration.get_api_key_with_prefix("BearerToken")

    async def page(
        self, kind: Kind, namespace: str | None, query: Mapping[str, str], *, metadata: bool = False
    ) -> Raw:
        """One page of a list."""
        path = f"{kind.path(namespace)}?{urlencode(query)}"
        accept = METADATA_LIST if metadata else JSON
        page = await self._call("list", "GET", kind, path, namespace or "", "", accept=accept)
        # An empty list of metadata says null.
        page["items"] = page.get("items") or []
        return page

    async def reach(self, method: str, path: str, seconds: float) -> bytes:
        """What a pod answers through the API server's proxy.

        Raises:
            ApiError: it answered with an error, at too great length, or not in time.
        """
        try:
            async with asyncio.timeout(seconds):
                limit = aiohttp.ClientTimeout(total=seconds)
                answer = await self._send(method, path, "*/*", None, JSON, limit)
                async with answer:
                    text = await short(answer.content)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise ApiError(0, _no_answer(error, seconds), verb=method) from error
        if answer.status >= 400:
            raise ApiError(answer.status, _words(text), verb=method)
        return text

    async def write(
        self,
        verb: str,
        kind: Kind,
        namespace: str,
        name: str,
        *,
        body: Raw | None = None,
        query: Mapping[str, str] | None = None,
        content: str = JSON,
        below: str = "",
    ) -> Raw:
        """A call that changes something: ``create``, ``patch``, ``update`` or ``delete``.

        Raises:
            WriteRefused: the Lease is not surely held any more.
            ApiError: the server refused or did not answer; the change may have happened.
        """
        method = {"create": "POST", "patch": "PATCH", "update": "PUT", "delete": "DELETE"}[verb]
        path = kind.path(namespace, "" if verb == "create" else name, below)
        if query:
            path = f"{path}?{urlencode(query)}"
        return await self._call(
            verb, method, kind, path, namespace, name, body=body, content=content, guarded=True
        )

    async def write_unguarded(
        self, verb: str, kind: Kind, namespace: str, name: str, body: Raw
    ) -> Raw:
        """A write that needs no Lease: the Lease's own."""
        method = {"create": "POST", "update": "PUT"}[verb]
        path = kind.path(namespace, "" if verb == "create" else name)
        return await self._call(verb, method, kind, path, namespace, name, body=body, urgent=True)

    async def _call(
        self,
        verb: str,
        method: str,
        kind: Kind,
        path: str,
        namespace: str,
        name: str,
        *,
        accept: str = JSON,
        body: Raw | None = None,
        content: str = JSON,
        guarded: bool = False,
        urgent: bool = False,
    ) -> Raw:
        def failed(status: int, words: str, retry_after: float | None = None) -> ApiError:
            return ApiError(
                status,
                words,
                verb=verb,
                resource=kind.resource,
                namespace=namespace,
                name=name,
                retry_after=retry_after,
            )

        if not urgent:
            await asyncio.sleep(self.rate.take())
        seconds = self.request_seconds
        if guarded:
            # Looked at last of all: a process that slept here must not wake up writing.
            seconds = min(seconds, self.may_write())
            if seconds <= 0:
                raise WriteRefused
        began, status = time.monotonic(), 0
        try:
            async with asyncio.timeout(seconds):
                limit = aiohttp.ClientTimeout(total=seconds)
                answer = await self._send(method, path, accept, body, content, limit)
                async with answer:
                    status = answer.status
                    text = await answer.read()
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise failed(0, _no_answer(error, seconds)) from error
        finally:
            self.ended(verb, status, time.monotonic() - began)
        if status >= 400:
            raise failed(status, _words(text), _retry_after(answer))
        return json.loads(text)

    async def _send(
        self, method: str, path: str, accept: str, body: Raw | None, content: str, limit: Any
    ) -> aiohttp.ClientResponse:
        headers = {"Accept": accept, "Content-Type": content}
        rest, url = self.client.rest_client, self.host + path
        await self.client.update_params_for_auth(headers, [], ["BearerToken"], url, method, None)
        # Not by the client's own `request`: it writes YAML as JSON that YAML cannot always read.
        return await self.session.request(
            method,
            url,
            headers=headers,
            data=None if body is None else _encoded(body, content),
            timeout=limit,
            proxy=rest.proxy,
            proxy_headers=rest.proxy_headers,
            server_hostname=self.client.configuration.tls_server_name,
        )

    @asynccontextmanager
    async def watch(
        self, kind: Kind, namespace: str | None, query: Mapping[str, str], *, silence: float
    ) -> AsyncGenerator[AsyncGenerator[Raw]]:
        """The events of one watch, until the server ends it or is silent for too long.

        Raises:
            ApiError: the server refused, went away, or said nothing for ``silence`` seconds.
        """
        path = f"{kind.path(namespace)}?{urlencode({**query, 'watch': 'true'})}"
        accept = JSON if kind.whole else METADATA
        limits = aiohttp.ClientTimeout(total=None, sock_connect=10, sock_read=silence)

        def failed(status: int, words: str, retry_after: float | None = None) -> ApiError:
            return ApiError(
                status,
                words,
                verb="watch",
                resource=kind.resource,
                namespace=namespace or "",
                retry_after=retry_after,
            )

        try:
            answer = await self._send("GET", path, accept, None, JSON, limits)
            async with answer:
                if answer.status >= 400:
                    words = _words(await answer.read())
                    raise failed(answer.status, words, _retry_after(answer))
                yield _lines(answer)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise failed(0, _no_answer(error, silence)) from error


async def short(content: aiohttp.StreamReader) -> bytes:
    """A whole body of at most LONGEST_ANSWER bytes.

    Raises:
        ClientPayloadError: it is longer.
    """
    body = b""
    async for chunk in content.iter_any():
        body += chunk
        if len(body) > LONGEST_ANSWER:
            raise aiohttp.ClientPayloadError(f"longer than {LONGEST_ANSWER} bytes")
    return body


def _encoded(body: Raw, content: str) -> bytes:
    """The body as JSON; for a server-side apply in the way in which it is YAML too.

    YAML knows no pairs of surrogates: what lies beyond U+FFFF has an escape of its own.
    """
    if content != APPLY:
        return json.dumps(body).encode()
    text = json.dumps(body, ensure_ascii=False)
    return _BEYOND_ASCII.sub(_escaped, text).encode("ascii")


_BEYOND_ASCII = re.compile("[^\x00-\x7e]")


def _escaped(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\U{code:08x}" if code > 0xFFFF else f"\\u{code:04x}"


async def _lines(answer: aiohttp.ClientResponse) -> AsyncGenerator[Raw]:
    async for line in answer.content:
        if line.strip():
            yield json.loads(line)


def _words(text: bytes) -> str:
    """The server's message: of a Status object, or the plain text of whatever stands before it."""
    try:
        return str(json.loads(text)["message"])
    except (ValueError, KeyError, TypeError):
        return text.decode("utf-8", "replace")[:500].strip() or "no message"


def _no_answer(error: Exception, seconds: float) -> str:
    if isinstance(error, TimeoutError):
        return f"no answer within {seconds:.3g} s"
    return str(error) or type(error).__name__


def _retry_after(answer: aiohttp.ClientResponse) -> float | None:
    try:
        return min(60.0, float(answer.headers["Retry-After"]))
    except (KeyError, ValueError):
        return None


@asynccontextmanager
async def connect(
    kubeconfig: str | None,
    *,
    request_seconds: float = 30.0,
    per_second: float = 100.0,
    burst: float = 200.0,
) -> AsyncGenerator[Api]:
    """The API server that a kubeconfig names; without one that of this pod, or kubectl's own.

    Raises:
        NoCluster: neither the file nor the pod's account can be used.
    """
    settings = kubernetes_client.Configuration()
    if kubeconfig is not None and not os.access(kubeconfig, os.R_OK):
        raise NoCluster(f"kubeconfig {kubeconfig} cannot be read. Name another with --kubeconfig.")
    try:
        if kubeconfig is None and "KUBERNETES_SERVICE_HOST" in os.environ:
            kubernetes_config.load_incluster_config(client_configuration=settings)
        else:
            await kubernetes_config.load_kube_config(
                config_file=kubeconfig, client_configuration=settings, persist_config=False
            )
    except (kubernetes_config.ConfigException, OSError) as error:
        where = f"kubeconfig {kubeconfig}" if kubeconfig else "kubectl's configuration"
        raise NoCluster(
            f"{where} cannot be used: {error}. Name another with --kubeconfig."
        ) from error
    async with kubernetes_client.ApiClient(settings) as client:
        session = client.rest_client.pool_manager = _session(client.rest_client.ssl_context)
        yield Api(client, session, request_seconds, Bucket(per_second, burst))


def _session(tls: ssl.SSLContext) -> aiohttp.ClientSession:
    """The client's own, but for connections that outlive the pauses between two looks.

    A new connection costs more than most calls do.
    """
    connector = aiohttp.TCPConnector(limit=CONNECTIONS, ssl=tls, keepalive_timeout=KEEP_SECONDS)
    return aiohttp.ClientSession(connector=connector, trust_env=True, read_bufsize=LONGEST_EVENT)
