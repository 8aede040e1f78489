"""A run from `kubectl apply` to its report, as a person would do it, with the waiting told."""

from __future__ import annotations

import io
import json
import os
import subprocess
import tarfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import yaml
from tests.cluster.node import images
from tests.cluster.node.cluster import ROOT, Cluster

RELEASE = "watercolour"
SYSTEM = "watercolour-system"
RUNS = "paintings"
EVERY = 2.0  # seconds between two looks
Json = dict[str, Any]
Say = Callable[[str], None]


class RunFailed(Exception):
    """The run did not succeed; the message has its reason."""


def kubectl(cluster: Cluster, *arguments: str, stdin: str | bytes = b"") -> bytes:
    """What kubectl printed. Raises RuntimeError with what it complained of."""
    return _tool(cluster, cluster.kubectl, *arguments, stdin=stdin)


def install(cluster: Cluster, say: Say, *arguments: str) -> None:
    """Install or upgrade the chart and wait until all of it is ready."""
    say("installing the chart")
    chart = str(ROOT / "charts" / "watercolour")
    where = ["--namespace", SYSTEM, "--create-namespace", "--wait", "--timeout", "5m"]
    _tool(cluster, cluster.helm, "upgrade", "--install", RELEASE, chart, *where, *arguments)


def namespace(cluster: Cluster, name: str) -> None:
    """A namespace in which Pod Security refuses whatever is not `restricted`."""
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    meta = {"name": name, "labels": labels}
    manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": meta}
    kubectl(cluster, "apply", "-f", "-", stdin=json.dumps(manifest))


def start(cluster: Cluster, file: Path, space: str) -> str:
    """Apply a run's file; returns the run's name."""
    kubectl(cluster, "apply", "--namespace", space, "-f", str(file))
    return yaml.safe_load(file.read_text())["metadata"]["name"]


def get(cluster: Cluster, space: str, name: str) -> Json:
    """The run as the API server has it."""
    return json.loads(kubectl(cluster, "get", "wcr", name, "-n", space, "-o", "json"))


def follow(cluster: Cluster, space: str, name: str, say: Say) -> Json:
    """Tell every change until the run ends, and return it. Raises RunFailed."""
    shown = ""
    while True:
        found = get(cluster, space, name)
        status = found.get("status", {})
        line = describe(status)
        if line != shown:
            say(shown := line)
        if status.get("phase") == "Succeeded":
            return found
        if status.get("phase") == "Failed":
            raise RunFailed(f"{name}: {status.get('lastFailure') or status['conditions']}")
        time.sleep(EVERY)


def describe(status: Json) -> str:
    """A line for a person."""
    phase = status.get("phase", "Pending")
    if phase in {"Pending", "Starting"}:
        waits = [
            f"{each['type'].removesuffix('Ready').lower()}: {each['reason']}"
            for each in status.get("conditions", [])
            if each["type"].endswith("Ready") and each["status"] != "True"
        ]
        return f"{phase:10} {', '.join(waits)}".rstrip()
    progress = status.get("progress", {})
    reward = progress.get("reward", {}).get("mean")
    renderers = status.get("renderers", {})
    parts = [
        f"step {progress.get('step', 0)}/{progress.get('steps', '?')}",
        f"reward {'-' if reward is None else f'{reward:.3f}'}",
        f"renderers {renderers.get('ready', 0)}/{renderers.get('desired', 0)}",
        f"scorer {status.get('scorer', '-')}",
    ]
    return f"{phase:10} {'  '.join(parts)}"


def fetch(cluster: Cluster, space: str, name: str, into: Path) -> Path:
    """Copy a run's report, figures and paintings out of its claim; returns their folder.

    A pod mounts the claim read-only for that long.
    """
    reader = f"{name}-reader"
    sleep = ["python", "-m", "watercolour_operator.profile", "--sleep"]
    manifest = beside(reader, f"{name}-artifacts", sleep)
    kubectl(cluster, "apply", "-n", space, "-f", "-", stdin=json.dumps(manifest))
    try:
        ready = ["--for=condition=Ready", f"pod/{reader}", "--timeout=120s"]
        kubectl(cluster, "wait", "-n", space, *ready)
        pack = (
            "import sys, tarfile\n"
            "t = tarfile.open(fileobj=sys.stdout.buffer, mode='w|')\n"
            "t.add('/artifacts/runs/' + sys.argv[1], sys.argv[1],"
            " filter=lambda m: None if '/checkpoints' in m.name else m)\n"
            "t.close()"
        )
        command = ["exec", "-n", space, reader, "--", "python", "-c", pack, name]
        packed = kubectl(cluster, *command)
    finally:
        kubectl(cluster, "delete", "pod", "-n", space, reader, "--wait=false")
    into.mkdir(parents=True, exist_ok=True)
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        archive.extractall(into, filter="data")
    return into / name


def beside(name: str, claim: str, command: Sequence[str], *, writes: bool = False) -> Json:
    """A pod of the operator's image (it has Python) that has a run's claim at /artifacts."""
    mount: Json = {"name": "artifacts", "mountPath": "/artifacts", "readOnly": not writes}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {
            "automountServiceAccountToken": False,
            "terminationGracePeriodSeconds": 1,
            "restartPolicy": "OnFailure",
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": 65532,
                "fsGroup": 65532,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [
                {
                    "name": name,
                    "image": images.wanted()["operator"],
                    "command": list(command),
                    "securityContext": {
                        "allowPrivilegeEscalation": False,
                        "capabilities": {"drop": ["ALL"]},
                        "readOnlyRootFilesystem": True,
                    },
                    "volumeMounts": [mount],
                }
            ],
            "volumes": [{"name": "artifacts", "persistentVolumeClaim": {"claimName": claim}}],
        },
    }


def _tool(cluster: Cluster, program: Path, *arguments: str, stdin: str | bytes = b"") -> bytes:
    environment = os.environ | {"KUBECONFIG": str(cluster.kubeconfig)}
    words: Sequence[str] = [str(program), *arguments]
    given = stdin.encode() if isinstance(stdin, str) else stdin
    done = subprocess.run(words, input=given, capture_output=True, env=environment, check=False)
    if done.returncode:
        raise RuntimeError(f"{program.name} {' '.join(arguments[:3])}: {done.stderr.decode()}")
    return done.stdout
