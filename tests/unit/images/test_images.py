"""What `make images` builds, what it leaves alone, and what a build may know of the machine."""

from __future__ import annotations

import io
import json
import shlex
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest
from scripts import buildah, images, package

ENV = next(image for image in images.IMAGES if image.name == "env")


@dataclass
class Recorder:
    """In place of buildah: writes an archive, and what it was asked."""

    builds: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    def identity(self, name: str) -> str:
        return f"id of {name}"

    def build(self, tag: str, dockerfile: Path, context: Path, **how: Any) -> None:
        self.builds.append({"tag": tag, "dockerfile": dockerfile, **how})

    def save(self, tag: str, archive: Path, name: str) -> None:
        index = json.dumps({"manifests": [{"digest": f"sha256:{name}"}]}).encode()
        with tarfile.open(archive, "w") as tar:
            info = tarfile.TarInfo("index.json")
            info.size = len(index)
            tar.addfile(info, io.BytesIO(index))

    @contextmanager
    def mounted(self, tag: str) -> Iterator[Path]:
        yield Path("/nonexistent")


def built(tool: Recorder, folder: Path, base: str = "base") -> images.Built:
    return images.build(cast(buildah.Buildah, tool), ENV, base, folder)


@pytest.mark.parametrize(
    ("megabytes", "said"), [(150.0, None), (150.4, "env has 150 MB, and at most 150 are allowed")]
)
def test_an_image_above_its_bound_is_named(megabytes: float, said: str | None) -> None:
    found = images.excess(images.Built(ENV, "env", megabytes, None))
    assert found is None if said is None else (found or "").startswith(said)


def test_the_page_has_the_bounds_that_hold() -> None:
    page = (images.ROOT / "images" / "README.md").read_text()
    for image in images.IMAGES:
        row = next(
            line for line in page.splitlines() if line.startswith(f"| `watercolour/{image.name}`")
        )
        most = row.split("|")[5].strip()
        assert most == ("PyTorch's own size" if image.most is None else f"{image.most} MB")


def test_the_commands_that_push_name_archive_digest_and_registry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WATERCOLOUR_CACHE", str(tmp_path / "a cache"))
    folder = images.cache()
    folder.mkdir(parents=True)
    (folder / "env.tar").touch()
    (folder / "env.json").write_text(json.dumps({"digest": "sha256:abc", "bytes": 141_000_000}))
    lines = package.pushes("registry.internal/art")
    push = lines[lines.index("# sha256:abc, 141 MB") + 1]
    where = f"docker://registry.internal/art/{images.reference(ENV)}"
    assert shlex.split(push) == ["skopeo", "copy", f"oci-archive:{folder / 'env.tar'}", where]
    missing = [line for line in lines if "is not built" in line]
    assert len(missing) == len(images.IMAGES) - 1


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A work tree with what the image is made from, in little."""
    root = tmp_path / "project"
    for source in images.sources(ENV):
        place = root / source
        if (images.ROOT / source).is_dir():
            place.mkdir(parents=True)
            (place / "one.py").write_text("1")
        else:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(source)
    for copied in ("images/env/Dockerfile", ".dockerignore", "charts/watercolour/values.yaml"):
        place = root / copied
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes((images.ROOT / copied).read_bytes())
    monkeypatch.setattr(images, "ROOT", root)
    monkeypatch.setattr(images, "CHART", root / "charts" / "watercolour")
    return root


def test_an_image_is_built_once(project: Path, tmp_path: Path) -> None:
    tool = Recorder()
    first = built(tool, tmp_path)
    again = built(tool, tmp_path)
    assert len(tool.builds) == 1
    assert first.seconds is not None
    assert again.seconds is None
    assert (tmp_path / "env.tar").exists()
    record = json.loads((tmp_path / "env.json").read_text())
    assert record["digest"] == "sha256:docker.io/watercolour/env:0.1.0"
    assert record["bytes"] == (tmp_path / "env.tar").stat().st_size


@pytest.mark.parametrize(
    "changed", ["images/prepare", "images/env/Dockerfile", "locks/env.txt", "python/one.py"]
)
def test_it_is_built_again_when_an_input_has_changed(
    project: Path, tmp_path: Path, changed: str
) -> None:
    tool = Recorder()
    built(tool, tmp_path)
    with (project / changed).open("a") as file:
        file.write("\n# more\n")
    built(tool, tmp_path)
    assert len(tool.builds) == 2


def test_it_is_built_again_on_another_base_or_without_its_archive(
    project: Path, tmp_path: Path
) -> None:
    tool = Recorder()
    built(tool, tmp_path)
    built(tool, tmp_path, base="other")
    (tmp_path / "env.tar").unlink()
    built(tool, tmp_path, base="other")
    assert len(tool.builds) == 3


@pytest.mark.parametrize(
    "made", ["python/__pycache__/one.pyc", "python/watercolour/render/vendor/p5.min.js"]
)
def test_what_is_made_in_the_work_tree_is_no_input(
    project: Path, tmp_path: Path, made: str
) -> None:
    tool = Recorder()
    built(tool, tmp_path)
    (project / made).parent.mkdir(parents=True)
    (project / made).write_text("made")
    built(tool, tmp_path)
    assert len(tool.builds) == 1


def test_a_file_that_may_be_run_is_another_input_than_one_that_may_not(project: Path) -> None:
    before = images.inputs(ENV, "base")
    (project / "images/prepare").chmod(0o755)
    assert images.inputs(ENV, "base") != before


def test_a_build_is_told_its_base_and_version(project: Path, tmp_path: Path) -> None:
    tool = Recorder()
    built(tool, tmp_path)
    arguments: Mapping[str, str] = tool.builds[0]["arguments"]
    # Outside a repository there is no revision.
    assert arguments == {"BASE_IMAGE": "base", "VERSION": "0.1.0", "REVISION": ""}
    assert tool.builds[0]["target"] == "env"


def test_only_the_trainer_is_told_of_another_index(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCH_INDEX", "https://index.example/cpu")
    told = {image.name: images._torch(image) for image in images.IMAGES}  # pyright: ignore
    assert told.pop("trainer") == {"TORCH_INDEX": "https://index.example/cpu"}
    assert not any(told.values())


def test_nobody_builds_an_image_that_is_none(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        images.main(["enviroment"])
    assert "no image is called enviroment" in capsys.readouterr().err


def test_a_build_knows_the_machines_mirrors_by_a_secret_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = {
        "python3": "global.index-url='https://mirror.example/it''s'\nglobal.cert='/a/b'\n",
        "npm": "https://npm.example/\n",
        "apt-config": 'Acquire::http::Proxy "http://proxy.example:3128";\n'
        'Acquire::Languages "none";\nAcquire::Check-Date "false";\n',
    }
    monkeypatch.setattr(buildah, "_said", lambda *command: said[command[0]])
    monkeypatch.setenv("https_proxy", "http://proxy.example:3128/?a=1&b=2")
    path = buildah._settings(tmp_path)  # pyright: ignore
    assert path.stat().st_mode & 0o077 == 0
    program = (
        f'apt_options=(); . {path}; printf \'%s\\n\' "$PIP_INDEX_URL" "$NPM_CONFIG_REGISTRY" '
        '"$https_proxy" "${apt_options[@]}"'
    )
    done = subprocess.run(["bash", "-euc", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        "https://mirror.example/it''s",
        "https://npm.example/",
        "http://proxy.example:3128/?a=1&b=2",
        "-o",
        "Acquire::http::Proxy=http://proxy.example:3128",
        "-o",
        "Acquire::Check-Date=false",
    ]


def test_progress_tells_the_step(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("[1/2] STEP 3/4: RUN images/prepare   tools\nReading package lists...\n")
    assert buildah.doing(log) == "[1/2] STEP 3/4: RUN images/prepare tools"
    log.write_text("I: extracting archives...\n")
    assert buildah.doing(log) == "I: extracting archives..."
    log.write_text("")
    assert buildah.doing(log) == ""


def test_a_build_that_is_told_to_stop_takes_its_processes_with_it(tmp_path: Path) -> None:
    mark = tmp_path / "alive"
    program = (
        "import signal, sys; from pathlib import Path; from scripts import buildah\n"
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))\n"
        "tool = buildah.Buildah((), (), Path('store'), lambda text: None)\n"
        f"script = 'sleep 300 & echo $! >{mark}.new; mv {mark}.new {mark}; wait'\n"
        f"tool._watched('it', ['bash', '-c', script], Path({str(tmp_path / 'log')!r}), {{}})\n"
    )
    process = subprocess.Popen([sys.executable, "-c", program], cwd=images.ROOT)
    while not mark.exists():
        assert process.poll() is None
        time.sleep(0.05)
    process.terminate()
    assert process.wait() == 143
    left = int(mark.read_text())
    for _ in range(100):
        if not _lives(left):
            break
        time.sleep(0.1)
    assert not _lives(left)


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"
    except FileNotFoundError:
        return False
