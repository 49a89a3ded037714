"""Energy of a moved bit by path beside what is published, and against bandwidth at each size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from fabricheck.core.amounts import size
from fabricheck.core.errors import FabricheckError
from fabricheck.references.published import Record, folder, of_folder
from fabricheck.report.figure import PALETTE, Figure
from fabricheck.report.figures.charts import cell
from fabricheck.report.figures.points import points
from fabricheck.report.figures.rows import Row, of_point, of_value
from fabricheck.results.observed import Observed
from fabricheck.results.rows import Series

GROSS, NET = "gross", "net of idle power"
_COLOURS = {GROSS: PALETTE[0], NET: PALETTE[1]}

#: What is published beside a path, by experiment; of arrays in caches it is another one.
_BESIDE = {
    "E1": "energy_memory",
    "E2": "energy_host",
    "E7": "energy_link",
    "E9": "energy_link",
}
_IN_CACHES = "energy_cache"


def figures(observed: Observed) -> Iterator[Figure]:
    """Yield both figures, of the first device or pair that was held of each path and size."""
    held: dict[tuple[str, str | None, int], Series] = {}
    for point in observed.series:
        if point.pj_per_bit is not None:
            held.setdefault((point.description, point.link_class, point.bytes), point)
    if held:
        yield _by_path(observed, list(held.values()))
        yield _by_bandwidth(observed, list(held.values()))


def _by_path(observed: Observed, held: Sequence[Series]) -> Figure:
    """Return the figure of each path at its largest size, with what is published of its kind."""
    largest: dict[str, Series] = {}
    for point in held:
        known = largest.get(_path(point))
        if known is None or known.bytes < point.bytes:
            largest[_path(point)] = point
    rows: list[Row] = []
    records: dict[str, Record] = {}
    for path, point in largest.items():
        name = f"{path}, {size(point.bytes)}"
        rows += _rows(name, point)
        for record in _published(point):
            records[record.id] = record
            more = {"path": name, "gb_per_s": None, "text": "", "includes": record.includes}
            rows.append(of_value("published", record, **more))
    return Figure(
        id="energy-by-path",
        title="Energy of a moved bit by path, at its largest size",
        kind=observed.clock,
        says=f"{_says(rows)} {_says_of(list(records.values()))}".rstrip(),
        rows=rows,
        drawing=points(rows, x="path", x_title="path", unit="pJ/bit", colours=_COLOURS),
    )


def _by_bandwidth(observed: Observed, held: Sequence[Series]) -> Figure:
    """Return the figure of the gross energy at each size, over the rate of the load."""
    rows: list[Row] = []
    for point in held:
        gross = _rows(f"{_path(point)}, {size(point.bytes)}", point)[0]
        rows.append({**gross, "series": _path(point), "text": gross["path"]})
    paths = list(dict.fromkeys(row["series"] for row in rows))
    colours = {path: PALETTE[place % len(PALETTE)] for place, path in enumerate(paths)}
    return Figure(
        id="energy-by-bandwidth",
        title="Energy of a moved bit against bandwidth, at each size",
        kind=observed.clock,
        says=_says(rows),
        rows=rows,
        drawing=points(
            rows, x="gb_per_s", x_title="GB/s", unit="pJ/bit", colours=colours, logarithmic=True
        ),
    )


def _path(point: Series) -> str:
    """Return the short name of a path; longer ones do not fit beside the marks."""
    over = f" {point.link_class}" if point.link_class else ""
    return f"{point.operation}{over}"


def _published(point: Series) -> list[Record]:
    """Return the published energies of such a path, of other hardware; none if they are unread."""
    kind = _BESIDE.get(point.experiment)
    if kind == "energy_memory" and point.regime == "cache":
        kind = _IN_CACHES
    try:
        records = of_folder(folder()).matching("energy-*")
    except FabricheckError:
        return []
    return [record for record in records if record.experiment == kind]


def _says(rows: Sequence[Row]) -> str:
    """Return what is drawn, as sentences."""
    values = "; ".join(
        f"{row['path']}: {cell(row['value'])} pJ/bit at {cell(row['gb_per_s'])} GB/s"
        for row in rows
        if row["kind"] != "published" and row["series"] != NET
    )
    return (
        "Derived from the power of the devices at work, by their counters, and the bytes that they "
        f"moved; of the first device or pair of each path. {values}. Bytes are counted as in the "
        "series. The line is the 95 % interval. Axes of numbers are logarithmic."
    )


def _says_of(records: Sequence[Record]) -> str:
    """Return what is published, each with what it includes: ours include the whole device."""
    if not records:
        return ""
    values = "; ".join(
        f"{record.accelerator}: {record.printed} pJ/bit, of {record.includes} ({record.title})"
        for record in records
    )
    return f"Published of other hardware, and of less than a whole device: {values}."


def _rows(name: str, point: Series) -> list[Row]:
    """Return the row of the gross energy, and that of the net one where idle power is known."""
    values = (
        (GROSS, point.pj_per_bit, point.pj_per_bit_low, point.pj_per_bit_high),
        (NET, point.net_pj_per_bit, point.net_pj_per_bit_low, point.net_pj_per_bit_high),
    )
    energy = point.measured["energy"]
    rate = 1e-9 * energy["bytes"] / energy["seconds"]
    rows: list[Row] = []
    for label, value, low, high in values:
        if value is None:
            continue
        more: dict[str, Any] = {"path": name, "gb_per_s": rate, "text": cell(value), "includes": ""}
        rows.append(
            of_point(label, point, **more)
            | {"value": value, "low": low, "high": high, "unit": "pJ/bit"}
        )
    return rows
