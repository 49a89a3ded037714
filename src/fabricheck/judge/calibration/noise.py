"""Noise of a partition within a run, between sessions and between campaigns, as Markdown."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable

from fabricheck.core.show import markdown
from fabricheck.core.statistics import NORMAL
from fabricheck.references.calibrated import MetricRecord, Record

#: The fewest sessions of one campaign from which a spread is computed.
LEAST_IN_AN_CAMPAIGN = 3

#: Kinds of memory that one check measures and whose noise is listed separately.
KINDS = ("pinned", "pageable")

HEAD = ("Check", "Unit", "Metrics", "Within a run", "Between sessions", "Between campaigns")


def table(record: Record) -> str:
    """Return the table of a record: a row for each check and each measured kind of memory."""
    rows: dict[tuple[str, str], list[MetricRecord]] = {}
    for check, metrics in record.checks.items():
        for name, one in metrics.items():
            kinds = [kind for kind in KINDS if kind in name.split("_")]
            if one.unit != "count":
                rows.setdefault((", ".join([check, *kinds]), one.unit), []).append(one)
    cells = []
    for (who, unit), found in sorted(rows.items()):
        within = _percent(statistics.median, (one.within_run for one in found))
        sessions = _percent(statistics.median, (between_sessions(one) for one in found))
        campaigns = _percent(max, (one.between_campaigns for one in found))
        cells.append((who, unit, str(len(found)), within, sessions, campaigns))
    number = len({one.campaign for one in record.sessions})
    last = (
        f"{record.partition}: {len(record.sessions)} sessions in {number} campaigns. Within a run: "
        "half of the 95 % interval over the median; between sessions of one campaign: "
        f"{NORMAL} MAD over the median; both the median over the metrics. Between campaigns: the "
        "largest difference of medians over the median of all sessions, the most of any metric."
    )
    return "\n".join([*markdown(HEAD, cells, HEAD[2:]), "", last, ""])


def between_sessions(metric: MetricRecord) -> float | None:
    """Return the relative robust spread of a campaign's sessions, the median over campaigns."""
    spreads = [
        NORMAL * group.mad / group.median
        for group in metric.campaigns.values()
        if group.n >= LEAST_IN_AN_CAMPAIGN and 0 < group.median < math.inf
    ]
    return statistics.median(spreads) if spreads else None


def _percent(reduce: object, values: Iterable[float | None]) -> str:
    known = [value for value in values if value is not None and math.isfinite(value)]
    assert callable(reduce)
    return f"{100 * reduce(known):.2f} %" if known else "-"
