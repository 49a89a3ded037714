"""Statistics of a series of samples, as the measuring programs compute them.

The interval is distribution-free: it uses no mean or standard deviation, since bandwidth samples
are skewed and have outliers.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from statistics import NormalDist
from statistics import median as median
from typing import NamedTuple

#: The standard deviation of normal values in median absolute deviations.
NORMAL = 1.4826

#: How much wider than a mean's the error of a median of normal values is.
MEDIAN_WIDER = math.sqrt(math.pi / 2)

#: The share of the data's worth that a median absolute deviation uses of normal values.
MAD_EFFICIENCY = 0.37


def mad(samples: Sequence[float]) -> float:
    """Return the median absolute deviation from the median, in the samples' unit, unscaled."""
    middle = median(samples)
    return median([abs(sample - middle) for sample in samples])


def deviation(samples: Sequence[float]) -> float:
    """Return the standard deviation that the median absolute deviation of normal values means."""
    return NORMAL * mad(samples)


@functools.cache
def interval_rank(n: int, one_in: int = 20) -> int | None:
    """Return k such that [x_(k), x_(n-k+1)] contains the median with at least 95 % confidence.

    The number of samples below the median is binomial with p = 1/2, so the interval of ranks k to
    n-k+1, counted from 1, covers the median with probability P(k <= B <= n-k). The result is the
    largest k for which that is at least 0.95, thus the narrowest such interval. It is computed in
    integers, hence exactly: 1 - 2 S / 2^n >= 0.95, with S the sum of the binomial coefficients (n
    over i) for i < k, is 40 S <= 2^n. The result is None for fewer than six samples.

    :param one_in: the interval misses the median at most once in this many cases: 20 is 95 %, 40 is
        97.5 %.
    :raises ValueError: when n is negative.
    """
    if n < 0:
        raise ValueError(f"a number of samples cannot be {n}")
    best = 0
    below = 0
    for k in range(1, n // 2 + 1):
        below += math.comb(n, k - 1)
        if 2 * one_in * below > 2**n:
            break
        best = k
    return best or None


def median_interval(samples: Sequence[float], one_in: int = 20) -> tuple[float, float] | None:
    """Return the confidence interval of the median, of at least 95 %, in the samples' unit.

    It consists of order statistics (see interval_rank, also for ``one_in``); None for too few
    samples: fewer than six at 95 %.
    """
    rank = interval_rank(len(samples), one_in)
    if rank is None:
        return None
    ordered = sorted(samples)
    return ordered[rank - 1], ordered[-rank]


def relative_half_width(samples: Sequence[float]) -> float | None:
    """Return half the interval's width over the median; None without an interval."""
    interval = median_interval(samples)
    if interval is None:
        return None
    return (interval[1] - interval[0]) / 2 / median(samples)


def quantile(tests: int, values: int, false: float) -> float:
    """Return how many robust standard deviations a healthy value is below zero at most.

    :param tests: how many values are looked at.
    :param values: of how many the standard deviation is an estimate.
    :param false: how many of the ``tests`` healthy ones may be below on average.
    """
    z = -NormalDist().inv_cdf(min(0.5, false / max(1, tests)))
    # Student's quantile for that many degrees of freedom (Abramowitz and Stegun 26.7.5).
    v = max(4.0, MAD_EFFICIENCY * values)
    return (
        z
        + (z**3 + z) / (4 * v)
        + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * v**2)
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * v**3)
    )


class Slope(NamedTuple):
    """A robust slope with its interval of 95 %, in units of y for one of x."""

    value: float
    low: float
    high: float
    #: The value of the line at x = 0.
    start: float


#: The fewest points of a slope.
FEWEST_POINTS = 6

#: The most points of a slope; of more the medians of neighbours are taken.
MOST_POINTS = 150


def slope(xs: Sequence[float], ys: Sequence[float]) -> Slope | None:
    """Return the median slope of all pairs of points (Theil 1950, Sen 1968), with its interval.

    The interval is that of Sen by Kendall's statistic, for which neither normal values nor the
    absence of outliers is assumed: up to 29 % of the points may be anything.

    :param xs: in ascending order.
    :returns: None with fewer than six points, whose interval is that of all slopes.
    """
    xs, ys = _thinned(xs), _thinned(ys)
    n = len(xs)
    if n < FEWEST_POINTS:
        return None
    slopes = []
    for (x, y), (later, other) in itertools.combinations(zip(xs, ys, strict=True), 2):
        if later > x:
            slopes.append((other - y) / (later - x))
    slopes.sort()
    if not slopes:
        return None
    reach = NormalDist().inv_cdf(0.975) * math.sqrt(n * (n - 1) * (2 * n + 5) / 18)
    first = max(0, math.floor((len(slopes) - reach) / 2))
    last = min(len(slopes) - 1, math.ceil((len(slopes) + reach) / 2))
    middle = median(slopes)
    start = median([y - middle * x for x, y in zip(xs, ys, strict=True)])
    return Slope(middle, slopes[first], slopes[last], start)


def _thinned(values: Sequence[float]) -> list[float]:
    """Return at most MOST_POINTS values: medians of as many neighbours each."""
    each = -(-len(values) // MOST_POINTS)
    if each <= 1:
        return list(values)
    return [median(values[first : first + each]) for first in range(0, len(values), each)]
