from __future__ import annotations

import pytest

from watercolour.render import patch, vendor


@pytest.fixture(scope="module")
def stock() -> str:
    return vendor.library("p5.brush.stock.js")


def test_the_patch_fits_the_vendored_build(stock: str) -> None:
    patched = patch.apply(stock)
    assert patched == vendor.library("p5.brush.js")
    assert "wc_fused(bgColor,mixIntensity)" in patched


@pytest.mark.parametrize(
    "anchor", ["const float GAMMA=2.4", 'e.setUniform("u_color",i)', "R[17]=", "xyz+=R[30]"]
)
def test_a_build_without_an_anchor_is_refused(stock: str, anchor: str) -> None:
    with pytest.raises(patch.AnchorError):
        patch.apply(stock.replace(anchor, "other"))


def test_a_build_with_an_anchor_twice_is_refused(stock: str) -> None:
    with pytest.raises(patch.AnchorError):
        patch.apply(stock + 'e.setUniform("u_color",i)')


def test_merging_bands_keeps_the_white_point(stock: str) -> None:
    bands = patch.read_bands(stock)
    merged = patch.merge(bands)
    assert len(bands.basis) == 38
    assert len(merged.basis) == 38 - sum(len(group) - 1 for group in patch.MERGED)
    for axis in range(3):
        before = sum(row[axis] for row in bands.xyz)
        assert sum(row[axis] for row in merged.xyz) == pytest.approx(before, abs=1e-12)


def test_merging_bands_moves_no_colour_by_a_visible_amount(stock: str) -> None:
    """Each primary's XYZ, full bands against merged ones, differs by less than 1e-4."""
    bands = patch.read_bands(stock)
    merged = patch.merge(bands)
    for primary in range(7):
        for axis in range(3):
            full, less = (
                sum(b[primary] * x[axis] for b, x in zip(each.basis, each.xyz, strict=True))
                for each in (bands, merged)
            )
            assert less == pytest.approx(full, abs=1e-4)


def test_the_fused_shader_has_one_step_a_band(stock: str) -> None:
    merged = patch.merge(patch.read_bands(stock))
    assert patch.fused_shader(merged).count("rgb+=") == len(merged.basis)
