"""The operator as a process of its own, and what the pods that it asks would answer."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.cluster.ground import processes
from tests.cluster.ground.api import Api
from tests.cluster.ground.podlife import Exited
from tests.cluster.ground.podplayer import PodPlayer

from watercolour_operator import names

Json = dict[str, Any]

#: Quick enough for tests, and otherwise what a cluster has.
FLAGS = {
    "lease-name": "operator",
    "lease-seconds": "6",
    "poll-seconds": "0.2",
    "metrics-host": "127.0.0.1",
}


@dataclass
class Answers:
    """A server in the place of all pods: answers what the test has said they would."""

    url: str
    said: dict[tuple[str, str, str], Json] = field(default_factory=dict[tuple[str, str, str], Json])
    #: Method and path of every question that was no GET.
    orders: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])

    def say(self, run: str, component: str, path: str, answer: Json | None) -> None:
        """From now on every pod of the component answers so; None answers nothing."""
        key = (run, component, path)
        if answer is None:
            self.said.pop(key, None)
        else:
            self.said[key] = answer

    @property
    def reach(self) -> str:
        """For the operator's --reach."""
        return self.url + "/{run}/{component}/{pod}"


@contextmanager
def answering() -> Iterator[Answers]:
    """The server, while the block runs."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            _, run, component, _, *path = self.path.split("/")
            answer = answers.said.get((run, component, "/" + "/".join(path)))
            # Whoever asked may have been killed meanwhile.
            with suppress(BrokenPipeError, ConnectionResetError):
                self.send_response(404 if answer is None else 200)
                self.end_headers()
                self.wfile.write(json.dumps(answer or {}).encode())

        def _order(self) -> None:
            answers.orders.append((self.command, self.path))
            self.send_response(200)
            self.end_headers()
            load = {"slots": 2, "busy": 0, "draining": self.command == "POST"}
            self.wfile.write(json.dumps(load).encode())

        do_POST = do_DELETE = _order  # noqa: N815 - the names that http.server looks for

        def log_message(self, format: str, *args: Any) -> None:
            pass

    class Server(ThreadingHTTPServer):
        # A thousand runs' pods would not share one short queue either.
        request_queue_size = 1024

    server = Server(("127.0.0.1", 0), Handler)
    answers = Answers(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield answers
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@dataclass
class Running:
    """One operator process."""

    process: subprocess.Popen[bytes]
    log: Path
    metrics_port: int
    liveness_port: int

    def stop(self, within: float = 10.0) -> int:
        """SIGTERM; its exit status."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(within)

    def kill(self) -> None:
        """SIGKILL."""
        self.process.kill()
        self.process.wait()

    def pause(self) -> None:
        """SIGSTOP: it lives and does nothing."""
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """SIGCONT."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)

    def wait(self, within: float) -> int:
        """Its exit status, when it ends by itself."""
        return self.process.wait(within)

    def ask(self, path: str) -> tuple[int, str]:
        """Status and text of one of its probes or of /metrics."""
        port = self.metrics_port if path == "/metrics" else self.liveness_port
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def until_up(self, within: float = 120.0) -> None:
        """Return once its probes answer."""
        deadline = time.monotonic() + within
        while time.monotonic() < deadline and self.process.poll() is None:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.liveness_port)) == 0:
                    return
            time.sleep(0.05)
        raise AssertionError(f"the operator is not up:\n{self.words()}")

    def words(self) -> str:
        """Its log so far."""
        return self.log.read_text()


def start(kubeconfig: Path, namespace: str, log: Path, **flags: str) -> Running:
    """Start an operator for one namespace; flags with underscores."""
    metrics, liveness = processes.free_ports(2)
    options = {
        **FLAGS,
        "namespaces": namespace,
        "lease-namespace": namespace,
        "operator-namespace": namespace,
        "metrics-port": str(metrics),
        "liveness-port": str(liveness),
        **{name.replace("_", "-"): value for name, value in flags.items()},
    }
    command = [sys.executable, "-m", "watercolour_operator", "--kubeconfig", str(kubeconfig)]
    for name, value in options.items():
        command += [f"--{name}", value]
    with log.open("ab") as stderr:
        environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
        process = subprocess.Popen(command, stderr=stderr, stdout=stderr, env=environment)
    operator = Running(process, log, metrics, liveness)
    operator.until_up()
    return operator


def run(name: str = "peonies", **spec: Any) -> Json:
    """A run that needs a GPU, a scorer and a few steps."""
    return {
        "apiVersion": "watercolour.dev/v1alpha1",
        "kind": "WatercolourRun",
        "metadata": {"name": name},
        "spec": {
            "trainer": {"steps": 3, "resources": {"limits": {"nvidia.com/gpu": "1"}}},
            **spec,
        },
    }


def volume(api: Api, namespace: str, run: str = "peonies") -> None:
    """A volume for the claim that is made for a run: the ground has no provisioner."""
    api.create(
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": f"{namespace}-{run}"},
            "spec": {
                "capacity": {"storage": "1Ti"},
                "accessModes": ["ReadWriteOnce"],
                "hostPath": {"path": "/nowhere"},
                "claimRef": {"namespace": namespace, "name": f"{run}-artifacts"},
                "persistentVolumeReclaimPolicy": "Retain",
            },
        }
    )


def phase(run: Json) -> str:
    """A run's phase."""
    return run.get("status", {}).get("phase", "")


def condition(run: Json, kind: str) -> Json:
    """A run's condition; empty when it has none of the type."""
    found = (one for one in run.get("status", {}).get("conditions", ()) if one["type"] == kind)
    return next(found, {})


@dataclass
class Story:
    """A run's life in the steps that tests tell it in."""

    api: Api
    namespace: str
    pods: PodPlayer
    answers: Answers
    name: str = "peonies"

    def create(self, **spec: Any) -> Json:
        """Apply the run, and have a volume for its claim."""
        if self.api.find("PersistentVolume", f"{self.namespace}-{self.name}") is None:
            volume(self.api, self.namespace, self.name)
        return self.api.create(run(self.name, **spec), self.namespace)

    def until(self, wanted: str, timeout: float = 60.0) -> Json:
        """The run, once it is in a phase."""
        return self.api.until_one(
            names.KIND,
            self.name,
            self.namespace,
            lambda found: phase(found) == wanted,
            timeout=timeout,
            what=f"the run is {wanted}",
        )

    def trainer(self, attempt: int = 1, timeout: float = 60.0) -> str:
        """Name of the pod that trains, once it runs."""
        labels = {names.COMPONENT: "trainer", names.ATTEMPT: str(attempt), names.RUN: self.name}

        def runs(found: list[Json]) -> bool:
            return len(found) == 1 and found[0]["status"].get("phase") == "Running"

        (pod,) = self.api.until("Pod", runs, self.namespace, labels=labels, timeout=timeout)
        return pod["metadata"]["name"]

    def train(self, attempt: int = 1) -> str:
        """Let the trainer make its first step; returns its pod's name."""
        pod = self.trainer(attempt)
        self.answers.say(self.name, "trainer", "/progress", {"step": 1, "steps": 3})
        self.until("Running")
        return pod

    def finish(self, pod: str, timeout: float = 60.0) -> Json:
        """Let the trainer end well; returns the run when it is Succeeded."""
        self.answers.say(self.name, "trainer", "/progress", None)
        self.pods.step(self.namespace, pod, Exited(0))
        return self.until("Succeeded", timeout)

    def jobs(self) -> list[str]:
        """Names of the run's Jobs."""
        return sorted(job["metadata"]["name"] for job in self.api.list("Job", self.namespace))
