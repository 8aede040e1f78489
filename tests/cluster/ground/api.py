"""A small client of the API server for tests: JSON in, JSON out, and waiting by watching.

The operator has a client of its own; tests use this one so that a fault of the operator's client
cannot hide from them.
"""

from __future__ import annotations

import json
import ssl
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import yaml

Json = dict[str, Any]
WAIT = 30.0  # seconds that a condition may take before the test fails


class Kind(NamedTuple):
    """Where objects of one kind live."""

    api_version: str
    plural: str
    namespaced: bool = True


KINDS: dict[str, Kind] = {
    "Namespace": Kind("v1", "namespaces", False),
    "Node": Kind("v1", "nodes", False),
    "PersistentVolume": Kind("v1", "persistentvolumes", False),
    "Pod": Kind("v1", "pods"),
    "Service": Kind("v1", "services"),
    "ServiceAccount": Kind("v1", "serviceaccounts"),
    "ConfigMap": Kind("v1", "configmaps"),
    "Secret": Kind("v1", "secrets"),
    "Event": Kind("v1", "events"),
    "PersistentVolumeClaim": Kind("v1", "persistentvolumeclaims"),
    "ResourceQuota": Kind("v1", "resourcequotas"),
    "LimitRange": Kind("v1", "limitranges"),
    "Deployment": Kind("apps/v1", "deployments"),
    "ReplicaSet": Kind("apps/v1", "replicasets"),
    "StatefulSet": Kind("apps/v1", "statefulsets"),
    "DaemonSet": Kind("apps/v1", "daemonsets"),
    "Job": Kind("batch/v1", "jobs"),
    "Lease": Kind("coordination.k8s.io/v1", "leases"),
    "NetworkPolicy": Kind("networking.k8s.io/v1", "networkpolicies"),
    "PodDisruptionBudget": Kind("policy/v1", "poddisruptionbudgets"),
    "HorizontalPodAutoscaler": Kind("autoscaling/v2", "horizontalpodautoscalers"),
    "EndpointSlice": Kind("discovery.k8s.io/v1", "endpointslices"),
    "Role": Kind("rbac.authorization.k8s.io/v1", "roles"),
    "RoleBinding": Kind("rbac.authorization.k8s.io/v1", "rolebindings"),
    "ClusterRole": Kind("rbac.authorization.k8s.io/v1", "clusterroles", False),
    "ClusterRoleBinding": Kind("rbac.authorization.k8s.io/v1", "clusterrolebindings", False),
    "StorageClass": Kind("storage.k8s.io/v1", "storageclasses", False),
    "PriorityClass": Kind("scheduling.k8s.io/v1", "priorityclasses", False),
    "RuntimeClass": Kind("node.k8s.io/v1", "runtimeclasses", False),
    "CustomResourceDefinition": Kind("apiextensions.k8s.io/v1", "customresourcedefinitions", False),
    "ValidatingAdmissionPolicy": Kind(
        "admissionregistration.k8s.io/v1", "validatingadmissionpolicies", False
    ),
    "ValidatingAdmissionPolicyBinding": Kind(
        "admissionregistration.k8s.io/v1", "validatingadmissionpolicybindings", False
    ),
    "SubjectAccessReview": Kind("authorization.k8s.io/v1", "subjectaccessreviews", False),
    "SelfSubjectRulesReview": Kind("authorization.k8s.io/v1", "selfsubjectrulesreviews", False),
    "WatercolourRun": Kind("watercolour.dev/v1alpha1", "watercolourruns"),
}

PATCH_TYPES = {
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "json": "application/json-patch+json",
}


class ApiError(Exception):
    """The server's refusal: `code`, `reason` and `message` are those of its Status object."""

    def __init__(self, code: int, reason: str, message: str) -> None:
        super().__init__(f"{code} {reason}: {message}")
        self.code = code
        self.reason = reason
        self.message = message


class Api:
    """One user's way to one API server. Thread-safe."""

    def __init__(self, server: str, token: str, authority: Path) -> None:
        self.server = server
        self.authority = authority
        self.headers = {
            "Authorization": f"Bearer {token}",
            "User-Agent": "watercolour-test-ground",
        }
        self._client = httpx.Client(
            base_url=server,
            headers=self.headers,
            verify=ssl.create_default_context(cafile=str(authority)),
            timeout=30,
            trust_env=False,
        )

    def close(self) -> None:
        """Close its connections."""
        self._client.close()

    def raw(self, path: str) -> str:
        """The text at a path, for example /readyz."""
        return _checked(self._client.get(path)).text

    def get(self, kind: str | Kind, name: str, namespace: str | None = None) -> Json:
        """One object. Raises ApiError with code 404 when it is not there."""
        return self._json("GET", _path(kind, namespace, name))

    def find(self, kind: str | Kind, name: str, namespace: str | None = None) -> Json | None:
        """One object, or None when it is not there."""
        try:
            return self.get(kind, name, namespace)
        except ApiError as refusal:
            if refusal.code == 404:
                return None
            raise

    def list(
        self,
        kind: str | Kind,
        namespace: str | None = None,
        *,
        labels: Mapping[str, str] | str | None = None,
        fields: str | None = None,
    ) -> list[Json]:
        """The objects of one namespace, or of all without one."""
        answer = self._json("GET", _path(kind, namespace), params=_selectors(labels, fields))
        return answer["items"]

    def version(self, kind: str | Kind, namespace: str | None = None) -> str:
        """The version to watch from."""
        answer = self._json("GET", _path(kind, namespace), params={"limit": 1})
        return answer["metadata"]["resourceVersion"]

    def create(
        self,
        manifest: Json,
        namespace: str | None = None,
        *,
        dry_run: bool = False,
        strict: bool = False,
    ) -> Json:
        """Create an object; the namespace may stand in the manifest instead."""
        kind, namespace = _place(manifest, namespace)
        params = {"dryRun": "All"} if dry_run else {}
        params |= {"fieldValidation": "Strict"} if strict else {}
        return self._json("POST", _path(kind, namespace), params=params, json=manifest)

    def apply(
        self,
        manifest: Json,
        namespace: str | None = None,
        *,
        manager: str = "test",
        force: bool = True,
        dry_run: bool = False,
        subresource: str = "",
    ) -> Json:
        """Server-side apply."""
        kind, namespace = _place(manifest, namespace)
        params = {"fieldManager": manager, "force": str(force).lower()}
        params |= {"dryRun": "All"} if dry_run else {}
        return self._json(
            "PATCH",
            _path(kind, namespace, manifest["metadata"]["name"], subresource),
            params=params,
            content=json.dumps(manifest),
            headers={"Content-Type": "application/apply-patch+yaml"},
        )

    def patch(
        self,
        kind: str | Kind,
        name: str,
        body: Any,
        namespace: str | None = None,
        *,
        how: str = "merge",
        subresource: str = "",
    ) -> Json:
        """Patch an object or a subresource; `how` is merge, strategic or json."""
        return self._json(
            "PATCH",
            _path(kind, namespace, name, subresource),
            content=json.dumps(body),
            headers={"Content-Type": PATCH_TYPES[how]},
        )

    def post(
        self, kind: str | Kind, name: str, namespace: str, subresource: str, body: Any
    ) -> Json:
        """Create at a subresource, for example pods/eviction or serviceaccounts/token."""
        return self._json("POST", _path(kind, namespace, name, subresource), json=body)

    def delete(
        self,
        kind: str | Kind,
        name: str,
        namespace: str | None = None,
        *,
        grace: int | None = None,
        propagation: str = "Background",
    ) -> None:
        """Ask for deletion; an object that is already gone is fine."""
        options: Json = {"propagationPolicy": propagation}
        if grace is not None:
            options["gracePeriodSeconds"] = grace
        try:
            self._json("DELETE", _path(kind, namespace, name), json=options)
        except ApiError as refusal:
            if refusal.code != 404:
                raise

    def until(
        self,
        kind: str | Kind,
        condition: Callable[[list[Json]], Any],
        namespace: str | None = None,
        *,
        labels: Mapping[str, str] | str | None = None,
        fields: str | None = None,
        timeout: float = WAIT,
        what: str = "",
    ) -> list[Json]:
        """Watch the objects until `condition` of their list is true, and return that list.

        Raises AssertionError with the last list after `timeout` seconds.
        """
        deadline = time.monotonic() + timeout
        held: dict[str, Json] = {}
        for held in self._states(kind, namespace, labels, fields, deadline):
            if condition(list(held.values())):
                return list(held.values())
        raise AssertionError(
            f"not within {timeout:g} s: {what or condition}; last seen:\n"
            f"{yaml.safe_dump([_brief(each) for each in held.values()], sort_keys=False)}"
        )

    def until_one(
        self,
        kind: str | Kind,
        name: str,
        namespace: str | None = None,
        condition: Callable[[Json], Any] = bool,
        *,
        timeout: float = WAIT,
        what: str = "",
    ) -> Json:
        """Watch one object until it exists and `condition` holds, and return it."""
        found = self.until(
            kind,
            lambda objects: objects and condition(objects[0]),
            namespace,
            fields=f"metadata.name={name}",
            timeout=timeout,
            what=what or f"{kind} {name}: {condition}",
        )
        return found[0]

    def until_gone(
        self,
        kind: str | Kind,
        name: str,
        namespace: str | None = None,
        *,
        timeout: float = WAIT,
    ) -> None:
        """Watch one object until it is gone."""
        self.until(
            kind,
            lambda objects: not objects,
            namespace,
            fields=f"metadata.name={name}",
            timeout=timeout,
            what=f"{kind} {name} is gone",
        )

    def events_of(
        self,
        kind: str | Kind,
        namespace: str | None = None,
        *,
        since: str,
        labels: Mapping[str, str] | str | None = None,
        fields: str | None = None,
        timeout: float = WAIT,
    ) -> Iterator[Json]:
        """Watch events ({type, object}) after a resource version, for at most `timeout` seconds."""
        params: dict[str, str | int] = {
            "watch": "true",
            "resourceVersion": since,
            "timeoutSeconds": max(1, int(timeout)),
            **_selectors(labels, fields),
        }
        path = _path(kind, namespace)
        reading = httpx.Timeout(30, read=max(0.05, timeout))
        try:
            with self._client.stream("GET", path, params=params, timeout=reading) as answer:
                if answer.is_error:
                    answer.read()
                    _checked(answer)
                for line in answer.iter_lines():
                    yield json.loads(line)
        except httpx.ReadTimeout:
            return

    def _states(
        self,
        kind: str | Kind,
        namespace: str | None,
        labels: Mapping[str, str] | str | None,
        fields: str | None,
        deadline: float,
    ) -> Iterator[dict[str, Json]]:
        """The objects by uid: as listed, then after each watch event."""
        while True:
            listed = self._json("GET", _path(kind, namespace), params=_selectors(labels, fields))
            held = {each["metadata"]["uid"]: each for each in listed["items"]}
            yield held
            left = deadline - time.monotonic()
            if left <= 0:
                return
            since = listed["metadata"]["resourceVersion"]
            for event in self.events_of(
                kind, namespace, since=since, labels=labels, fields=fields, timeout=left
            ):
                if event["type"] == "ERROR":
                    break
                uid = event["object"]["metadata"]["uid"]
                if event["type"] == "DELETED":
                    held.pop(uid, None)
                else:
                    held[uid] = event["object"]
                yield held
                if time.monotonic() > deadline:
                    return

    def _json(self, method: str, path: str, **options: Any) -> Json:
        return _checked(self._client.request(method, path, **options)).json()


def place_of(manifest: Json) -> Kind:
    """The kind that a manifest is of. Raises KeyError naming it when the table lacks it."""
    return KINDS[manifest["kind"]]


def _place(manifest: Json, namespace: str | None) -> tuple[Kind, str | None]:
    kind = place_of(manifest)
    return kind, (namespace or manifest["metadata"].get("namespace")) if kind.namespaced else None


def _path(
    kind: str | Kind, namespace: str | None = None, name: str = "", subresource: str = ""
) -> str:
    place = KINDS[kind] if isinstance(kind, str) else kind
    prefix = "api" if "/" not in place.api_version else "apis"
    within = ["namespaces", namespace] if namespace and place.namespaced else []
    parts = [prefix, place.api_version, *within, place.plural, name, subresource]
    return "/" + "/".join(part for part in parts if part)


def _selectors(labels: Mapping[str, str] | str | None, fields: str | None) -> dict[str, str]:
    chosen = (
        labels
        if isinstance(labels, str)
        else ",".join(f"{key}={value}" for key, value in (labels or {}).items())
    )
    return ({"labelSelector": chosen} if chosen else {}) | (
        {"fieldSelector": fields} if fields else {}
    )


def _checked(answer: httpx.Response) -> httpx.Response:
    if not answer.is_error:
        return answer
    try:
        status: Json = answer.json()
    except json.JSONDecodeError:
        status = {"message": answer.text}
    raise ApiError(answer.status_code, status.get("reason", ""), status.get("message", ""))


def _brief(manifest: Json) -> Json:
    """What a failure message shows of an object."""
    metadata = manifest["metadata"]
    kept = ("name", "namespace", "uid", "deletionTimestamp", "finalizers")
    return {
        "metadata": {key: metadata[key] for key in kept if key in metadata},
        "spec": manifest.get("spec", {}) if manifest.get("kind") == "Job" else "…",
        "status": manifest.get("status", {}),
    }


def names(objects: Sequence[Json]) -> list[str]:
    """The names of objects, in order."""
    return sorted(each["metadata"]["name"] for each in objects)
