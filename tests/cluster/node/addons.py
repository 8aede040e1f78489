"""What a bare control plane lacks before pods can do without knowing where they are: DNS, storage,
and the API server's right to ask the kubelet for logs.
"""

from __future__ import annotations

from typing import Any

from tests.cluster.node.daemons import COREDNS
from tests.cluster.node.place import DISK_CLASS, DNS, FIRST

Json = dict[str, Any]
_RBAC = "rbac.authorization.k8s.io"
_HOSTNAME = "kubernetes.io/hostname"
_LABELS = {"k8s-app": "kube-dns"}
_COREFILE = """\
.:53 {
  errors
  health
  ready
  kubernetes cluster.local in-addr.arpa {
    ttl 5
  }
  cache 5
}
"""


def manifests() -> list[Json]:
    """All of it, in the order in which it is applied."""
    return [*_kubelet_access(), _storage_class(), *_dns()]


def _kubelet_access() -> list[Json]:
    """The API server's certificate names the user `apiserver`."""
    return [_binding("node-kubelet-access", "system:kubelet-api-admin", "User", "apiserver")]


def _binding(name: str, role: str, kind: str, subject: str, namespace: str = "") -> Json:
    who = {"kind": kind, "name": subject}
    who |= {"namespace": namespace} if namespace else {"apiGroup": _RBAC}
    return {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": role},
        "subjects": [who],
    }


def _storage_class() -> Json:
    """The default class; disks.py makes its volumes, once a pod is scheduled that wants one.

    The first node alone has disks, so no pod that waits for one is scheduled elsewhere.
    """
    topology = {"matchLabelExpressions": [{"key": _HOSTNAME, "values": [FIRST.name]}]}
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {
            "name": DISK_CLASS,
            "annotations": {"storageclass.kubernetes.io/is-default-class": "true"},
        },
        "provisioner": f"watercolour.dev/{DISK_CLASS}",
        "volumeBindingMode": "WaitForFirstConsumer",
        "reclaimPolicy": "Delete",
        "allowedTopologies": [topology],
    }


def _dns() -> list[Json]:
    meta = {"name": "coredns", "namespace": "kube-system"}
    read = ["list", "watch"]
    core = {"apiGroups": [""], "resources": ["services", "pods", "namespaces"], "verbs": read}
    slices = {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": read}
    role = {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "coredns"},
        "rules": [core, slices],
    }
    ports = [
        {"name": "dns", "port": 53, "protocol": "UDP"},
        {"name": "dns-tcp", "port": 53, "protocol": "TCP"},
    ]
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta},
        role,
        _binding("coredns", "coredns", "ServiceAccount", "coredns", "kube-system"),
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": meta,
            "data": {"Corefile": _COREFILE},
        },
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "kube-dns", "namespace": "kube-system", "labels": _LABELS},
            "spec": {"clusterIP": DNS, "selector": _LABELS, "ports": ports},
        },
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": meta,
            "spec": {
                "selector": {"matchLabels": _LABELS},
                "template": {"metadata": {"labels": _LABELS}, "spec": _dns_pod()},
            },
        },
    ]


def _dns_pod() -> Json:
    return {
        "serviceAccountName": "coredns",
        "dnsPolicy": "Default",
        "priorityClassName": "system-cluster-critical",
        "nodeSelector": {_HOSTNAME: FIRST.name},  # names resolve when the second is lost
        "containers": [
            {
                "name": "coredns",
                "image": COREDNS,
                "imagePullPolicy": "Never",
                "args": ["-conf", "/etc/coredns/Corefile"],
                "volumeMounts": [{"name": "corefile", "mountPath": "/etc/coredns"}],
                "readinessProbe": {
                    "httpGet": {"path": "/ready", "port": 8181},
                    "periodSeconds": 1,
                },
                "resources": {"requests": {"memory": "32Mi"}, "limits": {"memory": "128Mi"}},
            }
        ],
        "volumes": [{"name": "corefile", "configMap": {"name": "coredns"}}],
    }
