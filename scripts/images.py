"""``make images``: the container images, built here by buildah and kept as OCI archives.

    python3 -m scripts.images [--fresh] [--base IMAGE] [NAME …]

Needs nothing but Python's own library, buildah and mmdebstrap. Neither a registry nor an engine is
asked: the base is a Debian made by mmdebstrap, unless another one is named. Each image ends as
``NAME.tar`` in the cache ($WATERCOLOUR_CACHE/images, ~/.cache/watercolour/images), with what it
holds in ``NAME.cdx.json`` and what it is in ``NAME.json``. An image whose inputs are the ones that
it was built from is left alone.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from scripts import buildah, sbom

ROOT = Path(__file__).resolve().parent.parent
CHART = ROOT / "charts" / "watercolour"


@dataclass(frozen=True)
class Image:
    """An image of the project.

    Attributes:
        name: of its archive.
        folder: below images/, with its Dockerfile.
        target: the stage that it is.
        value: its key in the chart's values, which say what it is called.
        most: megabytes that its archive may have; None is PyTorch's own size.
    """

    name: str
    folder: str
    target: str
    value: str
    # What is built does not depend on it.
    most: int | None = field(default=None, repr=False)


IMAGES = (
    Image("operator", "operator", "operator", "operator", most=80),
    Image("env", "env", "env", "env", most=150),
    Image("scorer-embedded", "scorer", "embedded", "scorerEmbedded", most=250),
    Image("renderer", "env", "renderer", "renderers", most=400),
    Image("trainer", "trainer", "trainer", "trainer"),
    Image("scorer-hpsv3", "scorer", "hpsv3", "scorerHpsv3"),
)
#: Built when none is named: no GPU's own, which takes six gigabytes and serves nobody without one.
DEFAULT = tuple(image.name for image in IMAGES if image.name != "scorer-hpsv3")

_SOURCES = re.compile(r"^COPY (?!--from)(.*) \S+$", re.MULTILINE)
_MOUNTED = re.compile(r"--mount=type=bind,source=([^,]+),")
#: Lies in the work tree and not in the context; see .dockerignore.
_LEFT_OUT = ("__pycache__", "render/vendor", "score/weights")


class Failed(Exception):
    """Something cannot be built; the message says what, and where to look."""


def cache() -> Path:
    """Where archives are kept: $WATERCOLOUR_CACHE/images, ~/.cache/watercolour/images."""
    root = os.environ.get("WATERCOLOUR_CACHE")
    return (Path(root) if root else Path.home() / ".cache" / "watercolour") / "images"


def reference(image: Image) -> str:
    """What the chart calls an image by default, such as watercolour/operator:0.1.0.

    Raises:
        Failed: the chart's values name none.
    """
    values = (CHART / "values.yaml").read_text(encoding="utf-8")
    block = values.partition("\nimage:\n")[2].partition("\n\n")[0]
    found = re.search(rf"^  {image.value}: (\S+)$", block, re.MULTILINE)
    if found is None:
        raise Failed(f"charts/watercolour/values.yaml: image.{image.value} names no image")
    return found[1]


def dockerfile(image: Image) -> Path:
    """Its Dockerfile."""
    return ROOT / "images" / image.folder / "Dockerfile"


def sources(image: Image) -> list[str]:
    """Files and folders that its Dockerfile takes from the work tree."""
    text = dockerfile(image).read_text(encoding="utf-8").replace("\\\n", " ")
    copied = [name for line in _SOURCES.findall(text) for name in line.split()]
    return sorted({*copied, *_MOUNTED.findall(text)})


def files(names: Sequence[str]) -> Iterator[Path]:
    """Every file of files and folders, in order, but for what never is in a context."""
    for name in names:
        path = ROOT / name
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            inside = file.relative_to(ROOT).as_posix()
            if file.is_file() and not any(f"/{part}/" in inside for part in _LEFT_OUT):
                yield file


def inputs(image: Image, base: str) -> str:
    """A digest of all that the image is made from: files, their modes, the base, this program."""
    digest = hashlib.sha256(f"{image} {reference(image)} {base} {buildah.EPOCH}".encode())
    for file in [dockerfile(image), ROOT / ".dockerignore", *files(sources(image))]:
        mode = file.stat().st_mode & 0o111
        digest.update(f"\0{file.relative_to(ROOT)}\0{mode}\0".encode() + file.read_bytes())
    return digest.hexdigest()


def revision(image: Image) -> str:
    """The commit that last changed what the image is made from; empty outside a repository."""
    paths = [str(dockerfile(image).relative_to(ROOT)), *sources(image)]

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(ROOT), *arguments, "--", *paths]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return done.stdout.strip() if done.returncode == 0 else ""

    commit = git("log", "-1", "--format=%H")
    return f"{commit}-changed" if commit and git("status", "--porcelain") else commit


@dataclass(frozen=True)
class Built:
    """An archive, new or found."""

    image: Image
    reference: str
    megabytes: float
    seconds: float | None


def build(tool: buildah.Buildah, image: Image, base: str, folder: Path) -> Built:
    """Build an image, unless its archive is current.

    Raises:
        Failed: buildah failed.
    """
    name, archive, record = reference(image), folder / f"{image.name}.tar", f"{image.name}.json"
    key = inputs(image, tool.identity(base))
    known = _read(folder / record)
    if known.get("inputs") == key and archive.exists():
        return Built(image, name, known["bytes"] / 1e6, None)
    begun = time.monotonic()
    tag = f"localhost/watercolour-{image.name}"
    tool.build(
        tag,
        dockerfile(image),
        ROOT,
        target=image.target,
        arguments={
            "BASE_IMAGE": base,
            "VERSION": name.rpartition(":")[2],
            # An argument of the last step alone: a label of the whole build would be in every step
            # that a later build takes over, and so in the digest of that one's image.
            "REVISION": revision(image),
            **_torch(image),
        },
        log=folder / f"{image.name}.log",
    )
    say(f"{image.name}: writing the archive")
    part = archive.with_suffix(".part")
    part.unlink(missing_ok=True)
    # A name without a host is Docker's, and containerd knows an image by its whole name alone.
    tool.save(tag, part, f"docker.io/{name}")
    with tool.mounted(tag) as root:
        held = sbom.document(root, name)
    _write(folder / f"{image.name}.cdx.json", held)
    part.replace(archive)
    size = archive.stat().st_size
    _write(
        folder / record,
        {"image": name, "inputs": key, "digest": _digest(archive), "bytes": size},
    )
    return Built(image, name, size / 1e6, time.monotonic() - begun)


def _torch(image: Image) -> dict[str, str]:
    index = os.environ.get("TORCH_INDEX")
    return {"TORCH_INDEX": index} if index and image.name == "trainer" else {}


def _digest(archive: Path) -> str:
    """The manifest's, which a registry would know the image by."""
    done = subprocess.run(
        ["tar", "-xOf", str(archive), "index.json"], capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)["manifests"][0]["digest"]


def _read(path: Path) -> dict:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}


def _write(path: Path, content: object) -> None:
    part = path.with_name(f".{path.name}.{os.getpid()}")
    part.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    part.replace(path)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """One build at a time; who comes second waits."""
    with (folder / "lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("another build is under way; waiting for it")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def say(text: str) -> None:
    """A line for whoever waits."""
    sys.stderr.write(f"images: {text}\n")
    sys.stderr.flush()


def excess(built: Built) -> str | None:
    """What is to be said of an image that has grown too large; None of one that has not."""
    most = built.image.most
    if most is None or built.megabytes <= most:
        return None
    return (
        f"{built.image.name} has {built.megabytes:.0f} MB, and at most {most} are allowed: "
        f"{built.image.name}.cdx.json lists what it holds; the bound is in scripts/images.py"
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Build what is named; 3 if something failed or has grown too large."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    known = [image.name for image in IMAGES]
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(known)}")
    parser.add_argument("--base", help="base image, from a registry (default: made here)")
    parser.add_argument(
        "--fresh", action="store_true", help="make base and libraries anew, with Debian's updates"
    )
    args = parser.parse_args(argv)
    if unknown := [name for name in args.names if name not in known]:
        parser.error(f"no image is called {unknown[0]}; there are {', '.join(known)}")
    chosen = [image for image in IMAGES if image.name in (args.names or DEFAULT)]
    folder = cache()
    folder.mkdir(parents=True, exist_ok=True)
    large: list[str] = []
    # So that a build that is told to stop takes its processes and scratch files with it.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        with locked(folder), buildah.opened(folder / "storage", say) as tool:
            base = args.base or tool.base(fresh=args.fresh)
            for image in chosen:
                if args.fresh:
                    (folder / f"{image.name}.json").unlink(missing_ok=True)
                built = build(tool, image, base, folder)
                how = "is current" if built.seconds is None else f"took {built.seconds:.0f} s"
                say(f"{image.name}: {built.reference}, {built.megabytes:.0f} MB, {how}")
                if complaint := excess(built):
                    large.append(complaint)
    except (Failed, buildah.Failed) as error:
        say(str(error))
        return 3
    say(f"archives are in {folder}")
    for complaint in large:
        say(complaint)
    return 3 if large else 0


if __name__ == "__main__":
    sys.exit(main())
