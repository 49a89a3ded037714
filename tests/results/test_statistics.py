"""The statistics against their definitions and against published tables."""

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabricheck.core import statistics

positive = st.floats(min_value=1e-3, max_value=1e6)


@pytest.mark.parametrize(
    ("n", "rank"),
    # Ranks of the interval of the sign test, as tables list them for p = 1/2.
    {0: None, 1: None, 5: None, 6: 1, 7: 1, 8: 1, 9: 2, 11: 2, 12: 3, 15: 4, 20: 6, 51: 19}.items(),
)
def test_rank_of_the_interval(n, rank):
    assert statistics.interval_rank(n) == rank


@given(st.integers(min_value=6, max_value=400))
def test_rank_is_the_largest_with_95_percent(n):
    rank = statistics.interval_rank(n)

    def covers(k):
        return Fraction(sum(math.comb(n, i) for i in range(k, n - k + 1)), 2**n)

    assert covers(rank) >= Fraction(95, 100)
    assert covers(rank + 1) < Fraction(95, 100)


def test_negative_number_of_samples():
    with pytest.raises(ValueError, match="-1"):
        statistics.interval_rank(-1)


def test_nine_samples_by_hand():
    samples = [5.0, 1.0, 9.0, 2.0, 8.0, 3.0, 7.0, 4.0, 6.0]
    assert statistics.median(samples) == 5
    assert statistics.mad(samples) == 2
    assert statistics.median_interval(samples) == (2, 8)
    assert statistics.relative_half_width(samples) == pytest.approx(0.6)


def test_an_even_number_takes_the_mean_of_the_middle_two():
    assert statistics.median([1.0, 2.0, 4.0, 10.0]) == 3
    assert statistics.mad([1.0, 2.0, 4.0, 10.0]) == 1.5


def test_too_few_samples_have_no_interval():
    assert statistics.median_interval([1.0] * 5) is None
    assert statistics.relative_half_width([1.0] * 5) is None


@given(st.lists(positive, min_size=6, max_size=60))
def test_interval_holds_the_median_and_ignores_order(samples):
    low, high = statistics.median_interval(samples)
    assert min(samples) <= low <= statistics.median(samples) <= high <= max(samples)
    assert statistics.median_interval(sorted(samples)) == (low, high)
