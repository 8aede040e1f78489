"""The pairwise judge, where the run has one of its own beside the scorer. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from watercolour.api import sizes
from watercolour.api.scoring import JudgeDeploy
from watercolour_operator import names
from watercolour_operator.desired import deployments, pods, scorer
from watercolour_operator.desired.pods import Pod
from watercolour_operator.desired.run import Manifest, Run, identity
from watercolour_operator.desired.templates import merged
from watercolour_operator.names import PORTS, Component
from watercolour_operator.settings import Settings

#: A server of large models may download and compile for an hour before it answers anything.
MODEL_PROBES = {
    "startupProbe": pods.startup_probe("/health", every=5, seconds=3600),
    "readinessProbe": pods.probe("/health", every=5, failures=2),
    "livenessProbe": pods.probe("/health", every=10, failures=6),
}


def deployment(run: Run, replicas: int, settings: Settings) -> Manifest:
    """The judge's Deployment: a served vision-language model, or the embedded judge."""
    who, judge = identity(run, Component.JUDGE), run.spec.judge
    deploy = judge.deploy if judge.backend == "openai" else None
    pod = _served(run, deploy, settings) if deploy else _embedded(run, settings)
    template = pods.template(who, pod, settings, scraped=run.spec.tracking.prometheus)
    if deploy and deploy.queued and run.spec.queue_name:
        template["metadata"]["labels"][names.QUEUE] = run.spec.queue_name
    template = merged(template, run.spec.pod_templates.judge, Component.JUDGE)
    return deployments.deployment(who, template, replicas, deployments.ONE_AT_A_TIME)


def _embedded(run: Run, settings: Settings) -> Pod:
    """The scorer's program: it answers as a judge too."""
    port = str(PORTS[Component.JUDGE])
    return Pod(
        image=settings.images.scorer_embedded,
        command=("python", "-m", "watercolour.score.service"),
        args=("--backend", "embedded", "--host", "0.0.0.0", "--port", port),
        resources=sizes.of_judge(run.spec),
        probes=scorer.PROBES,
        grace_seconds=scorer.GRACE_SECONDS,
    )


def _served(run: Run, deploy: JudgeDeploy, settings: Settings) -> Pod:
    """An OpenAI-compatible server, started as vLLM's image wants it: options and no command."""
    volume, mount, variables = pods.hub_cache(None, offline=not deploy.download)
    resources = sizes.of_judge(run.spec)
    return Pod(
        image=deploy.image,
        command=(),
        args=tuple(_args(run, deploy)),
        resources=resources,
        probes=MODEL_PROBES,
        grace_seconds=scorer.GRACE_SECONDS,
        env=tuple(variables),
        volumes=(volume,),
        mounts=(mount,),
        shm_mib=pods.shared_memory_mib(resources),
        config_map=names.config(run.name) if settings.ca_bundle else None,
        direct_hosts=() if deploy.download else None,
    )


def _args(run: Run, deploy: JudgeDeploy) -> Iterator[str]:
    yield from ("--model", deploy.model)
    # The name under which the environment asks for it.
    yield from ("--served-model-name", run.spec.judge.model)
    yield from ("--host", "0.0.0.0", "--port", str(PORTS[Component.JUDGE]))
    if deploy.gpus > 1:
        yield from ("--tensor-parallel-size", str(deploy.gpus))
