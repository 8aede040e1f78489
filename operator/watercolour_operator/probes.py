"""What the operator answers over HTTP: /livez and /readyz on one port, /metrics on another."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from aiohttp import web
from prometheus_client import generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

from watercolour_operator.serve import Operator

#: Seconds for which a run may be due without being looked at before the process counts as stuck.
STUCK_SECONDS = 120.0


@asynccontextmanager
async def served(operator: Operator) -> AsyncGenerator[None]:
    """Answer while the block runs.

    Raises:
        OSError: a port is in use.
    """
    settings = operator.settings
    health = web.Application()
    health.router.add_get("/livez", lambda _: live(operator))
    health.router.add_get("/healthz", lambda _: live(operator))
    health.router.add_get("/readyz", lambda _: ready(operator))
    figures = web.Application()
    figures.router.add_get("/metrics", lambda _: metrics(operator))
    runners: list[web.AppRunner] = []
    try:
        ports = ((health, settings.liveness_port), (figures, settings.metrics_port))
        for application, port in ports:
            runner = web.AppRunner(application, access_log=None)
            runners.append(runner)
            await runner.setup()
            await web.TCPSite(runner, settings.metrics_host, port).start()
        yield
    finally:
        for runner in runners:
            await runner.cleanup()


async def live(operator: Operator) -> web.Response:
    """Whether the process does its work: answering at all shows that its loop turns."""
    waiting = operator.queue.oldest_seconds if operator.lease.held else 0.0
    body = {
        "secondsSinceLastLook": round(time.monotonic() - operator.last_look, 1),
        "longestWaitingSeconds": round(waiting, 1),
        "leaseHeld": operator.lease.held,
    }
    return web.json_response(body, status=200 if waiting < STUCK_SECONDS else 503)


async def ready(operator: Operator) -> web.Response:
    """Whether it sees the cluster; one that waits for the Lease is ready to take over."""
    unseen = {
        f"{kind} in {scope or 'all namespaces'}": trouble.message
        for (kind, scope), trouble in operator.store.watches.items()
        if trouble is not None
    }
    body = {"waitsFor": operator.waits_for, "unseen": unseen, "leaseHeld": operator.lease.held}
    fine = operator.store.synced and not operator.waits_for
    return web.json_response(body, status=200 if fine else 503)


async def metrics(operator: Operator) -> web.Response:
    """Every series in Prometheus' text format."""
    text = generate_latest(operator.metrics.registry)
    return web.Response(body=text, headers={"Content-Type": CONTENT_TYPE_PLAIN_0_0_4})
