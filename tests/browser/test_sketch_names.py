"""The gate's lists of names are those of the vendored libraries, seen in a real browser."""

from __future__ import annotations

import html
import json
import re
import subprocess
from pathlib import Path

import pytest

from watercolour.render import chromium, vendor
from watercolour.sketch.exports import METHODS
from watercolour.sketch.names import ECMASCRIPT, ENTRY_POINTS, KNOWN, P5

PAGE = """\
<!doctype html><meta charset="utf-8"><body><pre id="names"></pre>
<script src="p5.min.js"></script><script src="p5.brush.js"></script>
<script>
function setup() { createCanvas(64, 64, WEBGL); noLoop(); }
function draw() {
  const names = new Set();
  for (let o = window; o; o = Object.getPrototypeOf(o)) {
    Object.getOwnPropertyNames(o).forEach((name) => names.add(name));
  }
  const found = {
    methods: Object.keys(brush).filter((name) => !/^class/.test(brush[name].toString())),
    globals: [...names],
  };
  document.getElementById("names").textContent = JSON.stringify(found);
}
</script>
"""
OF_THIS_PAGE = {"names", "setup", "draw", "t", "e"}
"""Names that the page itself and the library's loader leave behind."""


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    """What p5.brush exports, and every global name after p5 has started."""
    folder: Path = tmp_path_factory.mktemp("names")
    vendor.ensure()
    for name in ("p5.min.js", "p5.brush.js"):
        (folder / name).write_text(vendor.library(name), "utf-8")
    (folder / "page.html").write_text(PAGE, "utf-8")
    # No sketch runs in this page: only the vendored libraries do.
    command = [str(chromium.find()), "--headless", "--no-sandbox", "--allow-file-access-from-files"]
    command += [f"--user-data-dir={folder / 'profile'}", "--virtual-time-budget=10000"]
    done = subprocess.run(
        [*command, "--dump-dom", (folder / "page.html").as_uri()],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    written = re.search(r'<pre id="names">(.*?)</pre>', done.stdout, re.DOTALL)
    assert written is not None
    found = json.loads(html.unescape(written[1]))
    return {key: set(value) for key, value in found.items()}


def test_the_methods_are_the_vendored_builds_exports(names: dict[str, set[str]]) -> None:
    assert names["methods"] == METHODS


def test_every_admitted_global_exists(names: dict[str, set[str]]) -> None:
    assert (ECMASCRIPT | P5) - names["globals"] == set()


def test_every_global_of_the_page_is_known(names: dict[str, set[str]]) -> None:
    assert names["globals"] - KNOWN - ENTRY_POINTS - OF_THIS_PAGE == set()
