"""Energy of a moved bit by path, gross and without idle power."""

from __future__ import annotations

from collections.abc import Iterator

from fabricheck.core.amounts import size
from fabricheck.report.figure import PALETTE, Figure
from fabricheck.report.figures.charts import bars, cell
from fabricheck.report.figures.rows import Row, of_point
from fabricheck.results.observed import Observed
from fabricheck.results.rows import Series

GROSS, NET = "gross", "net of idle power"
_COLOURS = {GROSS: PALETTE[0], NET: PALETTE[1]}


def figures(observed: Observed) -> Iterator[Figure]:
    """Yield the energy of each path at each size, of the first device or pair that was held."""
    held: dict[tuple[str, str | None, int], Series] = {}
    for point in observed.series:
        if point.pj_per_bit is not None:
            held.setdefault((point.description, point.link_class, point.bytes), point)
    rows: list[Row] = []
    for point in held.values():
        # Longer names do not fit beside the bars.
        over = f" {point.link_class}" if point.link_class else ""
        rows += list(_rows(f"{point.operation}{over}, {size(point.bytes)}", point))
    if rows:
        yield Figure(
            id="energy-by-path",
            title="Energy of a moved bit by path and size",
            kind=observed.clock,
            says=(
                "Derived from the power of the devices at work, by their counters, and the bytes "
                "that they moved; of the first device or pair of each path. "
                + "; ".join(
                    f"{row['path']}: {cell(row['value'])} pJ/bit at {cell(row['gb_per_s'])} GB/s"
                    for row in rows
                    if row["series"] == GROSS
                )
                + ". Bytes are counted as in the series. The line is the 95 % interval."
            ),
            rows=rows,
            drawing=bars(
                rows, bar="path", within="series", colours=_COLOURS, unit="pJ/bit", thick=16
            ),
        )


def _rows(name: str, point: Series) -> Iterator[Row]:
    """Yield the row of the gross energy, and that of the net one where idle power is known."""
    values = (
        (GROSS, point.pj_per_bit, point.pj_per_bit_low, point.pj_per_bit_high),
        (NET, point.net_pj_per_bit, point.net_pj_per_bit_low, point.net_pj_per_bit_high),
    )
    energy = point.measured["energy"]
    rate = 1e-9 * energy["bytes"] / energy["seconds"]
    for label, value, low, high in values:
        if value is not None:
            yield of_point(label, point, path=name, gb_per_s=rate) | {
                "value": value,
                "low": low,
                "high": high,
                "unit": "pJ/bit",
                "text": cell(value),
            }
