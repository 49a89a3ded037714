"""Groups of values: the modes of a metric, and nodes that are slower than the others."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence

from fabricheck.core import statistics
from fabricheck.core.vocabulary import SMALLER_IS_BETTER

#: The smallest tolerance by unit, as a fraction of the value. It covers variation that a few
#: sessions do not show.
FLOORS = {"GB/s": 0.02, "%": 0.02, "us": 0.10}
#: The smallest tolerance of transfers by several devices at once on host memory, which other users
#: of the host share. On two H200 such a value was once 9.7 % below the median of nine sessions, and
#: once 4 % below (docs/h200.md).
FLOOR_AT_ONCE = 0.12

SPREADS = 5
#: Two groups are two modes if the gap between them exceeds this many of their own deviations.
GAPS = 5
#: The smallest number of sessions of a mode, and its smallest fraction of all sessions.
LEAST_IN_A_MODE = 2
LEAST_PART_OF_A_MODE = 0.1
#: From this size on, two groups may touch: their medians are compared instead of the gap.
MANY_IN_A_MODE = 5

#: From this number of nodes on, each node counts once; two nodes have no median node.
LEAST_NODES = 3
#: The largest fraction of nodes that is excluded as slow. With more slow nodes, it is unknown which
#: nodes are healthy.
MOST_ASIDE = 0.25


def slow_nodes(
    by_node: Mapping[str, Sequence[float]], unit: str
) -> tuple[tuple[str, ...], tuple[dict[str, float], dict[str, float]] | None]:
    """Return the slow nodes, and two groups if the slower group is not a minority.

    The groups consist of the medians of their nodes, the lower values first. A single fast node
    forms a group: it shows what all nodes could reach.
    """
    kept = {node: statistics.median(own) for node, own in by_node.items()}
    aside: list[str] = []
    while len(kept) >= LEAST_NODES:
        found = split(list(kept.values()), unit, 1)
        if found is None:
            break
        lower = {node: value for node, value in kept.items() if value <= max(found[0])}
        upper = {node: value for node, value in kept.items() if node not in lower}
        slow = upper if unit in SMALLER_IS_BETTER else lower
        if len(aside) + len(slow) > MOST_ASIDE * len(by_node):
            return (), (lower, upper)
        aside += slow
        kept = {node: value for node, value in kept.items() if node not in slow}
    return tuple(sorted(aside)), None


def modes(values: Sequence[float], unit: str) -> tuple[list[float], list[float]] | None:
    """Return the two modes of the sessions' values, or None for one mode; see `split`."""
    return split(values, unit, max(LEAST_IN_A_MODE, math.ceil(LEAST_PART_OF_A_MODE * len(values))))


def split(values: Sequence[float], unit: str, least: int) -> tuple[list[float], list[float]] | None:
    """Split values into two groups, or return None if they form one group.

    :param values: finite and positive.
    :param least: the smallest size of a group.
    """
    ordered = sorted(values)
    splits = range(least, len(ordered) - least + 1)
    if not splits:
        return None
    floor = FLOORS[unit] * statistics.median(ordered)
    at = max(splits, key=lambda index: ordered[index] - ordered[index - 1])
    low, high = ordered[:at], ordered[at:]
    gap = high[0] - low[-1]
    if gap > GAPS * max(statistics.mad(low), statistics.mad(high)) and gap > floor:
        return low, high
    # Two large groups may touch, so that no gap separates them; their medians still differ.
    splits = range(max(least, MANY_IN_A_MODE), len(ordered) - max(least, MANY_IN_A_MODE) + 1)
    if not splits:
        return None
    # In medians, so that no value is too large for the squares below.
    middle = statistics.median(ordered) or 1.0
    sums = list(itertools.accumulate((one / middle for one in ordered), initial=0.0))
    # The threshold that separates the means most, weighted by group sizes (Otsu's method).
    at = max(splits, key=lambda index: _between(sums, index))
    low, high = ordered[:at], ordered[at:]
    apart = statistics.median(high) - statistics.median(low)
    within = max(statistics.mad(low), statistics.mad(high))
    return (low, high) if apart > SPREADS * statistics.NORMAL * within and apart > floor else None


def _between(sums: Sequence[float], index: int) -> float:
    """Return the variance between the first values and the rest, times their number squared."""
    count = len(sums) - 1
    apart = sums[index] / index - (sums[-1] - sums[index]) / (count - index)
    return index * (count - index) * apart * apart
