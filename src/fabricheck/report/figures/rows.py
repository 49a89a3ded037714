"""The data of a figure as uniform rows: series of this session, and published values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from fabricheck.core.errors import FabricheckError
from fabricheck.core.grouping import grouped
from fabricheck.node import NodeModel
from fabricheck.references.published import Record, folder, of_folder
from fabricheck.results.table import Series, curve

#: One row of a figure's data. Every row of a figure has the same keys.
Row = Mapping[str, Any]


def of_point(label: str, point: Series, **more: Any) -> dict[str, Any]:
    """Return a series of this session as a row.

    :param label: its name in the figure.
    :param more: further columns, after the label.
    """
    low, high = point.interval or (None, None)
    return {
        "series": label,
        **more,
        "kind": point.clock,
        "bytes": point.bytes,
        "value": point.value,
        "low": low,
        "high": high,
        "unit": point.unit,
        "n": len(point.measured["samples"]),
        "noisy": point.noisy,
        "devices": " ".join(map(str, point.devices)),
        "experiment": point.experiment,
        "operation": point.operation,
        "check": point.check,
        "record": "",
        "place": "",
    }


def of_value(label: str, value: Record, **more: Any) -> dict[str, Any]:
    """Return a published value as a row; ``bytes`` is None where its document states no size."""
    empty = dict.fromkeys(("low", "high", "n", "noisy"))
    return {
        "series": label,
        **more,
        "kind": "published",
        "bytes": value.size,
        "value": value.value,
        **empty,
        "unit": value.unit,
        "devices": "",
        "experiment": "",
        "operation": "",
        "check": "",
        "record": value.id,
        "place": value.place,
    }


def derived(row: Row, value: float, unit: str = "GB/s") -> dict[str, Any]:
    """Return the row of a published value and its derived one, without a size."""
    return {**row, "kind": "derived", "bytes": None, "value": value, "unit": unit}


def is_own(row: Row) -> bool:
    """Whether a row belongs to this session."""
    return row["kind"] in ("measured", "simulated")


def own(rows: Iterable[Row]) -> list[Row]:
    """Return the rows of this session."""
    return list(filter(is_own, rows))


def beside(node: NodeModel | None, *patterns: str) -> Iterator[Record]:
    """Yield the records that match a pattern and are of a machine with this node model.

    Nothing is yielded if the node model is none, names no machines, or the data set cannot be read,
    because the page shows published values only as an addition.

    :param patterns: ids of records, with ``*`` and ``?`` as in file names.
    """
    if node is None:
        return
    try:
        data = of_folder(folder())
    except FabricheckError:
        return
    for record in data.matching(*patterns):
        if record.system in node.systems and record.comparable:
            yield record


def scan(points: Iterable[Series]) -> list[Series]:
    """Return the curve of the check with the most sizes; empty if none has two.

    One run is one curve: another run may differ at the same size by more than noise.
    """
    longest = max((curve(found) for found in by_check(points)), key=len, default=[])
    return longest if len(longest) > 1 else []


def by_check(points: Iterable[Series]) -> list[list[Series]]:
    """Return the points of each check, which are from one run."""
    return list(grouped((point.check, point) for point in points).values())
