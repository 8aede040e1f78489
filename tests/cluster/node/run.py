"""A run from `kubectl apply` to its report, as a person would do it, with the waiting told."""

from __future__ import annotations

import contextlib
import io
import json
import os
import shlex
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
SILENCE = 30  # looks in a row without an answer: an API server that starts again takes some
Json = dict[str, Any]
Say = Callable[[str], None]


class RunFailed(Exception):
    """The run did not succeed; the message has its reason."""


def kubectl(cluster: Cluster, *arguments: str, stdin: str | bytes = b"") -> bytes:
    """What kubectl printed. Raises RuntimeError with what it complained of."""
    return _tool(cluster, cluster.kubectl, *arguments, stdin=stdin)


def install(cluster: Cluster, say: Say, *arguments: str) -> None:
    """Install or upgrade the chart and wait until all of it is ready.

    ``WATERCOLOUR_HELM`` may hold more of helm's arguments, such as the registry of the images.
    Raises RuntimeError with what helm complained of and what keeps the pods.
    """
    say("installing the chart")
    chart = str(ROOT / "charts" / "watercolour")
    where = ["--namespace", SYSTEM, "--create-namespace", "--wait", "--timeout", "5m"]
    given = shlex.split(os.environ.get("WATERCOLOUR_HELM", ""))
    if cluster.place and (digest := images.digest("operator")):
        # The tag is the same for every build, so only this tells an operator that is up of another.
        given = ["--set-string", f"operator.podAnnotations.image-digest={digest}", *given]
    words = ["upgrade", "--install", RELEASE, chart, *where, *given, *arguments]
    try:
        _tool(cluster, cluster.helm, *words)
    except RuntimeError as problem:
        raise RuntimeError("\n  ".join([str(problem).strip(), *_kept(cluster)])) from problem


def _kept(cluster: Cluster) -> list[str]:
    """What keeps the chart's own pods from running, a line each."""
    told: list[str] = []
    with contextlib.suppress(RuntimeError):
        for pod in json.loads(kubectl(cluster, "get", "pods", "-n", SYSTEM, "-o", "json"))["items"]:
            for each in pod["status"].get("containerStatuses", []):
                if waiting := each["state"].get("waiting"):
                    why = f"{waiting.get('reason')}: {waiting.get('message', '')}".rstrip(": ")
                    told.append(f"{pod['metadata']['name']}: {why}")
    return told


def namespace(cluster: Cluster, name: str) -> None:
    """A namespace in which Pod Security refuses whatever is not `restricted`."""
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    meta = {"name": name, "labels": labels}
    manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": meta}
    kubectl(cluster, "apply", "-f", "-", stdin=json.dumps(manifest))


def name(file: Path) -> str:
    """Of a file's run."""
    return yaml.safe_load(file.read_text())["metadata"]["name"]


def start(cluster: Cluster, file: Path, space: str) -> None:
    """Apply a run's file."""
    kubectl(cluster, "apply", "--namespace", space, "-f", str(file))


def get(cluster: Cluster, space: str, name: str) -> Json:
    """The run as the API server has it."""
    return json.loads(kubectl(cluster, "get", "wcr", name, "-n", space, "-o", "json"))


def ended(cluster: Cluster, space: str, name: str) -> str | None:
    """The last phase of a run that is over already; None for one that is not, or not there."""
    words = [
        "get",
        "wcr",
        name,
        "-n",
        space,
        "--ignore-not-found",
        "-o",
        "jsonpath={.status.phase}",
    ]
    phase = kubectl(cluster, *words).decode()
    return phase if phase in {"Succeeded", "Failed"} else None


def follow(cluster: Cluster, space: str, name: str, say: Say) -> Json:
    """Tell every change until the run ends, and return it.

    Raises RunFailed, or RuntimeError when the API server gives no answer for ``SILENCE`` looks.
    """
    shown, silent = "", 0
    while True:
        try:
            found, silent = get(cluster, space, name), 0
        except RuntimeError:
            silent += 1
            if silent == SILENCE:
                raise
            time.sleep(EVERY)
            continue
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
        conditions = status.get("conditions", [])
        waits = [
            f"{each['type'].removesuffix('Ready').lower()}: {each['reason']}"
            for each in conditions
            if each["type"].endswith("Ready") and each["status"] != "True"
        ]
        # What holds the run itself, such as a Secret that is missing, with its remedy.
        waits += [
            f"{each['reason']}: {each['message']}"
            for each in conditions
            if (each["type"], each["status"]) in {("Progressing", "False"), ("Degraded", "True")}
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
    artifacts = get(cluster, space, name)["status"]["artifacts"]
    manifest = beside(cluster, reader, artifacts["claim"], sleep)
    kubectl(cluster, "apply", "-n", space, "-f", "-", stdin=json.dumps(manifest))
    try:
        ready = ["--for=condition=Ready", f"pod/{reader}", "--timeout=120s"]
        kubectl(cluster, "wait", "-n", space, *ready)
        pack = (
            "import sys, tarfile\n"
            "t = tarfile.open(fileobj=sys.stdout.buffer, mode='w|')\n"
            "t.add('/artifacts/' + sys.argv[1], sys.argv[2],"
            " filter=lambda m: None if '/checkpoints' in m.name else m)\n"
            "t.close()"
        )
        command = ["exec", "-n", space, reader, "--", "python", "-c", pack, artifacts["path"], name]
        packed = kubectl(cluster, *command)
    finally:
        kubectl(cluster, "delete", "pod", "-n", space, reader, "--wait=false")
    into.mkdir(parents=True, exist_ok=True)
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        archive.extractall(into, filter="data")
    return into / name


def beside(
    cluster: Cluster, name: str, claim: str, command: Sequence[str], *, writes: bool = False
) -> Json:
    """A pod of the operator's image (it has Python) that has a run's claim at /artifacts."""
    label = ["-l", "app.kubernetes.io/component=operator", "-o", "json"]
    listed = json.loads(kubectl(cluster, "get", "deployments", "-n", SYSTEM, *label))["items"]
    operator = listed[0]["spec"]["template"]["spec"]
    mount: Json = {"name": "artifacts", "mountPath": "/artifacts", "readOnly": not writes}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {
            "automountServiceAccountToken": False,
            "terminationGracePeriodSeconds": 1,
            "restartPolicy": "OnFailure",
            "imagePullSecrets": operator.get("imagePullSecrets", []),
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": 65532,
                "fsGroup": 65532,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [
                {
                    "name": name,
                    "image": operator["containers"][0]["image"],
                    "imagePullPolicy": operator["containers"][0]["imagePullPolicy"],
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
