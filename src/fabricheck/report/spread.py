"""The spread of a metric over the nodes of a partition, and the nodes that stand out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from fabricheck.core import statistics
from fabricheck.core.grouping import grouped
from fabricheck.core.vocabulary import SMALLER_IS_BETTER
from fabricheck.judge.peers import unlike
from fabricheck.results.observed import Observed
from fabricheck.results.session import REPETITION


@dataclass(frozen=True)
class Far:
    """An outlier node; percent: its distance from the median of the nodes, negative below it."""

    node: str
    value: float
    percent: float


@dataclass(frozen=True)
class Spread:
    """One metric over the nodes of a partition.

    values: by node. deviation: robust standard deviation, in percent of the median. worse, better:
    the outliers, the farthest first.
    """

    where: str
    kind: str
    check: str
    metric: str
    unit: str
    values: Mapping[str, float]
    median: float
    deviation: float
    worse: tuple[Far, ...]
    better: tuple[Far, ...]

    def percent(self, value: float) -> float:
        """Return the distance of a value from the median, in percent of the median."""
        return 100 * (value / self.median - 1)

    @property
    def far(self) -> tuple[Far, ...]:
        """The outliers."""
        return (*self.worse, *self.better)

    @property
    def ends(self) -> tuple[float, float]:
        """The least and the greatest value, in percent above the median."""
        every = self.values.values()
        return self.percent(min(every)), self.percent(max(every))


def spreads(parts: Iterable[Observed]) -> list[Spread]:
    """Return every metric that several nodes have, ordered by the farthest node behind."""
    return sorted(
        _spreads(parts),
        key=lambda spread: (
            -max((abs(far.percent) for far in spread.worse), default=0.0),
            -max((abs(far.percent) for far in spread.better), default=0.0),
            -spread.deviation,
        ),
    )


def _spreads(parts: Iterable[Observed]) -> Iterator[Spread]:
    every = [(part, case) for part in parts for case in part.cases]
    environs = grouped((part.where, case.environ) for part, case in every)
    found = grouped(
        ((part.where, part.kind, REPETITION.sub("", case.name), name, unit, case.environ),
         (part.on, value))
        for part, case in every
        for name, (value, unit) in case.values.items()
        if part.on is not None
    )  # fmt: skip
    for (where, kind, check, name, unit, environ), on_nodes in found.items():
        if len({*environs[where]}) > 1:
            check += f" +{environ}"
        values = {node: statistics.median(several) for node, several in grouped(on_nodes).items()}
        median = statistics.median(list(values.values()))
        if len(values) > 1 and median > 0:
            deviation = 100 * statistics.deviation(list(values.values())) / median
            far = [Far(node, values[node], 100 * part) for node, part in unlike(values).items()]
            far.sort(key=lambda one: -abs(one.percent))
            sign = 1 if unit in SMALLER_IS_BETTER else -1
            worse = tuple(one for one in far if one.percent * sign > 0)
            better = tuple(one for one in far if one.percent * sign < 0)
            yield Spread(where, kind, check, name, unit, values, median, deviation, worse, better)
