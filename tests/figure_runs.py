"""Partitions composed of a few series, for tests of figures; values follow from their names."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import check_rows
import factories
from fabricheck.node import load
from fabricheck.report.figure import Figure
from fabricheck.results.entry import Entry
from fabricheck.results.observed import Observed
from fabricheck.results.session import Case

Drawer = Callable[[Observed], Iterator[Figure]]

MIB, GIB = 1 << 20, 1 << 30


def partition(
    runs: Mapping[str, Sequence[dict[str, Any]]], node: str | None = "mi250x", **changes: Any
) -> Observed:
    """Return a simulated partition whose checks have these series.

    :param changes: fields of each document.
    """
    entries = []
    for name, found in runs.items():
        case = Case(name, "local", "sim", "sim", "pass", None, frozenset(), ())
        document = factories.simulated_document(series=list(found), **changes)
        entries.append(Entry(case, None, document, None))
    return Observed("local:sim", check_rows.checks(*entries), load(node) if node else None)


def drawn(drawer: Drawer, observed: Observed) -> dict[str, Figure]:
    """Return a drawer's figures by their id."""
    return {figure.id: figure for figure in drawer(observed)}


def values(figure: Figure, kind: str = "simulated") -> dict[str, list[float]]:
    """Return a figure's values of one kind by series, in order."""
    found: dict[str, list[float]] = {}
    for row in figure.rows:
        if row["kind"] == kind:
            found.setdefault(row["series"], []).append(row["value"])
    return found


def copies(memory: str, curve: Mapping[int, float], operation: str = "h2d") -> list[dict[str, Any]]:
    """Return copies (E2) of device 0 with these GB/s by size."""
    return [
        factories.host_copy(operation, memory=memory, value=value, experiment="E2", bytes=size)
        for size, value in curve.items()
    ]


def peer(
    pair: tuple[int, int], size: int, value: float, operation: str = "engine"
) -> dict[str, Any]:
    """Return a transfer between two devices, by engine (E7) or a kernel copy (E8)."""
    kernel = operation == "copy"
    return factories.series(
        [value],
        experiment="E8" if kernel else "E7",
        operation=operation,
        engine="kernel" if kernel else "copy-engine",
        device=pair[0],
        device_set=list(pair),
        bytes=size,
        bytes_counted="read+write" if kernel else "once",
        host_clock=None,
    )


def rank_copy(
    rank: int, value: float, placement: str = "right", memory: str = "host-pageable", **changes: Any
) -> dict[str, Any]:
    """Return what one rank copies there and back (E6), on the device of its number."""
    share = {"experiment": "E6", "operation": "there-and-back", "role": "share", "ranks": [rank]}
    return factories.host_copy("h2d", rank, memory=memory, value=value) | {
        **share,
        "placement": placement,
        **changes,
    }
