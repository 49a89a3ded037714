"""Comparisons that rules share: by medians, and by their 95 % intervals where there are any."""

from __future__ import annotations

import statistics
from collections.abc import Hashable, Iterable, Mapping
from typing import TypeVar

from fabricheck.results.observed import Point

Key = TypeVar("Key", bound=Hashable)


def low(point: Point) -> float:
    """Return the lower end of the median's interval; the median where it has none."""
    return point.interval[0] if point.interval else point.median


def high(point: Point) -> float:
    """Return the upper end of the median's interval; the median where it has none."""
    return point.interval[1] if point.interval else point.median


def above(one: Point, other: Point) -> bool:
    """Say whether a median is above another one with intervals that do not meet."""
    return low(one) > high(other)


def above_by(one: Point, other: Point, part: float) -> bool:
    """Say whether another median is below by more than a part of this one, beyond the noise."""
    return low(one) * (1 - part) > high(other)


def ratio_near(one: Point, other: Point, wanted: float, tolerance: float) -> bool:
    """Say whether the ratio of two medians can be within ``tolerance`` of ``wanted``.

    :param tolerance: as a part of ``wanted``. The noise counts for the claim: the ratio may be any
        that the two intervals allow.
    """
    least, most = low(one) / high(other), high(one) / low(other)
    return least <= wanted * (1 + tolerance) and most >= wanted * (1 - tolerance)


def middle(points: Iterable[Point]) -> float:
    """Return the median of several medians."""
    return statistics.median(point.median for point in points)


def mean(points: Iterable[Point]) -> float:
    """Return the mean of several medians."""
    return statistics.fmean(point.median for point in points)


def least_ratio(
    ones: Mapping[Key, Point], others: Mapping[Key, Point]
) -> tuple[Key, Point, Point] | None:
    """Return the common key with the least ratio of medians, and both points; None without one."""
    common = [key for key in ones if key in others]
    if not common:
        return None
    worst = min(common, key=lambda key: ones[key].median / others[key].median)
    return worst, ones[worst], others[worst]
