"""A real Kubernetes control plane on one machine: etcd, API server, controller manager, scheduler.

Everything lies in one folder (certificates, kubeconfigs, logs, data) and every process ends with
the one that started it. Nodes and pods are played by others: kwok.py and podplayer.py. A real node
(tests/cluster/node) gives it an address of its own.
"""

from __future__ import annotations

import json
import secrets
import signal
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import yaml
from tests.cluster.ground import pki, processes
from tests.cluster.ground.api import Api, ApiError, Json
from tests.cluster.ground.processes import Program

READY_WITHIN = 120.0  # seconds; 3 s on an idle machine
ADMIN = "ground-admin"
LOOPBACK = "127.0.0.1"
PORT = 6443  # where the API server of a real node listens
FRONT = "front-proxy"  # who the API server is to the servers that it stands before
# The components' own calls are left out of the audit log: tests count what the operator does.
AUDIT_POLICY: Json = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {"level": "None", "userGroups": ["system:serviceaccounts:kube-system", "system:nodes"]},
        {"level": "None", "users": [ADMIN, "system:apiserver", "system:anonymous"]},
        {"level": "Metadata"},
    ],
}


@dataclass(frozen=True)
class Call:
    """One finished call, or one watch that has begun, from the audit log."""

    user: str
    verb: str
    resource: str
    namespace: str
    name: str
    code: int
    agent: str
    at: str  # when it came in, RFC 3339
    done: str  # when it was answered; a watch: when it had begun


class ControlPlane:
    """Starts in `with`, stops at its end. `kube` is the folder that holds the components.

    An `address` other than the loopback's is where nodes find the API server, on port 6443; each
    name in `nodes` gets a kubeconfig NAME.kubeconfig as its kubelet.
    """

    def __init__(
        self,
        folder: Path,
        kube: Path,
        etcd: Path,
        *,
        crds: Sequence[Path] = (),
        address: str = LOOPBACK,
        nodes: Sequence[str] = (),
    ) -> None:
        self.folder = folder
        self.logs = folder / "log"
        self._kube = kube
        self._etcd = etcd
        self._crds = crds
        self.refused: dict[Path, ApiError] = {}
        self._programs: dict[str, Program] = {}
        self._commands: dict[str, list[str]] = {}
        self._token = secrets.token_hex(16)
        self._node_tokens = {node: secrets.token_hex(16) for node in nodes}
        self._address = address
        folder.mkdir(parents=True, exist_ok=True)
        for part in ("pki", "log"):
            (folder / part).mkdir()
        self._etcd_port, self._etcd_peer, self._port = processes.free_ports(3)
        self.authority = pki.Authority(folder / "pki")
        if address != LOOPBACK:
            self._port = PORT
        self.server = f"https://{address}:{self._port}"
        self.ca = self.authority.certificate
        hosts = ["localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"]
        self.serving = self.authority.sign(
            "apiserver", addresses=sorted({LOOPBACK, "10.96.0.1", address}), hosts=hosts
        )
        self._service_accounts = self.authority.key_pair("sa")
        # Servers that the API server stands before (metrics) know it by an authority of its own.
        (folder / "pki" / "front").mkdir()
        self._front = pki.Authority(folder / "pki" / "front")
        self._front_client = self._front.sign(FRONT)
        self.api = Api(self.server, self._token, self.ca)
        self.kubeconfig = self.kubeconfig_of(self._token, folder / "admin.kubeconfig")
        for node, token in self._node_tokens.items():
            self.kubeconfig_of(token, folder / f"{node}.kubeconfig")

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Start all of it and wait until the API server is ready and the CRDs are established.

        CRDs are installed before the controller manager starts: its garbage collector looks for new
        kinds only every 30 s, and until then children of a deleted custom resource stay. A file
        that the server refuses is noted in `refused` and spoils only the tests that need it.
        """
        self._start_etcd()
        self.start_api_server()
        for path in self._crds:
            try:
                for manifest in yaml.safe_load_all(path.read_text()):
                    self.install(manifest)
            except ApiError as refusal:
                self.refused[path] = refusal
        self._start_controller_manager()
        self._start_scheduler()

    def stop(self) -> None:
        """Kill every process: the data are thrown away, so nothing needs a graceful end."""
        self.api.close()
        running = list(self._programs.values())
        for program in running:
            if program.alive():
                program.process.kill()
        for program in running:
            program.stop(signal.SIGKILL)
        self._programs.clear()

    def alive(self) -> bool:
        """Whether every component runs."""
        return all(program.alive() for program in self._programs.values())

    def revive(self) -> list[str]:
        """Start what has ended once more, with its data, and tell which that was."""
        ended = [name for name, program in self._programs.items() if not program.alive()]
        for name in ended:
            self._start_again(name)
        return ended

    def start_api_server(self) -> None:
        """Start the API server, at first or after `stop_api_server`, and wait until it is ready."""
        certificate, key = self.serving
        private, public = self._service_accounts
        audit = self.folder / "audit-policy.json"
        audit.write_text(json.dumps(AUDIT_POLICY))
        tokens = self.folder / "tokens.csv"
        users = [f'{self._token},{ADMIN},{ADMIN},"system:masters"\n']
        for node, token in self._node_tokens.items():
            users.append(f'{token},system:node:{node},{node},"system:nodes"\n')
        tokens.write_text("".join(users))
        options = {
            "etcd-servers": f"http://127.0.0.1:{self._etcd_port}",
            "bind-address": LOOPBACK if self._address == LOOPBACK else "0.0.0.0",
            "advertise-address": self._address,
            "secure-port": self._port,
            # The loopback's address is no endpoint that a Service may have.
            "endpoint-reconciler-type": "none" if self._address == LOOPBACK else "lease",
            "tls-cert-file": certificate,
            "tls-private-key-file": key,
            "client-ca-file": self.ca,
            "token-auth-file": tokens,
            "service-account-key-file": public,
            "service-account-signing-key-file": private,
            "service-account-issuer": "https://kubernetes.default.svc",
            "service-cluster-ip-range": "10.96.0.0/16",
            "authorization-mode": "Node,RBAC",
            "allow-privileged": "true",
            "audit-policy-file": audit,
            "audit-log-path": self.folder / "audit.log",
            # Streamed lists need progress notices, which Debian's etcd 3.4.23 does not give: a
            # watch from version 0, as KWOK asks for, would fail with them.
            "feature-gates": "WatchList=false",
            # A test may create hundreds of runs at once; fairness between users stays on.
            "max-requests-inflight": 1600,
            "max-mutating-requests-inflight": 800,
            # For kubectl logs and exec; `kubelets` in tests/cluster/node lets this user in.
            "kubelet-client-certificate": certificate,
            "kubelet-client-key": key,
            "kubelet-preferred-address-types": "InternalIP",
            "requestheader-client-ca-file": self._front.certificate,
            "requestheader-allowed-names": FRONT,
            "requestheader-username-headers": "X-Remote-User",
            "requestheader-group-headers": "X-Remote-Group",
            "requestheader-extra-headers-prefix": "X-Remote-Extra-",
            "proxy-client-cert-file": self._front_client[0],
            "proxy-client-key-file": self._front_client[1],
        }
        self._start("kube-apiserver", options)
        self._wait_ready()

    def stop_api_server(self) -> None:
        """Take the API server away as a crash does; `start_api_server` brings it back."""
        self._programs["kube-apiserver"].stop(signal.SIGKILL)

    def install(self, manifest: Json) -> None:
        """Apply a CRD and wait until the server serves its kind."""
        self.api.apply(manifest)
        name = manifest["metadata"]["name"]
        self.api.until_one(
            "CustomResourceDefinition", name, None, _established, what=f"{name} is established"
        )

    def token_of(self, namespace: str, name: str, *, cluster_admin: bool = False) -> str:
        """A service account's token, valid for a day; the account is made if it is not there."""
        account = {"kind": "ServiceAccount", "apiVersion": "v1", "metadata": {"name": name}}
        self.api.apply(account, namespace)
        if cluster_admin:
            rbac = "rbac.authorization.k8s.io"
            self.api.apply(
                {
                    "apiVersion": f"{rbac}/v1",
                    "kind": "ClusterRoleBinding",
                    "metadata": {"name": f"{namespace}-{name}"},
                    "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": "cluster-admin"},
                    "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": namespace}],
                }
            )
        request = {"spec": {"expirationSeconds": 24 * 3600}}
        granted = self.api.post("ServiceAccount", name, namespace, "token", request)
        return granted["status"]["token"]

    def kubeconfig_of(self, token: str, path: Path, *, server: str | None = None) -> Path:
        """Write a kubeconfig for a token; `server` may be a proxy with a certificate of our CA."""
        named = {"cluster": "ground", "user": "ground"}
        cluster = {"server": server or self.server, "certificate-authority": str(self.ca)}
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "ground", "cluster": cluster}],
            "users": [{"name": "ground", "user": {"token": token}}],
            "contexts": [{"name": "ground", "context": named}],
            "current-context": "ground",
        }
        path.touch(mode=0o600)
        path.write_text(yaml.safe_dump(document))
        return path

    def calls(self, user: str = "") -> list[Call]:
        """The calls that the API server has logged, of one user or of all but the cluster's own.

        A service account's user is system:serviceaccount:NAMESPACE:NAME.
        """
        path = self.folder / "audit.log"
        lines = path.read_text().splitlines() if path.exists() else []
        calls = [_call(json.loads(line)) for line in lines]
        return [call for call in calls if not user or call.user == user]

    def log(self, program: str) -> str:
        """What a component printed: etcd, kube-apiserver, kube-controller-manager …"""
        return (self.logs / f"{program}.log").read_text(errors="replace")

    def resident_mib(self) -> dict[str, int]:
        """Resident memory by component."""
        return {name: _resident(program.pid) >> 10 for name, program in self._programs.items()}

    def _start_etcd(self) -> None:
        client = f"http://127.0.0.1:{self._etcd_port}"
        peer = f"http://127.0.0.1:{self._etcd_peer}"
        options = {
            "data-dir": self.folder / "etcd",
            "listen-client-urls": client,
            "advertise-client-urls": client,
            "listen-peer-urls": peer,
            "initial-advertise-peer-urls": peer,
            "initial-cluster": f"default={peer}",
            "log-level": "warn",
        }
        arguments = [*(f"--{k}={v}" for k, v in options.items()), "--unsafe-no-fsync"]
        self._commands["etcd"] = [str(self._etcd), *arguments]
        self._start_again("etcd")

    def _start_controller_manager(self) -> None:
        options = {
            "kubeconfig": self.kubeconfig,
            "leader-elect": "false",
            "use-service-account-credentials": "true",
            "service-account-private-key-file": self._service_accounts[0],
            "root-ca-file": self.ca,
            "cluster-signing-cert-file": self.ca,
            "cluster-signing-key-file": self.folder / "pki" / "ca.key",
            "secure-port": 0,
            # The default of 20 calls a second would make hundreds of runs wait for their pods.
            "kube-api-qps": 2000,
            "kube-api-burst": 4000,
            "concurrent-gc-syncs": 40,
            "concurrent-namespace-syncs": 20,
        }
        self._start("kube-controller-manager", options)

    def _start_scheduler(self) -> None:
        path = self.folder / "scheduler.yaml"
        configuration = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "leaderElection": {"leaderElect": False},
            "clientConnection": {"kubeconfig": str(self.kubeconfig), "qps": 2000, "burst": 4000},
        }
        path.write_text(yaml.safe_dump(configuration))
        self._start("kube-scheduler", {"config": path, "secure-port": 0})

    def _start(self, name: str, options: dict[str, Any]) -> None:
        arguments = [f"--{key}={value}" for key, value in options.items()]
        self._commands[name] = [str(self._kube / name), *arguments]
        self._start_again(name)

    def _start_again(self, name: str) -> None:
        log = self.logs / f"{name}.log"
        self._programs[name] = processes.start(name, self._commands[name], log)

    def _wait_ready(self) -> None:
        give_up = time.monotonic() + READY_WITHIN
        context = ssl.create_default_context(cafile=str(self.ca))
        request = urllib.request.Request(f"{self.server}/readyz")
        while True:
            for program in self._programs.values():
                if not program.alive():
                    raise RuntimeError(f"{program.name} ended at its start:\n{program.tail()}")
            try:
                urllib.request.urlopen(request, timeout=5, context=context).close()
                return
            except (urllib.error.URLError, OSError):
                if time.monotonic() > give_up:
                    tail = self._programs["kube-apiserver"].tail()
                    raise RuntimeError(f"the API server is not ready:\n{tail}") from None
                time.sleep(0.03)


def _established(crd: Json) -> bool:
    conditions = crd.get("status", {}).get("conditions") or ()
    return any(each["type"] == "Established" and each["status"] == "True" for each in conditions)


def _call(entry: Json) -> Call:
    target: Json = entry.get("objectRef", {})
    resource = "/".join(
        part for part in (target.get("resource", ""), target.get("subresource", "")) if part
    )
    return Call(
        # A token that is not known any more has no user.
        user=entry["user"].get("username", ""),
        verb=entry["verb"],
        resource=resource,
        namespace=target.get("namespace", ""),
        name=target.get("name", ""),
        code=entry.get("responseStatus", {}).get("code", 0),
        agent=entry.get("userAgent", ""),
        at=entry["requestReceivedTimestamp"],
        done=entry["stageTimestamp"],
    )


def _resident(pid: int) -> int:
    """Resident memory of a process in KiB."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1])
    return 0
