"""What a container asks for when the specification does not say: CPU, memory, disk, GPUs. Pure.

Measured on two cores: an idle environment 0.25 GiB, the embedded scorer 0.25 GiB, a renderer's own
process 0.1 GiB, a browser with two pages 0.6 GiB, a whole run of the tiny policy 2.5 GiB. Requests
of CPU are low where work comes in bursts, limits are what a burst can use.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from watercolour.api import servers
from watercolour.api.engines import GPU
from watercolour.api.part import Resources
from watercolour.api.policy import BUILTIN
from watercolour.api.rules import quantity
from watercolour.api.spec import RunSpec

#: Requests and limits of a container, by those words.
Amounts = dict[str, dict[str, str]]

#: Bytes of a mebibyte.
MI = 2**20

#: A sketch is stopped at 900 MiB; what it takes until it is seen, and its share of the GPU process.
SKETCH_MIB = 1024
#: The renderer's own process and the browser without its pages.
BROWSER_MIB = 512


@dataclass(frozen=True, slots=True)
class Size:
    """Requests and limits."""

    requests: Mapping[str, str]
    limits: Mapping[str, str]


def size(cpu: tuple[str, str], memory: tuple[str, str], disk: tuple[str, str]) -> Size:
    """Request and limit of each."""
    resources = {"cpu": cpu, "memory": memory, "ephemeral-storage": disk}
    return Size(
        {name: request for name, (request, _) in resources.items()},
        {name: limit for name, (_, limit) in resources.items()},
    )


def renderers(slots: int) -> Size:
    """Memory for a full slot each: an endless sketch must meet its own limit and not the pod's.

    A pod at its limit dies with all that it paints, or hangs, and the policy is not told whose
    fault it was. Request and limit are equal, so no renderer lives on another pod's memory.
    """
    memory = f"{BROWSER_MIB + SKETCH_MIB * slots}Mi"
    return size((f"{250 * slots}m", f"{slots}"), (memory, memory), ("256Mi", "2Gi"))


def env(sessions: int) -> Size:
    """A session holds a painting and its references, some 10 MiB, while it is judged."""
    return size(("100m", "2"), ("512Mi", f"{1024 + 32 * sessions}Mi"), ("128Mi", "2Gi"))


def trainer(*, builtin: bool, downloads: bool) -> Size:
    """A builtin policy needs two cores. Others load their weights through memory, and to disk."""
    if builtin:
        return size(("500m", "2"), ("2Gi", "4Gi"), ("256Mi", "4Gi"))
    disk = ("40Gi", "200Gi") if downloads else ("2Gi", "20Gi")
    return size(("4", "16"), ("16Gi", "64Gi"), disk)


def embedded_scorer() -> Size:
    """One thread of a small backbone; pictures of up to 12 MB wait in a queue of 256."""
    return size(("100m", "2"), ("512Mi", "2Gi"), ("128Mi", "1Gi"))


def hpsv3(*, downloads: bool) -> Size:
    """A checkpoint of 17 GB goes through memory to one GPU."""
    disk = ("20Gi", "60Gi") if downloads else ("1Gi", "10Gi")
    return size(("1", "8"), ("8Gi", "32Gi"), disk)


def served_model(*, downloads: bool) -> Size:
    """A vision-language model behind an OpenAI-compatible server."""
    disk = ("40Gi", "200Gi") if downloads else ("2Gi", "20Gi")
    return size(("2", "8"), ("16Gi", "64Gi"), disk)


def resources(given: Resources, default: Size, *, gpus: int = 0) -> Amounts:
    """Requests and limits of a container: what is given, and the defaults for the rest.

    Args:
        given: from the specification; a limit alone is the request too, as in Kubernetes.
        default: for what is not given.
        gpus: GPUs unless the specification names a device of any kind.
    """
    requests, limits = dict(given.requests), dict(given.limits)
    if gpus and not any(map(is_device, (*requests, *limits))):
        limits[GPU] = str(gpus)
    for name, limit in default.limits.items():
        if name not in requests and name not in limits:
            requests[name], limits[name] = default.requests[name], limit
        elif name not in limits:
            # What is guaranteed by default stays guaranteed.
            guaranteed = default.requests[name] == limit
            higher = quantity(requests[name]) > quantity(limit)
            limits[name] = requests[name] if guaranteed or higher else limit
    for name in {*requests, *limits}:
        # The API server wants devices requested as they are limited.
        if name not in requests or is_device(name):
            requests[name] = limits.setdefault(name, requests.get(name, "0"))
        limits.setdefault(name, requests[name])
    return {"requests": _sorted(requests), "limits": _sorted(limits)}


def of_trainer(spec: RunSpec) -> Amounts:
    """Requests and limits of a trainer pod."""
    builtin = spec.model.id.startswith(BUILTIN)
    default = trainer(builtin=builtin, downloads=not spec.model.cache_claim)
    return resources(spec.trainer.resources, default)


def of_env(spec: RunSpec) -> Amounts:
    """Requests and limits of the environment's pod."""
    return resources(spec.env.resources, env(spec.env.sessions))


def of_renderer(spec: RunSpec) -> Amounts:
    """Requests and limits of a renderer pod."""
    return resources(spec.renderers.resources, renderers(spec.renderers.slots))


def of_scorer(spec: RunSpec) -> Amounts:
    """Requests and limits of the scorer's pod."""
    published = spec.scorer.backend == "hpsv3"
    default = hpsv3(downloads=spec.scorer.download) if published else embedded_scorer()
    return resources(spec.scorer.resources, default, gpus=1 if published else 0)


def of_judge(spec: RunSpec) -> Amounts:
    """Requests and limits of the judge's pod: a served model, or the embedded one."""
    deploy = spec.judge.deploy if spec.judge.backend == "openai" else None
    if deploy is None:
        return resources(Resources(), embedded_scorer())
    default = served_model(downloads=deploy.download)
    return resources(deploy.resources, default, gpus=deploy.gpus)


@dataclass(frozen=True, slots=True)
class Pods:
    """Pods of one kind, as a run asks for them."""

    component: str
    least: int
    most: int
    requests: Mapping[str, str]
    limits: Mapping[str, str]

    @property
    def gpus(self) -> int:
        """GPUs of one pod."""
        return int(self.limits.get(GPU, "0"))


def of_run(spec: RunSpec) -> Iterator[Pods]:
    """All pods that a run asks for, the dearest first."""
    yield _pods("trainer", spec.trainer.replicas, spec.trainer.replicas, of_trainer(spec))
    if servers.runs_scorer(spec):
        yield _pods("scorer", 0, 1, of_scorer(spec))
    if servers.runs_judge(spec):
        yield _pods("judge", 0, 1, of_judge(spec))
    yield _pods("env", 1, 1, of_env(spec))
    scaling = spec.renderers.scaling
    fixed = {"Fixed": scaling.max, "External": spec.renderers.replicas}.get(scaling.mode)
    least, most = (scaling.min, scaling.max) if fixed is None else (fixed, fixed)
    yield _pods("renderers", least, most, of_renderer(spec))


def _pods(component: str, least: int, most: int, amounts: Amounts) -> Pods:
    return Pods(component, least, most, amounts["requests"], amounts["limits"])


def is_device(name: str) -> bool:
    """Whether a resource is handed out whole: a device, such as nvidia.com/gpu, or huge pages."""
    return "/" in name or name.startswith("hugepages-")


def mebibytes(limits: Mapping[str, str], name: str = "memory") -> int:
    """A limit in MiB, rounded down."""
    return int(quantity(limits[name]) // MI)


def _sorted(amounts: Mapping[str, str]) -> dict[str, str]:
    return {name: amounts[name] for name in sorted(amounts)}
