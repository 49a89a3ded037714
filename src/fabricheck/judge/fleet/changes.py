"""What changed in a fleet between two times, such as before and after a maintenance.

A metric over the nodes is judged as a series of two sessions is (judge/comparison): the nodes'
values are its samples, and the floors are those of compare. A single node is judged by how it
changed beside the others, by the rule of odd nodes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import polars as pl

from fabricheck.core import nodelists
from fabricheck.judge.calibration import groups
from fabricheck.judge.comparison.judging import (
    FLOORS,
    SIMULATED_FLOOR,
    Decision,
    Estimate,
    judge,
    noise_kind,
    noise_of_name,
)
from fabricheck.judge.fleet import odd
from fabricheck.judge.fleet.odd import Distribution, Judged
from fabricheck.judge.fleet.reading import SERIES, STREAMING, Fleet, Metric, Partition
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
class OfPartition:
    """What changed in one partition.

    changed: its metrics. worse, better: the nodes that changed beside the others, as judged nodes,
    and the groups of nodes that did.
    gone, came: the metrics that only one time has. lost, new: the nodes likewise.
    """

    where: str
    changed: tuple[Changed, ...]
    worse: Judged
    better: Judged
    gone: tuple[Metric, ...]
    came: tuple[Metric, ...]
    lost: tuple[str, ...]
    new: tuple[str, ...]

    def judged(self, judgement: str) -> list[Changed]:
        """Return the metrics of one judgement, the greatest change first."""
        found = [one for one in self.changed if one.decision.judgement == judgement]
        return sorted(found, key=lambda one: -abs(math.log(one.decision.ratio or 1.0)))


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
    partitions: tuple[OfPartition, ...]
    only_before: tuple[Partition, ...]
    only_after: tuple[Partition, ...]
    facts: tuple[Fact, ...]
    checks: tuple[ChangedCheck, ...]

    @property
    def worse(self) -> bool:
        """Whether something is worse."""
        return any(one.judged("worse") or one.worse.odd for one in self.partitions) or any(
            one.worse for one in self.checks
        )

    @property
    def missing(self) -> bool:
        """Whether nodes or metrics disappeared, of a partition that is not there any more all."""
        return any(one.gone or one.lost for one in self.partitions) or bool(self.only_before)


def compare(before: Fleet, after: Fleet) -> Changes:
    """Return what changed between two fleets, for the partitions that both have."""
    ours, theirs = ({one.key: one for one in each.partitions} for each in (before, after))
    pairs = [(one, theirs[key]) for key, one in ours.items() if key in theirs]
    kinds = kinds_of(after)
    return Changes(
        before,
        after,
        tuple(_of_partition(one, other, kinds) for one, other in pairs),
        tuple(one for key, one in ours.items() if key not in theirs),
        tuple(one for key, one in theirs.items() if key not in ours),
        tuple(_facts(before, after)),
        tuple(_checks(before, after)),
    )


def _of_partition(before: Partition, after: Partition, floors: Mapping[Metric, str]) -> OfPartition:
    own, theirs = ({one: at for at, one in enumerate(part.metrics)} for part in (before, after))
    both = [one for one in own if one in theirs]
    at = {node: row for row, node in enumerate(after.nodes)}
    nodes = [node for node in before.nodes if node in at]
    there = set(nodes)
    rows = pl.Series([row for row, node in enumerate(before.nodes) if node in at], dtype=pl.UInt32)
    others = pl.Series([at[node] for node in nodes], dtype=pl.UInt32)
    ones = {one: before.values.to_series(own[one]).gather(rows) for one in both}
    twos = {one: after.values.to_series(theirs[one]).gather(others) for one in both}
    changed = [_changed(one, ones[one], twos[one], before.clock, floors[one]) for one in both]
    # A worse median makes the percentage of the worst value better.
    rates = [one for one in both if one.unit != "%"]
    worse = _beside_others(before, nodes, both, ones, twos, floors)
    better = _beside_others(before, nodes, rates, twos, ones, floors)
    return OfPartition(
        before.title,
        tuple(changed),
        worse,
        better,
        tuple(one for one in own if one not in theirs),
        tuple(one for one in theirs if one not in own),
        tuple(node for node in before.nodes if node not in there),
        tuple(node for node in after.nodes if node not in there),
    )


def _changed(metric: Metric, before: pl.Series, after: pl.Series, clock: str, kind: str) -> Changed:
    one, other = _usable(before), _usable(after)
    if not len(one) or not len(other):
        side = "A" if not len(one) else "B"
        said = f"{side} has no usable value"
        decision = Decision("undetermined", None, None, None, FLOORS[kind], said)
        return Changed(metric, _median(one), _median(other), len(other), decision)
    a, b = (_estimate(metric, each, clock, kind) for each in (one, other))
    return Changed(metric, a.median, b.median, len(other), judge(a, b))


def _usable(values: pl.Series) -> pl.Series:
    return values.filter(values.is_finite().fill_null(False)).sort()


def _estimate(metric: Metric, values: pl.Series, clock: str, kind: str) -> Estimate:
    """Return the nodes' values as the samples of a series.

    An unknown unit is judged as a rate is, as for odd nodes.
    """
    samples = tuple(values.gather_every(-(-len(values) // SAMPLES)))
    floor = SIMULATED_FLOOR if clock == "simulated" else FLOORS[kind]
    exact = metric.unit == "count"
    told = "simulated" if clock == "simulated" else "measured"
    unit = metric.unit if exact or metric.unit in groups.FLOORS else "GB/s"
    return Estimate(_median(values), unit, (samples,), exact, floor, told)  # type: ignore[arg-type]


def _median(values: pl.Series) -> float:
    middle = values.median()
    return middle if isinstance(middle, float) else math.nan


def _beside_others(
    part: Partition,
    nodes: list[str],
    metrics: list[Metric],
    before: Mapping[Metric, pl.Series],
    after: Mapping[Metric, pl.Series],
    floors: Mapping[Metric, str],
) -> Judged:
    """Return the nodes that changed beside the others, from the ratios of their values."""
    columns = [
        (after[one] - before[one] if one.unit == "count" else after[one] / before[one]).alias(
            str(at)
        )
        for at, one in enumerate(metrics)
    ]
    judged = odd.judge(replace(part, nodes=nodes, metrics=metrics, values=pl.DataFrame(columns)))
    told = tuple(_of_changed_groups(judged, floors))
    return replace(judged, odd=tuple(_beyond_floors(judged.odd, floors)), distributions=told)


def _of_changed_groups(judged: Judged, floors: Mapping[Metric, str]) -> Iterator[Distribution]:
    """Yield the distributions, with groups only where the slow group's values fell themselves."""
    for one in judged.distributions:
        if one.groups is not None:
            ratios = judged.partition.values.to_series(one.number)
            middle = ratios.gather(list(one.groups.slow)).median()
            assert isinstance(middle, float)
            fell = middle - 1 if one.metric.lower_is_better else 1 - middle
            if fell <= FLOORS[floors[one.metric]]:
                one = replace(one, groups=None)
        yield one


def _beyond_floors(found: tuple[odd.Odd, ...], floors: Mapping[Metric, str]) -> Iterator[odd.Odd]:
    """Yield the nodes with a change beyond the floor of its kind, without the smaller ones."""
    for one in found:
        values = tuple(
            value
            for value in one.values
            if value.metric.unit == "count" or value.behind > FLOORS[floors[value.metric]]
        )
        if values:
            yield replace(one, values=values, unbelieved=())


def kinds_of(fleet: Fleet) -> Mapping[Metric, str]:
    """Return by metric the kind of its noise, a key of FLOORS, from the series it is made of.

    Without series, the name of the metric and its experiment tell it.
    """
    found: dict[Metric, str] = {}
    for part in fleet.partitions:
        kinds = _from_series(fleet, part)
        for one in part.metrics:
            found[one] = kinds.get((one.check, one.name)) or noise_of_name(
                one.name, one.experiment, one.unit
            )
    return found


def _from_series(fleet: Fleet, part: Partition) -> dict[tuple[str, str], str]:
    """Return by check and metric the noise of the series of one node."""
    rows = fleet.rows.filter(pl.col("node") == part.nodes[0], pl.col("clock") == part.clock)
    found = rows.select("kind", "metric", "series", "index", "runtime", *SERIES)
    every = found.collect(engine=STREAMING)
    series = {
        (one["check"], one["index"]): one
        for one in every.filter(pl.col("kind") == "series").iter_rows(named=True)
    }
    kinds: dict[tuple[str, str], str] = {}
    for one in every.filter(pl.col("kind") == "metric").iter_rows(named=True):
        indices = [int(each) for each in re.findall("[0-9]+", one["series"] or "")]
        row = series.get((one["check"], indices[0])) if indices else None
        if row is not None:
            kinds[one["check"], one["metric"]] = noise_kind(
                {row["source_memory"], row["destination_memory"]}, row["runtime"], row["engine"],
                row["unit"], row["regime"], row["role"], row["direction"],
            )  # fmt: skip
    return kinds


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
    for (check,), own in changed.group_by("check", maintain_order=True):
        worse, better = (own.filter(pl.col("good") == was)["node"] for was in (True, False))
        yield ChangedCheck(str(check), tuple(worse), tuple(better))
