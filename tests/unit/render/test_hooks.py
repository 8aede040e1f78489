from __future__ import annotations

import pytest

from watercolour.render import hooks, pages, vendor
from watercolour.render.patch import AnchorError


@pytest.mark.parametrize("name", ["p5.brush.js", "p5.brush.stock.js"])
def test_every_seam_fits_the_published_and_the_patched_build(name: str) -> None:
    source = vendor.library(name)
    cut = hooks.cut(source)
    for anchor, replacement in hooks.SEAMS:
        assert source.count(anchor) == 1
        assert replacement in cut


def test_a_library_without_an_anchor_is_refused() -> None:
    source = vendor.library("p5.brush.js").replace("function Fr(t){", "function Fr(u){")
    with pytest.raises(AnchorError, match="found 0 times"):
        hooks.cut(source)


def test_the_harness_version_follows_the_seams(monkeypatch: pytest.MonkeyPatch) -> None:
    before = pages.harness_version()
    monkeypatch.setattr(hooks, "SEAMS", hooks.SEAMS[1:])
    assert pages.harness_version() != before
