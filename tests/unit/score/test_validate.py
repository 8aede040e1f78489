"""The shipped heads on the shipped pool: accurate on unseen subjects, and not easily cheated."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from watercolour.score import examples, features, heads, validate
from watercolour.score.features import Backbone


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    return validate.report(examples.BUILTIN, validate.PROBES)


@pytest.mark.parametrize("head", ["quality", "judge"])
def test_a_held_out_subject_is_ranked_right(head: str, found: dict[str, Any]) -> None:
    accuracy = found["held_out"][head]
    assert accuracy["love_meh"]["mean"] >= 0.95
    assert accuracy["okay_meh"]["mean"] >= 0.85
    assert accuracy["love_okay"]["mean"] > 0.5


@pytest.mark.parametrize("head", ["quality", "judge", "judge_untaught"])
def test_a_spoilt_painting_scores_less(head: str, found: dict[str, Any]) -> None:
    kept = [
        kind
        for kind, one in found["spoilt"].items()
        if one[head]["change"] >= 0 or one[head]["falls"] <= 0.5
    ]
    assert len(found["spoilt"]) == 20
    assert len(kept) <= 1, kept


@pytest.mark.parametrize("head", ["quality", "judge"])
def test_a_head_is_right_as_often_as_it_is_sure(head: str, found: dict[str, Any]) -> None:
    bins = found["calibration"][head]["bins"]
    assert sum(pairs for _, _, pairs in bins) > 1000
    right = [was for _, was, _ in bins]
    assert right[-1] > 0.9
    assert right[-1] > right[0]
    assert found["calibration"][head]["error"] < 0.2


def test_a_calibration_curve_counts_every_pair_once() -> None:
    sure, right = np.array([0.55, 0.56, 0.95, 0.97, 1.0]), np.array([1, 0, 1, 1, 1], bool)
    found = validate.curve(sure, right)
    assert found["bins"] == [(0.555, 0.5, 2), (0.9733, 1.0, 3)]
    assert found["error"] == pytest.approx((0.055 * 2 + 0.0267 * 3) / 5, abs=1e-3)


def test_the_two_heads_are_no_copies(found: dict[str, Any]) -> None:
    assert found["spearman"] <= 0.95


def test_the_shipped_heads_were_fitted_on_the_shipped_pool(found: dict[str, Any]) -> None:
    assert found["fitted_on_this_pool"], "run `python -m watercolour.score.fit`"


def test_good_corpus_paintings_stand_above_plain_ugly_and_cheating_ones(
    found: dict[str, Any],
) -> None:
    tiers = found["by_tier"]
    for head in ("mu", "judge"):
        assert tiers["good"][head] > tiers["plain"][head] > tiers["ugly"][head]
        assert tiers["hack"][head] < tiers["plain"][head]


def test_no_way_to_cheat_reaches_an_okay_painting(backbone: Backbone) -> None:
    """Mean over subjects of every kind of hack, on both heads, against the pool's okay tier."""
    fitted = heads.load()
    pool, probes = examples.read(examples.BUILTIN), examples.read(validate.PROBES)
    okay = [p for p, tier in zip(pool.pictures, pool.tiers, strict=True) if tier == "okay"][::3]
    okay_quality, okay_judge = examples.stack(
        features.embed(backbone, [features.decode(p) for p in okay])
    )
    kinds: dict[str, list[int]] = {}
    for i, (name, tier) in enumerate(zip(probes.names, probes.tiers, strict=True)):
        if tier == "hack":
            kinds.setdefault(name.split("-", 1)[1], []).append(i)
    quality, judge = examples.stack(features.embed(backbone, examples.decode(probes)))
    assert len(kinds) >= 10
    for seen, okays in (
        (fitted.quality.utility(quality), fitted.quality.utility(okay_quality)),
        (fitted.judge.utility(judge), fitted.judge.utility(okay_judge)),
    ):
        for kind, places in kinds.items():
            assert seen[places].mean() < np.quantile(okays, 0.25), kind


def test_spearman_is_the_correlation_of_ranks() -> None:
    a = np.array([1.0, 2.0, 3.0, 4.0])
    assert validate.spearman(a, a**3) == pytest.approx(1)
    assert validate.spearman(a, -a) == pytest.approx(-1)
    assert validate.spearman(np.array([1.0, 1.0, 2.0]), np.array([1.0, 2.0, 3.0])) == pytest.approx(
        0.8660254
    )


def test_accuracy_counts_a_tie_as_a_half() -> None:
    assert validate.accuracy(np.array([1.0, 3.0]), np.array([1.0, 2.0])) == pytest.approx(0.625)
