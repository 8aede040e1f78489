"""What is missing moves no weight: real steps by TRL, as docs/honest-numbers.md shows them."""

from __future__ import annotations

from functools import partial

import pytest
from bench import unscored

KINDS = ("member 4 of 8", "one term of member 4", "one in each of two groups", "all of 8")


@pytest.mark.parametrize("name", KINDS)
def test_a_value_that_is_missing_is_not_felt_as_a_zero_would_be(name: str) -> None:
    pattern = next(each for each in unscored.PATTERNS if each.name == name)
    make = partial(unscored.wanted, seed=0, beta=0.0)
    rows, worths = unscored.recorded(make((unscored.MEMBERS,)))
    ours, theirs = unscored.measure(pattern, make, rows, worths)
    if theirs is None:
        assert ours == 0
        return
    assert ours < unscored.TOLERANCE
    assert theirs > 100 * unscored.TOLERANCE
