"""The renderers: they run what a model wrote, so they reach nobody and hold nothing. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from watercolour.api import sizes
from watercolour_operator.desired import deployments, pods
from watercolour_operator.desired.pods import Item, Pod
from watercolour_operator.desired.run import Manifest, Run, identity
from watercolour_operator.desired.templates import merged
from watercolour_operator.names import PORTS, Component
from watercolour_operator.settings import Settings

#: Seconds beyond a render's deadline until a renderer that is to go is killed: to hear of it, to
#: answer, to close the browser.
MARGIN_SECONDS = 20

#: What the drain before SIGTERM finds the renderer by: no port of the renderer's is open in the
#: network that it has shut itself in, and commands of the kubelet's run there.
DRAIN_SOCKET = "/tmp/drain.sock"

#: The API server's address, which the kubelet tells every container.
API_SERVER = "$(KUBERNETES_SERVICE_HOST):$(KUBERNETES_SERVICE_PORT)"

#: Readiness is asked every second: a burst waits for it. One that is never ready, because it
#: reaches what it must not reach, lives on and says so.
PROBES = {
    "startupProbe": pods.startup_probe("/livez", every=1),
    "readinessProbe": pods.probe("/readyz", every=1, failures=3),
    "livenessProbe": pods.probe("/livez", every=10, failures=6),
}


def deployment(run: Run, replicas: int | None, settings: Settings) -> Manifest:
    """The renderers' Deployment; without replicas they are somebody else's to say."""
    who, spec = identity(run, Component.RENDERERS), run.spec.renderers
    drain_seconds = math.ceil(spec.deadline_seconds) + MARGIN_SECONDS // 2
    pod = Pod(
        image=spec.image or settings.images.renderers,
        command=("python", "-m", "watercolour.render.service"),
        args=tuple(_args(run, settings)),
        resources=sizes.of_renderer(run.spec),
        probes=PROBES,
        grace_seconds=math.ceil(spec.deadline_seconds) + MARGIN_SECONDS,
        lifecycle=_drain(drain_seconds),
        seccomp=_seccomp(run, settings),
        runtime_class=spec.runtime_class_name,
    )
    template = pods.template(who, pod, settings, scraped=run.spec.tracking.prometheus)
    template = merged(template, run.spec.pod_templates.renderers, Component.RENDERERS)
    return deployments.deployment(who, template, replicas, deployments.NO_GAP)


def _args(run: Run, settings: Settings) -> Iterator[str]:
    spec = run.spec.renderers
    yield from ("--host", "0.0.0.0", "--port", str(PORTS[Component.RENDERERS]))
    yield from ("--slots", str(spec.slots))
    yield from ("--grace-seconds", str(math.ceil(spec.deadline_seconds) + 2))
    yield from ("--drain-socket", DRAIN_SOCKET)
    yield from ("--network-canary", spec.network_canary)
    if spec.network_canary != "Off":
        yield from ("--canary-address", settings.canary_address or API_SERVER)
    if spec.allow_unsandboxed:
        yield "--allow-unsandboxed"


def _seccomp(run: Run, settings: Settings) -> Item:
    """Chromium's sandbox needs five calls more than RuntimeDefault has.

    A RuntimeClass brings a kernel of its own, which knows no file of the node's.
    """
    if run.spec.renderers.runtime_class_name or not settings.seccomp_profile:
        return {"type": "RuntimeDefault"}
    return {"type": "Localhost", "localhostProfile": settings.seccomp_profile}


def _drain(seconds: int) -> dict[str, Any]:
    """Before SIGTERM: take no new work, and let what is being painted end."""
    command = ["python", "-m", "watercolour.render.drain", "--seconds", str(seconds)]
    return {"preStop": {"exec": {"command": [*command, "--socket", DRAIN_SOCKET]}}}
