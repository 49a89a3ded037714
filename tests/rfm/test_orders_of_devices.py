"""The order of devices in which the first 2, 3 ... are the best ones."""

from __future__ import annotations

import pytest

from fabricheck.node import load
from fabricheck.rfm.ranks import best_first


@pytest.mark.parametrize(
    ("node", "order"),
    [("mi250x", (0, 1, 6, 7, 2, 3, 4, 5)), ("mi250", (0, 1, 4, 5, 2, 3, 6, 7))],
)
def test_each_best_set_is_the_beginning_of_the_order(node, order):
    sets = load(node).growing_subsets
    assert best_first(sets) == order
    assert [set(order[: len(one)]) for one in sets] == [set(one) for one in sets]


def test_sets_of_which_one_is_not_in_the_next_have_no_order():
    assert best_first([(0, 1), (2, 3, 4)]) == ()
    assert best_first([(0, 1), (0, 1, 2, 3)]) == ()
    assert best_first([]) == ()
