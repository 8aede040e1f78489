"""The quality scorer, of the run or of its namespace. Pure."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator

from watercolour.api import sizes
from watercolour.api.scoring import Scorer
from watercolour_operator import names
from watercolour_operator.desired import deployments, pods
from watercolour_operator.desired.pods import Item, Pod
from watercolour_operator.desired.run import Manifest, Run, identity
from watercolour_operator.desired.templates import merged
from watercolour_operator.names import PORTS, Component
from watercolour_operator.settings import Settings

CHECKPOINT_FOLDER = "/checkpoint"

#: Seconds from SIGTERM to SIGKILL: whoever still asks is told to ask again.
GRACE_SECONDS = 5

#: It answers /livez while it loads, which may include a download.
PROBES = {
    "startupProbe": pods.startup_probe("/livez", every=2),
    "readinessProbe": pods.probe("/readyz", every=2, failures=2),
    "livenessProbe": pods.probe("/livez", every=10, failures=6),
}


def deployment(run: Run, replicas: int, settings: Settings) -> Manifest:
    """The scorer's Deployment."""
    who, spec = identity(run, Component.SCORER), run.spec.scorer
    template = pods.template(
        who, _pod(run, settings), settings, scraped=run.spec.tracking.prometheus
    )
    if spec.queued and run.spec.queue_name:
        template["metadata"]["labels"][names.QUEUE] = run.spec.queue_name
    template = merged(template, run.spec.pod_templates.scorer, Component.SCORER)
    return deployments.deployment(who, template, replicas, deployments.ONE_AT_A_TIME)


def _pod(run: Run, settings: Settings) -> Pod:
    spec = run.spec.scorer
    published = spec.backend == "hpsv3"
    image = settings.images.scorer_hpsv3 if published else settings.images.scorer_embedded
    volume, mount, variables = pods.hub_cache(None, offline=not spec.download)
    checkpoint = _checkpoint_volume(spec)
    config_map = names.config(run.name)
    if run.shares_scorer:
        config_map = identity(run, Component.SCORER).name
    return Pod(
        image=spec.image or image,
        command=("python", "-m", "watercolour.score.service"),
        args=tuple(_args(spec)),
        resources=sizes.of_scorer(run.spec),
        probes=PROBES,
        grace_seconds=GRACE_SECONDS,
        env=tuple(variables),
        volumes=(volume, *checkpoint),
        mounts=(
            mount,
            *(pods.mount(v["name"], CHECKPOINT_FOLDER, read_only=True) for v in checkpoint),
        ),
        shm_mib=1024 if published else 64,
        config_map=config_map if settings.ca_bundle else None,
        direct_hosts=() if spec.download else None,
    )


def _args(spec: Scorer) -> Iterator[str]:
    yield from ("--backend", spec.backend)
    yield from ("--host", "0.0.0.0", "--port", str(PORTS[Component.SCORER]))
    yield from ("--max-batch", str(spec.batching.max_paintings))
    yield from ("--window-seconds", f"{spec.batching.window_seconds:g}")
    if spec.backend != "hpsv3":
        return
    checkpoint = spec.checkpoint
    if checkpoint and checkpoint.claim:
        yield from ("--checkpoint", _held(checkpoint.path))
    elif checkpoint and checkpoint.id:
        yield from ("--checkpoint-id", checkpoint.id)
        if checkpoint.revision:
            yield from ("--checkpoint-revision", checkpoint.revision)
    if checkpoint and checkpoint.base:
        held = checkpoint.claim and checkpoint.base.startswith(".")
        yield from ("--base", _held(checkpoint.base) if held else checkpoint.base)


def _held(path: str) -> str:
    """A path within the claim, which it cannot leave."""
    inside = posixpath.normpath(f"/{path}").lstrip("/")
    return posixpath.join(CHECKPOINT_FOLDER, inside)


def _checkpoint_volume(spec: Scorer) -> list[Item]:
    claim = spec.checkpoint.claim if spec.checkpoint else None
    return [pods.claim_volume("checkpoint", claim, read_only=True)] if claim else []
