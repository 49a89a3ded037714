"""The rows of results: one check, metric, series, state or node each, and how series are chosen.

Rows are plain Python, one class for each kind; a field with a description is a column of
`fabricheck results export` (docs/reference/export.md has them). A metric, a series and a state
refer to the row of their check, whose columns they share. Columns are never renamed.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

from fabricheck.core.grouping import grouped
from fabricheck.results.check_rows import Check, RowOfAnyKind
from fabricheck.results.metric_records import MetricRecord, is_within
from fabricheck.results.model import Series as Measured
from fabricheck.results.run_report import MetricResult
from fabricheck.results.series import Columns, Noise
from fabricheck.results.series_rows import OF_DOMAINS, Pair, Series

__all__ = [
    "OF_DOMAINS", "Check", "Metric", "Node", "Pair", "Row", "Series", "State",
    "by_place", "curve", "largest", "select",
]  # fmt: skip

Key = TypeVar("Key", bound=Hashable)


@dataclass(slots=True, kw_only=True, eq=False)
class Metric:
    """One metric of a check; ``recorded`` is its source, ``record`` what the check recorded."""

    check_row: Check
    recorded: MetricResult
    record: MetricRecord | None = None

    metric: Annotated[str, "the metric, as in the reference file"]
    value: Annotated[float | None, "the value; of a series the median of its samples"] = None
    unit: Annotated[str, "of value and its limits: GB/s (1e9 B/s), us, count or %"]
    better: Annotated[
        str | None, "whether higher or lower is better; null where the unit does not tell"
    ] = None
    reference: Annotated[
        float | None, "the reference that it was compared with; null without a limit"
    ] = None
    least: Annotated[float | None, "the least value that passes; null for no limit"] = None
    most: Annotated[float | None, "the greatest value that passes; null for no limit"] = None
    judged: Annotated[
        str | None,
        "ReFrame's result of the metric: pass, fail, xfail or xpass; report-only without a limit, "
        "which no value can miss",
    ] = None
    series: Annotated[
        tuple[int, ...] | None,
        "indices of its series in the document, from 0: [3 7]; null where unknown",
    ] = None
    reduce: Annotated[
        str | None,
        "worst, best or median of its series; peers: a member in percent of its peers; null where "
        "unknown or computed otherwise",
    ] = None
    noise: Annotated[
        Noise | None,
        "what its noise from one session to the next is that of: devices, pinned, pinned at once, "
        "moved by the host, latency, host; of a metric that of its series",
    ] = None

    @property
    def subject(self) -> Columns:
        """What identifies it within its check."""
        return (("metric", self.metric),)

    @property
    def terms(self) -> Columns:
        """How it was measured: values under other terms are not comparable."""
        return (("unit", self.unit),)

    @property
    def description(self) -> str:
        """What it is in a table beside series."""
        return "metric"

    @property
    def place(self) -> str:
        """Its name, which has the place."""
        return self.metric

    @property
    def decisive(self) -> tuple[int, ...]:
        """The indices of the series that gave its value: for worst and best not all of them."""
        document, record = self.check_row.document, self.record
        if document is None or record is None or self.value is None:
            return ()
        if record.decided or record.reduce not in ("worst", "best"):
            return record.decided or record.series
        deciding = (
            index for index in record.series if document["series"][index]["median"] == self.value
        )
        return tuple(deciding) or record.series

    @property
    def decisive_series(self) -> list[Measured]:
        """The series that gave its value; none where they are unknown."""
        document = self.check_row.document
        return [] if document is None else [document["series"][index] for index in self.decisive]

    @property
    def limit(self) -> float | None:
        """The limit on the side of worse values; None where its reference has none."""
        return self.most if self.least is None else self.least

    @property
    def margin(self) -> float | None:
        """What remains to the nearest limit, in percent of it; None without one, and of counts."""
        nearest = self.recorded.nearest_limit
        return nearest[2] if nearest is not None else None

    def is_beyond(self, value: float) -> bool:
        """Whether a value of one of its series is beyond its limits."""
        return not is_within(value, self.least, self.most)


@dataclass(slots=True, kw_only=True, eq=False)
class State:
    """One device, or the host, before or after the program of a check, as values by column.

    Columns are the members of their types in a document, and what sums up others.
    """

    check_row: Check
    values: Mapping[str, Any]


@dataclass(slots=True, kw_only=True, eq=False)
class Node(RowOfAnyKind):
    """One requested node, and whether it left any result."""


Row = Check | Metric | Series | State | Node


def by_place(rows: Iterable[Check]) -> dict[tuple[str, str | None], list[Check]]:
    """Return checks by partition and the scheduler's name of the node.

    Where a partition has one node, checks without one join it.
    """
    all_rows = list(rows)
    nodes = grouped((row.where, row.scheduler_node) for row in all_rows)
    named = {where: {name for name in names if name is not None} for where, names in nodes.items()}
    only = {where: names.pop() for where, names in named.items() if len(names) == 1}
    by_node: dict[tuple[str, str | None], list[Check]] = {
        (where, node): [] for where, names in nodes.items() for node in names
    }
    for row in all_rows:
        by_node[row.where, row.scheduler_node or only.get(row.where)].append(row)
    return {place: names for place, names in by_node.items() if names}


def select(rows: Iterable[Series], **fields: Any) -> list[Series]:
    """Return the series whose fields and properties have these values.

    :param fields: by name a value, or a set that contains it (``operation={"read"}``).
    """
    wanted = {
        name: value if isinstance(value, (set, frozenset)) else {value}
        for name, value in fields.items()
    }
    return [row for row in rows if all(getattr(row, name) in wanted[name] for name in wanted)]


def largest(rows: Iterable[Series], key: Callable[[Series], Key]) -> Mapping[Key, Series]:
    """Return the largest series of each key; the first one of equal size."""
    largest_of: dict[Key, Series] = {}
    for row in rows:
        name = key(row)
        if name not in largest_of or row.bytes > largest_of[name].bytes:
            largest_of[name] = row
    return largest_of


def curve(rows: Iterable[Series]) -> list[Series]:
    """Return the series by size, the first of each size."""
    return [first for _, (first, *_) in sorted(grouped((row.bytes, row) for row in rows).items())]
