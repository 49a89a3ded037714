"""The table of the energy of a bit, by path and size."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fabricheck.core.amounts import short, size
from fabricheck.core.show import Block, Table

#: Below this part of the load's time in which the operation ran, the energy of the rest is told.
LEAST_BUSY = 0.9

#: The most paths and sizes with their energy.
MOST_PATHS = 20


def lines(rows: Sequence[Mapping[str, Any]]) -> Iterator[Block]:
    """Yield the energy of a bit by path and size; net is without the idle power of the devices.

    The last columns are joules of the whole load: of the devices at work, and of those beside them.
    """
    if not rows:
        return
    columns = ("pJ/bit", "who", "size", "gross", "95 %", "net", "95 %", "J", "idle J")
    yield Table(
        columns,
        [
            [
                _path(row),
                row["place"],
                size(row["bytes"]),
                short(row["pj_per_bit"]),
                _between(row["low"], row["high"]),
                "" if row["net_pj_per_bit"] is None else short(row["net_pj_per_bit"]),
                _between(row["net_low"], row["net_high"]),
                f"{row['joules']:,.0f}",
                "" if row["idle_devices_joules"] is None else f"{row['idle_devices_joules']:,.0f}",
            ]
            for row in rows[:MOST_PATHS]
        ],
        columns[2:],
    )
    if len(rows) > MOST_PATHS:
        yield f"And the energy of {len(rows) - MOST_PATHS} more: fabricheck results export"


def _path(row: Mapping[str, Any]) -> str:
    """Return the path, and what is to be known of its energy."""
    remarks = [row["path"]]
    if row["by_package"]:
        remarks.append("whole package")
    if row["same_clock"] is False:
        remarks.append("idle at another clock")
    if row["busy"] < LEAST_BUSY:
        remarks.append(f"busy {row['busy']:.0%} of the time")
    if row["node_pj_per_bit"] is not None:
        remarks.append(f"the node {short(row['node_pj_per_bit'])}")
    if row["above_peers"]:
        remarks.append(f"{row['above_peers']:.1%} above its peers")
    return ", ".join(remarks)


def _between(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else f"{short(low)} to {short(high)}"
