"""What all pods of a run have in common: who they are, what they may not do, how they are asked.

Every pod passes Pod Security `restricted`. Nothing is writable but memory and folders that end with
the pod; there is no token to talk to the API server with. Pure.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from watercolour.api import sizes
from watercolour.api.spec import RunSpec
from watercolour_operator import names
from watercolour_operator.desired import config
from watercolour_operator.desired.run import Identity
from watercolour_operator.desired.services import PORT_NAME
from watercolour_operator.names import PORTS
from watercolour_operator.settings import Settings

Item = dict[str, Any]

#: The user of every container; the images have no other need of one.
USER = 65532
HOME = "/home/watercolour"
#: Where the model hub's files are kept, on a claim or for the pod's life.
CACHE_FOLDER = "/cache"
CONFIG_FOLDER = names.SPEC_FOLDER

#: Losing the pod costs a run its sessions or its step: autoscalers of nodes leave it where it is.
DO_NOT_DISRUPT = {
    "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
    "karpenter.sh/do-not-disrupt": "true",
}

#: Seconds on a node that has not been heard of for the API server's grace period. Kubernetes' own
#: 300 would have a run wait without renderers while the others' nodes have room for them.
SILENT_NODE_SECONDS = 5
SILENT_NODE = {
    "key": "node.kubernetes.io/unreachable",
    "operator": "Exists",
    "effect": "NoExecute",
    "tolerationSeconds": SILENT_NODE_SECONDS,
}

#: Bounds of shared memory, in MiB.
LEAST_SHM_MIB, MOST_SHM_MIB = 64, 16 * 1024

#: Until then a process that has not answered once is slow, not hung: a run has as long by default
#: for its first step, so what ends a slow start is the run's deadline and no loop of restarts. The
#: run's own figure may change while it runs, and a changed template would start its pods anew.
STARTUP_SECONDS: int = RunSpec.model_fields["startup_deadline_seconds"].default

#: Reached without a proxy, whatever else is.
CLUSTER_HOSTS = ("localhost", "127.0.0.1", "::1", ".svc", ".cluster.local")


@dataclass(frozen=True, slots=True)
class Pod:
    """What one part's pods have of their own."""

    image: str
    command: tuple[str, ...]
    args: tuple[str, ...]
    resources: dict[str, dict[str, str]]
    probes: Mapping[str, Item]
    #: Seconds between SIGTERM and SIGKILL.
    grace_seconds: int
    env: tuple[Item, ...] = ()
    volumes: tuple[Item, ...] = ()
    mounts: tuple[Item, ...] = ()
    #: MiB of shared memory; they count against the memory limit.
    shm_mib: int = 64
    lifecycle: Item | None = None
    seccomp: Item = field(default_factory=lambda: {"type": "RuntimeDefault"})
    runtime_class: str | None = None
    restart_policy: str = "Always"
    #: Whether another pod does as well at once, so that none is waited for on a silent node.
    replaceable: bool = True
    labels: Mapping[str, str] = field(default_factory=dict[str, str])
    annotations: Mapping[str, str] = field(default_factory=dict[str, str])
    #: ConfigMap whose files are mounted; None mounts none.
    config_map: str | None = None
    #: Hosts of the run that are reached without a proxy; None gives the pod no proxy at all.
    direct_hosts: tuple[str, ...] | None = None


def template(who: Identity, pod: Pod, settings: Settings, *, scraped: bool) -> Item:
    """The pod template of one part.

    Args:
        who: whose pods they are.
        pod: what they have of their own.
        settings: the operator's.
        scraped: whether Prometheus is shown the way.
    """
    labels = {**who.labels, **pod.labels}
    annotations = {
        "kubectl.kubernetes.io/default-container": who.component.value,
        **pod.annotations,
    }
    if scraped:
        labels[names.METRICS] = "true"
        annotations |= {
            "prometheus.io/scrape": "true",
            "prometheus.io/port": str(PORTS[who.component]),
            "prometheus.io/path": "/metrics",
        }
    return {
        "metadata": {"labels": labels, "annotations": annotations},
        "spec": _spec(who, pod, settings),
    }


def _spec(who: Identity, pod: Pod, settings: Settings) -> Item:
    spec: Item = {
        "serviceAccountName": who.name,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "restartPolicy": pod.restart_policy,
        "terminationGracePeriodSeconds": pod.grace_seconds,
        "securityContext": pod_security(),
        "containers": [_container(who, pod, settings)],
        "volumes": [*_scratch(pod), *pod.volumes, *_config_volume(pod)],
    }
    tolerations = _tolerations(pod)
    if tolerations:
        spec["tolerations"] = tolerations
    if pod.runtime_class:
        spec["runtimeClassName"] = pod.runtime_class
    if settings.priority_class:
        spec["priorityClassName"] = settings.priority_class
    if settings.image_pull_secrets:
        spec["imagePullSecrets"] = [{"name": name} for name in settings.image_pull_secrets]
    return spec


def _tolerations(pod: Pod) -> list[Item]:
    devices = [name for name in pod.resources["limits"] if sizes.is_device(name)]
    return [
        *({"key": name, "operator": "Exists", "effect": "NoSchedule"} for name in devices),
        *([dict(SILENT_NODE)] if pod.replaceable else []),
    ]


def _container(who: Identity, pod: Pod, settings: Settings) -> Item:
    container: Item = {
        "name": who.component.value,
        "image": pod.image,
        "imagePullPolicy": settings.image_pull_policy,
        **({"command": list(pod.command)} if pod.command else {}),
        "args": list(pod.args),
        "ports": [{"name": PORT_NAME, "containerPort": PORTS[who.component], "protocol": "TCP"}],
        "env": [*_environment(pod, settings), *pod.env],
        "resources": pod.resources,
        "securityContext": {**container_security(), "seccompProfile": dict(pod.seccomp)},
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [*_scratch_mounts(), *pod.mounts, *_config_mounts(pod)],
        **pod.probes,
    }
    if pod.lifecycle:
        container["lifecycle"] = pod.lifecycle
    return container


def pod_security() -> Item:
    """The Pod Security context; a group of its own makes claims writable."""
    return {
        "runAsNonRoot": True,
        "runAsUser": USER,
        "runAsGroup": USER,
        "fsGroup": USER,
        "fsGroupChangePolicy": "OnRootMismatch",
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def container_security() -> Item:
    """What no container may do."""
    return {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
        "runAsNonRoot": True,
    }


def _scratch(pod: Pod) -> list[Item]:
    return [
        {"name": "tmp", "emptyDir": {}},
        {"name": "home", "emptyDir": {}},
        {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": f"{pod.shm_mib}Mi"}},
    ]


def _scratch_mounts() -> list[Item]:
    return [
        {"name": "tmp", "mountPath": "/tmp"},
        {"name": "home", "mountPath": HOME},
        {"name": "shm", "mountPath": "/dev/shm"},
    ]


def shared_memory_mib(resources: Mapping[str, Mapping[str, str]]) -> int:
    """A quarter of the memory limit, which it counts against: for collectives and data loaders."""
    quarter = sizes.mebibytes(resources["limits"]) // 4
    return max(LEAST_SHM_MIB, min(MOST_SHM_MIB, quarter))


def _config_volume(pod: Pod) -> list[Item]:
    return [{"name": "config", "configMap": {"name": pod.config_map}}] if pod.config_map else []


def _config_mounts(pod: Pod) -> list[Item]:
    if not pod.config_map:
        return []
    return [{"name": "config", "mountPath": CONFIG_FOLDER, "readOnly": True}]


def _environment(pod: Pod, settings: Settings) -> list[Item]:
    """Variables of every container. A user without an entry in /etc/passwd needs a name."""
    values = {
        "HOME": HOME,
        "USER": "watercolour",
        "TMPDIR": "/tmp",
        "PYTHONUNBUFFERED": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONSAFEPATH": "1",
    }
    if pod.direct_hosts is not None:
        values |= _proxy(pod.direct_hosts, settings)
    if settings.ca_bundle and pod.config_map:
        path = f"{CONFIG_FOLDER}/{config.CA_KEY}"
        values |= {"SSL_CERT_FILE": path, "REQUESTS_CA_BUNDLE": path, "CURL_CA_BUNDLE": path}
    return [variable(name, value) for name, value in values.items()]


def _proxy(direct: Sequence[str], settings: Settings) -> dict[str, str]:
    if not settings.proxy_env:
        return {}
    given = settings.proxy_env.get("NO_PROXY", settings.proxy_env.get("no_proxy", ""))
    hosts = [*filter(None, given.split(",")), *settings.no_proxy, *CLUSTER_HOSTS, *direct]
    around = ",".join(dict.fromkeys(hosts))
    return {**settings.proxy_env, "NO_PROXY": around, "no_proxy": around}


def variable(name: str, value: str) -> Item:
    """An environment variable with a value."""
    return {"name": name, "value": value}


def secret_variable(name: str, secret: str, key: str) -> Item:
    """An environment variable whose value only the kubelet and the container see."""
    return {"name": name, "valueFrom": {"secretKeyRef": {"name": secret, "key": key}}}


def probe(path: str, *, every: int, failures: int, timeout: int = 5) -> Item:
    """A question over HTTP.

    Args:
        path: what is asked for.
        every: seconds between two questions.
        failures: bad answers in a row that count.
        timeout: seconds that an answer may take.
    """
    return {
        "httpGet": {"path": path, "port": PORT_NAME, "scheme": "HTTP"},
        "periodSeconds": every,
        "timeoutSeconds": timeout,
        "failureThreshold": failures,
    }


def startup_probe(path: str, *, every: int, seconds: int = STARTUP_SECONDS) -> Item:
    """A question over HTTP until the first good answer.

    Args:
        path: what is asked for.
        every: seconds between two questions.
        seconds: until a process that has not answered once counts as hung and is started again.
    """
    return probe(path, every=every, failures=math.ceil(seconds / every))


def claim_volume(name: str, claim: str, *, read_only: bool = False) -> Item:
    """A volume on a claim."""
    source = {"claimName": claim, **({"readOnly": True} if read_only else {})}
    return {"name": name, "persistentVolumeClaim": source}


def mount(name: str, path: str, *, read_only: bool = False) -> Item:
    """Where a container finds a volume."""
    return {"name": name, "mountPath": path, **({"readOnly": True} if read_only else {})}


def hub_cache(claim: str | None, *, offline: bool) -> tuple[Item, Item, list[Item]]:
    """Volume, mount and variables of the model hub's cache.

    Args:
        claim: the claim that keeps it between runs; None keeps it for the pod's life.
        offline: take what the cache holds at once, instead of waiting for a hub out of reach.
    """
    volume = claim_volume("cache", claim) if claim else {"name": "cache", "emptyDir": {}}
    variables = [variable("HF_HOME", CACHE_FOLDER)]
    if offline:
        variables.append(variable("HF_HUB_OFFLINE", "1"))
    return volume, mount("cache", CACHE_FOLDER), variables
