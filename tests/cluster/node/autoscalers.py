"""Autoscalers that are not ours, on the node: metrics-server and KEDA, as pods.

Their programs are built from Go modules and their manifests are the modules' own; what is changed
is the image, made of the static program alone, and what a pod asks of two cores.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from tests.cluster.ground import binaries
from tests.cluster.node import archive, daemons
from tests.cluster.node.cluster import Cluster, places
from tests.cluster.node.place import Place
from tests.cluster.node.run import kubectl

USER = "65532:65532"
REQUESTS = {"cpu": "10m", "memory": "64Mi"}
Json = dict[str, Any]
Say = Callable[[str], None]


@dataclass(frozen=True)
class Autoscaler:
    """What is put on the node.

    Attributes:
        module: the Go module, which holds the manifests too.
        manifests: the folder in it that kustomize builds.
        programs: program by Deployment.
        entry: the file in the image by Deployment.
        service: the APIService that is there once it works.
        arguments: more of them, by Deployment.
    """

    module: str
    manifests: str
    programs: dict[str, str]
    entry: dict[str, str]
    service: str
    arguments: dict[str, list[str]]


AUTOSCALERS = {
    "metrics-server": Autoscaler(
        "sigs.k8s.io/metrics-server",
        "manifests/base",
        {"metrics-server": "metrics-server"},
        {"metrics-server": "/metrics-server"},
        "v1beta1.metrics.k8s.io",
        # The kubelet's certificate is its own.
        {"metrics-server": ["--kubelet-insecure-tls"]},
    ),
    "keda": Autoscaler(
        "github.com/kedacore/keda/v2",
        "config/minimal",
        {"keda-operator": "keda", "keda-metrics-apiserver": "keda-adapter"},
        {"keda-operator": "/keda", "keda-metrics-apiserver": "/keda-adapter"},
        "v1beta1.external.metrics.k8s.io",
        {},
    ),
}


def install(cluster: Cluster, names: Sequence[str], say: Say) -> None:
    """Build, import and start the named ones, and wait until they serve.

    On a cluster of KUBECONFIG's nothing is put: they have to serve there already.

    Raises:
        BinariesMissing, RuntimeError: one cannot be built, or does not serve.
    """
    for name in names:
        wanted = AUTOSCALERS[name]
        if cluster.place is not None:
            say(f"starting {name}")
            for deployment, program in wanted.programs.items():
                path = binaries.provide(program, say) / program
                for place in places(cluster.place):
                    _import(place, path, _image(program), wanted.entry[deployment])
            folder = binaries.module_folder(name, wanted.module) / wanted.manifests
            built = kubectl(cluster, "kustomize", str(folder))
            manifests = [ours(each, wanted) for each in yaml.safe_load_all(built)]
            several = {"apiVersion": "v1", "kind": "List", "items": manifests}
            apply = ["apply", "--server-side", "--force-conflicts", "-f", "-"]
            kubectl(cluster, *apply, stdin=json.dumps(several))
        ready = ["--for=condition=Available", f"apiservice/{wanted.service}", "--timeout=300s"]
        kubectl(cluster, "wait", *ready)
        say(f"{name} serves")


def ours(manifest: Json, wanted: Autoscaler) -> Json:
    """A module's manifest with the image that is here, and small requests. Pure."""
    name = manifest["metadata"]["name"]
    if manifest["kind"] != "Deployment" or name not in wanted.programs:
        return manifest
    [container] = manifest["spec"]["template"]["spec"]["containers"]
    container |= {"image": _image(wanted.programs[name]), "imagePullPolicy": "Never"}
    container["args"] = [*container["args"], *wanted.arguments.get(name, [])]
    container["resources"] = container["resources"] | {"requests": REQUESTS}
    return manifest


def _image(program: str) -> str:
    return f"localhost/watercolour-node/{program}:{binaries.folder(program).name.split('-')[-1]}"


def _import(place: Place, program: Path, image: str, entry: str) -> None:
    if image in daemons.ctr(place, "images", "ls", "--quiet").split():
        return
    with tempfile.TemporaryDirectory(dir=place.own) as scratch:
        path = Path(scratch) / "image.tar"
        archive.write(path, image, {entry: program}, [entry], USER)
        daemons.ctr(place, "images", "import", str(path))
