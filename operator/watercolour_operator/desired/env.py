"""The environment: keeps the sessions, owns the render queue. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from watercolour.api import servers, sizes
from watercolour.api.part import SecretRef
from watercolour_operator import names
from watercolour_operator.desired import config, deployments, pods, services
from watercolour_operator.desired.pods import Item, Pod
from watercolour_operator.desired.run import Manifest, Run, identity
from watercolour_operator.desired.templates import merged
from watercolour_operator.names import PORTS, Component
from watercolour_operator.settings import Settings

#: Verdicts and what was spent of the budget, in the pod's scratch: they outlive the container.
#: Beyond the pod the trainer tells what was spent, and spec.judge.cache.url keeps the verdicts.
VERDICTS = "/tmp/verdicts.sqlite"
#: The variable that holds the judge's API key.
JUDGE_KEY = "WATERCOLOUR_JUDGE_KEY"

#: Seconds between SIGTERM and SIGKILL, and those in which the environment ends what it has begun.
GRACE_SECONDS, DRAIN_SECONDS = 30, 27

#: Alive is ready: its own /readyz asks for a painting renderer, and there is none between bursts.
PROBES = {
    "startupProbe": pods.startup_probe("/livez", every=1),
    "readinessProbe": pods.probe("/livez", every=5, failures=2),
    "livenessProbe": pods.probe("/livez", every=10, failures=6),
}


def deployment(run: Run, replicas: int, settings: Settings) -> Manifest:
    """The environment's Deployment."""
    who, spec = identity(run, Component.ENV), run.spec
    pod = Pod(
        image=spec.env.image or settings.images.env,
        command=("python", "-m", "watercolour.env.server"),
        args=tuple(_args(run)),
        resources=sizes.of_env(spec),
        probes=PROBES,
        grace_seconds=GRACE_SECONDS,
        env=tuple(_variables(run)),
        volumes=tuple(_pool(run)),
        mounts=tuple(
            pods.mount(item["name"], config.POOL_FOLDER, read_only=True) for item in _pool(run)
        ),
        labels=_labels(run),
        annotations=pods.DO_NOT_DISRUPT,
        config_map=names.config(run.name),
        direct_hosts=run.hosts if spec.egress.env else None,
    )
    template = pods.template(who, pod, settings, scraped=spec.tracking.prometheus)
    template = merged(template, spec.pod_templates.env, Component.ENV)
    return deployments.deployment(who, template, replicas, deployments.ONE_AT_A_TIME)


def _args(run: Run) -> Iterator[str]:
    yield from ("--spec", names.SPEC_FILE)
    yield from ("--renderers-dns", identity(run, Component.RENDERERS).name)
    scorer = services.url(identity(run, Component.SCORER))
    if servers.runs_scorer(run.spec):
        yield from ("--scorer", scorer)
    if servers.scorer_judges(run.spec):
        yield from ("--judge", scorer)
    elif servers.runs_judge(run.spec):
        yield from ("--judge", services.url(identity(run, Component.JUDGE)))
    if _judge_key(run):
        yield from ("--judge-key-env", JUDGE_KEY)
    if run.spec.judge.backend == "openai":
        yield from ("--verdicts", VERDICTS)
    yield from ("--grace-seconds", str(DRAIN_SECONDS))
    yield from ("--host", "0.0.0.0", "--port", str(PORTS[Component.ENV]))


def _variables(run: Run) -> Iterator[Item]:
    secret = _judge_key(run)
    if secret:
        yield pods.secret_variable(JUDGE_KEY, secret.name, secret.key)


def _judge_key(run: Run) -> SecretRef | None:
    judge = run.spec.judge
    return judge.secret_ref if judge.backend == "openai" else None


def _pool(run: Run) -> Iterator[Item]:
    references = run.spec.references
    if references.claim:
        yield pods.claim_volume("references", references.claim, read_only=True)
    elif references.config_map:
        yield {"name": "references", "configMap": {"name": references.config_map}}


def _labels(run: Run) -> dict[str, str]:
    """A shared scorer's policy knows by this label who may ask."""
    if not run.shares_scorer:
        return {}
    return {names.SHARED: identity(run, Component.SCORER).labels[names.SHARED]}
