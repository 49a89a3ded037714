"""How a metric is spread over the nodes of a partition, and which of them stand out."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from fabricheck.core.statistics import mad
from fabricheck.judge.calibration.groups import NORMAL
from fabricheck.judge.comparison.sides import REPETITION
from fabricheck.references.entries import SMALLER_IS_BETTER
from fabricheck.report.worst import BEHIND_PERCENT, FEWEST
from fabricheck.results.observed import Observed

#: Robust standard deviations from the median of the nodes beyond which one stands out, as Iglewicz
#: and Hoaglin (How to Detect and Handle Outliers, 1993) advise; and no less than BEHIND_PERCENT.
FAR = 3.5

#: A metric of a partition: ``system:partition``, check, environment, name and unit.
Key = tuple[str, str, str, str, str]


@dataclass(frozen=True)
class Far:
    """A node that stands out; percent: above the median of the nodes, below it negative."""

    node: str
    value: float
    percent: float


@dataclass(frozen=True)
class Spread:
    """One metric over the nodes of a partition.

    values: by node. deviation: robust standard deviation, as percent of the median. worse, better:
    the nodes that stand out, the farthest first.
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
        """Return how far a value is above the median, in percent of it."""
        return 100 * (value / self.median - 1)

    @property
    def ends(self) -> tuple[float, float]:
        """The least and the greatest value, in percent above the median."""
        every = self.values.values()
        return self.percent(min(every)), self.percent(max(every))


def of(parts: Iterable[Observed]) -> list[Spread]:
    """Return every metric that several nodes have, first those of which one is farthest behind."""
    return sorted(
        _spreads(parts),
        key=lambda one: (
            -max((abs(far.percent) for far in one.worse), default=0.0),
            -max((abs(far.percent) for far in one.better), default=0.0),
            -one.deviation,
        ),
    )


def _spreads(parts: Iterable[Observed]) -> Iterator[Spread]:
    found: dict[tuple[str, Key], dict[str, list[float]]] = {}
    environs: dict[str, set[str]] = {}
    for part in parts:
        for case in part.cases:
            environs.setdefault(part.where, set()).add(case.environ)
            check = REPETITION.sub("", case.name)
            for name, (value, unit) in case.values.items():
                if part.on is not None:
                    key = (part.kind, (part.where, check, case.environ, name, unit))
                    found.setdefault(key, {}).setdefault(part.on, []).append(value)
    for (kind, (where, check, environ, name, unit)), nodes in found.items():
        if len(environs[where]) > 1:
            check += f" +{environ}"
        values = {node: statistics.median(several) for node, several in nodes.items()}
        median = statistics.median(values.values())
        if len(values) > 1 and median > 0:
            yield _spread(where, kind, check, name, unit, values, median)


def _spread(
    where: str, kind: str, check: str, name: str, unit: str, values: dict[str, float], median: float
) -> Spread:
    deviation = 100 * NORMAL * mad(list(values.values())) / median
    least = max(BEHIND_PERCENT, FAR * deviation)
    far = [Far(node, value, 100 * (value / median - 1)) for node, value in values.items()]
    far = [one for one in far if len(values) >= FEWEST and abs(one.percent) > least]
    far.sort(key=lambda one: -abs(one.percent))
    sign = 1 if unit in SMALLER_IS_BETTER else -1
    worse = tuple(one for one in far if one.percent * sign > 0)
    better = tuple(one for one in far if one.percent * sign < 0)
    return Spread(where, kind, check, name, unit, values, median, deviation, worse, better)
