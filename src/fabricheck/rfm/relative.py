"""Metrics that compare a node with itself, so that their limits need no published value.

Members that are alike by the node model are compared with each other. Both directions at once and
simultaneous pairs are compared with each direction or pair alone.
"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from fabricheck.core.grouping import grouped
from fabricheck.core.show import listed
from fabricheck.node import NodeModel
from fabricheck.node.contention import busiest, left_to_the_slowest
from fabricheck.node.paths import Pair
from fabricheck.references import rules
from fabricheck.references.rules import TransferKind
from fabricheck.results.metric_records import Comparison
from fabricheck.results.model import ResultDocument, Series
from fabricheck.results.series import BETWEEN_NODES, device_pair, transfer_kind
from fabricheck.rfm.metrics import (
    Figure,
    Metric,
    MetricError,
    Population,
    combinations,
    series_of,
    where_measured,
)

#: The fields of `where` that tell the kind of transfer, except of messages.
_TELLS_THE_KIND = ("role", "source.memory", "destination.memory")


@dataclass(frozen=True)
class _Member:
    """A member: its series, their combined value, and the cable that it shares with another."""

    series: tuple[Series, ...]
    value: float
    cable: Hashable


@dataclass(frozen=True)
class PeerRatio(Metric):
    """The worst of similar members in percent of the median of the others.

    compared: the metric whose series the members have. groups: of each of its series, in order, the
    member that it belongs to; the member's value is then their sum. By default each series is a
    member. ways: further metrics of the same members, in the same order; each member then counts
    by the one in which it is least behind.
    """

    comparison: ClassVar[Comparison] = "peers"

    compared: Metric = field(kw_only=True)
    groups: Sequence[Hashable] | None = field(default=None, kw_only=True)
    ways: tuple[Metric, ...] = field(default=(), kw_only=True)

    def figure(self, document: ResultDocument, population: Population) -> Figure:
        """Compute the figure; the series of the worst member decide it.

        :raises MetricError: as `Metric.figure` does.
        """
        ways = [
            self._members(document, population, metric) for metric in (self.compared, *self.ways)
        ]
        percents = _least_behind(ways)
        percent = min(percents)
        worst = percents.index(percent)
        all_series: list[Series] = []
        decisive: list[Series] = []
        values = []
        for members in ways:
            for member in members:
                all_series += member.series
            decisive += members[worst].series
            values.append((members[worst].value, _median_of_others(members[worst], members)))
        sentence = _compared(percent, values, decisive[0])
        return Figure(self, percent, tuple(all_series), tuple(decisive), sentence)

    def _members(
        self, document: ResultDocument, population: Population, metric: Metric
    ) -> list[_Member]:
        chosen = series_of(document, metric, population, metric.unit, added=self.groups is not None)
        names = range(len(chosen)) if self.groups is None else self.groups
        by_name = grouped(zip(names, chosen, strict=True))
        if len(by_name) < 2:
            raise MetricError(
                f"Metric {self} has only one member on {where_measured(document, ())}."
            )
        return [
            _Member(tuple(members), sum(series["median"] for series in members), _cable(members))
            for members in by_name.values()
        ]


def _compared(percent: float, values: Sequence[tuple[float, float]], series: Series) -> str:
    """Return in words how a member compares with the others.

    :param values: by each way its value and that of the others, in the unit of a series of it.
    """
    unit = series["unit"]
    if series["better"] == "higher":
        pairs = listed(f"{value:.6g} of {others:.6g} {unit}" for value, others in values)
        return f"{percent:.4g} % of the others ({pairs})"
    slower = listed(
        f"{value:.6g} {unit}, {100 * (value / others - 1):.4g} % slower than {others:.6g} {unit}"
        for value, others in values
    )
    return f"{percent:.4g} % ({slower} of the others)"


def _cable(series: Sequence[Series]) -> Hashable:
    """Return the identity of a pair's cable, equal for both directions; None without a pair."""
    pair = device_pair(series[0])
    return frozenset(pair) if len(series) == 1 and len(pair) == 2 else None


def _others(member: _Member, members: Iterable[_Member]) -> list[float]:
    """Return the values of the others.

    The other direction of the same cable is left out if there are other cables, because a fault of
    the cable affects both directions.
    """
    rest = [other for other in members if other is not member]
    if member.cable is not None:
        over_other_cables = [other for other in rest if other.cable != member.cable]
        rest = over_other_cables or rest
    return [other.value for other in rest]


def _median_of_others(member: _Member, members: Iterable[_Member]) -> float:
    return statistics.median(_others(member, members))


def _least_behind(ways: Sequence[Sequence[_Member]]) -> list[float]:
    """Return each member in percent of the others, by the way in which it is least behind."""
    percents = []
    for same_member in zip(*ways, strict=True):
        by_way = []
        for member, members in zip(same_member, ways, strict=True):
            others = _median_of_others(member, members)
            by_way.append(_percent(member.value, others, member.series[0]["better"]))
        percents.append(max(by_way))
    return percents


def _percent(value: float, others: float, better: str) -> float:
    """Return a value in percent of others; of times, where less is better, others of the value."""
    low, high = (value, others) if better == "higher" else (others, value)
    return 100 * low / high if high > 0 else 0.0


@dataclass(frozen=True)
class OfSingle(Metric):
    """The worst of some simultaneous measurements in percent of the same transfers alone.

    compared: the metric of simultaneous transfers. singles: the transfers alone, in the order of
    its series; of several, the values are added. node: the model whose links simultaneous pairs
    share; each pair is then compared with its share of its value alone.
    """

    compared: Metric = field(kw_only=True)
    singles: tuple[Metric, ...] = field(kw_only=True)
    node: NodeModel | None = field(default=None, kw_only=True)

    def figure(self, document: ResultDocument, population: Population) -> Figure:
        """Compute the figure; the series with the lowest percentage decide it.

        :raises MetricError: as `Metric.figure` does.
        """
        at_once = series_of(document, self.compared, population, self.compared.unit)
        alone = [series_of(document, metric, population, metric.unit) for metric in self.singles]
        fair_values, percents = [], []
        for shared, *single in zip(at_once, *alone, strict=True):
            fair = sum(series["median"] for series in single) / self._sharing(shared)
            fair_values.append(fair)
            percents.append(_percent(shared["median"], fair, shared["better"]))
        percent = min(percents)
        number = percents.index(percent)
        worst, fair = at_once[number], fair_values[number]
        share = " by its share of links" if self.node is not None else ""
        values = f"{worst['median']:.6g} of {fair:.6g} {worst['unit']}{share}"
        sentence = f"{percent:.4g} % of its solo value ({values})"
        return Figure(self, percent, (*at_once, *itertools.chain(*alone)), (worst,), sentence)

    def _sharing(self, series: Series) -> int:
        """Return how many simultaneous pairs use the busiest link of a pair; 1 without a model."""
        if self.node is None:
            return 1
        return busiest(self.node, device_pair(series), _listed(series))


@dataclass(frozen=True)
class OfFirst(Metric):
    """The worst member in percent of its own value when the session began.

    compared: the metric whose series both documents have.
    """

    comparison: ClassVar[Comparison] = "first"

    compared: Metric = field(kw_only=True)

    def since(
        self, first: ResultDocument, document: ResultDocument, population: Population
    ) -> Figure:
        """Compute the figure; the series of the member that lost most decides it.

        :param first: the document from the session's begin.
        :raises MetricError: as `Metric.figure` does.
        """
        before, now = (
            series_of(each, self.compared, population, self.compared.unit)
            for each in (first, document)
        )
        percents = [
            _percent(later["median"], earlier["median"], later["better"])
            for earlier, later in zip(before, now, strict=True)
        ]
        percent = min(percents)
        number = percents.index(percent)
        worst = now[number]
        values = f"{worst['median']:.6g} of {before[number]['median']:.6g} {worst['unit']}"
        sentence = f"{percent:.4g} % of its value when the session began ({values})"
        return Figure(self, percent, now, (worst,), sentence)


@dataclass(frozen=True)
class OfLinks(Metric):
    """The sum of simultaneous pairs in percent of the rate that their links leave them.

    The sum counts until the last pair ends, so that each pair counts as much as the slowest
    (`left_to_the_slowest`).

    compared: the metric of the sum. alone: each of the pairs alone, of all devices. node: the model
    of the links.
    """

    compared: Metric = field(kw_only=True)
    alone: Metric = field(kw_only=True)
    node: NodeModel = field(kw_only=True)

    def figure(self, document: ResultDocument, population: Population) -> Figure:
        """Compute the figure; the sum and the pair with the smallest rate left decide it.

        :raises MetricError: as `Metric.figure` does.
        """
        (at_once,) = series_of(document, self.compared, population, self.compared.unit)
        alone = series_of(document, self.alone, population, self.alone.unit)
        by_pair: dict[Pair, Series] = {}
        for series in alone:
            first, second = device_pair(series)
            by_pair[first, second] = series
        rates = {pair: series["median"] for pair, series in by_pair.items()}
        fair, narrow = left_to_the_slowest(self.node, rates)
        percent = 100 * at_once["median"] / (fair * len(by_pair))
        values = f"{at_once['median']:.6g} of {len(by_pair)} times {fair:.6g} {at_once['unit']}"
        decisive = (at_once, by_pair[narrow])
        return Figure(self, percent, (at_once, *alone), decisive, f"{percent:.4g} % ({values})")


def _listed(series: Series) -> list[Pair]:
    """Return the pairs of ranks that work at the same time as a series."""
    return list(zip(series["device_set"][::2], series["device_set"][1::2], strict=True))


def alike(
    metrics: Sequence[Metric], population: Population, node: NodeModel | None
) -> list[Metric]:
    """Return the comparing metric for each metric of the worst of several similar members.

    Where one way alone may be far behind, members are also compared by all ways.

    :raises MetricError: when a metric lacks the values of `over`, or what tells its kind.
    """
    compared = [metric for metric in metrics if _has_alike_members(metric, population)]
    comparing: list[Metric] = [of_members(metric, node) for metric in compared]
    for way, joint in rules.ALL_WAYS.items():
        ways = [metric for metric in compared if kind_of_metric(metric, node) == way]
        if len(ways) > 1:
            first, rule = ways[0], rules.alike(joint)
            comparing.append(
                PeerRatio(
                    f"{way}_alike", first.where, first.over, unit="%", rule=rule, compared=first,
                    ways=tuple(ways[1:]),
                )
            )  # fmt: skip
    return comparing


def _has_alike_members(metric: Metric, population: Population) -> bool:
    """Whether a metric is the worst of several members that are to be compared."""
    if metric.reduce != "worst" or len(combinations(metric, population)) < 2:
        return False
    return metric.independent if metric.alike is None else metric.alike


def of_members(
    metric: Metric,
    node: NodeModel | None,
    groups: Sequence[Hashable] | None = None,
) -> PeerRatio:
    """Return the metric that compares the members of another one.

    :param groups: as in `PeerRatio`.
    """
    name = f"{metric.stem}_alike"
    rule = rules.alike(kind_of_metric(metric, node))
    return PeerRatio(
        name, metric.where, metric.over, unit="%", among=metric.among, rule=rule, compared=metric,
        groups=groups,
    )  # fmt: skip


def of_single(metric: Metric, *singles: Metric, node: NodeModel | None = None) -> OfSingle:
    """Return the metric of both directions at once, or of simultaneous pairs, relative to each
    alone.

    :param node: of simultaneous pairs, the model of their links.
    """
    return OfSingle(
        f"{metric.stem}_of_single", metric.where, metric.over, unit="%",
        rule=rules.at_once() if node else rules.both_ways(), among=metric.among, compared=metric,
        singles=singles, node=node,
    )  # fmt: skip


def of_first(metric: Metric) -> OfFirst:
    """Return the metric of a later measurement relative to that when the session began."""
    return OfFirst(
        f"{metric.stem}_of_first", metric.where, metric.over, unit="%",
        rule=rules.of_first(), among=metric.among, compared=metric,
    )  # fmt: skip


def of_links(name: str, metric: Metric, single: Metric, node: NodeModel) -> OfLinks:
    """Return the metric of the sum of pairs relative to the rate that their links leave them."""
    return OfLinks(
        name, metric.where, metric.over, unit="%",
        rule=rules.at_once(), among=metric.among, compared=metric, alone=single, node=node,
    )  # fmt: skip


def beside(metric: Metric, single: Metric) -> OfSingle:
    """Return the metric of work beside other work relative to the same work alone.

    No rule limits it, because the device decides the order of its work.
    """
    return OfSingle(
        metric.name, metric.where, metric.over, unit="%", compared=metric, singles=(single,),
        independent=True, alike=False,
    )  # fmt: skip


def kind_of_metric(metric: Metric, node: NodeModel | None) -> TransferKind:
    """Return the kind of transfer of a metric, by the name of its spread in the rules file.

    :param node: without a node model, nothing tells the kind.
    :raises MetricError: when the metric leaves out what tells the kind.
    """
    if node is None:
        return "without_node_model"
    where = dict(metric.where)
    if metric.over == ("ranks",):
        # Ranks measure at the same time.
        where["role"] = "share"
    needed = [*_TELLS_THE_KIND]
    if "managed" in where.values():
        needed.append("movement")
    lacking = [name for name in needed if name not in where]
    if lacking and where.get("engine") != "mpi":
        raise MetricError(
            f"Metric {metric} is compared with its peers, and the limit depends on the kind of "
            f"transfer: state {listed(lacking)} in its `where`, or set alike=False."
        )
    size = where.get("bytes")
    between_nodes = where.get("experiment") == BETWEEN_NODES
    return transfer_kind(
        unit=metric.unit,
        engine=where.get("engine"),
        movement=where.get("movement"),
        memories=(where.get("source.memory"), where.get("destination.memory")),
        role=where.get("role"),
        direct=between_nodes or _direct(metric, node),
        between_nodes=between_nodes,
        both=where.get("operation") == "bandwidth-both",
        several="source.device" in metric.over,
        size=size if isinstance(size, int) else None,
    )


def _direct(metric: Metric, node: NodeModel) -> bool:
    """Whether each pair of a metric has a direct link."""
    members = [key[0] for key in metric.among or ()]
    pairs = [member for member in members if not isinstance(member, int) and len(member) == 2]
    return all(node.link_class(*pair).direct for pair in pairs)
