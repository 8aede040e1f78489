"""Merge a pod template of the specification into the operator's, and keep it as safe as it was.

What a template may say is checked with the specification (:mod:`watercolour.api.pod_templates`).
Whatever it says, :func:`merged` puts back at the end what protects the node, the run and the
network, for containers of the operator's and of the template's alike. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any, cast

from watercolour_operator.desired.pods import USER, Item, container_security
from watercolour_operator.names import Component

#: Lists that are merged by a key of their items; others are replaced whole.
KEYS = {
    "containers": "name",
    "env": "name",
    "hostAliases": "ip",
    "imagePullSecrets": "name",
    "initContainers": "name",
    "ports": "containerPort",
    "topologySpreadConstraints": "topologyKey",
    "volumeDevices": "devicePath",
    "volumeMounts": "mountPath",
    "volumes": "name",
}
#: Lists to which a template adds: the GPU's toleration stays. Where it says itself how long a taint
#: is tolerated, that holds; of two, Kubernetes would take the shorter.
ADDED = frozenset({"tolerations"})

#: What no template changes: fields of the pod, and of its security context.
KEPT = (
    "automountServiceAccountToken",
    "enableServiceLinks",
    "restartPolicy",
    "serviceAccountName",
    "subdomain",
)
REMOVED = (
    "ephemeralContainers",
    "hostIPC",
    "hostNetwork",
    "hostPID",
    "serviceAccount",
    "shareProcessNamespace",
)
USER_FIELDS = ("fsGroup", "fsGroupChangePolicy", "runAsGroup", "runAsUser", "supplementalGroups")

#: For a container that a template adds without saying what it needs.
SIDECAR = {
    "requests": {"cpu": "50m", "memory": "64Mi"},
    "limits": {"cpu": "500m", "memory": "256Mi"},
}


def merged(base: Item, template: Mapping[str, Any], component: Component) -> Item:
    """The operator's pod template with the specification's laid over it."""
    given = {name: value for name, value in template.items() if value is not None}
    if not given:
        return base
    over = _merge(base, given)
    labels = {**over["metadata"].get("labels", {}), **base["metadata"]["labels"]}
    metadata = {"labels": labels, "annotations": over["metadata"].get("annotations", {})}
    return {"metadata": metadata, "spec": _kept_safe(base["spec"], over["spec"], component)}


def _merge(base: Any, over: Any, name: str = "") -> Any:
    """A strategic merge: mappings by field, lists as :data:`KEYS` says, null takes away."""
    if isinstance(base, Mapping) and isinstance(over, Mapping):
        whole = {key: value for key, value in base.items() if key not in over}
        for key, value in over.items():
            if value is not None:
                whole[key] = _merge(base.get(key), value, key)
        return whole
    if isinstance(base, list) and isinstance(over, (list, tuple)):
        if name in ADDED:
            return _added(cast(list[Any], base), list(over))
        if name in KEYS:
            return _merge_items(cast(list[Any], base), list(over), KEYS[name])
    return deepcopy(list(over) if isinstance(over, tuple) else over)


def _added(base: list[Any], over: list[Any]) -> list[Any]:
    kept = [item for item in base if not any(_outlasts(given, item) for given in over)]
    return [*kept, *(deepcopy(item) for item in over if item not in kept)]


def _outlasts(given: Mapping[str, Any], ours: Mapping[str, Any]) -> bool:
    """Whether a template's toleration is of a taint that is tolerated for a time."""
    same = all(given.get(name) in (None, "", ours.get(name)) for name in ("key", "effect"))
    return same and "tolerationSeconds" in ours


def _merge_items(base: list[Any], over: list[Any], key: str) -> list[Any]:
    """Items of the same key are merged in place; new ones follow."""
    found = {item[key]: item for item in base if isinstance(item, Mapping) and key in item}
    given = {item[key]: item for item in over if isinstance(item, Mapping) and key in item}
    whole = [
        _replaced(item, given[item[key]], key) if item.get(key) in given else item for item in base
    ]
    return [*whole, *(_merge({}, item) for name, item in given.items() if name not in found)]


def _replaced(base: Mapping[str, Any], over: Mapping[str, Any], key: str) -> Any:
    """Containers are merged; of a variable, a volume or a mount the new one holds whole."""
    is_container = "image" in base
    return _merge(base, over) if is_container else deepcopy(dict(over))


def _kept_safe(base: Item, spec: Item, component: Component) -> Item:
    spec = {name: value for name, value in spec.items() if name not in REMOVED}
    spec |= {name: base[name] for name in KEPT if name in base}
    given = spec.get("securityContext") or {}
    users = {name: given[name] for name in USER_FIELDS if name in given}
    spec["securityContext"] = {**_not_root(users), **_without_users(base["securityContext"])}
    kept = {item["name"]: item for item in base["containers"]}
    spec["containers"] = spec.get("containers") or base["containers"]
    for kind in ("containers", "initContainers"):
        if spec.get(kind):
            spec[kind] = [_safe_container(item, kept.get(item["name"])) for item in spec[kind]]
    if component is Component.RENDERERS:
        spec |= {name: base[name] for name in ("containers", "volumes", "securityContext")}
        spec.pop("initContainers", None)
    else:
        volumes = spec.get("volumes") or base["volumes"]
        spec["volumes"] = [item for item in volumes if not _opens_the_node(item)]
    return spec


def _safe_container(item: Item, base: Item | None) -> Item:
    given = item.get("securityContext") or {}
    users = {name: given[name] for name in ("runAsGroup", "runAsUser") if name in given}
    security = {**_not_root(users), **container_security()}
    security["seccompProfile"] = (
        base["securityContext"]["seccompProfile"] if base else {"type": "RuntimeDefault"}
    )
    safe = {**item, "securityContext": security}
    if base:
        safe["resources"] = base["resources"]
    elif not (item.get("resources") or {}).get("limits"):
        safe["resources"] = deepcopy(SIDECAR)
    if item.get("ports"):
        safe["ports"] = [
            {name: value for name, value in port.items() if name != "hostPort"}
            for port in item["ports"]
        ]
    return safe


def _not_root(users: Mapping[str, Any]) -> Item:
    """Users as given, but for root, in whose place the images' own user comes."""
    return {
        name: USER if name == "runAsUser" and value in (0, None) else value
        for name, value in users.items()
    }


def _without_users(context: Item) -> Item:
    return {name: value for name, value in context.items() if name not in USER_FIELDS}


def _opens_the_node(volume: Item) -> bool:
    sources = (volume.get("projected") or {}).get("sources") or []
    return "hostPath" in volume or any("serviceAccountToken" in source for source in sources)
