"""What changed in a fleet between two times, such as before and after a maintenance.

A metric over the nodes is judged as a series of two sessions is (judge/comparison): the nodes'
values are its samples, and the floors are those of compare. A single node is judged by how it
changed beside the others, by the rule of outliers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import polars as pl

from fabricheck.core import nodelists
from fabricheck.core.vocabulary import Clock
from fabricheck.judge.calibration import rule
from fabricheck.judge.comparison.judging import (
    FLOORS,
    SIMULATED_FLOOR,
    Decision,
    Estimate,
    judge,
)
from fabricheck.judge.fleet import outliers
from fabricheck.judge.fleet.outliers import NodeGroups, Outlier, PartitionOutliers, groups_of
from fabricheck.judge.fleet.reading import Fleet, Metric, Partition
from fabricheck.results.session import PASSED, SKIPPED

#: The most nodes whose values are the samples of a metric, evenly spaced in their order: the
#: interval of more is narrower than any floor.
SAMPLES = 500


@dataclass(frozen=True)
class Changed:
    """A metric that both times have; decision: that of compare, of the nodes' values.

    before, after: the medians, NaN without a usable value.
    """

    metric: Metric
    before: float
    after: float
    nodes: int
    decision: Decision


@dataclass(frozen=True)
class PartitionChanges:
    """What changed in one partition.

    metrics: those that both times have. worse, better: the nodes that changed beside the others.
    moved: the groups of nodes that became worse beside the others. gone, came: the metrics that
    only one time has. lost, new: the nodes likewise.
    """

    partition: str
    metrics: tuple[Changed, ...]
    worse: tuple[Outlier, ...]
    better: tuple[Outlier, ...]
    moved: tuple[NodeGroups, ...]
    gone: tuple[Metric, ...]
    came: tuple[Metric, ...]
    lost: tuple[str, ...]
    new: tuple[str, ...]

    def judged(self, judgement: str) -> list[Changed]:
        """Return the metrics of one judgement, the greatest change first."""
        found = [metric for metric in self.metrics if metric.decision.judgement == judgement]
        return sorted(found, key=lambda metric: -abs(math.log(metric.decision.ratio or 1.0)))


@dataclass(frozen=True)
class Fact:
    """A fact that is not as before: how many nodes have each value.

    moved: the nodes whose value changed.
    """

    what: str
    before: Mapping[str, int]
    after: Mapping[str, int]
    moved: tuple[str, ...]


@dataclass(frozen=True)
class ChangedCheck:
    """A check that passed before and does not now, or the other way round, on some nodes."""

    check: str
    worse: tuple[str, ...]
    better: tuple[str, ...]


@dataclass(frozen=True)
class Changes:
    """What changed between two fleets.

    partitions: those that both have. only_before, only_after: those that one has.
    """

    before: Fleet
    after: Fleet
    partitions: tuple[PartitionChanges, ...]
    only_before: tuple[Partition, ...]
    only_after: tuple[Partition, ...]
    facts: tuple[Fact, ...]
    checks: tuple[ChangedCheck, ...]

    @property
    def worse(self) -> bool:
        """Whether something is worse."""
        parts = any(
            partition.judged("worse") or partition.worse or partition.moved
            for partition in self.partitions
        )
        return parts or any(check.worse for check in self.checks)

    @property
    def missing(self) -> bool:
        """Whether nodes or metrics disappeared, of a partition that is not there any more all."""
        return any(partition.gone or partition.lost for partition in self.partitions) or bool(
            self.only_before
        )


def compare(before: Fleet, after: Fleet) -> Changes:
    """Return what changed between two fleets, for the partitions that both have."""
    ours, theirs = (
        {partition.key: partition for partition in each.partitions} for each in (before, after)
    )
    pairs = [(one, theirs[key]) for key, one in ours.items() if key in theirs]
    return Changes(
        before,
        after,
        tuple(_partition_changes(one, other, after) for one, other in pairs),
        tuple(one for key, one in ours.items() if key not in theirs),
        tuple(one for key, one in theirs.items() if key not in ours),
        tuple(_facts(before, after)),
        tuple(_checks(before, after)),
    )


def _partition_changes(before: Partition, after: Partition, fleet: Fleet) -> PartitionChanges:
    own, theirs = (
        {metric: at for at, metric in enumerate(part.metrics)} for part in (before, after)
    )
    both = [metric for metric in own if metric in theirs]
    at = {node: row for row, node in enumerate(after.nodes)}
    nodes = [node for node in before.nodes if node in at]
    there = set(nodes)
    rows = pl.Series([row for row, node in enumerate(before.nodes) if node in at], dtype=pl.UInt32)
    others = pl.Series([at[node] for node in nodes], dtype=pl.UInt32)
    ones = {metric: before.values.to_series(own[metric]).gather(rows) for metric in both}
    twos = {metric: after.values.to_series(theirs[metric]).gather(others) for metric in both}
    # A worse median makes the percentage of the worst value better.
    rates = [metric for metric in both if metric.unit != "%"]
    worse = _beside_others(after, nodes, both, ones, twos)
    better = _beside_others(after, nodes, rates, twos, ones)
    return PartitionChanges(
        before.title,
        tuple(_changed(metric, ones[metric], twos[metric], after) for metric in both),
        _beyond_floors(worse),
        _beyond_floors(better),
        tuple(groups for groups in groups_of(_fallen(worse), fleet) if groups.counts),
        tuple(metric for metric in own if metric not in theirs),
        tuple(metric for metric in theirs if metric not in own),
        tuple(node for node in before.nodes if node not in there),
        tuple(node for node in after.nodes if node not in there),
    )


def _changed(metric: Metric, before: pl.Series, after: pl.Series, part: Partition) -> Changed:
    one, other = _usable(before), _usable(after)
    if not len(one) or not len(other):
        side = "A" if not len(one) else "B"
        why = f"{side} has no usable value"
        decision = Decision("undetermined", None, None, None, FLOORS[metric.noise], why)
        return Changed(metric, _median(one), _median(other), len(other), decision)
    a, b = (_estimate(metric, each, part) for each in (one, other))
    return Changed(metric, a.median, b.median, len(other), judge(a, b))


def _usable(values: pl.Series) -> pl.Series:
    return values.filter(values.is_finite().fill_null(False)).sort()


def _estimate(metric: Metric, values: pl.Series, part: Partition) -> Estimate:
    """Return the nodes' values as the samples of a series.

    An unknown unit is judged as a rate is, as for outliers.
    """
    samples = tuple(values.gather_every(-(-len(values) // SAMPLES)))
    simulated = part.clock == "simulated"
    floor = SIMULATED_FLOOR if simulated else FLOORS[metric.noise]
    exact = metric.unit == "count"
    unit = metric.unit if exact or metric.unit in rule.FLOORS else "GB/s"
    clock: Clock = "simulated" if simulated else "measured"
    return Estimate(_median(values), unit, (samples,), exact, floor, clock)


def _median(values: pl.Series) -> float:
    middle = values.median()
    return middle if isinstance(middle, float) else math.nan


def _beside_others(
    part: Partition,
    nodes: list[str],
    metrics: list[Metric],
    before: Mapping[Metric, pl.Series],
    after: Mapping[Metric, pl.Series],
) -> PartitionOutliers:
    """Return the nodes that changed beside the others, from the ratios of their values."""
    columns = [
        (
            after[metric] - before[metric]
            if metric.unit == "count"
            else after[metric] / before[metric]
        ).alias(str(at))
        for at, metric in enumerate(metrics)
    ]
    changed = replace(part, nodes=nodes, metrics=metrics, values=pl.DataFrame(columns))
    return outliers.judge(changed)


def _fallen(found: PartitionOutliers) -> PartitionOutliers:
    """Return the same with groups only where the values of the slow group fell themselves."""
    distributions = []
    for distribution in found.distributions:
        if distribution.groups is not None:
            ratios = found.partition.values.to_series(distribution.number)
            middle = ratios.gather(list(distribution.groups.slow)).median()
            assert isinstance(middle, float)
            fell = middle - 1 if distribution.metric.lower_is_better else 1 - middle
            if fell <= FLOORS[distribution.metric.noise]:
                distribution = replace(distribution, groups=None)
        distributions.append(distribution)
    return replace(found, distributions=tuple(distributions))


def _beyond_floors(found: PartitionOutliers) -> tuple[Outlier, ...]:
    """Return the nodes with a change beyond the floor of its kind, without the smaller ones."""
    beyond = (
        replace(
            outlier,
            values=tuple(
                value
                for value in outlier.values
                if value.behind is None or value.behind > FLOORS[value.metric.noise]
            ),
            implausible=(),
        )
        for outlier in found.outliers
    )
    return tuple(outlier for outlier in beyond if outlier.values)


def _facts(before: Fleet, after: Fleet) -> Iterator[Fact]:
    """Yield the facts whose values are not as before."""
    one, other = (
        each.facts.group_by("fact", "node").agg(pl.col("value").sort().str.join(", "))
        for each in (before, after)
    )
    both = one.join(other, on=["fact", "node"], suffix="_after")
    moved = both.filter(pl.col("value") != pl.col("value_after"))
    for fact in dict.fromkeys((*before.facts["fact"], *after.facts["fact"])):
        earlier, later = (
            dict(each.filter(pl.col("fact") == fact)["value"].value_counts(sort=True).iter_rows())
            for each in (one, other)
        )
        nodes = moved.filter(pl.col("fact") == fact)["node"].to_list()
        if earlier and later and (nodes or earlier.keys() != later.keys()):
            yield Fact(fact, earlier, later, tuple(sorted(nodes, key=nodelists.natural)))


def _checks(before: Fleet, after: Fleet) -> Iterator[ChangedCheck]:
    """Yield the checks whose result changed on a node that both have."""
    good = pl.col("result").cast(pl.String).is_in(list(PASSED))
    one, other = (
        each.checks.filter(
            pl.col("result").is_not_null(), ~pl.col("result").cast(pl.String).is_in(list(SKIPPED))
        )
        .group_by(pl.col("check", "node").cast(pl.String))
        .agg(good.all().alias("good"))
        for each in (before, after)
    )
    both = one.join(other, on=["check", "node"], suffix="_after")
    changed = both.filter(pl.col("good") != pl.col("good_after")).sort("check", "node")
    for (check,), nodes in changed.group_by("check", maintain_order=True):
        worse, better = (nodes.filter(pl.col("good") == was)["node"] for was in (True, False))
        yield ChangedCheck(str(check), tuple(worse), tuple(better))
