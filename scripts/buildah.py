"""Buildah as the images need it: a store of its own, a base without a registry, progress.

Nothing of this machine gets into a layer: certificates, mirrors and proxies reach a build as two
secrets (images/prepare), and every file has the same time.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

#: The time of every file in a layer, and of every image: SOURCE_DATE_EPOCH, or the first of 2026.
EPOCH = int(os.environ.get("SOURCE_DATE_EPOCH", "1767225600"))

INSTALL = Path(__file__).with_name("debian.sh")

SUITE = "bookworm"
#: Besides what Debian calls required, and apt.
PACKAGES = ("ca-certificates", "python3", "usr-is-merged")
#: What merges /usr, which a new system has merged, and Perl, of which only that wants the whole.
UNWANTED = ("usrmerge", "perl", "^libperl5", "^perl-modules-")
#: What Debian's own slim images leave out too.
LEFT_OUT = (
    "path-exclude=/usr/share/doc/*",
    "path-include=/usr/share/doc/*/copyright",
    "path-exclude=/usr/share/info/*",
    "path-exclude=/usr/share/locale/*",
    "path-exclude=/usr/share/man/*",
)
#: Of this machine, or of the moment.
TRACES = (
    "etc/hostname",
    "etc/resolv.conf",
    "var/cache/debconf/*-old",
    "var/cache/ldconfig/*",
    "var/lib/dpkg/*-old",
    "var/log/*log",
)

SHOW_EVERY = 15.0  # seconds between two lines of progress
Announce = Callable[[str], None]

_PROXIES = ("http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")
_PIP = ("index-url", "extra-index-url", "trusted-host")
_APT = re.compile(r'^(Acquire::(?:https?::Proxy\S*|Check-Valid-Until|Check-Date)) "(.*)";$', re.M)


class Failed(Exception):
    """A program is missing or failed; the message says where to look."""


@dataclass(frozen=True)
class Buildah:
    """The program with its store, and what builds may know of this machine."""

    command: tuple[str, ...]
    secrets: tuple[str, ...]
    store: Path
    say: Announce

    def run(self, *arguments: str) -> str:
        """Run it; what it printed.

        Raises:
            Failed: it failed.
        """
        done = subprocess.run(
            [*self.command, *arguments], capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise Failed(f"buildah {arguments[0]} failed: {done.stderr.strip()[-800:]}")
        return done.stdout.strip()

    def base(self, *, fresh: bool) -> str:
        """A Debian with Python, made once and kept; its name.

        Raises:
            Failed: mmdebstrap or buildah failed.
        """
        name = f"localhost/watercolour-base:{SUITE}"
        made_from = self.store.parent / "base.made-from"
        recipe = f"{SUITE} {PACKAGES} {UNWANTED} {LEFT_OUT} {TRACES} {EPOCH}"
        known = made_from.read_text(encoding="utf-8") if made_from.exists() else ""
        exists = subprocess.run(
            [*self.command, "inspect", "--type=image", name], capture_output=True
        )
        if fresh or known != recipe or exists.returncode:
            self._bootstrap(name)
            made_from.write_text(recipe, encoding="utf-8")
        return name

    def identity(self, name: str) -> str:
        """What tells an image from another of the same name; it is pulled where it is not here.

        Raises:
            Failed: it cannot be pulled.
        """
        self.run("pull", "--quiet", "--policy=missing", name)
        return self.run("inspect", "--type=image", "--format={{.FromImageID}}", name)

    def _bootstrap(self, name: str) -> None:
        program("mmdebstrap")
        log = self.store.parent / "base.log"
        with tempfile.TemporaryDirectory(dir=self.store.parent, prefix=".base-") as scratch:
            archive = Path(scratch) / "base.tar"
            purge = " ".join(f"'{package}'" for package in UNWANTED)
            removed = " ".join(f'"$1"/{trace}' for trace in TRACES)
            command = [
                "mmdebstrap",
                "--variant=minbase",
                *(f"--include={package}" for package in PACKAGES),
                "--dpkgopt=force-unsafe-io",
                *(f"--dpkgopt={line}" for line in LEFT_OUT),
                f'--customize-hook=chroot "$1" apt-get purge -qy --auto-remove {purge}',
                f"--customize-hook=rm -rf {removed}",
                SUITE,
                str(archive),
            ]
            environment = {**os.environ, "TMPDIR": scratch, "SOURCE_DATE_EPOCH": str(EPOCH)}
            self._watched("base", command, log, environment)
            container = self.run("from", "scratch")
            try:
                self.run("add", "--quiet", container, str(archive), "/")
                self.run("config", "--cmd", "/bin/bash", container)
                commit = ("commit", "--quiet", "--identity-label=false", f"--timestamp={EPOCH}")
                self.run(*commit, container, name)
            finally:
                self.run("rm", container)

    def build(
        self,
        tag: str,
        dockerfile: Path,
        context: Path,
        *,
        target: str,
        arguments: Mapping[str, str],
        log: Path,
    ) -> None:
        """Build one stage of a Dockerfile.

        Raises:
            Failed: a step failed; the message shows its last lines.
        """
        command = [
            *self.command,
            *("bud", "--layers", "--force-rm", "--identity-label=false", f"--timestamp={EPOCH}"),
            *(f"--secret={secret}" for secret in self.secrets),
            *(f"--build-arg={name}={value}" for name, value in arguments.items()),
            *(f"--target={target}", f"--file={dockerfile}", f"--tag={tag}", str(context)),
        ]
        self._watched(tag.rpartition("watercolour-")[2], command, log, dict(os.environ))

    def save(self, tag: str, archive: Path, name: str) -> None:
        """Write an image as an OCI archive, under the name that it is to have.

        Raises:
            Failed: buildah failed, as it does when the disk is full.
        """
        self.run("push", "--quiet", "--format=oci", tag, f"oci-archive:{archive}:{name}")

    @contextmanager
    def mounted(self, tag: str) -> Iterator[Path]:
        """An image's files."""
        container = self.run("from", "--pull-never", tag)
        try:
            yield Path(self.run("mount", container))
        finally:
            self.run("rm", container)

    def _watched(
        self, what: str, command: Sequence[str], log: Path, environment: dict[str, str]
    ) -> None:
        """Run a program that takes minutes, and tell now and then what it is doing."""
        begun = shown = time.monotonic()
        self.say(f"{what}: building (log: {log})")
        with log.open("w") as file:
            process = subprocess.Popen(
                command,
                stdout=file,
                stderr=subprocess.STDOUT,
                env=environment,
                start_new_session=True,
            )
            try:
                while process.poll() is None:
                    time.sleep(0.2)
                    if time.monotonic() - shown > SHOW_EVERY:
                        shown = time.monotonic()
                        self.say(f"{what}: {shown - begun:.0f} s: {doing(log)}")
            finally:
                # Its children too: mmdebstrap's go on without their parent, as do a build's steps.
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGTERM)
                    process.wait()
        if process.returncode:
            last = "\n".join(log.read_text(errors="replace").splitlines()[-20:])
            raise Failed(f"{what} failed; the end of {log}:\n{last}")


def doing(log: Path) -> str:
    """The step that a build is at, or its last word."""
    lines = log.read_text(errors="replace").splitlines() or [""]
    step = next((line for line in reversed(lines) if " STEP " in line), lines[-1])
    return " ".join(step.split())[:100]


@contextmanager
def opened(store: Path, say: Announce) -> Iterator[Buildah]:
    """Buildah with a store in that folder.

    Raises:
        Failed: it is not installed and cannot be.
    """
    command = [program("buildah"), "--root", str(store), "--runroot", str(store.parent / "run")]
    os.environ.setdefault("BUILDAH_ISOLATION", "chroot")
    os.environ.setdefault("STORAGE_DRIVER", "overlay")
    with tempfile.TemporaryDirectory(prefix="watercolour-images-") as folder:
        secrets = [f"id=settings,src={_settings(Path(folder))}"]
        if certificates := _certificates():
            secrets.append(f"id=certificates,src={certificates}")
        yield Buildah(tuple(command), tuple(secrets), store, say)


def program(name: str) -> str:
    """The path of one of Debian's programs, which is installed if this user may.

    Raises:
        Failed: it is missing.
    """
    if shutil.which(name) is None and os.geteuid() == 0 and shutil.which("apt-get"):
        install = [str(INSTALL), "--no-install-recommends", name]
        subprocess.run(install, capture_output=True, check=False)
    found = shutil.which(name)
    if found is None:
        raise Failed(f"{name} is missing. Install it with:  sudo apt-get install {name}")
    return found


def _certificates() -> str | None:
    named = [os.environ.get("SSL_CERT_FILE"), "/etc/ssl/certs/ca-certificates.crt"]
    return next((path for path in named if path and Path(path).is_file()), None)


def _settings(folder: Path) -> Path:
    """Shell that tells a build of this machine's mirrors and proxies, for images/prepare."""
    exports = {name: os.environ[name] for name in _PROXIES if name in os.environ}
    for line in _said("python3", "-m", "pip", "config", "list").splitlines():
        name, _, value = line.partition("=")
        name = name.rpartition(".")[2]
        if name in _PIP:
            exports[f"PIP_{name.upper().replace('-', '_')}"] = value.strip("'\"")
    if registry := _said("npm", "config", "get", "registry").strip():
        exports["NPM_CONFIG_REGISTRY"] = registry
    options = [f"{name}={value}" for name, value in _APT.findall(_said("apt-config", "dump"))]
    lines = [f"export {name}={shlex.quote(value)}" for name, value in exports.items()]
    lines += [f"apt_options+=(-o {shlex.quote(option)})" for option in options]
    path = folder / "settings"
    path.touch(mode=0o600)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def _said(*command: str) -> str:
    if shutil.which(command[0]) is None:
        return ""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else ""
