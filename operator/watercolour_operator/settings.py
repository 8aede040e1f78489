"""The operator's settings, each with what it does and why it is what it is."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Images:
    """Container images for components whose run names none."""

    trainer: str = "watercolour/trainer:0.1.0"
    renderers: str = "watercolour/renderer:0.1.0"
    env: str = "watercolour/env:0.1.0"
    scorer_embedded: str = "watercolour/scorer-embedded:0.1.0"
    scorer_hpsv3: str = "watercolour/scorer-hpsv3:0.1.0"


@dataclass(frozen=True, slots=True)
class Settings:
    """What the operator is told at its start, by flags or by the chart's file."""

    #: Namespaces to watch; empty watches the whole cluster.
    namespaces: tuple[str, ...] = ()
    #: Namespace and name of the Lease; who holds it writes.
    lease_namespace: str = "watercolour-system"
    lease_name: str = "watercolour-operator"
    lease_seconds: float = 15.0
    images: Images = field(default_factory=Images)
    image_pull_policy: str = "IfNotPresent"
    image_pull_secrets: tuple[str, ...] = ()
    #: Seccomp profile below the kubelet's folder, put there by the chart's DaemonSet; empty uses
    #: RuntimeDefault, under which Chromium's own sandbox does not start.
    seccomp_profile: str = "watercolour/chromium.json"
    #: Address that a renderer must not reach before it takes work; empty takes the API server's.
    canary_address: str = ""
    #: Labels of namespaces whose pods may scrape metrics and read galleries.
    metrics_namespaces: dict[str, str] = field(default_factory=dict[str, str])
    #: Namespace of the operator's own pods, which pull /progress and /v1/demand.
    operator_namespace: str = "watercolour-system"
    #: Ask pods at their own addresses (`dns`), from outside the cluster through the API server
    #: (`proxy`), or at an address of which {namespace}, {run}, {component} and {pod} are filled in;
    #: `scripted`, for tests and simulations alone, reads their answers from annotations.
    reach: str = "dns"
    #: Environment variables for pods that may reach outside: proxies and certificates.
    proxy_env: dict[str, str] = field(default_factory=dict[str, str])
    #: Certificates, as PEM text, that pods trust in place of their image's own; empty keeps those.
    ca_bundle: str = ""
    #: Hosts, suffixes and CIDRs that pods reach without the proxy, besides those of the cluster.
    no_proxy: tuple[str, ...] = ()
    #: Namespaces whose pods answer DNS.
    dns_namespaces: tuple[str, ...] = ("kube-system", "openshift-dns")
    #: Addresses that answer DNS and are no pod's: the node-local cache's by default.
    dns_cidrs: tuple[str, ...] = ("169.254.20.10/32",)
    #: CIDRs that the operator's questions come from when no pod asks them: with `reach=proxy`
    #: the API server's own addresses.
    operator_cidrs: tuple[str, ...] = ()
    #: Namespace of KEDA, which asks the environment in scaling mode KEDA.
    keda_namespace: str = "keda"
    #: PriorityClass of pods whose template names none; empty takes the cluster's default.
    priority_class: str = ""
    metrics_host: str = "0.0.0.0"
    metrics_port: int = 9090
    liveness_port: int = 8081
    #: Seconds between two looks at a run in which nothing happens.
    resync_seconds: float = 300.0
    #: Seconds between two questions to the trainer and the environment of a running run.
    poll_seconds: float = 2.0
    #: Seconds after which a pod that will not end is deleted by force.
    force_delete_seconds: float = 120.0
    #: Seconds of one API call before it counts as failed.
    request_seconds: float = 30.0
    #: Seconds of silence after which a watch is opened again; the API server speaks every 60.
    watch_silence_seconds: float = 70.0
    #: Runs that are looked at at the same time.
    workers: int = 10
    #: Calls of the API server a second in all, watches aside, and how many may come at once.
    api_per_second: float = 100.0
    api_burst: int = 300
