"""Devices that take more energy for the same bytes than their peers: a finding, report only.

Only what ran at one clock is compared: another clock is another power, and has causes of its own.
"""

from __future__ import annotations

from collections.abc import Iterable

from fabricheck.core import peers
from fabricheck.core.grouping import grouped
from fabricheck.core.statistics import median
from fabricheck.results.energy import SAME_CLOCK
from fabricheck.results.rows import Series


def above_peers(series: Iterable[Series]) -> dict[Series, float]:
    """Return the series whose devices take more than others for the same, as a fraction of them.

    What is alike: the same transfer and size on devices of one product over one class of link. Of
    fewer than `peers.FEWEST` none is named (`core.peers`).
    """
    alike = grouped(
        ((row.description, row.bytes, row.device_name, row.link_class), row)
        for row in series
        if row.pj_per_bit is not None and row.role == "single"
    )
    above: dict[Series, float] = {}
    for members in alike.values():
        energies = {row: row.pj_per_bit for row in _of_one_clock(members)}
        unlike = peers.unlike({row: value for row, value in energies.items() if value is not None})
        above |= {row: part for row, part in unlike.items() if part > 0}
    return above


def _of_one_clock(series: list[Series]) -> list[Series]:
    """Return those whose devices ran at the median clock under load."""
    clocks = {}
    for row in series:
        clock = _clock(row)
        if clock is not None:
            clocks[row] = clock
    if not clocks:
        return []
    middle = median(list(clocks.values()))
    return [row for row, clock in clocks.items() if abs(clock - middle) <= SAME_CLOCK * middle]


def _clock(series: Series) -> float | None:
    """Return the lowest clock in MHz of the devices at work, under load; None if one is unknown."""
    energy = series.measured.get("energy")
    if energy is None:
        return None
    working: set[int] = set()
    for counter in energy["counters"]:
        if counter["works"]:
            working.update(counter["devices"])
    clocks = [device["clock_mhz"] for device in energy["loaded"] if device["index"] in working]
    known = [clock for clock in clocks if clock]
    return min(known) if known and len(known) == len(clocks) else None
