"""A proxy between a client and the API server that does to chosen calls what networks do.

    with FaultProxy(control_plane) as proxy:
        rule = proxy.inject(Drop(after=True), calls("create", "jobs"))
        start_operator(proxy.kubeconfig(token))
        rule.wait()

It serves HTTPS with the API server's own certificate and passes tokens on, so only the address
differs. It runs in a thread of its own: blocking and async tests use it alike. It does not pass
on upgraded connections (exec, port-forward).
"""

from __future__ import annotations

import asyncio
import json
import ssl
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Self

import aiohttp
from aiohttp import web
from tests.cluster.ground.controlplane import ControlPlane
from tests.cluster.ground.faults import (
    Answer,
    Call,
    Delay,
    Drop,
    Expire,
    Fault,
    HangUp,
    Hold,
    Matches,
    Replay,
    Rule,
    Silence,
    WatchFault,
    all_but_watches,
    parse,
    status_object,
)
from tests.cluster.ground.loopthread import LoopThread
from tests.cluster.ground.processes import free_ports
from tests.cluster.ground.streams import lines

# Headers that belong to one connection and not to the call.
_HOP = {"host", "connection", "transfer-encoding", "content-length", "accept-encoding"}
_HOP_BACK = {"connection", "transfer-encoding", "content-length", "content-encoding"}


class FaultProxy:
    """Passes calls on, notes each, and injects the faults that a test asks for."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane
        [self.port] = free_ports(1)
        self.server = f"https://127.0.0.1:{self.port}"
        self.calls: list[Call] = []
        self._rules: list[Rule] = []
        self._lock = threading.Condition()

    def __enter__(self) -> Self:
        self._thread = LoopThread("fault-proxy")
        self._thread.call(self._open())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for rule in self._rules:
            rule.release()
        self._thread.call(self._shut())
        self._thread.close()

    def kubeconfig(self, token: str, path: Path) -> Path:
        """Write a kubeconfig that leads through the proxy with this token."""
        return self._plane.kubeconfig_of(token, path, server=self.server)

    def inject(
        self,
        fault: Fault,
        matches: Matches = all_but_watches,
        *,
        at: int = 1,
        times: int | None = 1,
    ) -> Rule:
        """Strike the `at`-th matching call from now on, and `times` - 1 after it; None: all.

        A call that two rules take suffers the older one.
        """
        rule = Rule(fault, matches, at, times)
        with self._lock:
            self._rules.append(rule)
        return rule

    def clear(self) -> None:
        """Take all faults back and let held calls go on; calls stay noted."""
        with self._lock:
            for rule in self._rules:
                rule.release()
            self._rules.clear()

    def seen(self, matches: Matches) -> list[Call]:
        """The calls so far that match."""
        with self._lock:
            return [call for call in self.calls if matches(call)]

    def wait_for(self, matches: Matches, *, count: int = 1, timeout: float = 30.0) -> list[Call]:
        """Return once `count` matching calls have been answered, now or before.

        Raises AssertionError after `timeout` seconds.
        """

        def answered() -> list[Call]:
            return [call for call in self.calls if matches(call) and call.status is not None]

        deadline = time.monotonic() + timeout
        with self._lock:
            while len(found := answered()) < count:
                left = deadline - time.monotonic()
                assert left > 0, f"{len(found)} of {count} calls within {timeout:g} s"
                self._lock.wait(left)
            return found

    async def _open(self) -> None:
        # The server's idle connections must not be reused after it was restarted, so a call that
        # the proxy itself could not deliver is told to the client as a dropped connection.
        self._upstream = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                ssl=ssl.create_default_context(cafile=str(self._plane.ca)), limit=0
            ),
            timeout=aiohttp.ClientTimeout(total=None),
            skip_auto_headers=["Accept-Encoding"],  # a packed watch could not be counted
        )
        app = web.Application(client_max_size=64 << 20)
        app.router.add_route("*", "/{path:.*}", self._serve)
        # A client that leaves cancels its call, as it would at the API server itself.
        self._runner = web.AppRunner(
            app, access_log=None, shutdown_timeout=0.1, handler_cancellation=True
        )
        await self._runner.setup()
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(*map(str, self._plane.serving))
        await web.TCPSite(self._runner, "127.0.0.1", self.port, ssl_context=context).start()

    async def _shut(self) -> None:
        await self._runner.cleanup()
        await self._upstream.close()

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        headers = {key.lower(): value for key, value in request.headers.items()}
        query = dict(request.query)
        with self._lock:
            number = len(self.calls) + 1
            call = parse(number, request.method, request.path, query, headers, body)
            self.calls.append(call)
            takers = [rule for rule in self._rules if rule.takes(call)]
        rule = takers[0] if takers else None
        if rule:
            call.fault = str(rule.fault)
        try:
            return await self._handle(request, call, rule)
        finally:
            with self._lock:
                self._lock.notify_all()

    async def _handle(
        self, request: web.Request, call: Call, rule: Rule | None
    ) -> web.StreamResponse:
        fault = rule.fault if rule else None
        before = isinstance(fault, Delay | Drop | Answer | Hold) and not fault.after
        if rule and before:
            replaced = await self._strike(request, rule, call)
            if replaced is not None:
                return replaced
        try:
            async with self._upstream.request(
                request.method,
                f"{self._plane.server}{request.raw_path}",
                data=call.body or None,
                headers={k: v for k, v in request.headers.items() if k.lower() not in _HOP},
                allow_redirects=False,
            ) as answer:
                if call.verb == "watch" and answer.status == 200:
                    return await self._stream(request, call, answer, rule)
                content = await answer.read()
                if rule and not before:
                    replaced = await self._strike(request, rule, call)
                    if replaced is not None:
                        return replaced
                call.status = answer.status
                kept = {k: v for k, v in answer.headers.items() if k.lower() not in _HOP_BACK}
                return web.Response(status=answer.status, body=content, headers=kept)
        except aiohttp.ClientError:
            return self._cut(request)

    async def _strike(
        self, request: web.Request, rule: Rule, call: Call
    ) -> web.StreamResponse | None:
        """Do the fault; None lets the call go its way."""
        rule.strike()
        match rule.fault:
            case Delay():
                await asyncio.sleep(rule.fault.seconds)
            case Hold():
                while not rule.released.is_set():  # noqa: ASYNC110 (set by another thread)
                    await asyncio.sleep(0.005)
            case Drop():
                return self._cut(request)
            case Answer():
                call.status = rule.fault.status
                return _answer(rule.fault)
            case _:
                pass
        return None

    def _cut(self, request: web.Request) -> web.StreamResponse:
        if request.transport is not None:
            request.transport.abort()
        return web.Response()

    async def _stream(
        self,
        request: web.Request,
        call: Call,
        answer: aiohttp.ClientResponse,
        rule: Rule | None,
    ) -> web.StreamResponse:
        call.status = answer.status
        with self._lock:
            self._lock.notify_all()
        kept = {k: v for k, v in answer.headers.items() if k.lower() not in _HOP_BACK}
        response = web.StreamResponse(status=answer.status, headers=kept)
        response.enable_chunked_encoding()
        await response.prepare(request)
        passed = 0
        first = b""
        try:
            if not await _spoil(request, response, rule, passed, first):
                return response
            async for line in lines(answer):
                await response.write(line + b"\n")
                first = first or line
                passed += 1
                if not await _spoil(request, response, rule, passed, first):
                    break
        except ConnectionError:  # the client has gone
            pass
        return response


async def _spoil(
    request: web.Request, response: web.StreamResponse, rule: Rule | None, passed: int, first: bytes
) -> bool:
    """Do a watch's fault if `passed` events are what it waits for; False ends the watch."""
    fault = rule.fault if rule else None
    if rule is None or not isinstance(fault, WatchFault) or fault.events != passed:
        return True
    rule.strike()
    match fault:
        case Silence():
            # Until the client leaves it hears nothing, not even the watch's end.
            await asyncio.Event().wait()
        case HangUp():
            if request.transport is not None:
                request.transport.abort()
        case Expire():
            gone = {"type": "ERROR", "object": status_object(410, "too old resource version")}
            await response.write(json.dumps(gone).encode() + b"\n")
            await response.write_eof()
        case Replay():
            if first:
                await response.write(first + b"\n")
            return True
    return False


def _answer(fault: Answer) -> web.Response:
    after = fault.retry_after
    headers = {} if after is None else {"Retry-After": str(after)}
    document = status_object(fault.status, fault.message, after)
    return web.json_response(document, status=fault.status, headers=headers)
