"""The findings on a fleet: outliers, groups of nodes, what is missing, and what changed.

What changed is between two times, such as before and after a maintenance. A metric over the nodes
is judged as a series of two sessions is (judge/comparison): the nodes' values are its samples, and
the floors are those of compare. A single node is judged by how it changed beside the others, by the
rule of outliers.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import polars as pl

from fabricheck.core import nodelists, statistics
from fabricheck.core.errors import InvalidInputError
from fabricheck.core.vocabulary import EXIT_GOOD, EXIT_MISSING, EXIT_ODD, EXIT_WORSE, Clock
from fabricheck.judge.calibration import rule
from fabricheck.judge.comparison.judging import (
    FLOORS,
    ONE_IN,
    SIMULATED_FLOOR,
    Decision,
    Estimate,
    judge,
)
from fabricheck.judge.drift import judging as drift
from fabricheck.judge.drift.model import Soaks
from fabricheck.judge.fleet import outliers
from fabricheck.judge.fleet.outliers import (
    Distribution,
    NodeGroups,
    Outlier,
    PartitionOutliers,
    groups_of,
)
from fabricheck.judge.fleet.reading import Fleet, Metric, Partition
from fabricheck.judge.verdict import judging
from fabricheck.results import soaks
from fabricheck.results.reading import Results
from fabricheck.results.session import PASSED, SKIPPED

#: The most nodes whose values are the samples of a metric, evenly spaced in their order: the
#: interval of more is narrower than any floor.
SAMPLES = 500

#: The most outliers of a partition whose sessions are judged for their diagnosis.
MOST_DIAGNOSED = 40


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
        judged = [metric for metric in self.metrics if metric.decision.judgement == judgement]
        return sorted(judged, key=lambda metric: -abs(math.log(metric.decision.ratio or 1.0)))


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
    """What changed since an earlier time.

    before: the fleet of that time. partitions: those that both have. only_before, only_after: those
    that one has.
    """

    before: Fleet
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


@dataclass(frozen=True)
class Findings:
    """All findings on a fleet.

    changes: since an earlier time, where one was named. sessions: by node that stands out or
    changed, each with its file or folder. soaks: the last one of each results folder.
    """

    fleet: Fleet
    partitions: tuple[PartitionOutliers, ...]
    groups: tuple[NodeGroups, ...]
    changes: Changes | None
    sessions: Mapping[str, Sequence[tuple[str, str]]]
    soaks: Soaks

    @property
    def outliers(self) -> Iterator[tuple[PartitionOutliers, Outlier]]:
        """The nodes that stand out, with their partitions."""
        return ((part, outlier) for part in self.partitions for outlier in part.outliers)

    @property
    def missing_metrics(self) -> dict[str, tuple[Metric, ...]]:
        """The metrics that nearly all nodes have, by the nodes that lack them."""
        return {
            node: metrics
            for part in self.partitions
            for node, metrics in part.missing_metrics.items()
        }

    @property
    def unusable(self) -> list[Distribution]:
        """The metrics without one usable value, of partitions in which a node can stand out."""
        parts = [part for part in self.partitions if len(part.partition.nodes) >= outliers.FEWEST]
        return [
            distribution
            for distribution in chain.from_iterable(part.distributions for part in parts)
            if distribution.nodes and math.isnan(distribution.median)
        ]

    @property
    def exit_code(self) -> int:
        """The exit code: worse, unread, odd, missing, good."""
        if self.changes is not None and self.changes.worse:
            return EXIT_WORSE
        if self.fleet.problems or (self.changes is not None and self.changes.before.problems):
            return InvalidInputError.exit_code
        if any(self.outliers) or any(group.counts for group in self.groups):
            return EXIT_ODD
        gone = self.changes is not None and self.changes.missing
        lost = self.fleet.lost or self.fleet.lost_networks
        missing = lost or self.missing_metrics or self.unusable or gone
        return EXIT_MISSING if missing else EXIT_GOOD


def findings(fleet: Fleet, before: Fleet | None = None) -> Findings:
    """Return the findings on a fleet, and what changed since an earlier time."""
    judged = [outliers.judge(part) for part in fleet.partitions]
    changes = _changes(before, fleet) if before is not None else None
    changed = changes.partitions if changes is not None else ()
    named = [outlier.node for part in judged for outlier in part.outliers]
    named += [outlier.node for part in changed for outlier in (*part.worse, *part.better)]
    sessions = fleet.sessions(named) if named else {}
    under_load, unread = _soaks(fleet.results)
    return Findings(
        replace(fleet, problems=(*fleet.problems, *unread)),
        tuple(_diagnosed(judged, fleet.results, sessions)),
        tuple(groups for part in judged for groups in groups_of(part, fleet)),
        changes,
        sessions,
        under_load,
    )


def _soaks(results: Results | None) -> tuple[Soaks, list[str]]:
    """Return what is judged of the last soak of each results folder, and what cannot be read.

    :param results: None where all names are tables, which have no rounds.
    """
    folders = dict.fromkeys(source.results for source in results.sources) if results else {}
    last, unread = [], []
    for folder in folders:
        try:
            last += soaks.read(folder)[-1:]
        except InvalidInputError as error:
            unread.append(str(error))
    return drift.judge_all(last), unread


def _diagnosed(
    judged: Iterable[PartitionOutliers],
    results: Results | None,
    sessions: Mapping[str, Sequence[tuple[str, str]]],
) -> Iterator[PartitionOutliers]:
    """Yield the partitions, with the diagnoses of their outliers' verdicts.

    :param results: None where all names are tables, which have no documents.
    """
    for of_partition in judged:
        part, nodes = (
            of_partition.partition,
            [outlier.node for outlier in of_partition.outliers[:MOST_DIAGNOSED]],
        )
        wanted = {session for node in nodes for session in sessions.get(node, ())}
        sources = (
            [source for source in results.sources if (source.name, str(source.results)) in wanted]
            if results
            else []
        )
        verdicts = (
            judging.judge(replace(results, sources=tuple(sources))) if results and sources else []
        )
        diagnoses = {
            verdict.node: verdict.diagnosis
            for verdict in verdicts
            if verdict.clock == part.clock and part.where in verdict.partitions
        }
        yield replace(
            of_partition,
            outliers=tuple(
                replace(outlier, diagnosis=diagnoses.get(outlier.node))
                for outlier in of_partition.outliers
            ),
        )


def _changes(before: Fleet, after: Fleet) -> Changes:
    """Return what changed between two fleets, for the partitions that both have."""
    ours, theirs = (
        {partition.key: partition for partition in fleet.partitions} for fleet in (before, after)
    )
    return Changes(
        before,
        tuple(
            _partition_changes(part, theirs[key], after)
            for key, part in ours.items()
            if key in theirs
        ),
        tuple(part for key, part in ours.items() if key not in theirs),
        tuple(part for key, part in theirs.items() if key not in ours),
        tuple(_facts(before, after)),
        tuple(_checks(before, after)),
    )


def _partition_changes(before: Partition, after: Partition, fleet: Fleet) -> PartitionChanges:
    metrics, nodes = {*before.metrics} & {*after.metrics}, {*before.nodes} & {*after.nodes}
    both = [metric for metric in before.metrics if metric in metrics]
    # A worse median makes the percentage of the worst value better.
    rates = [metric for metric in both if metric.unit != "%"]
    there = [node for node in before.nodes if node in nodes]
    first, last = (_only(part, there, both) for part in (before, after))
    worse = outliers.judge(_ratios(first, last))
    better = outliers.judge(_ratios(_only(last, there, rates), _only(first, there, rates)))
    return PartitionChanges(
        before.title,
        tuple(map(_changed, both, first.values, last.values, [after.clock] * len(both))),
        _beyond_floors(worse),
        _beyond_floors(better),
        tuple(groups for groups in groups_of(_fallen(worse), fleet) if groups.counts),
        tuple(metric for metric in before.metrics if metric not in metrics),
        tuple(metric for metric in after.metrics if metric not in metrics),
        tuple(node for node in before.nodes if node not in nodes),
        tuple(node for node in after.nodes if node not in nodes),
    )


def _only(part: Partition, nodes: list[str], metrics: list[Metric]) -> Partition:
    """Return some nodes and metrics of a partition, in this order."""
    row = {node: at for at, node in enumerate(part.nodes)}
    column = {metric: at for at, metric in enumerate(part.metrics)}
    values = part.values[[row[node] for node in nodes], [column[metric] for metric in metrics]]
    return replace(part, nodes=nodes, metrics=metrics, values=values)


def _ratios(first: Partition, last: Partition) -> Partition:
    """Return by how much the same nodes changed: a count of faults by its difference."""
    columns = [
        (b - a if metric.unit == "count" else b / a).alias(str(at))
        for at, (metric, a, b) in enumerate(
            zip(last.metrics, first.values, last.values, strict=True)
        )
    ]
    return replace(last, values=pl.DataFrame(columns))


def _changed(metric: Metric, before: pl.Series, after: pl.Series, clock: str) -> Changed:
    known = [each.filter(each.is_finite().fill_null(False)).sort() for each in (before, after)]
    first, last = map(_median, known)
    if math.isnan(first) or math.isnan(last):
        why = f"{'A' if math.isnan(first) else 'B'} has no usable value"
        decision = Decision("undetermined", None, None, None, FLOORS[metric.noise], why)
    else:
        a, b = (_estimate(metric, values, clock) for values in known)
        decision = judge(a, b)
    return Changed(metric, first, last, len(known[1]), decision)


def _estimate(metric: Metric, values: pl.Series, clock: str) -> Estimate:
    """Return the nodes' values as the samples of a series.

    An unknown unit is judged as a rate is, as for outliers.
    """
    samples = tuple(values.gather_every(-(-len(values) // SAMPLES)))
    simulated = clock == "simulated"
    floor = SIMULATED_FLOOR if simulated else FLOORS[metric.noise]
    exact = metric.unit == "count"
    unit = metric.unit if exact or metric.unit in rule.FLOORS else "GB/s"
    how: Clock = "simulated" if simulated else "measured"
    interval = statistics.median_interval(samples, ONE_IN)
    return Estimate(
        _median(values),
        unit,
        len(samples),
        interval,
        how,
        samples=samples,
        exact=exact,
        floor=floor,
    )


def _median(values: pl.Series) -> float:
    middle = values.median()
    return middle if isinstance(middle, float) else math.nan


def _fallen(judged: PartitionOutliers) -> PartitionOutliers:
    """Return the same with groups only where the values of the slow group fell themselves."""
    distributions = []
    for distribution in judged.distributions:
        if distribution.groups is not None:
            ratios = judged.partition.values.to_series(distribution.number)
            middle = ratios.gather(list(distribution.groups.slow)).median()
            assert isinstance(middle, float)
            fell = middle - 1 if distribution.metric.lower_is_better else 1 - middle
            if fell <= FLOORS[distribution.metric.noise]:
                distribution = replace(distribution, groups=None)
        distributions.append(distribution)
    return replace(judged, distributions=tuple(distributions))


def _beyond_floors(judged: PartitionOutliers) -> tuple[Outlier, ...]:
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
        for outlier in judged.outliers
    )
    return tuple(outlier for outlier in beyond if outlier.values)


def _facts(before: Fleet, after: Fleet) -> Iterator[Fact]:
    """Yield the facts whose values are not as before."""
    first, other = (
        each.facts.group_by("fact", "node").agg(pl.col("value").sort().str.join(", "))
        for each in (before, after)
    )
    both = first.join(other, on=["fact", "node"], suffix="_after")
    moved = both.filter(pl.col("value") != pl.col("value_after"))
    for fact in dict.fromkeys((*before.facts["fact"], *after.facts["fact"])):
        earlier, later = (
            dict(each.filter(pl.col("fact") == fact)["value"].value_counts(sort=True).iter_rows())
            for each in (first, other)
        )
        nodes = moved.filter(pl.col("fact") == fact)["node"].to_list()
        if earlier and later and (nodes or earlier.keys() != later.keys()):
            yield Fact(fact, earlier, later, tuple(sorted(nodes, key=nodelists.natural)))


def _checks(before: Fleet, after: Fleet) -> Iterator[ChangedCheck]:
    """Yield the checks whose result changed on a node that both have."""
    result = pl.col("result").cast(pl.String)
    ran = pl.col("check").is_not_null(), result.is_not_null(), ~result.is_in(list(SKIPPED))
    good = result.is_in(list(PASSED)).all().alias("good")
    first, other = (
        fleet.rows.filter(*ran).group_by(pl.col("check", "node").cast(pl.String)).agg(good)
        for fleet in (before, after)
    )
    both = first.join(other, on=["check", "node"], suffix="_after")
    changed = both.filter(pl.col("good") != pl.col("good_after")).sort("check", "node")
    for (check,), nodes in changed.group_by("check", maintain_order=True):
        worse, better = (nodes.filter(pl.col("good") == was)["node"] for was in (True, False))
        yield ChangedCheck(str(check), tuple(worse), tuple(better))


def as_json(findings: Findings) -> dict[str, Any]:
    """Return the findings as what JSON shows: each record as it is."""
    changes = findings.changes
    return {
        "form": "fabricheck-fleet-3",
        "fleet": findings.fleet.title,
        "exit_code": findings.exit_code,
        "partitions": [
            {
                "partition": partition.partition.where,
                "clock": partition.partition.clock,
                "nodes": len(partition.partition.nodes),
                "metrics": [replace(each, groups=None) for each in partition.distributions],
                "limits": partition.limits,
                "outliers": partition.outliers,
                "missing_metrics": partition.missing_metrics,
            }
            for partition in findings.partitions
        ],
        "groups": findings.groups,
        "sessions": findings.sessions,
        "soaks": findings.soaks.soaks,
        "behind_under_load": findings.soaks.behind,
        "lost": findings.fleet.lost,
        "lost_networks": findings.fleet.lost_networks,
        "problems": findings.fleet.problems,
        "changes": None
        if changes is None
        else {
            "before": changes.before.title,
            "partitions": changes.partitions,
            **{
                when: [{"partition": part.title, "nodes": part.nodes} for part in parts]
                for when, parts in (
                    ("only_before", changes.only_before),
                    ("only_after", changes.only_after),
                )
            },
            "facts": changes.facts,
            "checks": changes.checks,
        },
    }
