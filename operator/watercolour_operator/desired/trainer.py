"""The trainer: one Job for every attempt, and never two pods for one. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from watercolour.api import sizes
from watercolour_operator import names
from watercolour_operator.desired import pods, services, storage
from watercolour_operator.desired.pods import Item, Pod
from watercolour_operator.desired.run import Manifest, Run, identity
from watercolour_operator.desired.templates import merged
from watercolour_operator.names import PORTS, Component
from watercolour_operator.settings import Settings

#: Seconds for a checkpoint after SIGTERM. The step under way ends first, which takes minutes for a
#: large policy; who ends sooner goes sooner.
GRACE_SECONDS = 300

#: The variables that hold the hub's tokens: one to read the model, one to write checkpoints.
HUB_TOKEN = "HF_TOKEN"
PUSH_TOKEN = "WATERCOLOUR_PUSH_TOKEN"
#: The variable from which trackio takes the token that its server wants.
TRACKER_TOKEN = "TRACKIO_WRITE_TOKEN"

#: It answers before its libraries are loaded. Only a process that is silent for five minutes is
#: dead: one that holds the interpreter while it reads weights is not.
PROBES = {
    "readinessProbe": pods.probe("/readyz", every=5, failures=3),
    "livenessProbe": pods.probe("/livez", every=20, failures=15),
}


def job(run: Run, attempt: int, settings: Settings, *, resume: bool) -> Manifest:
    """The Job of an attempt. It is made once and never changed.

    With a queue it is made suspended, and from then on the field is Kueue's.
    """
    who, spec = identity(run, Component.TRAINER), run.spec
    meta = who.metadata(names.trainer_job(run.name, attempt))
    meta["labels"][names.ATTEMPT] = str(attempt)
    job_spec: dict[str, Any] = {
        "backoffLimit": 0,
        "completions": spec.trainer.replicas,
        "parallelism": spec.trainer.replicas,
        # A pod counts as ended when it has ended, not when it was asked to: it still writes.
        "podReplacementPolicy": "Failed",
        "template": _template(run, attempt, settings, resume=resume),
    }
    if spec.trainer.replicas > 1:
        job_spec["completionMode"] = "Indexed"
    if spec.queue_name:
        meta["labels"][names.QUEUE] = spec.queue_name
        job_spec["suspend"] = True
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": job_spec}


def _template(run: Run, attempt: int, settings: Settings, *, resume: bool) -> Item:
    who, spec = identity(run, Component.TRAINER), run.spec
    pod = _pod(run, attempt, settings, resume=resume)
    template = pods.template(who, pod, settings, scraped=spec.tracking.prometheus)
    if spec.trainer.replicas > 1:
        template["spec"]["subdomain"] = who.name
    return merged(template, spec.pod_templates.trainer, Component.TRAINER)


def _pod(run: Run, attempt: int, settings: Settings, *, resume: bool) -> Pod:
    spec = run.spec
    resources = sizes.of_trainer(spec)
    volume, mount, variables = pods.hub_cache(
        spec.model.cache_claim, offline=not spec.egress.trainer
    )
    return Pod(
        image=spec.trainer.image or settings.images.trainer,
        command=("python", "-m", "watercolour.train.run"),
        args=tuple(_args(run, attempt, resume=resume)),
        resources=resources,
        # A Job is never changed, so it may have the run's own figure.
        probes=PROBES
        | {
            "startupProbe": pods.startup_probe(
                "/livez", every=2, seconds=spec.startup_deadline_seconds
            )
        },
        grace_seconds=GRACE_SECONDS,
        env=(*variables, *_tokens(run), *_rendezvous(run, attempt)),
        volumes=(volume, pods.claim_volume("artifacts", storage.claim_name(run))),
        mounts=(mount, pods.mount("artifacts", names.ARTIFACTS_FOLDER)),
        shm_mib=pods.shared_memory_mib(resources),
        restart_policy="Never",
        # It may train on: a silent node may only be out of the API server's sight.
        replaceable=False,
        labels={names.ATTEMPT: str(attempt)},
        annotations=pods.DO_NOT_DISRUPT,
        config_map=names.config(run.name),
        direct_hosts=run.hosts if spec.egress.trainer else None,
    )


def _args(run: Run, attempt: int, *, resume: bool) -> Iterator[str]:
    yield from ("--spec", names.SPEC_FILE)
    yield from ("--env", services.url(identity(run, Component.ENV)))
    yield from ("--out", storage.run_folder(run), "--report")
    if resume:
        # The attempts before may have ended without a checkpoint.
        yield "--resume-if-any"
    elif attempt > 1:
        # Else it would not write over what the attempt before has left.
        yield "--anew"
    yield from ("--host", "0.0.0.0", "--port", str(PORTS[Component.TRAINER]))


def _tokens(run: Run) -> Iterator[Item]:
    hub, tracker = run.spec.artifacts.hub, run.spec.tracking.trackio
    found = {
        HUB_TOKEN: run.spec.model.token_secret_ref,
        PUSH_TOKEN: hub and hub.secret_ref,
        TRACKER_TOKEN: tracker and tracker.secret_ref,
    }
    for name, secret in found.items():
        if secret:
            yield pods.secret_variable(name, secret.name, secret.key)


def _rendezvous(run: Run, attempt: int) -> Iterator[Item]:
    """Where the pods of one training find their first; each knows its own number from the Job."""
    if run.spec.trainer.replicas > 1:
        first = f"{names.trainer_job(run.name, attempt)}-0"
        yield pods.variable("MASTER_ADDR", f"{first}.{identity(run, Component.TRAINER).name}")
        yield pods.variable("WATERCOLOUR_TRAINER_PODS", str(run.spec.trainer.replicas))
