"""Rules shared by several claims: each makes the `judge` of a row from groups of series."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from fabricheck.core.text import first_names
from fabricheck.node import NodeModel
from fabricheck.papers.claims import needs
from fabricheck.papers.claims.judging import above, mean, measured_by, middle, span
from fabricheck.papers.claims.model import Finding, NotTestable, Number, computed, number, verdict
from fabricheck.papers.claims.published import number as of_record
from fabricheck.papers.claims.published import value
from fabricheck.results.observed import Observed
from fabricheck.results.table import Series

Judge = Callable[[Observed], Finding]
#: Series by their subject: a device, a rank or an ordered pair of devices.
Points = Mapping[Any, Series]


@dataclass(frozen=True)
class Group:
    """Series that a rule uses together.

    name: one of them in a sentence, such as "a copy of pinned memory". choose: returns them, or
    raises NotTestable. each: the subject of each. computed: whether each comes from several
    medians.
    """

    name: str
    choose: Callable[[Observed], Points]
    each: str = "device"
    computed: bool = False

    @property
    def statistic(self) -> str:
        """The statistic of the group: for ranks the mean, as in EPICURE, else the median."""
        return "mean" if self.each == "rank" else "median"

    def take(self, points: Points) -> float:
        """Return the statistic of some series of the group."""
        return (mean if self.each == "rank" else middle)(points.values())

    def numbers(self, points: Points) -> list[Number]:
        """Return the statistic and each series; for ordered pairs, the statistic only."""
        make = _computed if self.computed else number
        each = [make(f"{self.name}, {self.each} {_text(key)}", points[key]) for key in points]
        if len(points) == 1:
            return each
        what = f"{self.name}, {self.statistic}"
        first = computed(what, self.take(points), "GB/s", *points.values())
        return [first] if self.each == "ordered pair" else [first, *each]


def _computed(what: str, point: Series) -> Number:
    return computed(what, point.value, point.unit, point)


@dataclass(frozen=True)
class Peak:
    """The peak that a rate is compared with: its name, and its value for a device or a pair."""

    name: str
    of: Callable[[NodeModel, Any], float]


def memory_peak(node: NodeModel, device: int) -> float:
    """Return the peak of a device's memory, in GB/s.

    :raises NotTestable: where it is unknown.
    """
    peak = node.device(device).memory_peak_gbs
    if peak is None:
        raise NotTestable(f"the memory's peak of {node.name} is unknown")
    return peak


MEMORY = Peak("the memory's peak", memory_peak)
HOST_LINK = Peak("the host link's peak", lambda node, _: node.host_peak_gbs(0))
LINKS = Peak("the links' peak", lambda node, pair: node.peer_peak_gbs(*pair))


def part_of_peak(group: Group, peak: Peak, published: tuple[str, ...], points: float) -> Judge:
    """Rule: the median fraction of the peak is as published, within some percentage points.

    :param published: the record of the fraction, or the records of a rate and of its peak.
    """

    def judge(observed: Observed) -> Finding:
        wanted, said = _published_part(*published)
        return part_between(observed, group, peak, wanted - points, wanted + points, said)

    return judge


def _published_part(record: str, of: str | None = None) -> tuple[float, str]:
    """Return the published fraction of a peak in percent, and as text for a sentence."""
    found = of_record(record)
    if of is None:
        return found.value, f"{found.value:g} %"
    part = 100 * found.value / value(of)
    return part, f"{found.value:.4g} of {value(of):.4g} {found.unit}, {part:.1f} %"


def part_between(
    observed: Observed, group: Group, peak: Peak, least: float, most: float, said: str
) -> Finding:
    """Judge whether the median fraction of the peak is in a range, in percent.

    :param said: the published range, as text.
    """
    node, points = needs.node(observed), group.choose(observed)
    peaks = [peak.of(node, key) for key in points]
    part = statistics.median(
        100 * one.value / top for one, top in zip(points.values(), peaks, strict=True)
    )
    return verdict(
        least <= part <= most,
        f"{_capital(group.name)} reaches {middle(points.values()):.2f} of {peaks[0]:g} GB/s, "
        f"{part:.1f} % of {peak.name}, the median of {len(points)} {group.each}(s) "
        f"({measured_by(points.values())}); published are {said}.",
        computed(f"of {peak.name}", part, "percent", *points.values()),
        *group.numbers(points),
    )


def ratio(
    one: Group,
    other: Group,
    holds: Callable[[float, float], bool],
    published: Callable[[], float] | None = None,
) -> Judge:
    """Rule: the ratio of two groups' bandwidths is as stated.

    Only devices that both groups have count, and the ranks must be the same in both. If both groups
    are missing, the sentence names the second.

    :param holds: returns whether a ratio agrees with the published ratio.
    :param published: the published ratio; 1 where the document states equality, or more or less.
    """

    def judge(observed: Observed) -> Finding:
        others, ones = other.choose(observed), one.choose(observed)
        if one.each == other.each == "device":
            ones, others = _in_both(ones, others, one, other)
        if one.each == other.each == "rank" and ones.keys() != others.keys():
            raise NotTestable(f"{one.name} and {other.name} have different numbers of ranks (E6)")
        first, second = one.take(ones), other.take(others)
        found, wanted = first / second, published() if published else 1.0
        stated = f"; published is {wanted:.3f}" if published else ""
        return verdict(
            holds(found, wanted),
            f"{_capital(one.name)} has {first:.2f} GB/s ({one.statistic} of {len(ones)}) and "
            f"{other.name} {second:.2f} ({other.statistic} of {len(others)}): {found:.3f} times as "
            f"much{stated}.",
            *one.numbers(ones),
            *other.numbers(others),
            computed("the one over the other", found, "ratio", *ones.values(), *others.values()),
        )

    return judge


def near(part: float) -> Callable[[float, float], bool]:
    """Return a function that says whether a ratio is near a published one, within a fraction."""
    return lambda found, wanted: abs(found / wanted - 1) <= part


def each_above(one: Group, other: Group) -> Judge:
    """Rule: for each device or pair of both groups, the first group is faster.

    Their intervals must not overlap.
    """

    def judge(observed: Observed) -> Finding:
        others, ones = other.choose(observed), one.choose(observed)
        ones, others = _in_both(ones, others, one, other)
        worst = min(ones, key=lambda key: ones[key].value / others[key].value)
        least = ones[worst].value / others[worst].value
        missed = [_text(key) for key in ones if not above(ones[key], others[key])]
        return verdict(
            not missed,
            f"{_capital(one.name)} has {span(ones.values())} and {other.name} "
            f"{span(others.values())}, of {len(ones)} {one.each}(s); the least ratio is "
            f"{least:.2f}, of {one.each} {_text(worst)}; not above it beyond the noise: "
            f"{first_names(missed, 3) or 'none'}.",
            *one.numbers(ones),
            *other.numbers(others),
        )

    return judge


def _in_both(ones: Points, others: Points, one: Group, other: Group) -> tuple[Points, Points]:
    """Return the series of the subjects that both groups have.

    :raises NotTestable: when they have none in common.
    """
    common = [key for key in ones if key in others]
    if not common:
        raise NotTestable(f"the session has no {one.each} with both {one.name} and {other.name}")
    return {key: ones[key] for key in common}, {key: others[key] for key in common}


def _text(key: Any) -> str:
    return "-".join(map(str, key)) if isinstance(key, tuple) else str(key)


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]
