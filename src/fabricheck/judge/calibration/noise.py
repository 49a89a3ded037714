"""Noise of a partition within a run, between sessions and between campaigns."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from fabricheck.core.grouping import grouped
from fabricheck.core.show import listed
from fabricheck.core.statistics import NORMAL
from fabricheck.references.calibrated import MetricRecord, Record

#: The fewest sessions of one campaign from which a spread is computed.
MIN_SESSIONS_PER_CAMPAIGN = 3

#: Kinds of memory that one check measures and whose noise is listed separately.
KINDS = ("pinned", "pageable")


@dataclass(frozen=True)
class Noise:
    """The noise of a check, or of a kind of memory that it measures, relative to the median.

    within_run: half of the 95 % interval. between_sessions: of one campaign, the robust spread;
    both the median over the metrics. between_campaigns: the largest difference of medians, the most
    of any metric. None where it is unknown.
    """

    check: str
    unit: str
    metrics: int
    within_run: float | None
    between_sessions: float | None
    between_campaigns: float | None


def noises(record: Record) -> Iterator[Noise]:
    """Yield the noise of each check of a record, and of each kind of memory that it measures."""
    rows = grouped(
        (
            (listed([check, *(kind for kind in KINDS if kind in name.split("_"))]), metric.unit),
            metric,
        )
        for check, metrics in record.checks.items()
        for name, metric in metrics.items()
        if metric.unit != "count"
    )
    for (check, unit), found in sorted(rows.items()):
        yield Noise(
            check,
            unit,
            len(found),
            _known(statistics.median, (metric_record.within_run for metric_record in found)),
            _known(statistics.median, (between_sessions(metric_record) for metric_record in found)),
            _known(max, (metric_record.between_campaigns for metric_record in found)),
        )


def between_sessions(metric: MetricRecord) -> float | None:
    """Return the relative robust spread of a campaign's sessions, the median over campaigns."""
    spreads = [
        NORMAL * group.mad / group.median
        for group in metric.campaigns.values()
        if group.n >= MIN_SESSIONS_PER_CAMPAIGN and 0 < group.median < math.inf
    ]
    return statistics.median(spreads) if spreads else None


def _known(reduce: Callable[[list[float]], float], values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None and math.isfinite(value)]
    return reduce(known) if known else None
