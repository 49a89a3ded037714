"""The nodes of a fleet that stand out, and the metrics in which nodes form two groups.

docs/network.md states the rule. In short: each metric has a limit, the distance from the median at
which no node is to be expected, by how the nodes are distributed. Of each node its 1, 2, 4, ...
farthest values, in limits, are averaged, and each of these averages has a limit by the same rule:
many small distances of one node count as one large one does.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import polars as pl

from fabricheck.core import nodelists
from fabricheck.core.grouping import grouped
from fabricheck.core.peers import LEAST
from fabricheck.core.statistics import NORMAL, quantile
from fabricheck.judge.calibration.rule import (
    FLOORS,
    LEAST_PART_OF_A_MODE,
    MOST_EXCLUDED,
    split,
)
from fabricheck.judge.comparison import judging
from fabricheck.judge.diagnosis.model import Diagnosis
from fabricheck.judge.fleet.reading import Fleet, Metric, Partition

#: The fewest nodes of which one can stand out: of fewer the spread is that of two or three.
FEWEST = 5

#: The nodes that may be odd in a metric without moving its limit: this fraction, and three at
#: least. Of fewer nodes than MANY a tenth, and one at least.
RARE = 0.01
LEAST_RARE = 3
MANY = 100

#: The fewest nodes in which groups are looked for.
FEWEST_OF_GROUPS = 4 * LEAST_RARE

#: How many limits of one value count beside others, so that no single one carries an average.
MOST_OF_ONE = 3.0

#: The number of false names expected of a fleet, at most: one in so many fleets has one.
FALSE_NAMES = 0.01

#: The fractions of nodes, beside RARE, from whose distances a limit is extrapolated.
HALF, TENTH = 0.5, 0.1

#: By how much a value may be better than the median and still be believed.
BELIEVED = 2.0

#: A value of more medians than this is of no group.
ABSURD = 1000.0

#: Groups of nodes are the same ones if so many of their slow nodes are.
THE_SAME = 0.8

#: The values of a metric, in their order, in which groups are looked for: more do not show more.
POINTS = 500


@dataclass(frozen=True)
class Groups:
    """Two groups of nodes in one metric.

    slow, fast: the numbers of the nodes in each. apart: how much slower the slow group's median is,
    as a fraction of the fast group's.
    """

    slow: tuple[int, ...]
    fast: tuple[int, ...]
    apart: float

    @property
    def minority(self) -> str:
        """Which group is one, of at most a quarter of the nodes."""
        part = len(self.slow) / (len(self.slow) + len(self.fast))
        if part <= MOST_EXCLUDED:
            return "slow minority"
        return "slow majority" if part >= 1 - MOST_EXCLUDED else "two groups"


@dataclass(frozen=True)
class Distribution:
    """One metric over the nodes of a partition.

    median: in the unit of the metric. spread: 1.4826 times the median deviation, and limit: the
    distance from which a node stands out, both as fractions of the median. nodes: how many have a
    value. implausible: the numbers of the nodes whose value cannot be.
    """

    metric: Metric
    number: int
    nodes: int
    median: float
    spread: float
    limit: float
    groups: Groups | None
    implausible: tuple[int, ...]


@dataclass(frozen=True)
class OutlyingValue:
    """A value of an outlier.

    behind: its distance from the median of its group of nodes, as a fraction of it; None for a
    count and for a value that cannot be. limits: the same in limits of its metric.
    """

    metric: Metric
    value: float
    median: float
    behind: float | None
    limits: float


@dataclass(frozen=True)
class Outlier:
    """A node that stands out.

    score: how far beyond the limit, 1 being the limit. values: those that stand out, the farthest
    first. implausible: its values that cannot be. diagnosis: that of its verdict, where its
    documents are there.
    """

    node: str
    score: float
    values: tuple[OutlyingValue, ...]
    implausible: tuple[OutlyingValue, ...] = ()
    diagnosis: Diagnosis | None = None

    @property
    def behind(self) -> list[float]:
        """How far behind its values are, the least first; without counts."""
        return sorted(value.behind for value in self.values if value.behind is not None)


@dataclass(frozen=True)
class PartitionOutliers:
    """A partition with what stands out in it.

    outliers: the nodes, the farthest first. limits: by number of values averaged, the limit of the
    average. missing_metrics: by node, the metrics that nearly all others have and it has not.
    """

    partition: Partition
    distributions: tuple[Distribution, ...]
    outliers: tuple[Outlier, ...]
    limits: dict[int, float]
    missing_metrics: dict[str, tuple[Metric, ...]]


@dataclass(frozen=True)
class NodeGroups:
    """Metrics in which the same nodes are the slow group.

    minority: which group is one. apart: how much slower the slow group is, as a fraction. metrics:
    the farthest apart first. slow: the slow nodes. nodes: the number of all. counts: whether the
    slow ones are a tenth of the nodes, or slow in several checks; a few nodes in one check may have
    been slow at the moment. alike: a fact that all slow nodes have and no fast one.
    """

    partition: str
    minority: str
    apart: float
    metrics: tuple[Metric, ...]
    slow: tuple[str, ...]
    nodes: int
    counts: bool
    alike: str | None


@dataclass(frozen=True)
class Score:
    """The average of a node's farthest values, in limits of their metrics.

    count: how many are averaged. values: by node. limit: beyond it a node stands out.
    """

    count: int
    values: pl.Series
    limit: float


def judge(partition: Partition) -> PartitionOutliers:
    """Return what stands out in a partition; nothing of fewer than five nodes."""
    tests = len(partition.metrics) + partition.values.width.bit_length()
    measured = [
        _measured(partition, metric, number, tests)
        for number, metric in enumerate(partition.metrics)
    ]
    in_limits = pl.DataFrame(
        [
            (behind / distribution.limit).alias(str(distribution.number))
            for distribution, behind in measured
        ]
    )
    scores = _scores(in_limits, tests)
    return PartitionOutliers(
        partition,
        tuple(distribution for distribution, _ in measured),
        tuple(_outliers(partition, measured, in_limits, scores)),
        {score.count: score.limit for score in scores},
        _missing_metrics(partition),
    )


def _measured(
    partition: Partition, metric: Metric, number: int, tests: int
) -> tuple[Distribution, pl.Series]:
    """Return the distribution of a metric, and by node its distance as a fraction."""
    values = partition.values.to_series(number)
    usual = values.is_finite() & ((values > 0) | (metric.unit == "count"))
    good = pl.select(pl.when(usual).then(values)).to_series()
    count = len(values) - values.null_count()
    usable = good.drop_nulls().sort()
    if not len(usable):
        nothing = Distribution(metric, number, count, math.nan, 0.0, math.inf, None, ())
        return nothing, good
    middle = _float(usable.median())
    wrong = values.is_not_null() & good.is_null()
    if metric.unit == "count":
        # Of faults: one that most nodes do not have is far.
        numbers = tuple(wrong.arg_true())
        unjudged = Distribution(metric, number, count, middle, 0.0, LEAST, None, numbers)
        return unjudged, (good > middle).cast(pl.Float64) * LEAST * MOST_OF_ONE
    slow, groups = _groups(metric, good, usable)
    center: pl.Series | float = middle
    if groups is not None:
        of_slow, other = (_float(good.filter(each).median()) for each in (slow, ~slow))
        center = pl.select(pl.when(slow).then(of_slow).otherwise(other)).to_series()
    better = center / good if metric.lower_is_better else good / center
    wrong |= (better > BELIEVED).fill_null(False)
    fractions = good / center - 1 if metric.lower_is_better else 1 - good / center
    fractions = pl.select(pl.when(~wrong).then(fractions)).to_series()
    if groups is None and not wrong.any():
        # In the order of the values, which are sorted.
        known = (usable / middle - 1).reverse() if metric.lower_is_better else 1 - usable / middle
    else:
        known = fractions.drop_nulls().sort(descending=True)
    spread = NORMAL * _float((known - _float(known.median())).abs().median())
    limit = max(LEAST, limit_of(known, tests))
    if RARE * count < LEAST_RARE:  # so few do not show how far a healthy node can be
        limit = max(limit, judging.FLOORS[metric.noise])
    implausible = tuple(wrong.arg_true())
    distribution = Distribution(metric, number, count, middle, spread, limit, groups, implausible)
    return distribution, fractions


def limit_of(distances: pl.Series, tests: int) -> float:
    """Return the distance at which no node is to be expected.

    Between two ranks of the nodes the number of nodes that are farther falls by some factor. The
    limit is where it falls to FALSE_NAMES, in all tests together, if it goes on like this; that of
    normal values falls faster. Of the limits from half to a tenth of the nodes, from there to the
    rare ones, and of normal values with the spread of the nodes, the largest counts.

    :param distances: of the nodes, the farthest first.
    :param tests: the number of metrics and averages.
    """
    count = len(distances)
    if count < FEWEST:
        return math.inf
    ranks = [math.ceil(HALF * count), max(1, int(TENTH * count))]
    if count >= MANY:
        ranks.append(max(LEAST_RARE, int(RARE * count)))
    limits = []
    for inner, outer in itertools.pairwise(ranks):
        if inner > outer:
            further = math.log(outer * tests / FALSE_NAMES) / math.log(inner / outer)
            here = _float(distances[outer])
            limits.append(here + (here - _float(distances[inner])) * further)
    middle = _float(distances.median())
    spread = NORMAL * _float((distances - middle).abs().median())
    # Few ranks may be near to each other by chance.
    limits.append(middle + quantile(tests * count, count, FALSE_NAMES) * spread)
    return max(limits)


def _groups(
    metric: Metric, values: pl.Series, ordered: pl.Series
) -> tuple[pl.Series, Groups | None]:
    """Return by node whether it is in the slow group, and the groups; None if they are one.

    The rule is that of calibration, on values that are evenly spaced in their order.
    """
    none = values.is_null() & values.is_not_null()
    unit = metric.unit if metric.unit in FLOORS else "GB/s"
    if len(ordered) < FEWEST_OF_GROUPS or _near(ordered, FLOORS[unit]):
        return none, None
    # One absurd value would hide all others in the sums of split.
    plausible = ordered.filter(ordered <= ABSURD * _float(ordered.median()))
    points = plausible.gather_every(max(1, len(plausible) // POINTS)).to_list()
    least = max(LEAST_RARE, math.ceil(RARE * len(points)))
    two = split(points, unit, least)
    if two is None:
        return none, None
    border = (max(two[0]) + min(two[1])) / 2
    slow = values > border if metric.lower_is_better else values < border
    fast = (~slow).fill_null(False)
    slow = slow.fill_null(False)
    of_slow, other = _float(values.filter(slow).median()), _float(values.filter(fast).median())
    apart = of_slow / other - 1 if metric.lower_is_better else 1 - of_slow / other
    return slow, Groups(tuple(slow.arg_true()), tuple(fast.arg_true()), apart)


def _near(ordered: pl.Series, floor: float) -> bool:
    """Whether all values but the rare ones are nearer to each other than groups are."""
    low, high = ordered.quantile(RARE), ordered.quantile(1 - RARE)
    return _float(high) - _float(low) <= floor * _float(ordered.median())


def _scores(in_limits: pl.DataFrame, tests: int) -> list[Score]:
    """Return the averages of the farthest values, with their limits."""
    nodes, metrics = in_limits.shape
    if nodes < FEWEST:
        return []
    rows = pl.concat_arr(pl.all().clip(-MOST_OF_ONE, MOST_OF_ONE)).alias("row")
    in_order = pl.col("row").arr.sort(descending=True, nulls_last=True)
    farthest = in_limits.select(rows).select(in_order.arr.to_struct()).unnest("row")
    scores = []
    for count in dict.fromkeys((*(2**power for power in range(metrics.bit_length())), metrics)):
        if count <= metrics:
            average = farthest.select(pl.mean_horizontal(farthest.columns[:count])).to_series()
            limit = limit_of(average.drop_nulls().sort(descending=True), tests)
            # All together are at least what one value alone has at the limit of its metric.
            scores.append(Score(count, average, min(max(limit, 1 / count), 1.0)))
    return scores


def _outliers(
    partition: Partition,
    measured: Sequence[tuple[Distribution, pl.Series]],
    in_limits: pl.DataFrame,
    scores: Sequence[Score],
) -> list[Outlier]:
    """Return the nodes beyond a limit or with a value that cannot be, the farthest first."""
    wrong = grouped(
        (node, distribution.number)
        for distribution, _ in (measured if scores else ())
        for node in distribution.implausible
    )

    def value(node: int, at: int, limits: float) -> OutlyingValue:
        distribution, behind = measured[at]
        counted = distribution.metric.unit == "count" or math.isinf(limits)
        far = None if counted else behind[node]
        number = partition.values[node, at]
        return OutlyingValue(distribution.metric, number, distribution.median, far, limits)

    outliers = []
    beyond_one = {node for score in scores for node in (score.values > score.limit).arg_true()}
    for node in beyond_one | wrong.keys():
        beyond, count = max(
            ((score.values[node] or 0.0) / score.limit, score.count) for score in scores
        )
        # Of the metrics that this node has.
        row = {at: far for at, far in enumerate(in_limits.row(node)) if far is not None}
        order = sorted(row, key=lambda at: -row[at])
        averaged = order[: count if beyond > 1 else 0]
        outlying = tuple(
            value(node, at, row[at])
            for at in order
            if row[at] > 1 or (at in averaged and measured[at][1][node] >= LEAST)
        )
        implausible = tuple(value(node, at, math.inf) for at in wrong.get(node, ()))
        if outlying or implausible:
            outliers.append(Outlier(partition.nodes[node], beyond, outlying, implausible))
    return sorted(
        outliers, key=lambda outlier: (-len(outlier.values), -outlier.score, outlier.node)
    )


def groups_of(outliers: PartitionOutliers, fleet: Fleet) -> Iterator[NodeGroups]:
    """Yield the groups of nodes of a partition, one for all metrics that have the same ones."""
    same: list[list[tuple[Groups, Metric]]] = []
    grouped = [
        (distribution.groups, distribution.metric)
        for distribution in outliers.distributions
        if distribution.groups is not None
    ]
    for groups, metric in sorted(grouped, key=lambda item: -item[0].apart):
        for members in same:
            first, now = set(members[0][0].slow), set(groups.slow)
            if len(first & now) >= THE_SAME * len(first | now):
                members.append((groups, metric))
                break
        else:
            same.append([(groups, metric)])
    for members in same:
        first_groups, _ = members[0]
        slow, fast = (
            tuple(outliers.partition.nodes[at] for at in numbers)
            for numbers in (first_groups.slow, first_groups.fast)
        )
        metrics = tuple(metric for _, metric in members)
        nodes = len(slow) + len(fast)
        many = len(slow) >= LEAST_PART_OF_A_MODE * nodes
        counts = many or len({metric.check for metric in metrics}) > 1
        yield NodeGroups(
            outliers.partition.title, first_groups.minority, first_groups.apart, metrics, slow,
            nodes, counts, _alike(fleet, slow, fast) if counts else None,
        )  # fmt: skip


def _alike(fleet: Fleet, slow: Sequence[str], fast: Sequence[str]) -> str | None:
    """Return a fact that the slow nodes have and the fast ones have not."""
    sums = (pl.col("node").is_in(list(nodes)).sum() for nodes in (slow, fast))
    counts = fleet.facts.group_by("fact", "value", maintain_order=True).agg(
        **dict(zip(("slow", "fast"), sums, strict=True))
    )
    shared = counts.filter(pl.col("slow") == len(slow), pl.col("fast") == 0)
    return f"{shared['fact'][0]} {shared['value'][0]}" if len(shared) else None


def _missing_metrics(partition: Partition) -> dict[str, tuple[Metric, ...]]:
    """Return by node the metrics that nine in ten nodes have and it has not."""
    missing: dict[str, list[Metric]] = {}
    for metric, column in zip(partition.metrics, partition.values.iter_columns(), strict=True):
        if column.null_count() <= TENTH * len(column):
            for node in column.is_null().arg_true():
                missing.setdefault(partition.nodes[node], []).append(metric)
    return {node: tuple(missing[node]) for node in sorted(missing, key=nodelists.natural)}


def _float(value: object) -> float:
    assert isinstance(value, (int, float))
    return float(value)
