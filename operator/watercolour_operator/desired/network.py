"""Who may talk to whom: refuse everything both ways, then allow exactly the table of the design.

The renderers, which run what a model wrote, reach nobody at all, not even DNS. Allowances name the
run's uid, so that a pod of an older run of the same name is a stranger.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from watercolour.api import servers
from watercolour_operator import names
from watercolour_operator.desired.run import Identity, Manifest, Run, identity, metadata
from watercolour_operator.names import PORTS, Component
from watercolour_operator.settings import Settings

Rule = dict[str, Any]
Peer = dict[str, Any]

#: Never part of `all`: there clouds give away a node's credentials.
LINK_LOCAL = {"0.0.0.0/0": ["169.254.0.0/16"], "::/0": ["fd00:ec2::254/128", "fe80::/10"]}
#: A cluster's DNS pods listen on 53, OpenShift's on 5353.
DNS_PORTS = (53, 5353)
HTTPS = 443
#: Ports of addresses that name none; any other scheme is plain HTTP's.
PORTS_OF = {"https": HTTPS} | dict.fromkeys(("redis", "rediss", "valkey", "valkeys"), 6379)


def policies(run: Run, settings: Settings) -> list[Manifest]:
    """The run's NetworkPolicies; the one that refuses everything comes first."""
    parts = [_deny(run), _trainer(run, settings), _env(run, settings), _renderers(run, settings)]
    if servers.runs_scorer(run.spec):
        parts.append(_scorer(run, settings))
    if servers.runs_judge(run.spec):
        parts.append(_judge(run, settings))
    return parts


def _deny(run: Run) -> Manifest:
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": metadata(run, names.deny(run.name)),
        "spec": {
            "podSelector": {"matchLabels": {names.RUN_UID: run.uid}},
            "policyTypes": ["Ingress", "Egress"],
        },
    }


def _policy(who: Identity, ingress: Sequence[Rule], egress: Sequence[Rule]) -> Manifest:
    """A policy that holds by itself: both ways are named, so what no rule allows is refused.

    The API server does not store an empty list, and would see a change in each that is applied.
    """
    rules = {"ingress": list(ingress), "egress": list(egress)}
    spec: dict[str, Any] = {
        "podSelector": {"matchLabels": dict(who.selector)},
        "policyTypes": ["Ingress", "Egress"],
        **{way: found for way, found in rules.items() if found},
    }
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": who.metadata(),
        "spec": spec,
    }


def _trainer(run: Run, settings: Settings) -> Manifest:
    spec, who = run.spec, identity(run, Component.TRAINER)
    ingress = [_from_operator(Component.TRAINER, settings), *_from_scrapers(run, who, settings)]
    egress = [_to(identity(run, Component.ENV)), _dns(settings), *_outside(spec.egress.trainer)]
    if spec.tracking.trackio and spec.tracking.trackio.endpoint:
        egress += _endpoint(run, spec.tracking.trackio.endpoint)
    if spec.trainer.replicas > 1:
        # Collectives between the pods of one training take ports as they come.
        ingress.append({"from": [_pods(who)]})
        egress.append({"to": [_pods(who)]})
    return _policy(who, ingress, egress)


def _env(run: Run, settings: Settings) -> Manifest:
    spec, who = run.spec, identity(run, Component.ENV)
    ingress = [
        _rule("from", [_pods(identity(run, Component.TRAINER))], PORTS[Component.ENV]),
        _from_operator(Component.ENV, settings),
        *_from_scrapers(run, who, settings),
    ]
    if spec.renderers.scaling.mode == "KEDA":
        keda = {"namespaceSelector": _namespace(settings.keda_namespace)}
        ingress.append(_rule("from", [keda], PORTS[Component.ENV]))
    egress = [_to(identity(run, Component.RENDERERS)), _dns(settings), *_outside(spec.egress.env)]
    if servers.runs_scorer(spec):
        egress.append(_to(identity(run, Component.SCORER)))
    if servers.runs_judge(spec):
        egress.append(_to(identity(run, Component.JUDGE)))
    for url in filter(None, (spec.scorer.endpoint, spec.judge.endpoint, spec.judge.cache.url)):
        egress += _endpoint(run, url)
    return _policy(who, ingress, egress)


def _renderers(run: Run, settings: Settings) -> Manifest:
    who = identity(run, Component.RENDERERS)
    ingress = [
        _rule("from", [_pods(identity(run, Component.ENV))], PORTS[Component.RENDERERS]),
        _from_operator(Component.RENDERERS, settings),
        *_from_scrapers(run, who, settings),
    ]
    return _policy(who, ingress, [])


def _scorer(run: Run, settings: Settings) -> Manifest:
    """Those who share a scorer are known by the label that their environments carry for it."""
    who = identity(run, Component.SCORER)
    env = {**identity(run, Component.ENV).selector}
    if run.shares_scorer:
        env = {names.SHARED: who.labels[names.SHARED], names.COMPONENT: Component.ENV.value}
    ingress = [
        _rule("from", [{"podSelector": {"matchLabels": env}}], PORTS[Component.SCORER]),
        *_from_scrapers(run, who, settings),
    ]
    return _policy(who, ingress, _hub(settings) if run.spec.scorer.download else [])


def _judge(run: Run, settings: Settings) -> Manifest:
    who, deploy = identity(run, Component.JUDGE), run.spec.judge.deploy
    ingress = [
        _rule("from", [_pods(identity(run, Component.ENV))], PORTS[Component.JUDGE]),
        *_from_scrapers(run, who, settings),
    ]
    return _policy(who, ingress, _hub(settings) if deploy and deploy.download else [])


def _rule(side: str, peers: Sequence[Peer], *ports: int) -> Rule:
    return {side: list(peers), "ports": [{"protocol": "TCP", "port": port} for port in ports]}


def _pods(who: Identity) -> Peer:
    return {"podSelector": {"matchLabels": dict(who.selector)}}


def _to(who: Identity) -> Rule:
    return _rule("to", [_pods(who)], PORTS[who.component])


def _namespace(name: str) -> dict[str, Any]:
    return {"matchLabels": {"kubernetes.io/metadata.name": name}}


def _from_operator(component: Component, settings: Settings) -> Rule:
    operator: Peer = {
        "namespaceSelector": _namespace(settings.operator_namespace),
        "podSelector": {"matchLabels": dict(names.OPERATOR_LABELS)},
    }
    addresses = [{"ipBlock": {"cidr": cidr}} for cidr in settings.operator_cidrs]
    return _rule("from", [operator, *addresses], PORTS[component])


def _from_scrapers(run: Run, who: Identity, settings: Settings) -> list[Rule]:
    """Without labels there is nobody: an empty selector would be every namespace."""
    if not run.spec.tracking.prometheus or not settings.metrics_namespaces:
        return []
    scrapers = {"namespaceSelector": {"matchLabels": dict(settings.metrics_namespaces)}}
    return [_rule("from", [scrapers], PORTS[who.component])]


def _dns(settings: Settings) -> Rule:
    return {
        "to": [
            *({"namespaceSelector": _namespace(name)} for name in settings.dns_namespaces),
            *({"ipBlock": {"cidr": cidr}} for cidr in settings.dns_cidrs),
        ],
        "ports": [
            {"protocol": protocol, "port": port}
            for protocol in ("UDP", "TCP")
            for port in DNS_PORTS
        ],
    }


def _everywhere() -> list[Peer]:
    return [{"ipBlock": {"cidr": cidr, "except": list(but)}} for cidr, but in LINK_LOCAL.items()]


def _outside(entries: Sequence[str]) -> list[Rule]:
    """What the specification's egress list allows."""
    if "all" in entries:
        return [{"to": _everywhere()}]
    cidrs = [str(ipaddress.ip_network(entry, strict=False)) for entry in entries]
    return [{"to": [{"ipBlock": {"cidr": cidr}} for cidr in dict.fromkeys(cidrs)]}] if cidrs else []


def _hub(settings: Settings) -> list[Rule]:
    """A model hub is known by its name, and policies know addresses alone: HTTPS to anywhere."""
    ports = {HTTPS, *filter(None, map(_port_of, settings.proxy_env.values()))}
    return [_dns(settings), _rule("to", _everywhere(), *sorted(ports))]


def _port_of(url: str) -> int | None:
    """The port of a proxy's address; None of what is no address, such as a list of hosts."""
    try:
        return urlsplit(url).port
    except ValueError:
        return None


def _endpoint(run: Run, url: str) -> list[Rule]:
    """The way to a server that the specification names, where a policy can express it.

    An address becomes itself and a Service its namespace (a policy sees the pods' own ports, which
    an address does not tell). The way to any other name is for `spec.egress` to open.
    """
    parts = urlsplit(url)
    host = parts.hostname or ""
    try:
        address = ipaddress.ip_network(host)
    except ValueError:
        namespace = _namespace_of(run, host)
        return [{"to": [{"namespaceSelector": _namespace(namespace)}]}] if namespace else []
    port = parts.port or PORTS_OF.get(parts.scheme, 80)
    return [_rule("to", [{"ipBlock": {"cidr": str(address)}}], port)]


def _namespace_of(run: Run, host: str) -> str | None:
    """The namespace of a Service's name as pods write it, NAME or NAME.NS.svc…; else None."""
    labels = host.split(".")
    if len(labels) == 1:
        return run.namespace
    if labels[2:3] == ["svc"]:
        return labels[1]
    return None
