"""The papers of the repository: complete, current, and about the project alone."""

from __future__ import annotations

import os
import re
import stat
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from watercolour.api import load, yaml_text
from watercolour.api.errors import InputError

ROOT = Path(__file__).parents[3]

#: Split, so that this file does not hold what it looks for.
FORBIDDEN = {
    "a path of somebody's machine": r"(^|[^\w./-])/(wor" + r"k|roo" + r"t|far" + r"m)/",
    "a home folder": r"/(hom" + r"e|User" + r"s)/\w+/",
    "the host of a package registry": r"(pyp" + r"i\.org|pythonhoste" + r"d\.org|registry\.npmj"
    r"s\.org|deb\.debia" + r"n\.org|proxy\.golan" + r"g\.org|crate" + r"s\.io)",
    "words about how it was made": r"(?i)\b(clau" + r"de|chatgp" + r"t|copilo" + r"t|this sessio"
    r"n|AI agen" + r"t)\b",
    "an unfinished place": r"\b(TO" + r"DO|FIX" + r"ME|XX" + r"X)\b",
}
TEXT = {".py", ".md", ".toml", ".yaml", ".yml", ".sh", ".js", ".html", ".css", ".txt", ""}


def tracked() -> list[Path]:
    done = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False)
    if done.returncode:
        pytest.skip("not a git checkout")
    return [ROOT / os.fsdecode(name) for name in done.stdout.split(b"\0") if name]


def lines() -> Iterator[tuple[str, str]]:
    for path in tracked():
        if path.suffix in TEXT and path.exists():
            name = path.relative_to(ROOT).as_posix()
            text = path.read_text(encoding="utf-8", errors="replace")
            for number, line in enumerate(text.splitlines(), 1):
                yield f"{name}:{number}", line


@pytest.mark.parametrize("what", FORBIDDEN)
def test_no_tracked_file_holds(what: str) -> None:
    pattern = re.compile(FORBIDDEN[what])
    assert [
        f"{place}: {line.strip()[:80]}" for place, line in lines() if pattern.search(line)
    ] == []


@pytest.mark.parametrize(
    ("what", "line"),
    [
        ("a path of somebody's machine", "cd /wor" + "k/main"),
        ("a home folder", "/hom" + "e/me/watercolour"),
        ("the host of a package registry", "https://pyp" + "i.org/simple"),
        ("words about how it was made", "as Clau" + "de says"),
        ("an unfinished place", "# TO" + "DO later"),
    ],
)
def test_the_patterns_find_what_they_are_for(what: str, line: str) -> None:
    assert re.search(FORBIDDEN[what], line)


def test_every_dependency_has_its_sentence() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"].values()
    asked = [*project["dependencies"], *(one for extra in extras for one in extra)]
    names = {re.split(r"[^\w.-]", one, maxsplit=1)[0] for one in asked} - {"watercolour"}
    page = (ROOT / "docs" / "dependencies.md").read_text()
    explained = dict(
        re.findall(r"^\| ([a-z][\w-]*) \| (.+) \|$", page.split("Fetched by")[0], re.M)
    )
    assert set(explained) == names
    assert list(explained) == sorted(explained)


def test_links_between_pages_lead_somewhere() -> None:
    links = [
        (page, target)
        for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
        for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text(encoding="utf-8"))
        if "://" not in target
    ]
    assert [(str(page), to) for page, to in links if not (page.parent / to).exists()] == []


def test_make_explains_every_target() -> None:
    makefile = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.M))
    done = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert targets - {name for name in targets if f"make {name}" in done.stdout} == set()


def test_scripts_can_be_run() -> None:
    for name in (".ci/run", "scripts/setup.sh", "scripts/lock.sh"):
        assert (ROOT / name).stat().st_mode & stat.S_IXUSR, name


def test_the_command_line_s_page_is_current() -> None:
    script = ROOT / "scripts" / "cli_reference.py"
    done = subprocess.run([sys.executable, script, "--check"], check=False)
    assert done.returncode == 0, "docs/reference/cli.md is stale: run scripts/cli_reference.py"


#: An object of Kubernetes' own in a page; it is for its API server to judge, in tests/chart.
FOREIGN = re.compile(r"^apiVersion: (?!watercolour\.dev/)", re.M)


def yaml_blocks() -> Iterator[tuple[str, str]]:
    for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]:
        for number, block in enumerate(re.findall(r"```yaml\n(.*?)```", page.read_text(), re.S)):
            if not FOREIGN.search(block):
                yield f"{page.relative_to(ROOT)} block {number}", block
    for example in ROOT.glob("examples/*.yaml"):
        yield f"examples/{example.name}", example.read_text()


BLOCKS = list(yaml_blocks())


@pytest.mark.parametrize(("place", "text"), BLOCKS, ids=[p for p, _ in BLOCKS])
def test_every_published_specification_is_accepted(place: str, text: str) -> None:
    data = yaml_text.mapping(text, place)
    load.from_dict({"metadata": {"name": "a"}, **data}, source=place)


def test_the_quickstart_shows_the_real_refusal() -> None:
    page = (ROOT / "docs" / "quickstart.md").read_text()
    with pytest.raises(InputError) as caught:
        load.run(ROOT / "examples" / "local.yaml", {"spec.trainer.rolloutsPerStep": "10"})
    assert f"watercolour: {caught.value}\n" in page
