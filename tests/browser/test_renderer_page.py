"""docs/renderer.md: its commands work as they stand, and it leaves nothing out."""

from __future__ import annotations

import re
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from tests.browser.conftest import PYTHON, ROOT

from watercolour.render import schemas
from watercolour.render.metrics import Metrics

PAGE = (ROOT / "docs" / "renderer.md").read_text(encoding="utf-8")
ADDRESS = "http://127.0.0.1:8080"


def commands() -> list[tuple[str, str]]:
    """Each command of the page and what it is said to print."""
    found: list[tuple[str, str]] = []
    for block in re.findall(r"```console\n(.*?)```", PAGE, re.S):
        for part in re.split(r"^\$ ", block, flags=re.M)[1:]:
            command, _, output = part.partition("\n")
            found.append((command, output.strip()))
    return found


SERVE, *ASK = commands()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the commands run: they see the repository and write nothing into it."""
    made = tmp_path_factory.mktemp("page")
    for name in (".venv", "examples"):
        (made / name).symlink_to(ROOT / name)
    return made


@pytest.fixture(scope="module")
def url(folder: Path) -> Iterator[str]:
    """The page's first command, at a free port."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    command = SERVE[0].replace("8080", port)
    with (folder / "renderer.log").open("wb") as log:
        serving = subprocess.Popen(["bash", "-c", f"exec {command}"], cwd=folder, stderr=log)
    address = f"http://127.0.0.1:{port}"
    give_up = time.monotonic() + 180
    while not is_ready(address):
        assert serving.poll() is None, (folder / "renderer.log").read_text()
        assert time.monotonic() < give_up
        time.sleep(0.1)
    yield address
    serving.terminate()
    assert serving.wait(60) == 0


def is_ready(address: str) -> bool:
    try:
        return httpx.get(f"{address}/readyz", timeout=30).status_code == 200
    except httpx.TransportError:
        return False


@pytest.mark.parametrize(("command", "output"), ASK, ids=range(len(ASK)))
def test_a_command_prints_what_the_page_says(
    url: str, folder: Path, command: str, output: str
) -> None:
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command.replace(ADDRESS, url)],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    pattern = ".*".join(map(re.escape, output.split("…")))
    assert re.fullmatch(pattern, done.stdout.strip(), re.S), done.stdout
    if "painting.png" in command:
        assert (folder / "painting.png").read_bytes().startswith(b"\x89PNG")
        (folder / "painting.png").unlink()


def test_every_option_has_its_line_and_its_default() -> None:
    code = "from watercolour.render import service; print(service.parser().format_help())"
    told = subprocess.run([PYTHON, "-c", code], capture_output=True, text=True, check=True).stdout
    rows = dict(re.findall(r"^\| `(--[\w-]+)` \| ([^|]*?) ?\|", PAGE, re.M))
    assert set(rows) == set(re.findall(r"^  (--[\w-]+)", told, re.M))
    entries = re.split(r"^  (?=-)", told, flags=re.M)[1:]
    for entry in entries:
        default = re.search(r"\(default:\s+([^)]*)\)", entry)
        name = entry.split()[0]
        if default and name.startswith("--"):
            value = {"None": "", "False": ""}.get(default[1], default[1])
            assert rows[name] == value.removesuffix(".0"), name


def test_every_reason_is_explained() -> None:
    told = set(re.findall(r"`([A-Z]\w+)`", PAGE))
    assert {*schemas.Refusal, *schemas.INFRASTRUCTURE_REASONS} <= told


def test_every_metric_is_explained_and_none_invented() -> None:
    told = {name.removesuffix("_total") for name in re.findall(r"`(watercolour_\w+)", PAGE)}
    assert told == {family.name for family in Metrics().registry.collect()}
