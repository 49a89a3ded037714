"""The rule that makes a reference from several sessions; docs/limits.md describes it.

A metric whose reference could not be trusted becomes report only, with a reason.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from fabricheck.core import statistics
from fabricheck.core.grouping import grouped
from fabricheck.core.show import listed
from fabricheck.core.vocabulary import SMALLER_IS_BETTER
from fabricheck.references.calibrated import Tolerance
from fabricheck.references.entries import Entry, report_only
from fabricheck.results.series import Noise

#: The smallest tolerance by unit, as a fraction of the value. It covers variation that a few
#: sessions do not show.
FLOORS = {"GB/s": 0.02, "%": 0.02, "us": 0.10}
#: The smallest tolerance of transfers by several devices at once on host memory, which other users
#: of the host share. On two H200 such a value was once 9.7 % below the median of nine sessions, and
#: once 4 % below (docs/evidence/h200.md).
FLOOR_AT_ONCE = 0.12
#: The noises of transfers on host memory.
OF_HOST: Collection[Noise] = ("pinned", "pinned at once", "moved by the host")

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
MOST_EXCLUDED = 0.25


def slow_nodes(
    by_node: Mapping[str, Sequence[float]], unit: str
) -> tuple[tuple[str, ...], tuple[dict[str, float], dict[str, float]] | None]:
    """Return the slow nodes, and two groups if the slower group is not a minority.

    The groups consist of the medians of their nodes, the lower values first. A single fast node
    forms a group: it shows what all nodes could reach.
    """
    medians = {node: statistics.median(values_of_node) for node, values_of_node in by_node.items()}
    excluded: list[str] = []
    while len(medians) >= LEAST_NODES:
        parts = split(list(medians.values()), unit, 1)
        if parts is None:
            break
        lower = {node: value for node, value in medians.items() if value <= max(parts[0])}
        upper = {node: value for node, value in medians.items() if node not in lower}
        slow = upper if unit in SMALLER_IS_BETTER else lower
        if len(excluded) + len(slow) > MOST_EXCLUDED * len(by_node):
            return (), (lower, upper)
        excluded += slow
        medians = {node: value for node, value in medians.items() if node not in slow}
    return tuple(sorted(excluded)), None


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
    sums = list(itertools.accumulate((value / middle for value in ordered), initial=0.0))
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


#: The smallest numbers of sessions and of campaigns.
LEAST_SESSIONS = 5
LEAST_CAMPAIGNS = 2

#: By unit, the tolerance above which a metric is too noisy for a limit.
CEILINGS = {"GB/s": 0.15, "%": 0.15, "us": 0.50}

WORST_TIMES = 1.5
#: The smallest fraction of nodes that need two sessions or more, to show the variation of a node.
LEAST_REPEATED = 0.5
#: The most letters of nodes in one sentence.
MOST_LETTERS = 8
#: Significant digits of a value.
DIGITS = 5

#: The requirement for counts of faults, which does not depend on measured values.
COUNT_ENTRY = (0, 0, 0, "count")

TEXT = (
    "value: the median over the sessions, to five significant digits; tolerance (lower for GB/s "
    f"and %, upper for us): the largest of a floor ({FLOORS['GB/s']:.0%} for GB/s and %, "
    f"{FLOORS['us']:.0%} for us, {FLOOR_AT_ONCE:.0%} of several devices at once on host memory), "
    f"{SPREADS} robust standard deviations ({statistics.NORMAL} MAD) relative to "
    f"the median, and {WORST_TIMES} times the largest relative deviation of a session in the worse "
    f"direction, rounded up to the next half percent; from {LEAST_NODES} nodes on the median is "
    "that of the nodes' medians, and the robust variance is that between nodes plus the median of "
    f"those within a node; up to {MOST_EXCLUDED:.0%} of the nodes are set aside where a gap splits "
    "them off as slow; report only with fewer than "
    f"{LEAST_SESSIONS} sessions or {LEAST_CAMPAIGNS} campaigns, with two sessions on less than "
    f"{LEAST_REPEATED:.0%} of the nodes, with two groups of nodes of which no such minority is the "
    f"slower one, with a tolerance above {CEILINGS['GB/s']:.0%} ({CEILINGS['us']:.0%} for us), and "
    f"with two modes: each has {LEAST_IN_A_MODE} values and {LEAST_PART_OF_A_MODE:.0%} of all, and "
    f"the largest gap between such is above {GAPS} times the MAD of either side and above the "
    f"floor, or each has {MANY_IN_A_MODE} values and their medians differ by more than {SPREADS} "
    "robust standard deviations of either, and more than the floor"
)


@dataclass(frozen=True)
class Outcome:
    """The entry of a metric, its tolerance where one could be computed, and the reason.

    reason: ``rule`` for an entry that requires something, else why it requires nothing. excluded:
    the slow nodes, whose values are not in the entry.
    """

    entry: Entry
    tolerance: Tolerance | None
    reason: str
    excluded: tuple[str, ...] = ()


def judge(
    values: Sequence[float],
    campaigns: Sequence[int],
    unit: str,
    nodes: Sequence[str] = (),
    floor: float = 0,
) -> Outcome:
    """Return the entry of a metric.

    :param values: one per session and node, in `unit`, finite and above zero.
    :param campaigns: the number of the campaign of each value.
    :param unit: GB/s, %, us, or count; the requirement for a count does not depend on the values.
    :param nodes: the letter of the node of each value; empty if all values are of one node.
    :param floor: the smallest tolerance, where it is larger than that of the unit.
    """
    if unit == "count":
        return Outcome(COUNT_ENTRY, None, "count: none is allowed, whatever was measured")
    node_of = nodes or ["A"] * len(values)
    by_node = grouped(zip(node_of, values, strict=True))
    why = few(node_of, campaigns)
    excluded, groups = ((), None) if why is not None else slow_nodes(by_node, unit)
    if groups is not None:
        low, high = (
            f"{len(group)} ({named(list(group))}) about "
            f"{statistics.median(list(group.values())):.5g}"
            for group in groups
        )
        why = (
            f"two groups of nodes: {low} and {high} {unit}; the slower one exceeds a minority of "
            f"{MOST_EXCLUDED:.0%}"
        )
    used = {
        node: values_of_node for node, values_of_node in by_node.items() if node not in excluded
    }
    tolerance = tolerance_of(used, unit, floor)
    counted = [value for values_of_node in used.values() for value in values_of_node]
    two = modes(counted, unit) if why is None else None
    if two is not None:
        low, high = (
            f"{len(mode)} sessions about {statistics.median(mode):.5g}{_on(mode, used)}"
            for mode in two
        )
        why = f"two modes: {low} and {high} {unit}"
    if why is None and tolerance.taken > CEILINGS[unit]:
        why = (
            f"noisy: {min(counted):.5g} to {max(counted):.5g} {unit} need a tolerance of "
            f"{tolerance.taken:.1%}; at most {CEILINGS[unit]:.0%} is allowed"
        )
    if why is not None:
        return Outcome(report_only(unit), tolerance, why, excluded)
    value = float(f"{middle_of(used):.{DIGITS}g}")
    part = round(tolerance.taken, 6)
    bounds = (None, part) if unit in SMALLER_IS_BETTER else (-part, None)
    return Outcome((value, *bounds, unit), tolerance, "rule", excluded)


def _on(values: Sequence[float], by_node: Mapping[str, Sequence[float]]) -> str:
    """Name the nodes that have all their values in one mode."""
    has = {node for node, theirs in by_node.items() if set(theirs) & set(values)}
    apart = has != by_node.keys() and all(set(by_node[node]) <= set(values) for node in has)
    return f" ({named(sorted(has))})" if apart else ""


def named(nodes: Sequence[str]) -> str:
    """Name nodes by their letters."""
    return f"{'node' if len(nodes) == 1 else 'nodes'} {listed(nodes, MOST_LETTERS)}"


def few(nodes: Sequence[str], campaigns: Sequence[int]) -> str | None:
    """Return why these nodes and campaigns are too few, or None if they suffice."""
    if len(nodes) < LEAST_SESSIONS:
        return f"{len(nodes)} of at least {LEAST_SESSIONS} sessions"
    if len(set(campaigns)) < LEAST_CAMPAIGNS:
        return f"{len(set(campaigns))} of at least {LEAST_CAMPAIGNS} campaigns"
    times = Counter(nodes)
    repeated = sum(count > 1 for count in times.values())
    if repeated < LEAST_REPEATED * len(times):
        return (
            f"{repeated} of {len(times)} nodes have two sessions or more; {LEAST_REPEATED:.0%} "
            "are required to know how much a node varies"
        )
    return None


def middle_of(by_node: Mapping[str, Sequence[float]]) -> float:
    """Return the median of the nodes' medians, or of all values for fewer than three nodes."""
    if len(by_node) >= LEAST_NODES:
        return statistics.median(
            [statistics.median(values_of_node) for values_of_node in by_node.values()]
        )
    return statistics.median(
        [value for values_of_node in by_node.values() for value in values_of_node]
    )


def tolerance_of(by_node: Mapping[str, Sequence[float]], unit: str, floor: float = 0) -> Tolerance:
    """Return the candidates for the tolerance of finite, positive values."""
    middle = middle_of(by_node)
    values = [value for values_of_node in by_node.values() for value in values_of_node]
    if len(by_node) >= LEAST_NODES:
        between = statistics.mad(
            [statistics.median(values_of_node) for values_of_node in by_node.values()]
        )
        several = [
            statistics.mad(values_of_node)
            for values_of_node in by_node.values()
            if len(values_of_node) > 1
        ]
        spread = math.hypot(between, statistics.median(several) if several else 0.0)
    else:
        spread = statistics.mad(values)
    worse = max(values) - middle if unit in SMALLER_IS_BETTER else middle - min(values)
    return Tolerance(
        floor=max(floor, FLOORS[unit]),
        spread=SPREADS * statistics.NORMAL * spread / middle,
        worst=WORST_TIMES * worse / middle,
    )
