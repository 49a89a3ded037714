"""Comparisons shared by rules, by medians and 95 % intervals, and names of series in sentences."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Collection, Iterable, Sequence

from fabricheck.core.amounts import about
from fabricheck.core.text import count, first_names
from fabricheck.papers.claims.model import Number, computed, number
from fabricheck.results.table import Series, curve


def low(point: Series) -> float:
    """Return the lower end of the median's interval, or the median if it has no interval."""
    return point.interval[0] if point.interval else point.value


def high(point: Series) -> float:
    """Return the upper end of the median's interval, or the median if it has no interval."""
    return point.interval[1] if point.interval else point.value


def above(one: Series, other: Series) -> bool:
    """Whether one median is above another and their intervals do not overlap."""
    return low(one) > high(other)


def above_by(one: Series, other: Series, part: float) -> bool:
    """Whether one median is above another by more than a fraction of it, beyond the noise."""
    return low(one) * (1 - part) > high(other)


def within(point: Series, least: float, most: float, part: float = 0.0) -> bool:
    """Whether a median may lie in a range: its interval touches the range.

    :param part: widens the range, as a fraction of its ends.
    """
    return low(point) <= most * (1 + part) and high(point) >= least * (1 - part)


def ratio_near(one: Series, other: Series, wanted: float, tolerance: float) -> bool:
    """Whether the ratio of two medians can be within ``tolerance`` of ``wanted``.

    The noise counts in favour of the claim: any ratio that the two intervals allow is accepted.

    :param tolerance: as a fraction of ``wanted``.
    """
    least, most = low(one) / high(other), high(one) / low(other)
    return least <= wanted * (1 + tolerance) and most >= wanted * (1 - tolerance)


def median_of(point: Series) -> float:
    """Return a series' median, as the key for `min` and `max`."""
    return point.value


def middle(points: Iterable[Series]) -> float:
    """Return the median of several medians."""
    return statistics.median(point.value for point in points)


def mean(points: Iterable[Series]) -> float:
    """Return the mean of several medians."""
    return statistics.fmean(point.value for point in points)


def curves(
    points: Iterable[Series], key: Callable[[Series], int | None] = lambda point: point.device
) -> dict[int | None, dict[int, Series]]:
    """Return curves of series by size, one curve for each device or other key."""
    found: dict[int | None, list[Series]] = {}
    for point in points:
        found.setdefault(key(point), []).append(point)
    return {own: {one.bytes: one for one in curve(found[own])} for own in found}


def longest(points: Iterable[Series]) -> dict[int, Series]:
    """Return the series by size of the device with the most sizes."""
    return max(curves(points).values(), key=len)


def middle_number(what: str, points: Sequence[Series]) -> Number:
    """Return the median of some series; for a single series, with its interval."""
    if len(points) == 1:
        return number(what, points[0])
    return computed(what, middle(points), points[0].unit, *points)


def named(points: Iterable[Series], most: int = 3) -> str:
    """Return some series as devices and medians, such as "0-3 41.0, 0-4 40.9 and 5 more".

    All series have one unit, which ends the text.
    """
    listed = list(points)
    texts = [f"{'-'.join(map(str, one.devices))} {one.value:.1f}" for one in listed]
    return f"{first_names(texts, most)} {listed[0].unit}" if listed else "none"


def span(points: Collection[Series]) -> str:
    """Return the smallest and the largest median, with their unit."""
    medians = [point.value for point in points]
    return f"{min(medians):.1f} to {max(medians):.1f} {next(iter(points)).unit}"


def measured_by(points: Collection[Series]) -> str:
    """Return the program and the size of some series, such as "mpi, 16 MiB"."""
    sizes = sorted(point.bytes for point in points)
    texts = dict.fromkeys(about(size) for size in (sizes[0], sizes[-1]))
    return f"{next(iter(points)).program}, {' to '.join(texts)}"


def pairs(points: Collection[Series]) -> str:
    """Return the number of ordered pairs of some series, such as "1 ordered pair"."""
    return count(len(points), "ordered pair")
