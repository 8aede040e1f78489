"""What an image starts finds all that it imports in the image's lock."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]

#: Hides every installed package that the lock does not name, then runs the program.
ONLY = """
import importlib.machinery, importlib.metadata, sys
locked, program = set(sys.argv[1].split()), sys.argv[2]
packages = importlib.metadata.packages_distributions()

class Locked(importlib.machinery.PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        owners = packages.get(name.partition(".")[0], ())
        known = {each.lower().replace("_", "-").replace(".", "-") for each in owners}
        if known and not known & (locked | {"watercolour"}):
            return None
        return super().find_spec(name, path, target)

sys.meta_path[sys.meta_path.index(importlib.machinery.PathFinder)] = Locked
exec(program)
"""

ENV = """
from watercolour.api import load
from watercolour.env.server import create_app, neighbours
spec, near = load.run("examples/local.yaml").spec, "http://127.0.0.1:9"
create_app(spec, neighbours(spec, renderers=[near], scorer=near, judge=near))
"""
SCORER = """
from pathlib import Path
from watercolour.score import service
from watercolour.score.embedded import Embedded
"""
TRAINER = """
from watercolour.train import engines, grpo, policy, run, session, track
from watercolour.gallery import push, report
"""


def locked(*names: str) -> str:
    """The packages of some locks."""
    text = "".join((ROOT / "locks" / f"{name}.txt").read_text() for name in names)
    return " ".join(re.findall(r"^([a-z0-9-]+)==", text, re.MULTILINE))


@pytest.mark.parametrize(
    ("locks", "program"),
    [
        (["env"], ENV),
        (["operator"], "import watercolour_operator.__main__"),
        (["embedded"], SCORER),
        (["train", "torch"], TRAINER),
    ],
)
def test_lock_of_an_image_has_what_it_starts_with(locks: Sequence[str], program: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", ONLY, locked(*locks), program],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
