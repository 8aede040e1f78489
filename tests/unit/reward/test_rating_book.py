"""From several raters to one pool; how far they agree; which pair tells most."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.reward import pool_ground

from watercolour.gallery import rating
from watercolour.reward import agreement, pairs, rating_book
from watercolour.reward import pool as pools
from watercolour.reward.pool import Record
from watercolour.reward.pool_votes import PoolVote
from watercolour.reward.rating_log import Said

SAID = st.sampled_from(["love", "okay", "meh"])


@pytest.mark.parametrize(
    ("given_", "found"),
    [
        (["love"], "love"),
        (["love", "okay"], "okay"),
        (["love", "meh", "okay"], "okay"),
        (["love", "love", "meh"], "love"),
        (["love", "aside"], "love"),
        (["aside", "aside", "meh"], "aside"),
    ],
)
def test_several_raters_make_one_tier(given_: list[Said], found: str) -> None:
    assert rating_book.consensus(given_) == found


@given(st.lists(SAID, min_size=1, max_size=7))
def test_the_order_of_raters_does_not_matter(said: list[Said]) -> None:
    assert rating_book.consensus(said) == rating_book.consensus(said[::-1])
    assert rating_book.consensus(said) in said


def record(name: str, strength: float) -> Record:
    return Record(name=name, subject="a dot", tier="okay", strength=strength)


def test_standings_need_comparisons() -> None:
    records = [record(f"p{n}", float(n)) for n in range(6)]
    assert {r.standing for r in rating_book.placed(records, [])} == {"middle"}
    votes = [PoolVote(first=f"p{n}", second=f"p{m}", value=0) for n in range(6) for m in range(n)]
    placed = {r.name: r.standing for r in rating_book.placed(records, votes)}
    assert [placed[f"p{n}"] for n in range(6)] == [
        "lower",
        "lower",
        "middle",
        "middle",
        "upper",
        "upper",
    ]


# Agreement.

#: Krippendorff (2011), section E: four observers, twelve units; None is no value.
OBSERVERS = (
    (1, 2, 3, 3, 2, 1, 4, 1, 2, None, None, None),
    (1, 2, 3, 3, 2, 2, 4, 1, 2, 5, None, 3),
    (None, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, None),
    (1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, None),
)


def test_alpha_is_krippendorff_s_own_example() -> None:
    units = [[v - 1 for v in unit if v is not None] for unit in zip(*OBSERVERS, strict=True)]
    assert agreement.ordinal_alpha(units, 5) == pytest.approx(0.815, abs=0.0005)


def alpha(units: list[list[int]]) -> float:
    """Of units of which something can be said."""
    found = agreement.ordinal_alpha(units, 3)
    assert found is not None
    return found


def test_alpha_knows_its_ends() -> None:
    assert agreement.ordinal_alpha([[0, 0], [1, 1], [2, 2]], 3) == pytest.approx(1)
    assert alpha([[0, 2], [2, 0], [0, 2]]) < 0
    # A step of one tier is less of a disagreement than a step of two.
    near, far = ([[0, 0], [2, 2], [1, 1], [0, n]] for n in (1, 2))
    assert alpha(near) > alpha(far)


@pytest.mark.parametrize("units", [[], [[0]], [[0, 1]], [[1, 1], [1, 1]], [[0], [1], [2]]])
def test_alpha_says_nothing_where_nothing_can_be_said(units: list[list[int]]) -> None:
    assert agreement.ordinal_alpha(units, 3) is None


def test_what_raters_dispute_most_comes_first() -> None:
    said: dict[str, dict[str, Said]] = {
        "near": {"anna": "love", "ben": "okay"},
        "far": {"anna": "love", "ben": "meh"},
        "same": {"anna": "love", "ben": "love"},
        "alone": {"anna": "meh"},
        "aside": {"anna": "meh", "ben": "aside"},
    }
    found = agreement.of(said)
    assert found.disputed == ("far", "near")
    assert found.shared == 3


# Pairs.


def fit(wins: list[list[float]]) -> pairs.Fit:
    return pairs.fit([f"p{n}" for n in range(len(wins))], np.array(wins, float))


def test_the_fit_is_surer_of_what_was_compared_more() -> None:
    found = fit([[0, 1, 0], [9, 0, 0], [0, 0, 0]])
    spread = found.spread()
    assert spread[0, 1] < spread[0, 2]
    assert np.allclose(found.strengths[[1]], found.strengths.max())


def test_a_comparison_makes_the_order_surer_and_the_pair_less_worth_asking() -> None:
    before = fit([[0] * 4] * 4)
    wins = np.zeros((4, 4))
    wins[0, 1] = 3
    after = fit(wins.tolist())
    assert after.order_sureness() > before.order_sureness()
    assert pairs.information(after)[0, 1] < pairs.information(before)[0, 1]
    assert 0 <= before.order_sureness() < 0.05


def test_the_pair_that_tells_most_is_among_those_shown() -> None:
    wins = np.full((8, 8), 4.0)
    np.fill_diagonal(wins, 0)
    wins[:, 7] = wins[7, :] = 0
    wins[:7, 7] = wins[7, :7] = 0.1
    found = pairs.fit([f"p{n}" for n in range(8)], wins)
    chosen = [pairs.choose(found, random.Random(n)) for n in range(20)]
    assert all(pair is not None and "p7" in pair for pair in chosen)
    assert {pair[0] == "p7" for pair in chosen if pair} == {True, False}


def test_pairs_that_were_compared_are_not_shown_again_and_end() -> None:
    found = fit([[0] * 3] * 3)
    done: set[tuple[str, str]] = set()
    for n in range(3):
        pair = pairs.choose(found, random.Random(n), without=frozenset(done))
        assert pair is not None
        one, other = sorted(pair)
        assert (one, other) not in done
        done.add((one, other))
    assert pairs.choose(found, random.Random(9), without=frozenset(done)) is None


def test_pairs_asked_for_by_information_order_paintings_in_few_comparisons() -> None:
    """A rater who answers by a hidden order: 3 comparisons a painting bring it out."""
    n, rng = 12, random.Random(3)
    wins = np.zeros((n, n))
    done: set[tuple[str, str]] = set()
    names = [f"p{k:02d}" for k in range(n)]
    for _ in range(3 * n):
        pair = pairs.choose(pairs.fit(names, wins), rng, without=frozenset(done))
        assert pair is not None
        a, b = (names.index(name) for name in pair)
        wins[max(a, b), min(a, b)] += 1
        one, other = sorted(pair)
        done.add((one, other))
    ranks = pairs.fit(names, wins).strengths.argsort().argsort()
    assert np.corrcoef(ranks, np.arange(n))[0, 1] > 0.95


# The page's state.


def test_comparisons_move_strengths_as_one_goes(tmp_path: Path) -> None:
    folder = pool_ground.make(tmp_path / "mine", ["okay", "okay", "okay"])
    for number, (left, right) in enumerate([("p_003", "p_001"), ("p_003", "p_002")]):
        rating.compare(folder, "anna", f"pair-{number:04d}", left, right, "left")
    strengths = {r.name: r.strength for r in pools.read_records(folder)}
    assert strengths["p_003"] > 0 > strengths["p_001"]
    shown = rating.state(folder, "anna", "pairs")
    assert shown["pairs"] == 2
    assert shown["ladder"][0]["name"] == "p_003"
    assert {each["name"] for each in shown["pair"]} == {"p_001", "p_002"}
    rating.undo(folder, "anna", "undo-0001")
    assert rating.state(folder, "anna", "pairs")["pairs"] == 1


def test_a_pair_is_the_same_after_the_page_was_closed(tmp_path: Path) -> None:
    folder = pool_ground.make(tmp_path / "mine", [None] * 8)
    first = rating.state(folder, "anna", "pairs")["pair"]
    assert rating.state(folder, "anna", "pairs")["pair"] == first


def test_every_rater_has_an_order_of_her_own_and_goes_on_where_she_was(tmp_path: Path) -> None:
    folder = pool_ground.make(tmp_path / "mine", [None] * 8)

    def rest(rater: str) -> list[str]:
        seen: list[str] = []
        while item := rating.state(folder, rater, "tiers")["item"]:
            seen.append(item["name"])
            rating.rate(folder, rater, f"{rater}-act-{len(seen)}", item["name"], "okay")
        return seen

    anna, ben = rest("anna"), rest("benjamin")
    assert sorted(anna) == sorted(ben) == [f"p_00{n}" for n in range(1, 9)]
    assert anna != ben


def test_what_is_to_come_later_comes_last() -> None:
    names = [f"p{n}" for n in range(6)]
    first = rating.queue(names, "anna", set(), [])
    later = rating.queue(names, "anna", {first[1]}, [first[0]])
    assert later == [*first[2:], first[0]]


def test_the_page_does_not_tell_who_painted_or_rated(tmp_path: Path) -> None:
    folder = pool_ground.make(tmp_path / "mine", ["love"])
    item = rating.state(folder, "anna", "tiers")["item"]
    assert item == {
        "name": "p_001",
        "subject": "a red dot",
        "url": "/paintings/p_001.png",
        "said": None,
    }
