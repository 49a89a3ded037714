"""Comparisons that rules share: by medians, and by their 95 % intervals where there are any."""

from __future__ import annotations

import statistics
from collections.abc import Hashable, Iterable, Mapping
from typing import TypeVar

from fabricheck.results.table import Series

Key = TypeVar("Key", bound=Hashable)


def low(point: Series) -> float:
    """Return the lower end of the median's interval; the median where it has none."""
    return point.interval[0] if point.interval else point.value


def high(point: Series) -> float:
    """Return the upper end of the median's interval; the median where it has none."""
    return point.interval[1] if point.interval else point.value


def above(one: Series, other: Series) -> bool:
    """Say whether a median is above another one with intervals that do not meet."""
    return low(one) > high(other)


def above_by(one: Series, other: Series, part: float) -> bool:
    """Say whether another median is below by more than a part of this one, beyond the noise."""
    return low(one) * (1 - part) > high(other)


def ratio_near(one: Series, other: Series, wanted: float, tolerance: float) -> bool:
    """Say whether the ratio of two medians can be within ``tolerance`` of ``wanted``.

    :param tolerance: as a part of ``wanted``. The noise counts for the claim: the ratio may be any
        that the two intervals allow.
    """
    least, most = low(one) / high(other), high(one) / low(other)
    return least <= wanted * (1 + tolerance) and most >= wanted * (1 - tolerance)


def middle(points: Iterable[Series]) -> float:
    """Return the median of several medians."""
    return statistics.median(point.value for point in points)


def mean(points: Iterable[Series]) -> float:
    """Return the mean of several medians."""
    return statistics.fmean(point.value for point in points)


def least_ratio(
    ones: Mapping[Key, Series], others: Mapping[Key, Series]
) -> tuple[Key, Series, Series] | None:
    """Return the common key with the least ratio of medians, and both points; None without one."""
    common = [key for key in ones if key in others]
    if not common:
        return None
    worst = min(common, key=lambda key: ones[key].value / others[key].value)
    return worst, ones[worst], others[worst]
