"""What a pod template of the specification may change, and what it cannot weaken. Pure.

Templates are merged, by container name, into those of the operator. A container stays without
privileges, tokens, capabilities and the node's own namespaces whatever a template says; one that
says otherwise is refused here, in words that name the field, instead of being overruled in silence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from watercolour.api.problems import Problem

#: What a renderer's template may say: placement, never security or network.
PLACEMENT = (
    "affinity",
    "imagePullSecrets",
    "nodeSelector",
    "priorityClassName",
    "schedulerName",
    "tolerations",
    "topologySpreadConstraints",
)

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
    elif component == "renderers":
        fault = "renderers run hostile code, so this cannot change"
        for name in sorted(spec.keys() - set(PLACEMENT)):
            remedy = f"Keep to {', '.join(PLACEMENT)}."
            yield Problem(f"{at}.spec.{name}", spec[name], fault, remedy)
    else:
        yield from _pod(f"{at}.spec", component, spec)


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
    yield from _no_directives(at, spec)
    yield from _security(f"{at}.securityContext", spec.get("securityContext"), POD_SECURITY)
    yield from _items(f"{at}.volumes", spec.get("volumes"), _volume)
    for kind in ("containers", "initContainers"):
        yield from _items(
            f"{at}.{kind}",
            spec.get(kind),
            lambda here, item: _container(here, component, item),
        )
    if component == "trainer":
        yield from _beside_the_trainer(f"{at}.containers", spec.get("containers"))


def _items(
    at: str, items: Any, check: Callable[[str, Template], Iterator[Problem]]
) -> Iterator[Problem]:
    """Faults of a list whose items have names, by which they are merged."""
    if items is None:
        return
    if not isinstance(items, (list, tuple)):
        yield _not_a("list", at, items)
        return
    for position, item in enumerate(items):
        name = item.get("name") if isinstance(item, Mapping) else None
        if not isinstance(name, str) or not name:
            yield Problem(f"{at}[{position}]", item, "has no name to merge it by", "Name it.")
        else:
            yield from check(f"{at}[{name}]", item)


def _container(at: str, component: str, item: Template) -> Iterator[Problem]:
    yield from _security(f"{at}.securityContext", item.get("securityContext"), CONTAINER_SECURITY)
    if item["name"] == component and "resources" in item:
        field = "judge.deploy" if component == "judge" else component
        yield Problem(
            f"{at}.resources",
            item["resources"],
            f"spec.{field}.resources says that",
            f"Set spec.{field}.resources instead.",
        )
    ports = item.get("ports")
    for position, port in enumerate(ports if isinstance(ports, (list, tuple)) else ()):
        if isinstance(port, Mapping) and port.get("hostPort"):
            fault = "NetworkPolicies do not hold for a port of the node"
            yield Problem(f"{at}.ports[{position}].hostPort", port["hostPort"], fault, _LEAVE_OUT)


def _beside_the_trainer(at: str, items: Any) -> Iterator[Problem]:
    """A container that lives on after the trainer would keep its pod, and so its GPU."""
    for item in items if isinstance(items, (list, tuple)) else ():
        name = item.get("name") if isinstance(item, Mapping) else None
        if isinstance(name, str) and name not in ("", "trainer"):
            yield Problem(
                f"{at}[{name}]",
                name,
                "would keep the pod and its GPU after the trainer has ended",
                "Write it below initContainers with restartPolicy: Always.",
            )


def _volume(at: str, item: Template) -> Iterator[Problem]:
    for kind in sorted(item.keys() - {"name"}):
        if kind not in VOLUMES:
            yield Problem(f"{at}.{kind}", item[kind], _CLOSED, f"Use one of {', '.join(VOLUMES)}.")
    projected = item.get("projected")
    sources = projected.get("sources") if isinstance(projected, Mapping) else None
    for source in sources if isinstance(sources, (list, tuple)) else ():
        if isinstance(source, Mapping) and "serviceAccountToken" in source:
            where = f"{at}.projected.sources.serviceAccountToken"
            value = source["serviceAccountToken"]
            yield Problem(where, value, "pods of a run have no token", _LEAVE_OUT)


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
