"""What a pod template of the specification may change, and what it cannot weaken. Pure.

Templates are merged, by container name, into those of the operator. A container stays without
privileges, tokens, capabilities and the node's own namespaces whatever a template says; one that
says otherwise is refused here, in words that name the field, instead of being overruled in silence.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from watercolour.api.problems import Problem

#: What a renderer's template may say: placement, never security or network. With the kind of each.
PLACEMENT = {
    "affinity": "mapping",
    "imagePullSecrets": "list",
    "nodeSelector": "mapping",
    "priorityClassName": "text",
    "schedulerName": "text",
    "tolerations": "list",
    "topologySpreadConstraints": "list",
}
_KINDS = {"mapping": Mapping, "list": (list, tuple), "text": str}

#: Fields of a pod that no template may set, and why.
POD_FIELDS = {
    "automountServiceAccountToken": "pods of a run have no token",
    "enableServiceLinks": "a container's environment tells nothing of its neighbours",
    "ephemeralContainers": "they belong to a pod, not to its template",
    "hostIPC": "the node's own namespaces are closed",
    "hostNetwork": "NetworkPolicies do not hold in the node's network",
    "hostPID": "the node's own namespaces are closed",
    "restartPolicy": "the operator starts pods again",
    "serviceAccount": "pods of a run have an account without rights",
    "serviceAccountName": "pods of a run have an account without rights",
    "shareProcessNamespace": "containers do not see each other's processes",
}

#: Fields of a security context that a template may set.
POD_SECURITY = ("fsGroup", "fsGroupChangePolicy", "runAsGroup", "runAsUser", "supplementalGroups")
CONTAINER_SECURITY = ("runAsGroup", "runAsUser")

#: Volumes that Pod Security `restricted` knows.
VOLUMES = (
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "image",
    "persistentVolumeClaim",
    "projected",
    "secret",
)

#: Label prefixes by which policies, Services and sweepers know a pod.
OWN_LABELS = ("watercolour.dev/", "app.kubernetes.io/")

#: Lists that are merged item by item, and the field that tells the items apart.
CONTAINER_LISTS = {
    "env": "name",
    "ports": "containerPort",
    "volumeDevices": "devicePath",
    "volumeMounts": "mountPath",
}
POD_LISTS = {
    "containers": "name",
    "hostAliases": "ip",
    "imagePullSecrets": "name",
    "initContainers": "name",
    "topologySpreadConstraints": "topologyKey",
    "volumes": "name",
}

_CLOSED = "runs without privileges whatever a template says"
_LEAVE_OUT = "Leave it out."

Template = Mapping[str, Any]


def problems(component: str, template: Template) -> Iterator[Problem]:
    """Every fault of one component's template, with fields relative to ``spec``."""
    at = f"podTemplates.{component}"
    yield from _known(at, template, ("metadata", "spec"))
    yield from _metadata(f"{at}.metadata", template.get("metadata"))
    spec = template.get("spec")
    if spec is None:
        return
    if not isinstance(spec, Mapping):
        yield _not_a("mapping", f"{at}.spec", spec)
        return
    yield from _no_directives(f"{at}.spec", spec)
    yield from _lists(f"{at}.spec", spec, POD_LISTS)
    yield from _placement(f"{at}.spec", spec)
    if component == "renderers":
        fault = "renderers run hostile code, so this cannot change"
        for name in sorted(spec.keys() - set(PLACEMENT)):
            remedy = f"Keep to {', '.join(PLACEMENT)}."
            yield Problem(f"{at}.spec.{name}", spec[name], fault, remedy)
    else:
        yield from _pod(f"{at}.spec", component, spec)


def _placement(at: str, spec: Template) -> Iterator[Problem]:
    for name in sorted(spec.keys() & PLACEMENT.keys() - POD_LISTS.keys()):
        value, kind = spec[name], PLACEMENT[name]
        if value is not None and not isinstance(value, _KINDS[kind]):
            yield _not_a(kind, f"{at}.{name}", value)
    selector = spec.get("nodeSelector")
    for name, value in selector.items() if isinstance(selector, Mapping) else ():
        if value is not None and not isinstance(value, str):
            yield _not_a("text", f"{at}.nodeSelector.{name}", value)


def _metadata(at: str, metadata: Any) -> Iterator[Problem]:
    if metadata is None:
        return
    if not isinstance(metadata, Mapping):
        yield _not_a("mapping", at, metadata)
        return
    yield from _known(at, metadata, ("labels", "annotations"))
    for kind in ("labels", "annotations"):
        entries = metadata.get(kind)
        if entries is None:
            continue
        if not isinstance(entries, Mapping):
            yield _not_a("mapping", f"{at}.{kind}", entries)
            continue
        for name, value in sorted(entries.items()):
            if not isinstance(value, str):
                yield _not_a("text", f"{at}.{kind}.{name}", value)
            elif kind == "labels" and name.startswith(OWN_LABELS):
                yield Problem(
                    f"{at}.labels.{name}",
                    value,
                    "NetworkPolicies and the operator know pods by it",
                    "Choose a label with a prefix of your own.",
                )


def _pod(at: str, component: str, spec: Template) -> Iterator[Problem]:
    for name in sorted(spec.keys() & POD_FIELDS.keys()):
        yield Problem(f"{at}.{name}", spec[name], POD_FIELDS[name], _LEAVE_OUT)
    yield from _security(f"{at}.securityContext", spec.get("securityContext"), POD_SECURITY)
    for here, item in _items(f"{at}.volumes", spec.get("volumes")):
        yield from _volume(here, item)
    for here, item in _items(f"{at}.initContainers", spec.get("initContainers")):
        yield from _container(here, component, item)
    for here, item in _items(f"{at}.containers", spec.get("containers")):
        yield from _container(here, component, item)
        if component == "trainer" != item["name"]:
            yield Problem(
                here,
                item["name"],
                "would keep the pod and its GPU after the trainer has ended",
                "Write it below initContainers with restartPolicy: Always.",
            )


def _lists(at: str, value: Template, keys: Mapping[str, str]) -> Iterator[Problem]:
    """Faults of lists whose items are told apart by a field."""
    for name in sorted(value.keys() & keys.keys()):
        items, key = value[name], keys[name]
        if not isinstance(items, (list, tuple)):
            yield _not_a("list", f"{at}.{name}", items)
            continue
        for position, item in enumerate(items):
            if not isinstance(item, Mapping):
                yield _not_a("mapping", f"{at}.{name}[{position}]", item)
            elif not isinstance(item.get(key), (str, int)):
                fault = f"has no {key} to merge it by"
                yield Problem(f"{at}.{name}[{position}]", dict(item), fault, f"Give its {key}.")


def _items(at: str, items: Any) -> Iterator[tuple[str, Template]]:
    """Items that have a name, each with its place; :func:`_lists` tells of others."""
    for item in items if isinstance(items, (list, tuple)) else ():
        if isinstance(item, Mapping) and isinstance(item.get("name"), str):
            yield f"{at}[{item['name']}]", item


def _container(at: str, component: str, item: Template) -> Iterator[Problem]:
    yield from _security(f"{at}.securityContext", item.get("securityContext"), CONTAINER_SECURITY)
    resources = item.get("resources", {})
    if item["name"] == component and "resources" in item:
        field = "judge.deploy" if component == "judge" else component
        yield Problem(
            f"{at}.resources",
            resources,
            f"spec.{field}.resources says that",
            f"Set spec.{field}.resources instead.",
        )
    elif not isinstance(resources, Mapping):
        yield _not_a("mapping", f"{at}.resources", resources)
    yield from _lists(at, item, CONTAINER_LISTS)
    ports: Any = item.get("ports")
    for port in ports if isinstance(ports, (list, tuple)) else ():
        host_port: Any = port.get("hostPort") if isinstance(port, Mapping) else None
        if host_port:
            fault = "NetworkPolicies do not hold for a port of the node"
            yield Problem(f"{at}.ports.hostPort", host_port, fault, _LEAVE_OUT)


def _volume(at: str, item: Template) -> Iterator[Problem]:
    for kind in sorted(item.keys() - {"name"}):
        if kind not in VOLUMES:
            yield Problem(f"{at}.{kind}", item[kind], _CLOSED, f"Use one of {', '.join(VOLUMES)}.")
    if "projected" not in item:
        return
    here, projected = f"{at}.projected", item["projected"]
    sources = projected.get("sources", ()) if isinstance(projected, Mapping) else None
    if not isinstance(sources, (list, tuple)):
        yield _not_a("mapping with a list of sources", here, projected)
        return
    for source in sources:
        if not isinstance(source, Mapping):
            yield _not_a("mapping", f"{here}.sources", source)
        elif "serviceAccountToken" in source:
            value = source["serviceAccountToken"]
            at_token = f"{here}.sources.serviceAccountToken"
            yield Problem(at_token, value, "pods of a run have no token", _LEAVE_OUT)


def _security(at: str, context: Any, allowed: tuple[str, ...]) -> Iterator[Problem]:
    if context is None:
        return
    if not isinstance(context, Mapping):
        yield _not_a("mapping", at, context)
        return
    for name in sorted(context.keys() - set(allowed)):
        yield Problem(f"{at}.{name}", context[name], _CLOSED, f"Keep to {', '.join(allowed)}.")
    user = context.get("runAsUser")
    if "runAsUser" in context and user is not None and (not _is_whole(user) or user < 1):
        yield Problem(f"{at}.runAsUser", user, "not a user other than root", "Use 1 or more.")


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _no_directives(at: str, value: Any) -> Iterator[Problem]:
    """kubectl's patch directives would be taken for fields."""
    if isinstance(value, Mapping):
        for name, below in value.items():
            here = f"{at}.{name}"
            if isinstance(name, str) and name.startswith("$"):
                fault = "patch directives are not understood here"
                yield Problem(here, below, fault, "Write the value itself; null takes one away.")
            else:
                yield from _no_directives(here, below)
    elif isinstance(value, (list, tuple)):
        for position, below in enumerate(value):
            yield from _no_directives(f"{at}[{position}]", below)


def _known(at: str, value: Template, names: tuple[str, ...]) -> Iterator[Problem]:
    for name in sorted(value.keys() - set(names)):
        fault = "not a field of a pod template"
        yield Problem(f"{at}.{name}", value[name], fault, f"Fields here: {', '.join(names)}.")


def _not_a(kind: str, at: str, value: Any) -> Problem:
    return Problem(at, value, f"not a {kind}", f"Write a {kind}.")
